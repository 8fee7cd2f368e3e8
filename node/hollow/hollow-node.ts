/**
 * A node without a machine: it registers, keeps its lease and its status, and says of every pod that is bound to it that it runs. For measuring a server, and for
 * trying out a large cluster on a small machine (cmd/simulate.ts).
 *
 *   Node, Lease    node/kubelet/node: what a real agent runs, over a runtime in memory
 *   pods           hollow-pods.ts, plan.ts
 */
import type { Node, Pod, Taint } from "../../core/api/gen/core.v1.ts";
import type { Client } from "../../core/client/client.ts";
import type { Events } from "../../core/client/events.ts";
import type { Informer } from "../../core/client/informer.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { formatIp, nthAddress, parseCidr } from "../../core/net/cidr.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { nodeAgent } from "../kubelet/node/node-agent.ts";
import { KUBELET_DEFAULTS } from "../kubelet/settings.ts";
import type { MachineInfo } from "../os/machine.ts";
import { hollowPods } from "./hollow-pods.ts";

export interface HollowNodeOptions {
  readonly name: string;
  /** Which of the hollow nodes: gives it an address of its own. */
  readonly index: number;
  readonly version: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  readonly taints: readonly Taint[];
  readonly client: Client;
  /** Of this node, or of all nodes. */
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  /** May be shared by all hollow nodes. */
  readonly cri: Cri;
  readonly events: Events;
  readonly clock: Clock;
  readonly log: Log;
}

/** Told apart from real ones by this label. */
const SIMULATED_LABEL = "coracle.local/simulated";
/** For benchmarks of networks (RFC 2544): nobody is there. */
const NODE_IPS = parseCidr("198.18.0.0/15")!;
const DISK_BYTES = 1024 ** 4;
export const HOLLOW_NODES_MAX = 131_070;

/** The parts of one hollow node, in the order of their start. */
export function hollowNode({ name, index, version, labels, annotations, taints, client, pods, nodes, cri, events, clock, log }: HollowNodeOptions): readonly Runnable[] {
  const nodeIps = [formatIp(nthAddress(NODE_IPS, BigInt(index) + 1n))];
  const agent = nodeAgent({
    settings: { ...KUBELET_DEFAULTS, nodeName: name, nodeIps, hostname: name, version, dataDir: "/", labels: { [SIMULATED_LABEL]: "true", ...labels }, annotations, taints },
    client, nodes, cri, machine: machineOf(name), clock, log, events: events.from({ component: "kubelet", host: name }),
    runtimeSilentMs: () => 0, runtimeSilentMsMax: Number.MAX_SAFE_INTEGER, pressures: () => new Set(), diskBytes: async () => DISK_BYTES,
  });
  return [...agent.parts, hollowPods({ nodeName: name, nodeIps, node: agent.current, client, pods, clock, log: log.with({ node: name }) })];
}

/** Room for more pods than a node takes. */
function machineOf(name: string): MachineInfo {
  return {
    os: "linux", cpus: 32, memoryBytes: 256 * 1024 ** 3, swapBytes: 0, hugepages: [], machineId: name, systemUuid: name, bootId: name, kernelVersion: "0.0.0-hollow", osImage: "hollow",
    architecture: "amd64",
  };
}
