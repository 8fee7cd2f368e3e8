/**
 * What the devices of one pod would be on each node, thought through once per attempt and node: the filter asks whether there are any, the score how much
 * they are liked, and the binder which they are.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go
 */
import type { Node, Pod } from "../../api/gen/core.v1.ts";
import type { ResourceClaim, ResourceSlice } from "../../api/gen/resource.v1.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { atOnce, type Breathe, inPieces, type Pausing } from "../../lifecycle/breather.ts";
import type { Candidate } from "../candidate.ts";
import { matchesNodeSelector } from "../node-selector.ts";
import { allocate, type Found, Selected } from "./allocator.ts";
import { isOverdue, readiness } from "./binding-conditions.ts";
import { canBeReserved, type Devices, isReservedFor, podClaimsOf } from "./claims.ts";
import { backedResources, type ExtendedClaim, extendedClaim, isExtendedClaimOf, neededOn } from "./extended-resources.ts";
import { type Pool, poolsFor } from "./pools.ts";

/** Alternatives a request may have; the first is worth most. Source: resource/v1 FirstAvailableDeviceRequestMaxSize */
const ALTERNATIVES_MAX = 8;
export interface NodeDevices {
  /** For each of the claims to allocate, in turn. */
  readonly found: readonly (readonly Found[])[];
  /** For extended resources that this node has no other way of. */
  readonly extended?: ExtendedClaim & { readonly found: readonly Found[] };
}

export interface DeviceTimeouts {
  /** How long allocated devices may take to become ready. */
  readonly bindingTimeoutMs: number;
  /** How long may be thought about one node. 0: as long as it takes. */
  readonly filterTimeoutMs: number;
}

export interface Clocks { readonly nowMs: () => number; readonly uptimeMs: () => number }

/** How long is thought about nodes without letting others run. */
const THOUGHT_MS = 10;

/** Thrown where there is more to think about than others should wait for: once `rest` has been gone through, the same question has its answer. */
export class Unfinished extends Error {
  override readonly name = "Unfinished";
  readonly rest: Pausing<void>;
  constructor(rest: Pausing<void>) {
    super("there is more to think about");
    this.rest = rest;
  }
}

/** Of little that is left to think about on a node, and on the next, others would never have a turn but for one after it. */
export async function finish({ rest }: Unfinished, breathe: Breathe): Promise<void> {
  await inPieces(rest, breathe);
  await breathe();
}

/** What `work` finds out, begun again until all that it asks `plan` is known: others have their turn between. */
export async function thoughtThrough<T>(plan: DevicePlan, work: () => T, breathe: Breathe): Promise<T> {
  plan.mayPause = true;
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof Unfinished)) throw error;
      await finish(error, breathe);
    }
  }
}

type Thought = NodeDevices | { readonly reason: string };

export class DevicePlan {
  /** Whoever asks goes on with what is unfinished. */
  mayPause = false;
  readonly claims: readonly Readonly<ResourceClaim>[];
  readonly toAllocate: readonly Readonly<ResourceClaim>[];
  /** Allocated claims that keep the pod from a node: without them it might fit. */
  readonly unavailable = new Set<Readonly<ResourceClaim>>();
  /** What an earlier attempt has left: it goes first. */
  readonly stale: Readonly<ResourceClaim> | undefined;
  readonly #pod: Readonly<Pod>;
  readonly #resources: readonly string[];
  readonly #devices: Devices;
  readonly #clocks: Clocks;
  readonly #timeouts: DeviceTimeouts;
  readonly #byNode = new Map<string, { readonly thought: Thought } | { readonly error: unknown }>();
  readonly #everyNodes = new Map<Readonly<ResourceSlice>, Pool>();
  readonly #selected = new Selected();
  #pauseAtMs: number | undefined; // of uptime; undefined: others have just had their turn
  #slices: SlicesByNode | undefined;
  #allocated: ReturnType<Devices["allocated"]> | undefined;

