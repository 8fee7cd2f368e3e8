/**
 * How endpoints are laid out in EndpointSlices: few slices, few writes. No I/O.
 *
 *   endpoints of one set of ports share slices · a slice keeps what it holds as long as it is wanted · new ones go where something changes anyway,
 *   then into slices with room, then into new slices · slices that are not needed are written over before new ones are made
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/endpointslice/{reconciler,utils}.go
 */
import type { Endpoint, EndpointPort, EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { NewObject, TemplateMeta } from "../../api/meta/object-meta.ts";
import { annotationsOf, labelsOf } from "../../api/meta/object-meta.ts";
import { sameToApi } from "../same.ts";

export const TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time";

/** Endpoints that offer the same ports. */
export interface Group { readonly ports: readonly EndpointPort[]; readonly endpoints: readonly Endpoint[] }

export interface Layout {
  readonly addressType: string;
  readonly groups: readonly Group[];
  /** Of every slice: generateName, namespace, labels, owner. Annotations, if they are given, are all it has; others' are kept if not. */
  readonly metadata: TemplateMeta;
  readonly perSliceMax: number;
  /** Whether a service without endpoints has an empty slice, and an empty one stays. */
  readonly placeholder: boolean;
  /** When what is told here came about, if that is known. */
  readonly triggerTime: string | undefined;
}

export interface SlicePlan { readonly create: readonly NewObject<EndpointSlice>[]; readonly update: readonly EndpointSlice[]; readonly remove: readonly Readonly<EndpointSlice>[] }

type Slice = Readonly<EndpointSlice>;

/** `existing` are the slices of this address type that are ours to change. */
export function planSlices(existing: readonly Slice[], layout: Layout): SlicePlan {
  const byPorts = Map.groupBy(existing, ({ ports }) => portsKey(ports ?? []));
  const create: Endpoint[][] = [];
  const createPorts: (readonly EndpointPort[])[] = [];
  const update = new Map<Slice, readonly Endpoint[]>();
  const remove: Slice[] = [];
  const wanted = new Set<string>();
  for (const { ports, endpoints } of layout.groups) {
    const key = portsKey(ports);
    wanted.add(key);
    const filled = fill(byPorts.get(key) ?? [], endpoints, layout);
    for (const made of filled.create) { create.push(made); createPorts.push(ports); }
    for (const [slice, held] of filled.update) update.set(slice, held);
    remove.push(...filled.remove);
  }
  for (const [key, slices] of byPorts) if (!wanted.has(key)) remove.push(...slices);

  if (layout.placeholder && create.length === 0 && remove.length === existing.length) {
    const [only] = remove;
    if (remove.length === 1 && only !== undefined && isPlaceholder(only, layout)) return { create: [], update: [], remove: [] };
    create.push([]);
    createPorts.push([]);
  }
  const updates = [...update].map(([slice, endpoints]) => written(slice, endpoints, slice.ports ?? [], layout));
  const creates: NewObject<EndpointSlice>[] = [];
  for (const [i, endpoints] of create.entries()) {
    const ports = createPorts[i] ?? [];
    const reused = remove.shift();
    if (reused !== undefined) updates.push(written(reused, endpoints, ports, layout));
    else creates.push({ apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", metadata: metadataFor(layout), addressType: layout.addressType, ...contents(endpoints, ports) });
  }
  return { create: creates, update: updates, remove };
}

interface Filled { readonly create: Endpoint[][]; readonly update: Map<Slice, readonly Endpoint[]>; readonly remove: Slice[] }

/** Endpoints of one group into the slices there are for its ports, and new ones. */
function fill(slices: readonly Slice[], endpoints: readonly Endpoint[], layout: Layout): Filled {
  const missing = new Map(endpoints.map((endpoint) => [identity(endpoint), endpoint]));
  const update = new Map<Slice, Endpoint[]>();
  const same: Slice[] = [];
  const remove: Slice[] = [];
  for (const slice of slices) {
    const before = slice.endpoints ?? [];
    const kept: Endpoint[] = [];
    let changed = false;
    for (const endpoint of before) {
      const id = identity(endpoint), next = missing.get(id);
      if (next === undefined) { changed = true; continue; }
      changed ||= !sameEndpoint(next, endpoint);
      kept.push(next);
      missing.delete(id);
    }
    if (kept.length === 0 && (changed || !layout.placeholder)) remove.push(slice);
    else if (changed || !sameMetadata(slice, layout)) update.set(slice, kept);
    else same.push(slice);
  }
  const rest = [...missing.values()];
  for (const kept of [...update.values()].toSorted((a, b) => b.length - a.length)) {
    kept.push(...rest.splice(0, Math.max(0, layout.perSliceMax - kept.length)));
  }
  const create: Endpoint[][] = [];
  while (rest.length > 0) {
    const roomy = rest.length < layout.perSliceMax ? closestFit(same, rest.length, layout.perSliceMax) : undefined;
    if (roomy === undefined) create.push(rest.splice(0, layout.perSliceMax));
    else update.set(roomy, [...(roomy.endpoints ?? []), ...rest.splice(0)]);
  }
  return { create, update, remove };
}

/** The slice that `count` more endpoints fill best without overflowing. */
function closestFit(slices: readonly Slice[], count: number, max: number): Slice | undefined {
  const left = (slice: Slice): number => max - count - (slice.endpoints?.length ?? 0);
  return slices.filter((slice) => left(slice) >= 0).toSorted((a, b) => left(a) - left(b))[0];
}

function metadataFor({ metadata, triggerTime }: Layout): TemplateMeta {
  return { ...metadata, annotations: { ...metadata.annotations, ...(triggerTime === undefined ? {} : { [TRIGGER_TIME]: triggerTime }) } };
}

/** The slice with these endpoints, as it goes to the API. Where annotations are others' to make, so are further owners. */
export function written(slice: Slice, endpoints: readonly Endpoint[], ports: readonly EndpointPort[], layout: Layout): EndpointSlice {
  const { [TRIGGER_TIME]: _, ...kept } = layout.metadata.annotations === undefined ? annotationsOf(slice) : {};
  const { generateName: _g, name: _n, ...metadata } = metadataFor(layout);
  const owners = layout.metadata.annotations === undefined && hasOwners(slice, layout) ? slice.metadata : metadata;
  return { ...slice, metadata: { ...slice.metadata, ...metadata, ownerReferences: owners.ownerReferences, annotations: { ...kept, ...metadata.annotations } }, ...contents(endpoints, ports) };
}

/** A list of nothing is none, and nobody's in managedFields. */
function contents(endpoints: readonly Endpoint[], ports: readonly EndpointPort[]): Pick<EndpointSlice, "endpoints" | "ports"> {
  return { ports: ports.length === 0 ? undefined : [...ports], endpoints: endpoints.length === 0 ? undefined : [...endpoints] };
}

function sameMetadata(slice: Slice, layout: Layout): boolean {
  const { labels = {}, annotations } = layout.metadata;
  return sameToApi(labelsOf(slice), labels) && (annotations === undefined || sameToApi(annotationsOf(slice), annotations)) && hasOwners(slice, layout);
}

function hasOwners(slice: Slice, { metadata }: Layout): boolean {
  return (metadata.ownerReferences ?? []).every(({ uid }) => slice.metadata.ownerReferences?.some((owner) => owner.uid === uid));
}

function isPlaceholder(slice: Slice, layout: Layout): boolean {
  return (slice.endpoints ?? []).length === 0 && (slice.ports ?? []).length === 0 && sameMetadata(slice, layout);
}

/** What makes two endpoints the same one, whatever its state: a pod that comes again under its name and address, as one on the host's network does, stays where it was. */
export function identity({ addresses, hostname, targetRef }: Endpoint): string {
  return `${addresses.length > 1 ? addresses.toSorted().join() : addresses[0] ?? ""} ${hostname ?? ""} ${targetRef?.namespace ?? ""}/${targetRef?.name ?? ""}`;
}

/** Whatever version of the pod it was made from. There may be ten thousand to compare: nothing is copied for it. */
export function sameEndpoint(a: Endpoint, b: Endpoint): boolean {
  return sameBut("targetRef", a, b) && sameBut("resourceVersion", a.targetRef ?? {}, b.targetRef ?? {});
}

function sameBut<T extends object>(field: keyof T, a: T, b: T): boolean {
  for (const key in a) if (key !== field && !sameToApi(a[key], b[key])) return false;
  for (const key in b) if (key !== field && a[key] === undefined && !sameToApi(undefined, b[key])) return false;
  return true;
}

/** Equal for equal ports, whatever their order. */
export function portsKey(ports: readonly EndpointPort[]): string {
  return ports.map(({ name = "", protocol = "TCP", port = 0, appProtocol = "" }) => JSON.stringify([name, protocol, port, appProtocol])).toSorted().join();
}
