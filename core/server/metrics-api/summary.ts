/** The statistics of kubelets (/stats/summary), of which the metrics API needs processor and memory. */
import type { Node } from "../../api/gen/core.v1.ts";
import { findCondition } from "../../api/meta/conditions.ts";
import { ArrivedBytes } from "../../net/arrived-bytes.ts";
import { http1Request } from "../../net/http1-client.ts";
import { kubeletBackend, type NodeProxyDeps } from "../node-proxy/backend.ts";
import type { Scope } from "../scope.ts";

export interface Usage {
  /** When it was measured, RFC 3339. */
  readonly time: string;
  readonly nanoCores: number;
  readonly workingSetBytes: number;
  /** Absent where there is no swap, or nobody counts it. */
  readonly swapBytes?: number;
}

export interface NodeSummary {
  /** Undefined where there is no rate yet. */
  readonly node: Usage | undefined;
  /** By uid of the pod. */
  readonly pods: ReadonlyMap<string, readonly { readonly name: string; readonly usage: Usage | undefined }[]>;
}

export interface SummaryReader {
  /** By name of the node; those that do not answer are missing. Asks once more where `enough` says that something is. */
  read(scope: Scope, nodeNames: readonly string[], enough: (summary: NodeSummary, nodeName: string) => boolean): Promise<ReadonlyMap<string, NodeSummary>>;
}

/** An answer is good for others who ask soon. */
const FRESH_MS = 5_000;
const SECOND_LOOK_MS = 1_000;
const ANSWER_MS = 10_000;
/** A node with 500 pods says less than a MiB. */
const SUMMARY_BYTES_MAX = 16 * 1024 * 1024;

export function summaryReader(deps: NodeProxyDeps): SummaryReader {
  const known = new Map<string, { readonly summary: Promise<NodeSummary>; readonly sinceMs: number }>();

  function ask(scope: Scope, nodeName: string, freshMs: number): Promise<NodeSummary> {
    const nowMs = scope.server.clock.uptimeMs();
    for (const [name, { sinceMs }] of known) if (nowMs - sinceMs > FRESH_MS) known.delete(name);
    const before = known.get(nodeName);
    if (before && nowMs - before.sinceMs < freshMs) return before.summary;
    const summary = fetchSummary(deps, scope, nodeName);
    known.set(nodeName, { summary, sinceMs: nowMs });
    return summary;
  }

  return {
    async read(scope, nodeNames, enough) {
      const found = new Map<string, NodeSummary>();
      await Promise.all(nodeNames.map(async (name) => {
        try {
          let summary = await ask(scope, name, FRESH_MS);
          if (!enough(summary, name)) {
            await scope.server.clock.sleep(SECOND_LOOK_MS, scope.signal);
            summary = await ask(scope, name, SECOND_LOOK_MS / 2);
          }
          found.set(name, summary);
        } catch (error) {
          scope.server.log.debug("a node told no statistics", { node: name, error });
        }
      }));
      return found;
    },
  };
}

/** Lives on when the one who asked is gone: others may be waiting for it. Of a node that is known to be silent no answer is waited for: whoever scales by others' pods would wait as well, each time. */
async function fetchSummary(deps: NodeProxyDeps, scope: Scope, nodeName: string): Promise<NodeSummary> {
  const late = new AbortController();
  const alarm = scope.server.clock.after(ANSWER_MS, () => late.abort(new Error("the kubelet did not answer")));
  try {
    const { object } = await scope.server.registry.storeOf("", "nodes")!.get("", nodeName, late.signal);
    if (findCondition((object as unknown as Readonly<Node>).status?.conditions, "Ready")?.status === "Unknown") throw new Error("nobody hears from the node");
    const backend = await kubeletBackend(deps, { ...scope, signal: late.signal }, nodeName);
    const { status, body } = await http1Request(await backend.connect(), { method: "GET", target: "/stats/summary?only_cpu_and_memory=true", headers: [["Host", backend.host], ["User-Agent", "kube-apiserver"]] }, late.signal);
    const arrived = new ArrivedBytes();
    for await (const chunk of body as AsyncIterable<Buffer>) {
      arrived.add(chunk);
      if (arrived.bytes.length > SUMMARY_BYTES_MAX) throw new Error("the kubelet's statistics are too long");
    }
    const text = arrived.take().toString();
    if (status !== 200) throw new Error(`the kubelet answered ${status}: ${text.slice(0, 200)}`);
    return summaryOf(JSON.parse(text) as RawSummary);
  } finally {
    alarm.cancel();
  }
}

interface RawStats {
  readonly cpu?: { readonly time: string; readonly usageNanoCores?: number };
  readonly memory?: { readonly time: string; readonly workingSetBytes?: number };
  readonly swap?: { readonly swapUsageBytes?: number };
}

interface RawSummary {
  readonly node: RawStats;
  readonly pods?: readonly { readonly podRef: { readonly uid: string }; readonly containers?: readonly (RawStats & { readonly name: string })[] }[];
}

export function summaryOf({ node, pods = [] }: RawSummary): NodeSummary {
  return {
    node: usageOf(node),
    pods: new Map(pods.map(({ podRef, containers = [] }) => [podRef.uid, containers.map((container) => ({ name: container.name, usage: usageOf(container) }))])),
  };
}

/** What is no amount and no time is none: a node that says it would otherwise have nobody see the others'. */
function usageOf({ cpu, memory, swap }: RawStats): Usage | undefined {
  if (!isAmount(cpu?.usageNanoCores) || !isAmount(memory?.workingSetBytes) || !TIME.test(String(cpu?.time)) || Number.isNaN(Date.parse(cpu!.time))) return undefined;
  return { time: String(cpu!.time), nanoCores: Math.round(cpu!.usageNanoCores!), workingSetBytes: Math.round(memory!.workingSetBytes!), ...(isAmount(swap?.swapUsageBytes) ? { swapBytes: Math.round(swap!.swapUsageBytes!) } : {}) };
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;

function isAmount(value: unknown): value is number { return typeof value === "number" && value >= 0 && value <= Number.MAX_SAFE_INTEGER; }
