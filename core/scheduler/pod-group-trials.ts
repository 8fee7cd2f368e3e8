/**
 * How it would be for a group: each of its pods is looked at as any other pod and with those before it in place, and what was found for all of them is the verdict. Where they have to stay
 * together, in one placement after the other, of which the best is taken.
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { errorText } from "../api/meta/error-text.ts";
import { keyOf, type ObjectKey, splitKey } from "../api/meta/object-meta.ts";
import { breather } from "../lifecycle/breather.ts";
import type { Binder, Held } from "./binder.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { DevicePlan, thoughtThrough } from "./devices/plan.ts";
import { type LiveNode, placedPod } from "./node-info.ts";
import type { Parts, Tried } from "./parts.ts";
import type { NoPlacement, Placement } from "./place.ts";
import { type GroupPlacement, type PlacementRules, placementScores, placementsOf } from "./pod-group-placements.ts";
import { type GroupVerdict, type PodFinding, verdictOf } from "./pod-group-verdict.ts";
import type { PodGroups } from "./pod-groups.ts";
import type { Room, RoomMaker } from "./room-maker.ts";

/** The only nodes they may go to; absent: all. */
type Within = readonly LiveNode[] | undefined;

/** How one is looked at. */
export interface Look {
  readonly within: Within;
  /** Whether others could leave for one that fits nowhere. */
  readonly findsRoom: boolean;
}

/** As things are. */
export const AS_IT_IS: Look = { within: undefined, findsRoom: true };

/** What was found for one pod. */
export interface Found {
  readonly tried: Tried;
  readonly finding: PodFinding;
  /** Where it would go. */
  readonly node?: string;
  /** It counts there until the group's fate is known. */
  readonly held?: Held;
  readonly failure?: NoPlacement;
  readonly room?: Room;
  readonly tookMs: number;
}

export interface Trial { readonly found: readonly Found[]; readonly verdict: GroupVerdict }

export interface TrialDeps {
  readonly parts: Parts;
  readonly groups: PodGroups;
  readonly binder: Binder;
  readonly rooms: Pick<RoomMaker, "find" | "findWithExtenders">;
  /** Where one pod goes, as things are. */
  place(tried: Tried, within: Within): Placement;
  /** The same, of one that extenders have a say about. */
  placeWithExtenders(tried: Tried, within: Within): Promise<{ readonly type: "node"; readonly node: string } | NoPlacement>;
}

export class GroupTrials {
  readonly #deps: TrialDeps;

  constructor(deps: TrialDeps) {
    this.#deps = deps;
  }

  /** Those that have a place are held there. */
  async run(group: ObjectKey, tries: readonly Tried[], look: Look): Promise<Trial> {
    const { placements } = tries[0]!.profile;
    return placements ? this.#inOnePlacement(group, tries, { rules: placements, look }) : this.#trial(tries, look);
  }

  /** The same, of which nothing stays but the verdict. */
  async verdict(group: ObjectKey, tries: readonly Tried[], look: Look): Promise<GroupVerdict> {
    const { found, verdict } = await this.run(group, tries.map(anew), look);
    this.letGo(found);
    return verdict;
  }

