/**
 * Finds devices on a node for all claims of a pod: one claim after the other, one request after the other, one device after the other, going back
 * when it leads nowhere. The first complete solution is taken. No I/O.
 *
 * What is asked for decides how long that takes: between pieces of it others may have their turn.
 *
 * A search that cannot be carried out (a selector that fails, a class that is gone) throws AllocationError: no node would do better.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/structured/internal/incubating/allocator_incubating.go
 */
import type { Node } from "../../api/gen/core.v1.ts";
import type { Device, DeviceClass, DeviceRequest, DeviceSubRequest, DeviceTaint, DeviceToleration, ExactDeviceRequest, ResourceClaim } from "../../api/gen/resource.v1.ts";
import { errorText } from "../../api/meta/error-text.ts";
import { asDouble } from "../../api/meta/go-integer.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { addQuantity, compareQuantity, parseQuantity, type Quantity, subQuantity } from "../../api/meta/quantity.ts";
import type { CompiledSelector } from "../../cel/device-selector.ts";
import type { Pausing } from "../../lifecycle/breather.ts";
import { addTo, type Allocated, type DeviceId } from "./allocated.ts";
import { consumedBy, fits } from "./capacity.ts";
import { type Constraint, constraintOf } from "./constraints.ts";
import { type NamedDevice, type Pool, type PoolDevice, reaches } from "./pools.ts";

/** Devices one claim may have. Source: resource/v1 AllocationResultsMaxSize */
const RESULTS_MAX = 32;
/** Steps between two looks at the clock. */
const STEPS_PER_LOOK = 256;

/** The claim, a class or a device is wrong. */
export class AllocationError extends Error { override readonly name = "AllocationError"; }

export interface Found extends PoolDevice {
  readonly pool: Pool;
  readonly request: Wanted;
  /** Of a device that is shared: what was taken. */
  readonly consumed: ReadonlyMap<string, Quantity> | undefined;
}

/** A request, or one of its alternatives. */
export interface Wanted extends Pick<ExactDeviceRequest, "selectors" | "tolerations" | "adminAccess" | "capacity"> {
  /** "name", or "name/alternative". */
  readonly name: string;
  readonly class: Readonly<DeviceClass>;
  readonly count: number;
  /** All that match: which these are. */
  readonly all: readonly Candidate[] | undefined;
}

interface Candidate extends NamedDevice { readonly pool: Pool }

/** Which devices the selectors of a class and of a request pick: that is the same on every node that can reach a device. */
export class Selected {
  readonly #known = new Map<DeviceClass["spec"]["selectors"], Map<Wanted["selectors"], Map<Device, boolean>>>();

  by({ class: { spec }, selectors }: Pick<Wanted, "class" | "selectors">): Map<Device, boolean> {
    let ofClass = this.#known.get(spec.selectors);
    if (!ofClass) this.#known.set(spec.selectors, (ofClass = new Map()));
    let found = ofClass.get(selectors);
    if (!found) ofClass.set(selectors, (found = new Map()));
    return found;
  }
}

export interface AllocatorDeps {
  readonly allocated: Allocated;
  readonly classOf: (name: string) => Readonly<DeviceClass> | undefined;
  /** Throws the problem of an expression that is none. */
  readonly selector: (expression: string) => CompiledSelector;
  /** One for all nodes that are thought about together. */
  readonly selected: Selected;
  readonly isLate: () => boolean;
  /** Attributes of devices may be lists. */
  readonly listAttributes?: boolean | undefined;
}

/** The devices of each claim in turn. undefined: there are none on this node. "late": it took too long. */
export function allocate(claims: readonly Readonly<ResourceClaim>[], node: Readonly<Node>, pools: readonly Pool[], deps: AllocatorDeps): Pausing<readonly (readonly Found[])[] | "late" | undefined> {
  return new Search(claims, node, pools, deps).run();
}

class Late extends Error {}

/** "too many": whatever devices were taken before, the claim would have more than it may, so others instead of them need not be tried. */
type Outcome = boolean | "too many";

class Search {
  readonly #claims: readonly Readonly<ResourceClaim>[];
  readonly #node: Readonly<Node>;
  readonly #pools: readonly Pool[];
  readonly #deps: AllocatorDeps;
  /** For each claim and request its alternatives; one that is no choice has one. */
  readonly #wanted: (readonly (readonly Wanted[])[])[] = [];
  readonly #constraints: readonly (readonly Constraint[])[];
  readonly #found: Found[][];
  /** By device, the claims that are to have it. */
  readonly #taken = new Map<DeviceId, Set<number>>();
  readonly #sharing = new Map<DeviceId, Map<string, Quantity>[]>();
  readonly #selected = new Map<Wanted, Map<Device, boolean>>();
  /** What is left of the counters of a pool. */
  readonly #counters = new Map<Pool, Map<string, Quantity>>();
  #steps = 0;