  constructor(pod: Readonly<Pod>, { claims, resources }: DeviceNeeds, { devices, clocks, timeouts }: { readonly devices: Devices; readonly clocks: Clocks; readonly timeouts: DeviceTimeouts }) {
    this.#pod = pod;
    this.#resources = resources;
    this.stale = resources.length > 0 ? devices.ownedBy(pod.metadata.uid).find((claim) => isExtendedClaimOf(claim, pod)) : undefined;
    this.claims = claims;
    this.toAllocate = claims.filter(({ status }) => !status?.allocation);
    this.#devices = devices;
    this.#clocks = clocks;
    this.#timeouts = timeouts;
  }

  /** What there is for the pod on `node`, or why not. Throws what makes the claims themselves impossible. */
  on(node: Readonly<Node>): Thought {
    const { name } = node.metadata;
    let known = this.#byNode.get(name);
    if (!known) {
      const thinking = this.#noted(node);
      if (this.mayPause) this.#begin(thinking);
      else atOnce(thinking);
      known = this.#byNode.get(name)!;
    }
    if ("error" in known) throw known.error;
    return known.thought;
  }

  #begin(thinking: Pausing<void>): void {
    this.#pauseAtMs ??= this.#clocks.uptimeMs() + THOUGHT_MS;
    while (!thinking.next().done) {
      if (this.#clocks.uptimeMs() < this.#pauseAtMs) continue;
      this.#pauseAtMs = undefined;
      throw new Unfinished(thinking);
    }
  }