  /** All are held where they would go. */
  async #trial(tries: readonly Tried[], look: Look): Promise<Trial> {
    const found: Found[] = [];
    const looked = this.#findAll(tries, look, found); // at once, if nobody has to be asked
    if (looked) await looked;
    this.#deps.parts.cluster.devices.shared.clear();
    return { found, verdict: verdictOf(found.map(({ finding }) => finding)) };
  }

  /** The best of the placements where the group gets off; where there is none, what was found in the first. */
  async #inOnePlacement(group: ObjectKey, tries: readonly Tried[], { rules, look }: { readonly rules: PlacementRules; readonly look: Look }): Promise<Trial> {
    const { parts: { deps: { random }, cluster, snapshot }, groups } = this.#deps;
    const podGroup = groups.podGroup(group);
    if (!podGroup) return { found: [], verdict: { type: "error", message: `podgroup.scheduling.k8s.io ${JSON.stringify(splitKey(group).name)} not found` } };
    const members = groups.members(group).flatMap((pod) => { const node = snapshot.nodeOf(pod); return node === undefined ? [] : [{ key: keyOf(pod), node }]; });
    const placements = rules.byTopology ? placementsOf(podGroup, cluster.nodes(), { placed: members, node: (name) => cluster.node(name) }) : [{ name: "", nodes: cluster.nodes() }];
    if ("error" in placements) return { found: [], verdict: { type: "error", message: placements.error } };
    if (placements.length === 0) return { found: [], verdict: { type: "unschedulable", waits: false, message: "no feasible placements found" } };
    const trials: (Trial & { readonly placement: GroupPlacement })[] = [];
    for (const placement of placements) {
      const trial = await this.#trial(placements.length === 1 ? tries : tries.map(anew), { ...look, within: placement.nodes.length === cluster.nodes().length ? look.within : placement.nodes });
      this.letGo(trial.found);
      if (trial.verdict.type === "error") return { found: trial.found.map(unheld), verdict: trial.verdict };
      trials.push({ ...trial, placement });
    }
    const good = trials.filter(({ verdict }) => verdict.type === "scheduled" || (verdict.type === "unschedulable" && verdict.waits));
    if (good.length === 0)
      return {
        found: trials[0]!.found.map(unheld),
        verdict: { type: "unschedulable", waits: false, message: `0/${placements.length} placements are available, first placement status: ${(trials[0]!.verdict as { readonly message: string }).message}` },
      };
    const scores = good.length === 1 ? [0] : placementScores(good.map(({ placement, found }) => ({ placement, proposed: found.flatMap(({ held }) => (held ? [held.candidate] : [])) })), { rules, placed: members.length });
    const most = Math.max(...scores), best = good.filter((_, i) => scores[i] === most);
    return this.#heldAgain(best[Math.floor(random.next() * best.length)]!);
  }

  #heldAgain({ found, verdict }: Trial): Trial {
    const { binder } = this.#deps, again: Found[] = [];
    try {
      for (const one of found) again.push(one.held ? { ...one, held: one.finding.type === "preempts" ? binder.holdRoom(one.held, one.held.node) : binder.hold(one.held, one.held.node) } : one);
      return { found: again, verdict };
    } catch (error) {
      this.letGo(again);
      return { found: [], verdict: { type: "error", message: errorText(error) } };
    }
  }

  letGo(found: readonly Found[]): void { for (const { held } of found.toReversed()) if (held) this.#deps.binder.letGo(held); }

  /** Fills `found`, up to the first error. */
  #findAll(tries: readonly Tried[], look: Look, found: Found[]): void | Promise<void> {
    const { extenders } = this.#deps.parts;
    if (tries.some(({ candidate: { pod } }) => usesClaims(pod) || extenders.some((extender) => extender.isInterestedIn(pod)))) return this.#findAllInTurns(tries, look, found);
    for (const tried of tries) {
      const one = this.#find(tried, look);
      found.push(one);
      if (one.finding.type === "error") return;
    }
  }

  async #findAllInTurns(tries: readonly Tried[], look: Look, found: Found[]): Promise<void> {
    const { parts: { extenders } } = this.#deps;
    for (const tried of tries) {
      if (tried.signal.aborted) return;
      const one = extenders.some((extender) => extender.isInterestedIn(tried.candidate.pod)) ? await this.#findWithExtenders(tried, look) : usesClaims(tried.candidate.pod) ? await this.#findWithDevices(tried, look) : this.#find(tried, look);
      found.push(one);
      if (one.finding.type === "error") return;
    }
  }

  /** Which devices a pod could have may take seconds to find out. */
  async #findWithDevices(tried: Tried, look: Look): Promise<Found> {
    const { parts: { deps: { clock }, cluster }, place } = this.#deps;
    const startMs = clock.uptimeMs();
    let placed: () => Placement;
    try {
      const plan = devicePlan(tried.candidate, cluster);
      if (!(plan instanceof DevicePlan)) return this.#find(tried, look);
      const slices = breather(clock);
      const placement = await thoughtThrough(plan, () => place(tried, look.within), () => {
        tried.signal.throwIfAborted();
        return slices();
      });
      plan.mayPause = false; // who looks for room cannot wait
      placed = () => placement;
    } catch (error) {
      placed = () => { throw error; };
    }
    return { ...this.#find(tried, look, placed), tookMs: clock.uptimeMs() - startMs };
  }

  #find(tried: Tried, { within, findsRoom }: Look, placed = (): Placement => this.#deps.place(tried, within)): Found {
    const { rooms } = this.#deps;
    return this.#timed(tried, () => {
      const placement = placed();
      return placement.type === "node" ? this.#held(tried, placement.node) : this.#roomy(tried, placement, findsRoom ? rooms.find(tried, placement) : undefined);
    });
  }

  async #findWithExtenders(tried: Tried, { within, findsRoom }: Look): Promise<Found> {
    const { parts: { deps: { clock } }, rooms, placeWithExtenders } = this.#deps;
    const startMs = clock.uptimeMs();
    let found: () => Omit<Found, "tried" | "tookMs">;
    try {
      const placement = await placeWithExtenders(tried, within);
      const room = placement.type === "none" && findsRoom ? await rooms.findWithExtenders(tried, placement) : undefined;
      found = () => (placement.type === "node" ? this.#held(tried, placement.node) : this.#roomy(tried, placement, room));
    } catch (error) {
      found = () => { throw error; };
    }
    return { ...this.#timed(tried, found), tookMs: clock.uptimeMs() - startMs };
  }

  /** What cannot be thought through is an error of the pod. */
  #timed(tried: Tried, find: () => Omit<Found, "tried" | "tookMs">): Found {
    const { deps: { clock, log } } = this.#deps.parts;
    const startMs = clock.uptimeMs();
    const took = (found: Omit<Found, "tried" | "tookMs">): Found => ({ ...found, tried, tookMs: clock.uptimeMs() - startMs });
    try {
      return took(find());
    } catch (error) {
      if (!tried.signal.aborted) log.error("a pod of a group could not be decided on, the group is tried again", { pod: tried.attempt.key, error });
      return took({ finding: { type: "error", message: errorText(error) } });
    }
  }

  /** Those after it may have the devices that were found for it, where they name the same claims. */
  #held(tried: Tried, node: string): Omit<Found, "tried" | "tookMs"> {
    const { parts: { cluster: { devices } }, binder } = this.#deps;
    const held = binder.hold(tried, node);
    for (const { claim, allocation, mappings } of held.devices?.claims ?? []) if (allocation && !mappings) devices.shared.add(claim.metadata.uid);
    return this.#permitted("placed", held);
  }

  /** Where others could leave for it, it counts from now on: those after it have to fit beside it. */
  #roomy(tried: Tried, failure: NoPlacement, room: Room | undefined): Omit<Found, "tried" | "tookMs"> {
    if (!room?.nominatedNodeName) return { finding: { type: "rejected" }, failure, ...(room && { room }) };
    return { ...this.#permitted("preempts", this.#deps.binder.holdRoom(tried, room.nominatedNodeName)), failure, room };
  }

  #permitted(type: "placed" | "preempts", held: Held): Omit<Found, "tried" | "tookMs"> {
    const { parts: { metrics }, groups, binder } = this.#deps;
    const { profile, candidate: { pod } } = held;
    const permit = profile.gangs?.permitted ? groups.permitted(pod) : undefined;
    metrics.point("Permit", profile.schedulerName, 0, permit === undefined ? "Success" : permit === "wait" ? "Wait" : "Error");
    if (typeof permit !== "object") return { finding: { type, permit }, held, node: held.node };
    binder.letGo(held);
    return { finding: { type: "error", message: permit.error } };
  }
}

/** What was thought of its devices holds for one look. */
function anew(tried: Tried): Tried { return { ...tried, candidate: placedPod(tried.candidate.pod) }; }

export function unheld({ held: _held, ...one }: Found): Found { return one; }

function usesClaims({ spec }: Readonly<Pod>): boolean { return (spec.resourceClaims ?? []).length > 0; }
