/**
 * What a node does when it runs short: `bun test/crash/evictions.ts [NAME…]` on the compiled binary, on a machine made of namespaces with small disks of its own.
 *
 * For each thing of which there may be too little a pod takes too much. Every time: the node says so in its condition, is tainted and takes no such pods; who takes more than it asked for ends,
 * told why in upstream's words, and who is modest stays; and when the condition has outlived its cause the taint is gone and a new pod runs. Exits with 1 otherwise.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually, type Host, IMAGES } from "../cluster/host.ts";
import { faultyNode, type FaultyNode } from "./faulty-node.ts";
import { makeDisk } from "./machine.ts";
import { eachFault, endWith } from "./outcome.ts";

const MI = 1024 * 1024;
/** A pod that takes this at once, and then sleeps. */
const pod = (name: string, script: string, more: object = {}): string => JSON.stringify({
  apiVersion: "v1", kind: "Pod", metadata: { name, labels: { app: "eviction" } },
  spec: {
    terminationGracePeriodSeconds: 20, volumes: [{ name: "disk", emptyDir: {} }, { name: "memory", emptyDir: { medium: "Memory" } }],
    containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "Never", command: ["sh", "-c", `${script}; exec sleep 100000`], volumeMounts: [{ name: "disk", mountPath: "/disk" }, { name: "memory", mountPath: "/memory" }], ...more }],
  },
});
const fill = (file: string, mi: number): string => `dd if=/dev/zero of=${file} bs=1M count=${mi} 2>/dev/null`;
const files = (directory: string, count: number): string => `mkdir -p ${directory}; cd ${directory}; seq ${count} | xargs touch`;

interface Shortage {
  /** Added to what all have: a condition is over twenty seconds after its cause. */
  readonly flags: (node: FaultyNode) => Promise<readonly string[]> | readonly string[];
  readonly takes: string;
  readonly condition: "MemoryPressure" | "DiskPressure" | "PIDPressure";
  readonly taint: string;
  /** How its end is told. */
  readonly told: RegExp;
  /** What happens before it ends, besides. */
  readonly meanwhile?: (node: FaultyNode) => Promise<unknown>;
}

const hard = (signals: string): readonly string[] => ["--kubelet-arg", `eviction-hard=memory.available<100Mi,${signals}`];
const availableMi = async ({ host }: FaultyNode): Promise<number> => {
  const { node } = JSON.parse(await host.kubectl("get", "--raw", "/api/v1/nodes/short/proxy/stats/summary")) as { node: { memory: { availableBytes: number } } };
  return Math.floor(node.memory.availableBytes / MI);
};
const low = (resource: string): RegExp => new RegExp(`^The node was low on resource: ${resource}\\. Threshold quantity: [0-9]+[KMGi]*, available: [0-9]+[KMGi]*\\. `);

const SHORTAGES: Readonly<Record<string, Shortage>> = {
  "room on the node's disk": {
    flags: () => hard("nodefs.available<400Mi"), takes: fill("/disk/x", 850), condition: "DiskPressure", taint: "node.kubernetes.io/disk-pressure", told: low("ephemeral-storage"),
  },
  "files on the node's disk": {
    flags: () => hard("nodefs.inodesFree<20%"), takes: files("/disk/x", 25_000), condition: "DiskPressure", taint: "node.kubernetes.io/disk-pressure", told: low("inodes"),
  },
  "room on the images' disk": {
    flags: () => hard("imagefs.available<40%"), takes: fill("/x", 450), condition: "DiskPressure", taint: "node.kubernetes.io/disk-pressure", told: low("ephemeral-storage"),
  },
  "files on the images' disk": {
    flags: () => hard("imagefs.inodesFree<30%"), takes: files("/x", 9_500), condition: "DiskPressure", taint: "node.kubernetes.io/disk-pressure", told: low("inodes"),
  },
  "process ids": {
    flags: async ({ host }) => {
      const threads = Number((await host.sh("cut -d/ -f2 /proc/loadavg | cut -d' ' -f1")).trim());
      await host.sh(`echo ${threads + 1400} > ${PID_MAX}`);
      return hard("pid.available<700");
    },
    takes: "for i in $(seq 1000); do sleep 100000 & done", condition: "PIDPressure", taint: "node.kubernetes.io/pid-pressure", told: low("pids"),
  },
  "memory of the pods together": {
    flags: async ({ lines }) => {
      const [kilobytes] = await lines("sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo");
      return [...hard("nodefs.available<1%"), "--kubelet-arg", `system-reserved=memory=${Math.floor(Number(kilobytes) / 1024) - 700}Mi`];
    },
    takes: fill("/memory/x", 620), condition: "MemoryPressure", taint: "node.kubernetes.io/memory-pressure", told: low("memory"),
  },
  "memory of the machine": {
    flags: async (node) => ["--kubelet-arg", `eviction-hard=memory.available<${(await availableMi(node)) - 1500}Mi`],
    takes: fill("/memory/x", 2600), condition: "MemoryPressure", taint: "node.kubernetes.io/memory-pressure", told: low("memory"),
  },
  "room on the node's disk, softly": {
    flags: () => [...hard("nodefs.available<1%"), "--kubelet-arg", "eviction-soft=nodefs.available<400Mi", "--kubelet-arg", "eviction-soft-grace-period=nodefs.available=30s", "--kubelet-arg", "eviction-max-pod-grace-period=5", "--kubelet-arg", "eviction-minimum-reclaim=nodefs.available=50Mi"],
    takes: fill("/disk/x", 850), condition: "DiskPressure", taint: "node.kubernetes.io/disk-pressure", told: low("ephemeral-storage"),
    meanwhile: async ({ host }) => {
      if ((await host.kubectl("get", "pod", "greedy", "-o", "jsonpath={.status.phase}")) !== "Running") throw new Error("it ended at once");
    },
  },
};

