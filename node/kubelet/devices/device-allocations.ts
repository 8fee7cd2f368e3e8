/** Which container has which devices of plugins, on disk too. */
import { stateFile } from "../../os/state-file.ts";
import { type Allocation, storedCheckpoint } from "./checkpoint.ts";
import type { DevicePlugins } from "./device-plugins.ts";

export interface DeviceAllocations {
  /** Of the container; of one resource, or of all. */
  of(podUid: string, container: string, resource?: string): readonly Allocation[];
  /** Ids, of all its containers: what one has lent to the next counts once. */
  ofPod(podUid: string, resource: string): readonly string[];
  /** Ids that somebody has, but for those `except` says are not counted. */
  taken(resource: string, except?: (one: Allocation) => boolean): Set<string>;
  add(one: Allocation): void;
  replace(old: Allocation, next: Allocation): void;
  releasePod(podUid: string): void;
  /** Of all pods but these. */
  retain(podUids: ReadonlySet<string>): void;
  /** As it is now; what has come since can be taken back with it. */
  now(): readonly Allocation[];
  restore(before: readonly Allocation[]): void;
  /** The plugins' devices have changed. */
  save(): void;
  /** It is on disk: a container may start with its devices. */
  written(): Promise<void>;
}

interface Deps {
  readonly path: string;
  readonly before: readonly Allocation[];
  readonly plugins: Pick<DevicePlugins, "resources" | "devices">;
}

export function deviceAllocations({ path, before, plugins: { resources, devices } }: Deps): DeviceAllocations {
  const file = stateFile(path);
  let allocations = before;

  function save(): void {
    file.save(() => storedCheckpoint({ allocations, devices: new Map(resources().map((resource) => [resource, devices(resource)])) }));
  }

  function become(next: readonly Allocation[]): void {
    allocations = next;
    save();
  }

  function keep(holds: (one: Allocation) => boolean): void {
    const left = allocations.filter(holds);
    if (left.length < allocations.length) become(left);
  }

  return {
    of: (podUid, container, resource) => allocations.filter((one) => one.podUid === podUid && one.container === container && (resource === undefined || one.resource === resource)),
    ofPod: (podUid, resource) => [...new Set(allocations.filter((one) => one.podUid === podUid && one.resource === resource).flatMap(({ ids }) => ids))],
    taken: (resource, except = () => false) => new Set(allocations.filter((one) => one.resource === resource && !except(one)).flatMap(({ ids }) => ids)),
    add: (one) => become([...allocations, one]),
    replace: (old, next) => become(allocations.map((one) => (one === old ? next : one))),
    releasePod: (podUid) => keep((one) => one.podUid !== podUid),
    retain: (podUids) => keep((one) => podUids.has(one.podUid)),
    now: () => allocations,
    restore: (earlier) => { if (earlier !== allocations) become(earlier); },
    save,
    written: file.written,
  };
}
