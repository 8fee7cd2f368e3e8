/**
 * What a node leaves behind when things go wrong: `bun test/crash/node-faults.ts [rounds] [pods]` on the compiled binary, on a machine made of namespaces.
 *
 *   containerd is killed, and is hung for a while      what runs goes on, what is new starts afterwards
 *   coracle is killed, `rounds` times                  at a moment of a pod's start, and at one of its end
 *   `pods` pods come and go
 *
 * At the end all pods have been what was asked of them, and nothing is left: no mount, no interface, no cgroup, no address, no shim, no directory. Exits with 1 otherwise.
 */
import { join } from "node:path";
import { eventually, Host, switchDown } from "../cluster/host.ts";

const rounds = Number(process.argv[2] ?? 6);
const pods = Number(process.argv[3] ?? 40);
const BATCH = 20;
const images = process.env["TEST_IMAGES"] ?? join(import.meta.dirname, "../../dist/test-images");

/** Moments of a start and of an end, spread over what they take on a small machine; the same in every run. */
const MOMENTS_MS = [30, 120, 250, 400, 600, 900, 1300, 1800];

const pod = (name: string) => JSON.stringify({
  apiVersion: "v1", kind: "Pod", metadata: { name, labels: { app: "fault" } },
  spec: {
    terminationGracePeriodSeconds: 1, volumes: [{ name: "disk", emptyDir: {} }, { name: "memory", emptyDir: { medium: "Memory" } }, { name: "ca", configMap: { name: "kube-root-ca.crt" } }],
    initContainers: [{ name: "first", image: "busybox:1", imagePullPolicy: "Never", command: ["true"] }],
    containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "Never", command: ["sleep", "100000"], volumeMounts: [{ name: "disk", mountPath: "/disk" }, { name: "memory", mountPath: "/memory" }, { name: "ca", mountPath: "/ca", subPath: "ca.crt" }] }],
  },
});

await using host = await Host.up("faults", "172.30.0.15");
const begin = performance.now();
const say = (text: string): void => console.log(`${((performance.now() - begin) / 1000).toFixed(1)} s  ${text}`);
const lines = async (script: string): Promise<string[]> => (await host.sh(`${script} || true`)).split("\n").filter(Boolean);

const ready = () => eventually("the node is Ready", async () => (await host.kubectl("get", "nodes", "--no-headers")).includes(" Ready "));
const running = (name: string) => eventually(`${name} runs`, async () => (await host.kubectl("get", "pod", name, "--no-headers")).includes("1/1") || undefined);
const gone = (name: string) => eventually(`${name} is gone`, async () => (await host.kubectl("get", "pod", name, "--ignore-not-found", "--no-headers")).trim() === "");
const containerd = async (): Promise<string> => (await host.sh(`pgrep -o -f '${host.dataDir}/agent/.*containerd --config'`)).trim();

async function restart(): Promise<void> {
  await host.kill("KILL");
  await host.start();
  await ready();
}

/** All that pods make on a machine. */
async function left(): Promise<string[]> {
  const kubelet = `${host.dataDir}/agent/kubelet`;
  return [
    ...await lines(`grep -o '${kubelet}/pods/[^ ]*' /proc/self/mountinfo`), ...await lines(`ls /sys/class/net | grep '^veth'`), ...await lines(`find /sys/fs/cgroup -type d -path '*kubepods*' -name 'pod*'`),
    ...await lines(`ls ${host.dataDir}/agent/network/ipam 2>/dev/null | grep -E '^[0-9]+[.]'`), ...await lines(`pgrep -a -f '[c]ontainerd-shim.*${host.dataDir}'`), ...await lines(`ls ${kubelet}/pods`),
  ];
}

/** What containerd has to say of the sandboxes whose shims are left. */
async function storyOfShims(): Promise<string[]> {
  const ids = (await left()).flatMap((line) => /-id ([0-9a-f]{64})/.exec(line)?.[1] ?? []);
  return (await Promise.all(ids.map((id) => lines(`grep ${id} ${host.dataDir}/agent/logs/containerd.log | cut -c1-400`)))).flat();
}

let failed = false;
try {
  await host.start();
  await ready();
  await host.ok([host.binary, "images", "import", host.bring(join(images, "busybox.tar"))]);
  await eventually("the service account is there", () => host.kubectl("get", "serviceaccount", "default"));
  await host.apply(pod("steady"));
  await running("steady");
  const before = await host.kubectl("get", "pod", "steady", "-o", "jsonpath={.status.containerStatuses[0].containerID}");
  say("a pod runs");

  await host.sh(`kill -9 ${await containerd()}`);
  await host.apply(pod("after-kill"));
  await running("after-kill");
  say("containerd was killed; a new pod has started");

  const hung = await containerd();
  await host.sh(`kill -STOP ${hung}`);
  await host.kubectl("delete", "pod", "after-kill", "--wait=false");
  await host.apply(pod("after-hang"));
  await Bun.sleep(5_000);
  await host.sh(`kill -CONT ${hung}`);
  await running("after-hang");
  await gone("after-kill");
  say("containerd hung for 5 s; one pod has started, one has ended");

  for (let round = 0; round < rounds; round++) {
    const name = `round-${round}`;
    const momentMs = MOMENTS_MS[round % MOMENTS_MS.length]!;
    await host.apply(pod(name));
    await Bun.sleep(momentMs);
    await restart();
    await running(name);
    await host.kubectl("delete", "pod", name, "--wait=false");
    await Bun.sleep(momentMs);
    await restart();
    await gone(name);
    say(`coracle was killed ${momentMs} ms after a pod's start, and after its deletion`);
  }

  for (let first = 0; first < pods; first += BATCH) {
    const names = Array.from({ length: Math.min(BATCH, pods - first) }, (_, i) => `churn-${first + i}`);
    await host.apply(names.map(pod).join("\n---\n"));
    await eventually("all of them run", async () => (await lines(`${host.binary} kubectl get pods --no-headers | grep '^churn-' | grep -c 1/1`))[0] === String(names.length) || undefined, 120_000);
    await host.kubectl("delete", "pod", ...names, "--wait=true", "--timeout=120s");
  }
  say(`${pods} pods have come and gone`);

  const [id, restarts] = (await host.kubectl("get", "pod", "steady", "-o", "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")).split(" ");
  if (id !== before || restarts !== "0") throw new Error(`the pod of the beginning was restarted: ${before} is ${id}, ${restarts} restarts`);
  await host.kubectl("delete", "pod", "--all", "--wait=true", "--timeout=60s");
  await eventually("nothing is left", async () => (await left()).length === 0 || undefined, 30_000).catch(async (error: unknown) => { throw new Error(`left behind:\n${(await left()).join("\n")}\n${(await storyOfShims()).join("\n")}`, { cause: error }); });
  say("nothing is left");
} catch (error) {
  failed = true;
  console.error(error);
} finally {
  await host[Symbol.asyncDispose]();
  await switchDown();
}
process.exit(failed ? 1 : 0);
