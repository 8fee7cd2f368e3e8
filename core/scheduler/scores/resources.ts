/** Scores on how full a node would be. Source: kubernetes v1.36 pkg/scheduler/framework/plugins/noderesources */
import type { Cluster } from "../cluster.ts";
import { devicesOfClass } from "../devices/class-counts.ts";
import { isExtendedResource } from "../devices/extended-resources.ts";
import type { LiveNode } from "../node-info.ts";
import { type Score, SCORE_MAX } from "../plugin.ts";
import { type Requests, scoredRequests } from "../pod-requests.ts";

/** Which resources count, and how much. */
export type ResourceWeights = Readonly<Record<string, number>>;

export type FitStrategy =
  | { readonly type: "LeastAllocated" | "MostAllocated"; readonly resources: ResourceWeights }
  /** `shape`: points, utilization 0…100 ascending, score 0…10; straight lines between them. */
  | { readonly type: "RequestedToCapacityRatio"; readonly resources: ResourceWeights; readonly shape: readonly { readonly utilization: number; readonly score: number }[] };

const CPU_AND_MEMORY: ResourceWeights = { cpu: 1, memory: 1 };

/** By default the emptier node is the better. */
export function nodeResourcesFitScore(strategy: FitStrategy = { type: "LeastAllocated", resources: CPU_AND_MEMORY }): Score {
  const resources = Object.entries(strategy.resources);
  const scoreOf = scorer(strategy);
  return {
    name: "NodeResourcesFit",
    weight: 1,
    ofNode: true,
    prepare({ pod, requests }, cluster) {
      const wanted = scoredRequests(pod, requests);
      const counted = resources.filter(([name]) => counts(name, wanted));
      const behind = devicesBehind(counted.map(([name]) => name), cluster);
      return {
        score(node) {
          let sum = 0;
          let weights = 0;
          for (const [name, weight] of counted) {
            const devices = behind?.(node, name);
            const has = devices?.has ?? node.allocatable[name] ?? 0;
            if (has === 0) continue;
            const worth = scoreOf((devices?.used ?? usedOn(node, name)) + (wanted[name] ?? 0), has);
            if (worth === 0 && strategy.type === "RequestedToCapacityRatio") continue; // it has no weight then
            sum += worth * weight;
            weights += weight;
          }
          if (weights === 0) return 0;
          return strategy.type === "RequestedToCapacityRatio" ? Math.round(sum / weights) : Math.trunc(sum / weights);
        },
      };
    },
  };
}

function scorer(strategy: FitStrategy): (used: number, has: number) => number {
  switch (strategy.type) {
    case "LeastAllocated": return (used, has) => (used > has ? 0 : Math.trunc(((has - used) * SCORE_MAX) / has));
    case "MostAllocated": return (used, has) => Math.trunc((Math.min(used, has) * SCORE_MAX) / has);
    case "RequestedToCapacityRatio": return (used, has) => onShape(strategy.shape, used > has ? 100 : Math.trunc((used * 100) / has));
  }
}

/** How much a use of 0…100 is worth, by points of 0…10. */
export function onShape(shape: readonly { readonly utilization: number; readonly score: number }[], utilization: number): number {
  const scale = SCORE_MAX / 10;
  const next = shape.findIndex((point) => utilization <= point.utilization);
  if (next === 0) return shape[0]!.score * scale;
  if (next < 0) return shape.at(-1)!.score * scale;
  const from = shape[next - 1]!;
  const to = shape[next]!;
  return from.score * scale + Math.trunc(((to.score - from.score) * scale * (utilization - from.utilization)) / (to.utilization - from.utilization));
}

/** Whether the pod makes the use of resources more even, so that none is left over alone: 75 if it changes nothing, up to 100, down to 50. */
export function balancedAllocation(resources: readonly string[] = ["cpu", "memory"]): Score {
  return {
    name: "NodeResourcesBalancedAllocation",
    weight: 1,
    ofNode: true,
    prepare({ requests }, cluster) {
      if (resources.every((name) => !requests[name])) return undefined; // best-effort pods
      const counted = resources.filter((name) => counts(name, requests));
      const behind = devicesBehind(counted, cluster);
      return {
        score(node) {
          const before = balance(node, { resources: counted, more: {}, behind });
          const after = balance(node, { resources: counted, more: requests, behind });
          return SCORE_MAX / 2 + Math.trunc((SCORE_MAX / 2 + after - before) / 2);
        },
      };
    },
  };
}

interface Use { readonly resources: readonly string[]; readonly more: Requests; readonly behind: DevicesBehind | undefined }

/** 100 less the standard deviation of the shares in use, in percent. Asked for every node: no lists. */
function balance(node: LiveNode, use: Use): number {
  let count = 0;
  let sum = 0;
  let first = 0;
  let last = 0;
  for (const name of use.resources) {
    const share = shareOf(node, name, use);
    if (share === undefined) continue;
    if (count++ === 0) first = share;
    last = share;
    sum += share;
  }
  if (count < 2) return SCORE_MAX;
  const deviation = count === 2 ? Math.abs((first - last) / 2) : deviationFrom(sum / count, node, { ...use, count }); // of two, computed as upstream does: other roundings give other scores
  return Math.trunc((1 - deviation) * SCORE_MAX);
}

function deviationFrom(mean: number, node: LiveNode, { count, ...use }: Use & { readonly count: number }): number {
  let squares = 0;
  for (const name of use.resources) {
    const off = (shareOf(node, name, use) ?? mean) - mean;
    squares += off * off;
  }
  return Math.sqrt(squares / count);
}

/** undefined: there is none of it on the node. */
function shareOf(node: LiveNode, name: string, { more, behind }: Use): number | undefined {
  const devices = behind?.(node, name);
  const has = devices?.has ?? node.allocatable[name];
  return has ? Math.min(1, ((devices?.used ?? node.requested[name] ?? 0) + (more[name] ?? 0)) / has) : undefined;
}

type DevicesBehind = (node: LiveNode, name: string) => { readonly has: number; readonly used: number } | undefined;

/** What devices a node has of a resource that it does not offer itself. undefined: none stand behind any of `names`. */
function devicesBehind(names: readonly string[], { devices }: Cluster): DevicesBehind | undefined {
  const behind = new Map(names.filter(isExtendedResource).flatMap((name) => {
    const deviceClass = devices.classBehind(name);
    return deviceClass ? [[name, devicesOfClass(deviceClass, devices)] as const] : [];
  }));
  if (behind.size === 0) return undefined;
  return ({ node, allocatable }, name) => {
    const found = allocatable[name] ? undefined : behind.get(name)?.(node);
    return found && found.has > 0 ? found : undefined;
  };
}

const ALWAYS: ReadonlySet<string> = new Set(["cpu", "memory", "ephemeral-storage"]);

/** Of others, as devices, only what the pod asks for. Source: resource_allocation.go calculateNodeAllocatableRequest */
function counts(name: string, wanted: Requests): boolean {
  return ALWAYS.has(name) || (wanted[name] ?? 0) > 0;
}

function usedOn({ assumed, requested }: LiveNode, name: string): number {
  return name === "cpu" ? assumed.cpu : name === "memory" ? assumed.memory : requested[name] ?? 0;
}
