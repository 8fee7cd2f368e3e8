/**
 * What a small node costs: `bun test/bench/first-day.ts [idle seconds]` on the compiled binary, on a machine made of namespaces.
 *
 * Prints: exec to /readyz, exec to node Ready (first start and later ones), memory soon after each start, apply of a pod to Running; then, idle: memory (PSS) of coracle and of containerd,
 * CPU of both, and bytes written to disk by both. Memory is also given as a share of what upstream's eight processes use on such a machine (785 MB).
 */
import { readFileSync } from "node:fs";
import { Host, switchDown } from "../cluster/host.ts";

const UPSTREAM_PSS_MB = 785;
const idleSeconds = Number(process.argv[2] ?? 60);

async function until(ask: () => Promise<boolean>): Promise<number> {
  const startMs = performance.now();
  for (;;) {
    if (await ask().catch(() => false)) return performance.now() - startMs;
    await Bun.sleep(10);
  }
}

function processes(name: string, host: Host): number[] {
  const found = Bun.spawnSync(["pgrep", "-f", `^${host.directory}/.*${name}`]).stdout.toString().trim().split("\n").filter(Boolean).map(Number);
  return found.filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0")[0]!.endsWith(name));
}

const pssMb = (pid: number) => Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))![1]) / 1024;
const cpuMs = (pid: number) => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /, "").split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
};
const writtenBytes = (pid: number) => {
  const io = readFileSync(`/proc/${pid}/io`, "utf8");
  return Number(/^write_bytes: (\d+)/m.exec(io)![1]) - Number(/^cancelled_write_bytes: (\d+)/m.exec(io)![1]);
};

const host = await Host.up("bench", "172.30.0.12");
async function starts(label: string): Promise<void> {
  const begin = performance.now();
  await host.start();
  const spawned = performance.now();
  await until(async () => (await host.sh("curl -sk -m 2 https://127.0.0.1:6443/readyz")) === "ok");
  const readyz = performance.now() - begin;
  await until(async () => (await host.sh(`${host.binary} kubectl get nodes --no-headers`)).includes(" Ready "));
  console.log(`${label}: readyz ${readyz.toFixed(0)} ms, node Ready ${(performance.now() - begin).toFixed(0)} ms (of it ${(spawned - begin).toFixed(0)} ms are the harness')`);
  await Bun.sleep(5_000);
  console.log(`${label}: coracle ${pssMb(processes("coracle", host)[0]!).toFixed(0)} MB (PSS) 5 s later`);
}
try {
  await measure();
} finally {
  await host[Symbol.asyncDispose]();
  await switchDown();
}

async function measure(): Promise<void> {
  await starts("first start");
  await host.kill("TERM");
  await starts("later start (the node was Ready before)");

  await host.importImage("busybox");
  await Bun.sleep(3000);
  const times: number[] = [];
  for (let i = 0; i < 5; i++) {
    const begin = performance.now();
    await host.sh(`${host.binary} kubectl run p${i} --image=busybox:1 --image-pull-policy=Never -- sleep 1000 && ${host.binary} kubectl wait --for=condition=Ready pod/p${i} --timeout=30s`);
    times.push(performance.now() - begin);
  }
  console.log(`kubectl run + wait Ready, a pod with a local image: ${times.map((ms) => ms.toFixed(0)).join(", ")} ms, two kubectl processes included`);
  await host.kubectl("delete", "pods", "--all", "--grace-period=0", "--force");
  await Bun.sleep(90_000); // what pods and images left to write is written

  const pids = { coracle: processes("coracle", host)[0]!, containerd: processes("containerd", host)[0]! };
  const before = Object.fromEntries(Object.entries(pids).map(([name, pid]) => [name, { cpu: cpuMs(pid), written: writtenBytes(pid) }]));
  await Bun.sleep(idleSeconds * 1000);
  let totalMb = 0;
  for (const [name, pid] of Object.entries(pids)) {
    const mb = pssMb(pid);
    totalMb += mb;
    console.log(`${name}, idle ${idleSeconds} s: PSS ${mb.toFixed(0)} MB, CPU ${((cpuMs(pid) - before[name]!.cpu) / idleSeconds).toFixed(1)} millicores, written ${((writtenBytes(pid) - before[name]!.written) / 1024 / (idleSeconds / 60)).toFixed(1)} kB/min`);
  }
  console.log(`together ${totalMb.toFixed(0)} MB: ${(totalMb / UPSTREAM_PSS_MB).toFixed(2)} of upstream's`);
}