  constructor(claims: readonly Readonly<ResourceClaim>[], node: Readonly<Node>, pools: readonly Pool[], deps: AllocatorDeps) {
    this.#claims = claims;
    this.#node = node;
    this.#pools = pools;
    this.#deps = deps;
    this.#constraints = claims.map((claim) => (claim.spec.devices?.constraints ?? []).map((constraint, i) => {
      const made = constraintOf(constraint, deps.listAttributes ?? false);
      if (!made) throw new AllocationError(`claim ${keyOf(claim)}, constraint #${i}: empty constraint (unsupported constraint type?)`);
      return made;
    }));
    this.#found = claims.map(() => []);
  }

  *run(): Pausing<readonly (readonly Found[])[] | "late" | undefined> {
    try {
      yield* this.#readAll();
      return (yield* this.#claim(0)) === true ? this.#found : undefined;
    } catch (error) {
      if (error instanceof Late) return "late";
      throw error;
    }
  }

  *#readAll(): Pausing<void> {
    for (const claim of this.#claims) {
      const requests: (readonly Wanted[])[] = [];
      for (const request of claim.spec.devices?.requests ?? []) requests.push(yield* this.#read(claim, request));
      this.#wanted.push(requests);
    }
    for (const [i, requests] of this.#wanted.entries()) {
      const least = requests.reduce((sum, alternatives) => sum + Math.min(...alternatives.map(({ count }) => count)), 0);
      if (least > RESULTS_MAX) throw new AllocationError(`claim ${keyOf(this.#claims[i]!)}: number of requested devices ${least} exceeds the claim limit of ${RESULTS_MAX}`);
    }
  }

  *#read(claim: Readonly<ResourceClaim>, request: DeviceRequest): Pausing<readonly Wanted[]> {
    if (request.exactly) return [yield* this.#wantedOf(claim, request.name, request.exactly)];
    const alternatives: Wanted[] = [];
    for (const alternative of request.firstAvailable ?? []) alternatives.push(yield* this.#wantedOf(claim, `${request.name}/${alternative.name}`, alternative));
    return alternatives;
  }

  *#wantedOf(claim: Readonly<ResourceClaim>, name: string, request: ExactDeviceRequest | DeviceSubRequest): Pausing<Wanted> {
    const said = `claim ${keyOf(claim)}, request ${name.split("/").at(-1)}`;
    const deviceClass = this.#deps.classOf(request.deviceClassName);
    if (!deviceClass) throw new AllocationError(`${said}: could not retrieve device class ${request.deviceClassName}: deviceclass.resource.k8s.io "${request.deviceClassName}" not found`);
    const { selectors, tolerations, capacity, count = 1, allocationMode = "ExactCount" } = request;
    const wanted: Wanted = { name, class: deviceClass, selectors, tolerations, capacity, adminAccess: "adminAccess" in request ? request.adminAccess : undefined, count: asDouble(count), all: undefined };
    if (allocationMode === "ExactCount") return wanted;
    if (allocationMode !== "All") throw new AllocationError(`${said}: unsupported count mode ${allocationMode}`);
    const unusable = this.#pools.find(({ state }) => state !== "usable");
    if (unusable) throw new AllocationError(`${said}: asks for all devices, but resource pool ${unusable.driver}/${unusable.name} is currently ${unusable.state === "incomplete" ? "being updated" : "invalid"}`);
    const all: Candidate[] = [];
    for (const candidate of this.#candidates()) if ((yield* this.#isSelected(candidate, wanted, claim)) && this.#consumed(candidate, wanted) !== undefined) all.push(candidate);
    return { ...wanted, all, count: all.length };
  }

  *#candidates(): Iterable<Candidate> {
    for (const pool of this.#pools)
      for (const { device, slice, id } of pool.devices) yield { device, slice, pool, id };
  }

  *#claim(at: number): Pausing<Outcome> {
    return at >= this.#claims.length || (yield* this.#request(at, 0));
  }

  *#request(claim: number, at: number): Pausing<Outcome> {
    const requests = this.#wanted[claim]!;
    if (at >= requests.length) return (yield* this.#claim(claim + 1)) === true; // the next claim may have alternatives that want less of other devices
    const outcomes: Outcome[] = [];
    for (const wanted of requests[at]!) {
      const outcome = yield* this.#alternative(claim, at, wanted);
      if (outcome === true) return true;
      outcomes.push(outcome);
    }
    return outcomes.every((outcome) => outcome === "too many") ? "too many" : false;
  }

  *#alternative(claim: number, at: number, wanted: Wanted): Pausing<Outcome> {
    if (wanted.all && wanted.count === 0) return false;
    if (this.#found[claim]!.length + wanted.count > RESULTS_MAX) return "too many";
    const next = (): Pausing<Outcome> => this.#request(claim, at + 1);
    return yield* wanted.all ? this.#each(claim, wanted, wanted.all, 0, next) : this.#some(claim, wanted, [...this.#candidates()], { from: 0, missing: wanted.count }, next);
  }

  /** Every one of `all`. */
  *#each(claim: number, wanted: Wanted, all: readonly Candidate[], at: number, next: () => Pausing<Outcome>): Pausing<Outcome> {
    if (at >= all.length) return yield* next();
    return yield* this.#with(claim, wanted, all[at]!, () => this.#each(claim, wanted, all, at + 1, next));
  }

  /** `missing` of the candidates from `from` on: no two searches try the same ones in another order. */
  *#some(claim: number, wanted: Wanted, candidates: readonly Candidate[], { from, missing }: { readonly from: number; readonly missing: number }, next: () => Pausing<Outcome>): Pausing<Outcome> {
    if (missing === 0) return yield* next();
    for (let at = from; at < candidates.length; at++) {
      const candidate = candidates[at]!;
      if (this.#isHeld(claim, wanted, candidate)) continue; // whatever a selector would say of it
      if (!(yield* this.#isSelected(candidate, wanted, this.#claims[claim]!))) continue;
      const outcome = yield* this.#with(claim, wanted, candidate, () => this.#some(claim, wanted, candidates, { from: at + 1, missing: missing - 1 }, next));
      if (outcome !== false) return outcome;
    }
    return false;
  }

  /** It has the device already, or another has. */
  #isHeld(claim: number, { adminAccess }: Wanted, { device, id }: Candidate): boolean {
    if (adminAccess) return device.allowMultipleAllocations !== true && (this.#taken.get(id)?.has(claim) ?? false);
    return this.#deps.allocated.devices.has(id) || (this.#taken.get(id)?.size ?? 0) > 0;
  }

  /** Takes the device if it can be had, and gives it back if `then` comes to nothing. */
  *#with(claim: number, wanted: Wanted, candidate: Candidate, then: () => Pausing<Outcome>): Pausing<Outcome> {
    if (++this.#steps % STEPS_PER_LOOK === 0) yield* this.#look();
    const { device, pool, id } = candidate;
    const shared = device.allowMultipleAllocations === true;
    if (this.#isHeld(claim, wanted, candidate)) return false;
    if (isKeptOff(device.taints ?? [], wanted.tolerations ?? [])) return false;
    const consumed = this.#consumed(candidate, wanted);
    if (!consumed) return false;
    const counts = !(shared && (this.#deps.allocated.shared.has(id) || (this.#sharing.get(id)?.length ?? 0) > 0));
    if (counts && !this.#takeCounters(candidate)) return false;
    const constraints = this.#constraints[claim]!;
    const failed = constraints.findIndex((constraint) => !constraint.add(wanted.name, device, pool.driver));
    const accepted = failed < 0 ? constraints : constraints.slice(0, failed);
    const undo = (): void => {
      for (const constraint of accepted) constraint.remove(wanted.name);
      if (counts) this.#giveCountersBack(candidate);
    };
    if (failed >= 0) {
      undo();
      if (wanted.all) throw new AllocationError(`claim ${keyOf(this.#claims[claim]!)}, request ${wanted.name.split("/").at(-1)}: cannot add device ${id} because a claim constraint would not be satisfied`);
      return false;
    }
    if (shared) this.#sharing.set(id, [...(this.#sharing.get(id) ?? []), consumed]);
    else this.#taken.set(id, new Set([...(this.#taken.get(id) ?? []), claim]));
    this.#found[claim]!.push({ ...candidate, request: wanted, consumed: shared ? consumed : undefined });
    const outcome = yield* then();
    if (outcome === true) return true;
    this.#found[claim]!.pop();
    if (shared) this.#sharing.set(id, this.#sharing.get(id)!.slice(0, -1));
    else this.#taken.get(id)!.delete(claim);
    undo();
    return outcome;
  }

  /** undefined: not so much is left. */
  #consumed({ device, id }: Candidate, { capacity = {} }: Wanted): Map<string, Quantity> | undefined {
    const consumed = consumedBy(capacity, device);
    return consumed && fits(consumed, device, [this.#deps.allocated.shared.get(id), ...(this.#sharing.get(id) ?? [])]) ? consumed : undefined;
  }

  *#look(): Pausing<void> {
    if (this.#deps.isLate()) throw new Late();
    yield;
  }

  *#isSelected(candidate: Candidate, wanted: Wanted, claim: Readonly<ResourceClaim>): Pausing<boolean> {
    const { device, slice } = candidate;
    let known = this.#selected.get(wanted);
    if (!known) this.#selected.set(wanted, (known = this.#deps.selected.by(wanted)));
    let selected = known.get(device);
    if (selected === undefined) {
      known.set(device, (selected = yield* this.#select(candidate, wanted, claim)));
      yield* this.#look();
    }
    return selected && (slice.spec.perDeviceNodeSelection !== true || reaches(device, this.#node));
  }

  /** Each of dozens of selectors may take milliseconds. */
  *#select({ device, pool: { driver } }: Candidate, wanted: Wanted, claim: Readonly<ResourceClaim>): Pausing<boolean> {
    const { allowMultipleAllocations, attributes, capacity } = device;
    const sources = [[`class ${wanted.class.metadata.name}`, wanted.class.spec.selectors ?? []], [`claim ${keyOf(claim)}`, wanted.selectors ?? []]] as const;
    for (const [whose, selectors] of sources)
      for (const [i, { cel }] of selectors.entries()) {
        const selector = attempt(() => this.#deps.selector(cel?.expression ?? ""), `${whose}: selector #${i}: CEL compile error`);
        if (i > 0) yield;
        if (!attempt(() => selector.matches({ driver, allowMultipleAllocations, attributes, capacity }), `${whose}: selector #${i}: CEL runtime error`)) return false;
      }
    return true;
  }

  #takeCounters({ pool, device }: Candidate): boolean {
    const left = this.#left(pool);
    this.#count({ pool, device }, -1);
    if ((device.consumesCounters ?? []).every(({ counterSet, counters }) => Object.keys(counters ?? {}).every((name) => compareQuantity(left.get(`${counterSet}/${name}`)!, parseQuantity("0")) >= 0))) return true;
    this.#count({ pool, device }, 1);
    return false;
  }

  #giveCountersBack(candidate: Candidate): void {
    this.#count(candidate, 1);
  }

  #count({ pool, device }: Pick<Candidate, "pool" | "device">, by: 1 | -1): void {
    const left = this.#left(pool);
    for (const { counterSet, counters } of device.consumesCounters ?? [])
      for (const [name, { value }] of Object.entries(counters ?? {})) {
        const key = `${counterSet}/${name}`;
        left.set(key, (by > 0 ? addQuantity : subQuantity)(left.get(key)!, parseQuantity(value)));
      }
  }

  #left(pool: Pool): Map<string, Quantity> {
    let left = this.#counters.get(pool);
    if (left) return left;
    this.#counters.set(pool, (left = new Map()));
    for (const [set, counters] of pool.counters) for (const [name, { value }] of Object.entries(counters)) addTo(left, `${set}/${name}`, parseQuantity(value));
    for (const { device, id } of pool.everywhere) if (this.#deps.allocated.isUsed(id)) this.#count({ pool, device }, -1);
    return left;
  }
}

function attempt<T>(work: () => T, doing: string): T {
  try {
    return work();
  } catch (error) {
    throw new AllocationError(`${doing}: ${errorText(error)}`, { cause: error });
  }
}

function isKeptOff(taints: readonly DeviceTaint[], tolerations: readonly DeviceToleration[]): boolean {
  return taints.some((taint) => (taint.effect === "NoSchedule" || taint.effect === "NoExecute") && !tolerations.some((toleration) => toleratesDevice(toleration, taint)));
}

/** Source: dynamic-resource-allocation/resourceclaim ToleratesTaint */
function toleratesDevice({ key = "", operator = "Equal", value = "", effect }: DeviceToleration, taint: DeviceTaint): boolean {
  if ((effect && effect !== taint.effect) || (key !== "" && key !== taint.key)) return false;
  return operator === "Exists" || (operator === "Equal" && value === (taint.value ?? ""));
}
