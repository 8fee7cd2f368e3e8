/**
 * How long a pod takes from bound to Running, and what it costs while it does nothing: `bun test/bench/pod-start.ts [pods] [at once] [idle seconds]` on the compiled binary, on a machine
 * made of namespaces.
 *
 * Prints p50 and p99 of pods started one after the other, as a watcher of the API sees them, beside what the bare calls to the runtime (RunPodSandbox, CreateContainer, StartContainer) take
 * in the same run; how long it takes until as many pods as asked for run that were applied at once; and then memory (PSS) and CPU of an idle node for each of them, by process, the same
 * node's without pods taken off.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { criClient } from "../../node/cri/client.ts";
import { eventually, Host, switchDown } from "../cluster/host.ts";

const count = Number(process.argv[2] ?? 30);
const atOnce = Number(process.argv[3] ?? 100);
const idleSeconds = Number(process.argv[4] ?? 60);
/** After a change, until nothing that came of it is going on. */
const SETTLE_MS = 20_000;
const IMAGE = "busybox:1";

const pod = (name: string) => JSON.stringify({
  apiVersion: "v1", kind: "Pod", metadata: { name },
  spec: { terminationGracePeriodSeconds: 0, containers: [{ name: "c", image: IMAGE, imagePullPolicy: "Never", command: ["sleep", "100000"] }] },
});
const percentile = (values: readonly number[], part: number): number => values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * part))]!;
const show = (label: string, values: readonly number[]): void => console.log(`${label.padEnd(44)} p50 ${percentile(values, 0.5).toFixed(0).padStart(6)} ms   p99 ${percentile(values, 0.99).toFixed(0).padStart(6)} ms   n ${values.length}`);

await using host = await Host.up("podstart", "172.30.0.16");
const bound = new Map<string, number>();
const running = new Map<string, number>();

/** Follows all pods; what it sees is timed when it is seen. */
async function follow(): Promise<{ stop(): void }> {
  const child = Bun.spawn(["bash", join(import.meta.dirname, "../cluster/host.sh"), "exec", host.name, "env", `KUBECONFIG=${host.kubeconfig}`, `HOME=${host.directory}`, host.binary, "kubectl", "get", "pods", "--watch", "-o", "jsonpath={.metadata.name} {.spec.nodeName} {.status.phase}{'\\n'}"], { env: { ...process.env }, stdout: "pipe", stderr: "ignore" });
  void (async () => {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const chunk of child.stdout as unknown as AsyncIterable<Uint8Array>) {
      const nowMs = performance.now();
      const text = rest + decoder.decode(chunk);
      const all = text.split("\n");
      rest = all.pop()!;
      for (const line of all) {
        const [name = "", node = "", phase = ""] = line.split(" ");
        if (node !== "" && !bound.has(name)) bound.set(name, nowMs);
        if (phase === "Running" && !running.has(name)) running.set(name, nowMs);
      }
    }
  })();
  return { stop: () => child.kill() };
}

/** Of the node's processes, without those of containers. CPU with that of children that have ended. */
function usage(): Readonly<Record<"coracle" | "containerd" | "shims", { readonly pssMb: number; readonly cpuMs: number }>> {
  const of = (pattern: string) => Bun.spawnSync(["pgrep", "-f", pattern]).stdout.toString().split("\n").filter(Boolean).map((pid) => {
    const times = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/^.*\) /s, "").split(" ").slice(11, 15).map(Number);
    return { pssMb: Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))![1]) / 1024, cpuMs: times.reduce((sum, ticks) => sum + ticks * 10, 0) };
  }).reduce((sum, { pssMb, cpuMs }) => ({ pssMb: sum.pssMb + pssMb, cpuMs: sum.cpuMs + cpuMs }), { pssMb: 0, cpuMs: 0 });
  return { coracle: of(`^${host.binary} server`), containerd: of(`^${host.dataDir}/agent/.*/containerd --config`), shims: of(`^${host.dataDir}/agent/.*containerd-shim-runc-v2 `) };
}

async function idle(): Promise<ReturnType<typeof usage>> {
  await Bun.sleep(SETTLE_MS);
  const first = usage();
  await Bun.sleep(idleSeconds * 1000);
  const last = usage();
  const between = (of: keyof typeof first) => ({ pssMb: last[of].pssMb, cpuMs: (last[of].cpuMs - first[of].cpuMs) * (60 / idleSeconds) });
  return { coracle: between("coracle"), containerd: between("containerd"), shims: between("shims") };
}

try {
  await host.start("--kubelet-arg", "max-pods=250");
  await host.nodeReady();
  await host.importImage("busybox");
  await eventually("the service account is there", () => host.kubectl("get", "serviceaccount", "default"));
  const watcher = await follow();
  await Bun.sleep(1_000);

  for (let i = 0; i < count; i++) {
    await host.apply(pod(`one-${i}`));
    await eventually("it runs", async () => running.has(`one-${i}`));
  }
  show("pod: bound to Running", [...running].filter(([name]) => name.startsWith("one-")).map(([name, ms]) => ms - bound.get(name)!));

  const cri = criClient({ socket: join(host.dataDir, "agent/run/containerd.sock"), nowMs: Date.now });
  const raw: number[] = [];
  for (let i = 0; i < count; i++) {
    const config = { metadata: { name: `raw-${i}`, namespace: "raw", uid: `raw-${i}`, attempt: 0 }, log_directory: `${host.directory}/raw-${i}`, linux: { cgroup_parent: "/raw", security_context: { namespace_options: {} } } };
    const startMs = performance.now();
    const { pod_sandbox_id } = await cri.call("RuntimeService/RunPodSandbox", { config });
    const { container_id } = await cri.call("RuntimeService/CreateContainer", { pod_sandbox_id, sandbox_config: config, config: { metadata: { name: "c", attempt: 0 }, image: { image: IMAGE }, command: ["sleep", "100000"], log_path: "0.log", linux: {} } });
    await cri.call("RuntimeService/StartContainer", { container_id });
    raw.push(performance.now() - startMs);
    await cri.call("RuntimeService/StopPodSandbox", { pod_sandbox_id });
    await cri.call("RuntimeService/RemovePodSandbox", { pod_sandbox_id });
  }
  cri.close();
  show("bare calls to the runtime", raw);

  await host.kubectl("delete", "pod", "--all", "--wait=true");
  const empty = await idle();
  const names = Array.from({ length: atOnce }, (_, i) => `many-${i}`);
  const startMs = performance.now();
  await host.apply(names.map(pod).join("\n---\n"));
  await eventually("all of them run", async () => names.every((name) => running.has(name)), 600_000);
  const lastMs = Math.max(...names.map((name) => running.get(name)!));
  console.log(`${atOnce} pods applied at once, all Running: ${((lastMs - startMs) / 1000).toFixed(1)} s`);
  watcher.stop();

  const full = await idle();
  for (const of of ["coracle", "containerd", "shims"] as const)
    console.log(`${of.padEnd(12)} idle: ${empty[of].pssMb.toFixed(0)} MB, ${empty[of].cpuMs.toFixed(0)} ms of CPU a minute; for each of ${atOnce} pods: ${((full[of].pssMb - empty[of].pssMb) / atOnce).toFixed(2)} MB, ${((full[of].cpuMs - empty[of].cpuMs) / atOnce).toFixed(1)} ms a minute`);
} finally {
  await host[Symbol.asyncDispose]();
  await switchDown();
}
process.exit(0);
