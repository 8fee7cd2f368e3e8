/**
 * What a node leaves behind when things go wrong: `bun test/crash/node-faults.ts [rounds] [pods]` on the compiled binary, on a machine made of namespaces.
 *
 *   containerd is killed, and is hung for a while      what runs goes on, what is new starts afterwards
 *   coracle is killed, `rounds` times                  at a moment of a pod's start, and at one of its end
 *   `pods` pods come and go
 *
 * At the end all pods have been what was asked of them, and nothing is left that they made (faulty-node.ts): no mount, interface, cgroup, address, shim, directory, snapshot, nor descriptor of ours.
 * Exits with 1 otherwise.
 */
import { eventually } from "../cluster/host.ts";
import { faultyNode, pod } from "./faulty-node.ts";
import { wholeNumber } from "../whole-number.ts";
import { endWith } from "./outcome.ts";

const rounds = wholeNumber(process.argv[2] ?? "6", "rounds");
const pods = wholeNumber(process.argv[3] ?? "40", "pods");
const BATCH = 20;
/** Connections come and go, whatever pods do. */
const FILES_MORE_MAX = 40;
/** What the engine has not given back yet. A leak of 1 MB a pod shows with 400 of them. */
const MEGABYTES_MORE_MAX = 300;

/** Moments of a start and of an end, spread over what they take on a small machine; the same in every run. */
const MOMENTS_MS = [30, 120, 250, 400, 600, 900, 1300, 1800];

await endWith(async () => {
  await using node = await faultyNode("faults", "172.30.0.15");
  const { host, say, running, gone, lines, restart } = node;
  await host.apply(pod("steady"));
  await running("steady");
  const before = await host.kubectl("get", "pod", "steady", "-o", "jsonpath={.status.containerStatuses[0].containerID}");
  say("a pod runs");

  await host.sh(`kill -9 ${await node.containerd()}`);
  await host.apply(pod("after-kill"));
  await running("after-kill");
  say("containerd was killed; a new pod has started");

  const hung = await node.containerd();
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

  const used = [await node.usage()];
  for (let from = 0; from < pods; from += BATCH) {
    const names = Array.from({ length: Math.min(BATCH, pods - from) }, (_, i) => `churn-${from + i}`);
    await host.apply(names.map(pod).join("\n---\n"));
    await eventually("all of them run", async () => (await lines(`${host.binary} kubectl get pods --no-headers | grep '^churn-' | grep -c 1/1`))[0] === String(names.length), 120_000);
    await host.kubectl("delete", "pod", ...names, "--wait=true", "--timeout=120s");
    used.push(await node.usage());
  }
  const first = used[Math.min(1, used.length - 1)]!, last = used.at(-1)!; // after one batch everything has been used once
  say(`${pods} pods have come and gone; descriptors ${used.map(({ files }) => files).join(" ")}; memory ${used.map(({ megabytes }) => megabytes).join(" ")} MB`);

  const [id, restarts] = (await host.kubectl("get", "pod", "steady", "-o", "jsonpath={.status.containerStatuses[0].containerID} {.status.containerStatuses[0].restartCount}")).split(" ");
  if (id !== before || restarts !== "0") throw new Error(`the pod of the beginning was restarted: ${before} is ${id}, ${restarts} restarts`);
  await host.kubectl("delete", "pod", "--all", "--wait=true", "--timeout=60s");
  await node.nothingLeft();
  if (last.files > first.files + FILES_MORE_MAX || last.megabytes > first.megabytes + MEGABYTES_MORE_MAX) throw new Error("descriptors or memory leak");
  say("nothing is left");
  return true;
});