  *#noted(node: Readonly<Node>): Pausing<void> {
    try {
      this.#byNode.set(node.metadata.name, { thought: yield* this.#think(node) });
    } catch (error) {
      this.#byNode.set(node.metadata.name, { error });
    }
  }

  /** How early the alternatives are that were taken. */
  scoreOn(node: Readonly<Node>): number {
    const here = this.on(node);
    if ("reason" in here) return 0;
    let score = 0;
    for (const claim of this.claims) {
      const at = this.toAllocate.indexOf(claim);
      const chosen = new Set(at < 0 ? (claim.status?.allocation?.devices?.results ?? []).map(({ request }) => request) : here.found[at]!.map(({ request }) => request.name));
      for (const { name, firstAvailable = [] } of claim.spec.devices?.requests ?? [])
        for (const [i, alternative] of firstAvailable.entries()) if (chosen.has(`${name}/${alternative.name}`)) score += ALTERNATIVES_MAX - i;
    }
    return score;
  }

  /** Claims that are allocated elsewhere are only known to be in the way where the others can be had. */
  *#think(node: Readonly<Node>): Pausing<Thought> {
    if (this.stale) return { reason: "cannot schedule extended resource claim" };
    const here = yield* this.#allocate(node);
    if ("reason" in here) return here;
    const away = this.claims.filter((claim) => this.#isOutOfReach(claim, node));
    for (const claim of away) this.unavailable.add(claim);
    return away.length > 0 ? { reason: "resourceclaim not available on the node" } : here;
  }

  *#allocate(node: Readonly<Node>): Pausing<Thought> {
    const needed = neededOn(node, this.#resources);
    const extended = needed.length > 0 ? extendedClaim(this.#pod, needed, { uid: `extended-resources of ${this.#pod.metadata.uid}`, classOf: (name) => this.#devices.classBehind(name) }) : undefined;
    const wanted = extended ? [...this.toAllocate, extended.claim] : this.toAllocate;
    if (wanted.length === 0) return { found: [] };
    const { filterTimeoutMs } = this.#timeouts;
    const endMs = filterTimeoutMs === 0 ? Number.POSITIVE_INFINITY : this.#clocks.uptimeMs() + filterTimeoutMs;
    this.#slices ??= new SlicesByNode(this.#devices.slices());
    const pools = poolsFor(node, this.#slices.for(node.metadata.name), this.#everyNodes);
    const found = yield* allocate(wanted, node, pools, {
      allocated: (this.#allocated ??= this.#devices.allocated()),
      classOf: (name) => this.#devices.deviceClass(name), selector: (expression) => this.#devices.selector(expression), selected: this.#selected,
      isLate: () => this.#clocks.uptimeMs() > endMs, listAttributes: this.#devices.listAttributes,
    });
    if (found === "late") throw new Error(`node ${node.metadata.name}: timed out trying to allocate devices`);
    if (!found) return { reason: pools.some(({ state }) => state === "invalid") ? "invalid resource pools were encountered" : "cannot allocate all claims" };
    return extended ? { found: found.slice(0, -1), extended: { ...extended, found: found.at(-1)! } } : { found };
  }

  #isOutOfReach(claim: Readonly<ResourceClaim>, node: Readonly<Node>): boolean {
    const allocation = claim.status?.allocation;
    if (!allocation) return false;
    if (allocation.nodeSelector && !matchesNodeSelector(allocation.nodeSelector, node)) return true;
    const ready = readiness(claim);
    return ready === undefined ? isOverdue(claim, this.#clocks.nowMs(), this.#timeouts.bindingTimeoutMs) : ready !== "ready";
  }
}

/** The pools that may have something for a node: those that name it, and those that name none. */
class SlicesByNode {
  readonly #pools: ReadonlyMap<string, readonly Readonly<ResourceSlice>[]>;
  readonly #shared = new Set<string>();
  readonly #local = new Map<string, Set<string>>();

  constructor(slices: Iterable<Readonly<ResourceSlice>>) {
    const key = ({ spec }: Readonly<ResourceSlice>): string => JSON.stringify([spec.driver, spec.pool.name]);
    this.#pools = Map.groupBy(slices, key);
    for (const [pool, all] of this.#pools)
      for (const { spec } of all) {
        if (!spec.nodeName || (spec.sharedCounters ?? []).length > 0) this.#shared.add(pool);
        else this.#local.set(spec.nodeName, (this.#local.get(spec.nodeName) ?? new Set()).add(pool));
      }
  }

  for(node: string): Readonly<ResourceSlice>[] {
    return [...new Set([...this.#shared, ...(this.#local.get(node) ?? [])])].flatMap((pool) => this.#pools.get(pool)!);
  }
}

/** What a pod asks for that devices may give. */
export interface DeviceNeeds {
  readonly claims: readonly Readonly<ResourceClaim>[];
  /** Extended resources behind which there are devices. */
  readonly resources: readonly string[];
}

/** undefined: nothing. */
export function deviceNeeds({ pod, requests }: Pick<Candidate, "pod" | "requests">, devices: Devices): DeviceNeeds | { readonly refused: string } | undefined {
  const resources = backedResources(requests, (name) => devices.classBehind(name));
  if ((pod.spec.resourceClaims ?? []).length === 0 && resources.length === 0) return undefined;
  const found = podClaimsOf(pod, devices);
  if ("refused" in found) return found;
  const claims = found.map((claim) => asDecided(claim, devices));
  if (claims.length === 0 && resources.length === 0) return undefined;
  for (const claim of claims) {
    const refused = refusal(claim, pod, devices);
    if (refused !== undefined) return { refused };
  }
  return { claims, resources };
}

/** As it will be, if another pod of the group has it already. */
function asDecided(claim: Readonly<ResourceClaim>, { pending, shared }: Devices): Readonly<ResourceClaim> {
  const allocation = !claim.status?.allocation && shared.has(claim.metadata.uid) ? pending.get(claim.metadata.uid) : undefined;
  return allocation ? { ...claim, status: { ...claim.status, allocation } } : claim;
}

function refusal(claim: Readonly<ResourceClaim>, pod: Readonly<Pod>, devices: Devices): string | undefined {
  if (claim.status?.allocation) return canBeReserved(claim) || isReservedFor(claim, pod) ? undefined : "resourceclaim in use";
  if (devices.pending.has(claim.metadata.uid)) return `resource claim ${keyOf(claim)} is in the process of being allocated`;
  for (const { name, exactly, firstAvailable = [] } of claim.spec.devices?.requests ?? []) {
    if (!exactly && firstAvailable.length === 0) return `resource claim ${keyOf(claim)}, request ${name}: unknown request type`;
    const named = exactly ? [[name, exactly.deviceClassName] as const] : firstAvailable.map((one) => [`${name}/${one.name}`, one.deviceClassName] as const);
    for (const [request, className] of named) if (!devices.deviceClass(className)) return `request ${request}: device class ${className} does not exist`;
  }
  return undefined;
}
