/**
 * Which devices a container gets. Pure.
 *
 * Source: kubernetes v1.36 pkg/kubelet/cm/devicemanager/manager.go (devicesToAllocate)
 */
import type { Container, EphemeralContainer, Pod } from "../../../core/api/gen/core.v1.ts";
import { parseQuantity } from "../../../core/api/meta/quantity.ts";
import { isIn, type NodeMask } from "../placement/hints.ts";
import { isSidecar } from "../pod-spec.ts";

export interface KnownDevice { readonly id: string; readonly healthy: boolean; readonly numaNodes: readonly number[] }

/** What a container asks of resources that plugins manage. Limits and requests of extended resources are equal. */
export function wishesOf({ resources }: Container | EphemeralContainer, isManaged: (resource: string) => boolean): ReadonlyMap<string, number> {
  return new Map(Object.entries(resources?.limits ?? {}).flatMap(([name, text]) => {
    const count = isManaged(name) ? parseQuantity(text).number() : 0;
    return count > 0 ? [[name, count] as const] : [];
  }));
}

/** A pod's containers in the order they are served; what an init container that ends has had may serve those after it. */
export function servedContainers(pod: Pod): readonly { readonly name: string; readonly container: Container; readonly lends: boolean }[] {
  return [
    ...(pod.spec.initContainers ?? []).map((container) => ({ name: container.name, container, lends: !isSidecar(container) })),
    ...pod.spec.containers.map((container) => ({ name: container.name, container, lends: false })),
  ];
}

/** Ids that init containers which end leave to `container`, served after them. */
export function lentTo(pod: Pod, container: string, idsOf: (container: string) => readonly string[]): ReadonlySet<string> {
  const lent = new Set<string>();
  for (const { name, lends } of servedContainers(pod)) {
    if (name === container) break;
    for (const id of idsOf(name)) if (lends) lent.add(id); else lent.delete(id);
  }
  return lent;
}

export interface Choice {
  readonly resource: string;
  readonly count: number;
  readonly devices: readonly KnownDevice[];
  /** Ids that other containers have. */
  readonly taken: ReadonlySet<string>;
  /** Ids lent by init containers of the same pod: they come first. */
  readonly lent: ReadonlySet<string>;
  /** Where the container's processors and memory are: devices there come first. */
  readonly nodes?: NodeMask | undefined;
}

export class DevicesUnavailable extends Error {
  constructor(message: string) {
    super(message);
    this.name = "DevicesUnavailable";
  }
}

/** What must be taken, and what there is to choose from beyond that, the best first. Throws DevicesUnavailable. */
export function candidates({ resource, count, devices, taken, lent, nodes }: Choice): { readonly must: readonly string[]; readonly from: readonly string[] } {
  const healthy = devices.filter((device) => device.healthy);
  if (healthy.length === 0) throw new DevicesUnavailable(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
  const must = healthy.filter(({ id }) => lent.has(id)).slice(0, count).map(({ id }) => id);
  const free = healthy.filter(({ id }) => !taken.has(id) && !lent.has(id));
  if (must.length + free.length < count) throw new DevicesUnavailable(`requested number of devices unavailable for ${resource}. Requested: ${count - must.length}, Available: ${free.length}`);
  const { near, far } = nearAndFar(free, nodes);
  const isNowhere = ({ numaNodes }: KnownDevice): boolean => nodes !== undefined && numaNodes.length === 0;
  const [close, others] = [byNode(near), [...byNode(far.filter((device) => !isNowhere(device))), ...byNode(far.filter(isNowhere))]];
  return count - must.length < close.length ? { must, from: close } : { must: [...must, ...close], from: others };
}

/** Far is also what lies nowhere. Without `nodes`, or where nothing lies anywhere, all is far. */
function nearAndFar(devices: readonly KnownDevice[], nodes: NodeMask | undefined): { readonly near: readonly KnownDevice[]; readonly far: readonly KnownDevice[] } {
  const isNear = ({ numaNodes }: KnownDevice): boolean => nodes !== undefined && numaNodes.some((node) => isIn(nodes, node));
  return { near: devices.filter(isNear), far: devices.filter((device) => !isNear(device)) };
}

/** Those of one NUMA node side by side, the node with the fewest first, so that large ones stay whole. */
function byNode(devices: readonly KnownDevice[]): string[] {
  const groups = new Map<number, string[]>();
  for (const { id, numaNodes } of devices) {
    const node = numaNodes[0] ?? -1;
    const group = groups.get(node);
    if (group) group.push(id); // there may be a hundred thousand: a plugin that shares out memory has one device for each MiB
    else groups.set(node, [id]);
  }
  return [...groups].toSorted(([a, x], [b, y]) => x.length - y.length || a - b).flatMap(([, ids]) => ids);
}

/** The plugin's preference as far as it may be had, filled up. */
export function chosen({ must, from }: { readonly must: readonly string[]; readonly from: readonly string[] }, count: number, preferred: readonly string[]): string[] {
  const free = new Set(from);
  const allowed = preferred.filter((id) => free.has(id));
  return [...new Set([...must, ...allowed, ...from])].slice(0, count);
}
