/** A node that is about to be mistreated: its pods, and all they leave on the machine. */
import { eventually, Host } from "../cluster/host.ts";

/** A pod with something of everything that is made on a machine for a pod. */
export const pod = (name: string): string => JSON.stringify({
  apiVersion: "v1", kind: "Pod", metadata: { name, labels: { app: "fault" } },
  spec: {
    terminationGracePeriodSeconds: 1, volumes: [{ name: "disk", emptyDir: {} }, { name: "memory", emptyDir: { medium: "Memory" } }, { name: "ca", configMap: { name: "kube-root-ca.crt" } }],
    initContainers: [{ name: "first", image: "busybox:1", imagePullPolicy: "Never", command: ["true"] }],
    containers: [{ name: "c", image: "busybox:1", imagePullPolicy: "Never", command: ["sleep", "100000"], volumeMounts: [{ name: "disk", mountPath: "/disk" }, { name: "memory", mountPath: "/memory" }, { name: "ca", mountPath: "/ca", subPath: "ca.crt" }] }],
  },
});

export interface FaultyNode extends AsyncDisposable {
  readonly host: Host;
  /** With the seconds since the beginning. */
  say(text: string): void;
  /** Of what a script prints; none if it fails. */
  lines(script: string): Promise<string[]>;
  ready(): Promise<unknown>;
  running(pod: string): Promise<unknown>;
  gone(pod: string): Promise<unknown>;
  /** The pid of containerd. */
  containerd(): Promise<string>;
  /** Coracle is killed, and started again. */
  restart(): Promise<void>;
  /** Waits until nothing is on the machine that pods have made; throws with what there is. */
  nothingLeft(): Promise<void>;
  /** Of Coracle's process. */
  usage(): Promise<{ readonly files: number; readonly megabytes: number }>;
}

/** A shim that containerd has forgotten is ended within two minutes. */
const LEFT_MS_MAX = 150_000;

/** Starts it, with busybox:1. `flags`: of the server. `prepare`: before it is started. */
export async function faultyNode(name: string, address: string, { flags = [], prepare }: { readonly flags?: readonly string[]; readonly prepare?: (host: Host) => Promise<unknown> } = {}): Promise<FaultyNode> {
  const host = await Host.up(name, address);
  const begin = performance.now();
  const agent = `${host.dataDir}/agent`;
  const lines = async (script: string): Promise<string[]> => (await host.sh(`${script} || true`)).split("\n").filter(Boolean);
  const ready = () => host.nodeReady(undefined, 120_000);
  let before: ReadonlySet<string> = new Set();

  async function traces(): Promise<string[]> {
    const ctr = `${agent}/current/bin/ctr -a ${agent}/run/containerd.sock -n k8s.io`;
    return (await Promise.all([
      `cut -d' ' -f5 /proc/self/mountinfo | grep '^${host.dataDir}/'`, "ls /sys/class/net | grep '^veth'", "find /sys/fs/cgroup -type d -path '*kubepods*' -name 'pod*'",
      `find ${agent}/network/ipam ${agent}/network/addresses /var/lib/cni/results /run/netns /run/containerd/s /run/containerd/fifo /var/log/pods /var/log/containers -mindepth 1 2>/dev/null | grep -vE '/(last_reserved_ip.*|lock|ipam/coracle)$'`,
      `pgrep -a -f '[c]ontainerd-shim.*${host.dataDir}'`, `ls ${agent}/kubelet/pods`, `${agent}/current/bin/nft list ruleset | grep -oE '10[.]42[.]0[.][0-9]+ [.:].*'`,
      `${ctr} containers ls -q`, `${ctr} snapshots ls | tail -n +2 | cut -c1-64`, `${ctr} leases ls -q`,
    ].map(lines))).flat();
  }
  const left = async (): Promise<string[]> => (await traces()).filter((trace) => !before.has(trace));

  /** What containerd has to say of the sandboxes whose shims are left. */
  async function storyOfShims(all: readonly string[]): Promise<string[]> {
    const ids = all.flatMap((line) => /-id ([0-9a-f]{64})/.exec(line)?.[1] ?? []);
    return (await Promise.all(ids.map((id) => lines(`grep ${id} ${agent}/logs/containerd.log | cut -c1-400`)))).flat();
  }

  const node: FaultyNode = {
    host, lines, ready,
    say: (text) => console.log(`${((performance.now() - begin) / 1000).toFixed(1)} s  ${text}`),
    running: (one) => eventually(`${one} runs`, async () => (await host.kubectl("get", "pod", one, "--no-headers")).includes("1/1 ") && (await host.kubectl("get", "pod", one, "--no-headers")).includes("Running"), 120_000),
    gone: (one) => eventually(`${one} is gone`, async () => (await host.kubectl("get", "pod", one, "--ignore-not-found", "--no-headers")).trim() === "", 120_000),
    containerd: async () => (await host.sh(`pgrep -o -f '${agent}/.*containerd --config'`)).trim(),
    async restart() {
      await host.kill("KILL");
      await host.start(...flags);
      await ready();
    },
    async nothingLeft() {
      await eventually("nothing is left", async () => (await left()).length === 0, LEFT_MS_MAX).catch(async (cause: unknown) => {
        const all = await left();
        throw new Error(`left behind:\n${all.join("\n")}\n${(await storyOfShims(all)).join("\n")}`, { cause });
      });
    },
    async usage() {
      const [pid] = await lines(`cat ${host.directory}/coracle.pid`);
      const [files = "0", kilobytes = "0"] = await lines(`ls /proc/${pid}/fd | wc -l; sed -n 's/^VmRSS:[^0-9]*\\([0-9]*\\).*/\\1/p' /proc/${pid}/status`);
      return { files: Number(files), megabytes: Math.round(Number(kilobytes) / 1024) };
    },
    [Symbol.asyncDispose]: () => host[Symbol.asyncDispose](),
  };
  try {
    await prepare?.(host);
    await host.start(...flags);
    await ready();
    await host.importImage("busybox");
    await eventually("the service account is there", () => host.kubectl("get", "serviceaccount", "default"));
    before = new Set(await traces());
    return node;
  } catch (error) {
    await node[Symbol.asyncDispose]();
    throw error;
  }
}