const conditionOf = (host: Host, type: string): Promise<string> => host.kubectl("get", "node", "short", "-o", `jsonpath={.status.conditions[?(@.type=='${type}')].status}`);
const taints = (host: Host): Promise<string> => host.kubectl("get", "node", "short", "-o", "jsonpath={.spec.taints[*].key}");

async function runShort(node: FaultyNode, { flags, takes, condition, taint, told, meanwhile }: Shortage): Promise<void> {
  const { host, running, gone, say } = node;
  const all = ["--kubelet-arg", "eviction-pressure-transition-period=20s", ...(await flags(node))];
  await host.kill("TERM");
  await host.start(...all);
  await node.ready();
  await eventually("it has enough of everything", async () => (await conditionOf(host, condition)) === "False" && (await taints(host)) === "", 120_000);
  const request = { resources: { requests: { memory: "64Mi", "ephemeral-storage": "10Mi" } } };
  await host.apply(`${pod("modest", "true", request)}\n---\n${pod("dear", "true")}`);
  await running("modest");
  await host.apply(pod("greedy", takes));
  await eventually(`${condition} is told`, async () => (await conditionOf(host, condition)) === "True", 180_000);
  await eventually("the node is tainted", async () => (await taints(host)).includes(taint), 60_000);
  await meanwhile?.(node);
  await host.apply(pod("late", "true"));
  const [, reason, message] = await eventually("greedy is evicted", async () => {
    const found = (await host.kubectl("get", "pod", "greedy", "-o", "jsonpath={.status.phase}|{.status.reason}|{.status.message}")).split("|");
    return found[0] === "Failed" ? found : undefined;
  }, 180_000);
  say(`  ${message}`);
  if (reason !== "Evicted" || !told.test(message!)) throw new Error(`it was told ${reason}: ${message}`);
  const disruption = await host.kubectl("get", "pod", "greedy", "-o", "jsonpath={.status.conditions[?(@.type=='DisruptionTarget')].reason}");
  if (disruption !== "TerminationByKubelet") throw new Error(`its condition is ${disruption}`);
  const events = await eventually("it is told in events", async () => {
    const found = await host.kubectl("get", "events", "--no-headers");
    return /EvictionThresholdMet/.test(found) && /Evicted +pod\/greedy/.test(found) ? found : undefined;
  }, 60_000);
  for (const line of new Set(events.split("\n").filter((one) => /EvictionThresholdMet|Evicted|NodeHas/.test(one)).map((one) => one.replace(/^\S+ +/, "").slice(0, 200)))) say(`    ${line}`);
  await eventually(`${condition} is over`, async () => (await conditionOf(host, condition)) === "False", 180_000);
  await eventually("the taint is gone", async () => !(await taints(host)).includes(taint), 60_000);
  await running("late");
  await running("modest");
  if ((await host.kubectl("get", "pod", "modest", "-o", "jsonpath={.status.containerStatuses[0].restartCount}")) !== "0") throw new Error("who was modest was restarted");
  await host.kubectl("delete", "pod", "--all", "--wait=true", "--timeout=60s");
  await gone("greedy");
}

const PID_MAX = "/proc/sys/kernel/pid_max"; // before Linux 6.14 the one of all namespaces

await endWith(async () => {
  const pidMax = readFileSync(PID_MAX, "utf8");
  using _ = { [Symbol.dispose]: () => writeFileSync(PID_MAX, pidMax) };
  await using node = await faultyNode("short", "172.30.0.17", {
    prepare: async (host) => {
      await makeDisk(host, { megabytes: 1500, files: 30_000 });
      const images = `${host.dataDir}/agent/containerd`;
      await host.sh(`truncate -s 700M ${host.directory}/images && mkfs.ext4 -q -N 12000 ${host.directory}/images && mkdir -p ${images} ${host.dataDir}/agent/images && mount -o loop ${host.directory}/images ${images} && cp ${host.bring(join(IMAGES, "busybox.tar"))} ${host.dataDir}/agent/images/`);
    },
  });
  return await eachFault({
    faults: SHORTAGES, words: process.argv.slice(2), cause: (shortage) => runShort(node, shortage), well: async () => undefined, say: node.say,
    story: async () => {
      console.error((await node.lines(`${node.host.binary} kubectl get pods -o wide; ${node.host.binary} kubectl describe node short | sed -n '/Conditions/,/Addresses/p;/Events/,$p'; grep -v '"level":"info"' ${node.host.directory}/coracle.log | tail -n 8 | cut -c1-400; df -h ${node.host.dataDir} ${node.host.dataDir}/agent/containerd; df -i ${node.host.dataDir} ${node.host.dataDir}/agent/containerd`)).join("\n"));
      await node.host.kubectl("delete", "pod", "--all", "--wait=true", "--timeout=60s", "--force").catch(() => undefined);
    },
  });
});
