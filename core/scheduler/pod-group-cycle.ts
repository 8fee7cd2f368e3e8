/**
 * Pods of one group are thought through together, each as any other pod and with those before it in place; then all of them are bound, or none:
 *
 *   one is taken ──▶ the others of its group that wait ──▶ each: place.ts, held where it would go ──▶ pod-group-verdict.ts ──▶ scheduled: bound
 *                                                                                                                       └──▶ else: let go, told why, tried again
 *
 * Unlike upstream, nobody is evicted for a pod whose group would not get off all the same, and after a failure a group waits out its back-off unless something happens that may help.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { isDeleting, keyOf, type ObjectKey, splitKey } from "../api/meta/object-meta.ts";
import { PODS } from "../client/resources.ts";
import type { Binder, Held } from "./binder.ts";
import { type LiveNode, placedPod } from "./node-info.ts";
import type { Parts, Tried } from "./parts.ts";
import type { NoPlacement, Placement } from "./place.ts";
import { DEFAULT_SCHEDULER, type Profile } from "./plugins.ts";
import { groupOf, type PodGroups } from "./pod-groups.ts";
import { type GroupPlacement, type PlacementRules, placementScores, placementsOf } from "./pod-group-placements.ts";
import { tellGroup } from "./pod-group-status.ts";
import { type GroupVerdict, type PodFinding, toldTo, verdictOf } from "./pod-group-verdict.ts";
import type { Attempt } from "./queue.ts";
import type { Room, RoomMaker } from "./room-maker.ts";

/** The only nodes they may go to; absent: all. */
type Within = readonly LiveNode[] | undefined;

interface Deps {
  readonly parts: Parts;
  readonly groups: PodGroups;
  readonly binder: Binder;
  readonly rooms: RoomMaker;
  /** Where one pod goes, as things are. */
  place(tried: Tried, within: Within): Placement;
  /** The same, of one that extenders have a say about. */
  placeWithExtenders(tried: Tried, within: Within): Promise<{ readonly type: "node"; readonly node: string } | NoPlacement>;
}

/** What was found for one pod. */
interface Found {
  readonly tried: Tried;
  readonly finding: PodFinding;
  /** It counts there until the group's fate is known. */
  readonly held?: Held;
  readonly failure?: NoPlacement;
  readonly room?: Room;
  readonly tookMs: number;
}

interface Trial { readonly found: readonly Found[]; readonly verdict: GroupVerdict }

function unheld({ held: _held, ...one }: Found): Found { return one; }

export class PodGroupCycle {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Whether it is thought through here. */
  concerns(pod: Readonly<Pod>): boolean { return groupOf(pod) !== undefined; }

  /** `first` has been taken from the queue. It and all that are taken with it are settled when this ends; unless `signal` has aborted: then it is others who decide on them. */
  async decide(first: Attempt, signal: AbortSignal): Promise<void> {
    const { deps: { clock, log }, queue } = this.#deps.parts;
    const group = groupOf(first.pod)!, startMs = clock.uptimeMs();
    const attempts = this.#taken(first, group);
    try {
      await this.#decideOn(attempts, group, { startMs, signal });
    } catch (error) { // one group that cannot be thought through does not stop others
      if (signal.aborted) return;
      log.error("a group of pods could not be decided on, it is tried again", { podGroup: group, error });
      for (const attempt of attempts) if (queue.standing(attempt.key)?.queue === "in flight") this.#error(attempt, { startMs, signal }, error instanceof Error ? error.message : String(error));
    }
  }

  async #decideOn(attempts: readonly Attempt[], group: ObjectKey, { startMs, signal }: Pick<Tried, "startMs" | "signal">): Promise<void> {
    const { deps: { clock }, metrics } = this.#deps.parts;
    const profile = this.#profileOf(attempts, startMs, signal);
    if (!profile) return;
    const tries = attempts.flatMap((attempt) => this.#tried(attempt, { profile, startMs, signal }) ?? []);
    if (tries.length === 0) return;
    const { found, verdict } = profile.placements ? await this.#inOnePlacement(group, tries, profile.placements) : await this.#trial(tries, undefined);
    if (signal.aborted) return;
    metrics.groupAlgorithm(clock.uptimeMs() - startMs);
    this.#settle(tries, found, verdict);
    metrics.groupAttempt(resultOf(verdict), profile.schedulerName, clock.uptimeMs() - startMs);
    this.#tell(group, verdict, signal);
  }

  /** All are held where they would go. */
  async #trial(tries: readonly Tried[], within: Within): Promise<Trial> {
    const found: Found[] = [];
    const looked = this.#findAll(tries, within, found); // at once, if nobody has to be asked
    if (looked) await looked;
    this.#deps.parts.cluster.devices.shared.clear();
    return { found, verdict: verdictOf(found.map(({ finding }) => finding)) };
  }

  /** The best of the placements where the group gets off; where there is none, what was found in the first. */
  async #inOnePlacement(group: ObjectKey, tries: readonly Tried[], rules: PlacementRules): Promise<Trial> {
    const { parts: { deps: { random }, cluster, snapshot }, groups } = this.#deps;
    const podGroup = groups.podGroup(group);
    if (!podGroup) return { found: [], verdict: { type: "error", message: `podgroup.scheduling.k8s.io ${JSON.stringify(splitKey(group).name)} not found` } };
    const members = groups.members(group).flatMap((pod) => { const node = snapshot.nodeOf(pod); return node === undefined ? [] : [{ key: keyOf(pod), node }]; });
    const placements = rules.byTopology ? placementsOf(podGroup, cluster.nodes(), { placed: members, node: (name) => cluster.node(name) }) : [{ name: "", nodes: cluster.nodes() }];
    if ("error" in placements) return { found: [], verdict: { type: "error", message: placements.error } };
    if (placements.length === 0) return { found: [], verdict: { type: "unschedulable", waits: false, message: "no feasible placements found" } };
    const trials: (Trial & { readonly placement: GroupPlacement })[] = [];
    for (const placement of placements) {
      const anew = placements.length === 1 ? tries : tries.map((tried) => ({ ...tried, candidate: placedPod(tried.candidate.pod) })); // what was thought of its devices holds for one placement
      const trial = await this.#trial(anew, placement.nodes.length === cluster.nodes().length ? undefined : placement.nodes);
      this.#letGo(trial.found);
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
      this.#letGo(again);
      return { found: [], verdict: { type: "error", message: error instanceof Error ? error.message : String(error) } };
    }
  }

  #letGo(found: readonly Found[]): void { for (const { held } of found.toReversed()) if (held) this.#deps.binder.letGo(held); }

  /** It and the others of its group that wait: the most important first, then who has waited longer. */
  #taken(first: Attempt, group: ObjectKey): Attempt[] {
    const { parts: { queue }, groups } = this.#deps;
    const members = groups.members(group), isKnown = members.some(({ metadata }) => metadata.uid === first.pod.metadata.uid);
    const all = members.flatMap((pod) => (pod.metadata.uid === first.pod.metadata.uid ? [first] : (queue.takeAlso(pod, keyOf(pod)) ?? [])));
    return (isKnown ? all : [first, ...all]).sort((a, b) => (b.pod.spec.priority ?? 0) - (a.pod.spec.priority ?? 0) || a.addedMs - b.addedMs);
  }

  /** Whoever schedules them all. Undefined: they do not agree on that, and have been told. */
  #profileOf(attempts: readonly Attempt[], startMs: number, signal: AbortSignal): Profile | undefined {
    const { parts } = this.#deps;
    const names = attempts.map(({ pod }) => pod.spec.schedulerName || DEFAULT_SCHEDULER);
    const other = names.find((name) => name !== names[0]);
    if (other === undefined) return parts.profileOf(attempts[0]!.pod) ?? this.#notOurs(attempts);
    for (const attempt of attempts) this.#error(attempt, { startMs, signal }, `all pods in a single pod group should have the same .spec.schedulerName set, got: ${JSON.stringify(names[0])} and ${JSON.stringify(other)}`);
    return undefined;
  }

  #notOurs(attempts: readonly Attempt[]): undefined {
    for (const attempt of attempts) this.#deps.parts.queue.done(attempt);
  }

  /** Undefined: it is not to be given a node any more. */
  #tried(attempt: Attempt, { profile, startMs, signal }: Pick<Tried, "profile" | "startMs" | "signal">): Tried | undefined {
    const { parts } = this.#deps;
    const pod = parts.deps.informers.of(PODS).get(attempt.key);
    if (!pod || pod.metadata.uid !== attempt.pod.metadata.uid || !parts.isWaiting(pod) || parts.snapshot.isAssumed(pod)) return void parts.queue.done(attempt);
    if (!isDeleting(pod)) return { attempt, candidate: placedPod(pod), profile, startMs, signal };
    parts.tellUnscheduled(pod, profile, `skip schedule deleting pod: ${attempt.key}`);
    return void parts.queue.done(attempt);
  }

  /** Fills `found`, up to the first error. */
  #findAll(tries: readonly Tried[], within: Within, found: Found[]): void | Promise<void> {
    const { extenders } = this.#deps.parts;
    if (tries.some(({ candidate: { pod } }) => extenders.some((extender) => extender.isInterestedIn(pod)))) return this.#findAllWithExtenders(tries, within, found);
    for (const tried of tries) {
      const one = this.#find(tried, within);
      found.push(one);
      if (one.finding.type === "error") return;
    }
  }

  async #findAllWithExtenders(tries: readonly Tried[], within: Within, found: Found[]): Promise<void> {
    const { parts: { extenders } } = this.#deps;
    for (const tried of tries) {
      if (tried.signal.aborted) return;
      const one = extenders.some((extender) => extender.isInterestedIn(tried.candidate.pod)) ? await this.#findWithExtenders(tried, within) : this.#find(tried, within);
      found.push(one);
      if (one.finding.type === "error") return;
    }
  }

  #find(tried: Tried, within: Within): Found {
    const { rooms, place } = this.#deps;
    return this.#timed(tried, () => {
      const placement = place(tried, within);
      return placement.type === "node" ? this.#held(tried, placement.node) : this.#roomy(tried, placement, rooms.find(tried, placement));
    });
  }

  async #findWithExtenders(tried: Tried, within: Within): Promise<Found> {
    const { parts: { deps: { clock } }, rooms, placeWithExtenders } = this.#deps;
    const startMs = clock.uptimeMs();
    let found: () => Omit<Found, "tried" | "tookMs">;
    try {
      const placement = await placeWithExtenders(tried, within);
      const room = placement.type === "none" ? await rooms.findWithExtenders(tried, placement) : undefined;
      found = () => (placement.type === "node" ? this.#held(tried, placement.node) : this.#roomy(tried, placement, room!));
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
      return took({ finding: { type: "error", message: error instanceof Error ? error.message : String(error) } });
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
  #roomy(tried: Tried, failure: NoPlacement, room: Room): Omit<Found, "tried" | "tookMs"> {
    if (!room.nominatedNodeName) return { finding: { type: "rejected" }, failure, room };
    return { ...this.#permitted("preempts", this.#deps.binder.holdRoom(tried, room.nominatedNodeName)), failure, room };
  }

  #permitted(type: "placed" | "preempts", held: Held): Omit<Found, "tried" | "tookMs"> {
    const { parts: { metrics }, groups, binder } = this.#deps;
    const { profile, candidate: { pod } } = held;
    const permit = profile.gangs?.permitted ? groups.permitted(pod) : undefined;
    metrics.point("Permit", profile.schedulerName, 0, permit === undefined ? "Success" : permit === "wait" ? "Wait" : "Error");
    if (typeof permit !== "object") return { finding: { type, permit }, held };
    binder.letGo(held);
    return { finding: { type: "error", message: permit.error } };
  }

  /** All are bound, or let go of and told why. */
  #settle(tries: readonly Tried[], found: readonly Found[], verdict: GroupVerdict): void {
    const { parts: { deps: { clock }, metrics }, binder, rooms } = this.#deps;
    if (verdict.type !== "scheduled") this.#letGo(found);
    const leaving = new Set<string>(); // by uid: two pods of the group may need the same to go
    for (const [i, one] of tries.entries()) {
      const { finding, held, failure, room, tookMs = 0 } = found[i] ?? {};
      const tried = { ...one, startMs: clock.uptimeMs() - tookMs };
      const told = toldTo(finding, verdict);
      if (told === "bind") {
        if (finding?.type === "placed" && finding.permit === "wait") metrics.permitWaited(0); // those after it have come at once
        binder.bind({ ...held!, startMs: tried.startMs });
      } else if (told === "own") {
        const victims = room!.victims.filter(({ metadata }) => !leaving.has(metadata.uid));
        for (const { metadata } of victims) leaving.add(metadata.uid);
        rooms.take(tried, failure!, { ...room!, victims });
      } else if (told.type === "held up") rooms.heldUp(tried, told.message, told.keepsPlace ? held!.node : "");
      else this.#error(tried.attempt, tried, told.message);
    }
  }

  #error(attempt: Attempt, { startMs, signal }: Pick<Tried, "startMs" | "signal">, message: string): void {
    const { parts } = this.#deps;
    parts.queue.fail(attempt, "error");
    const profile = parts.profileOf(attempt.pod);
    if (profile) parts.writes.add(parts.tellError({ pod: parts.deps.informers.of(PODS).get(attempt.key) ?? attempt.pod, profile, startMs, signal }, message));
  }

  #tell(group: ObjectKey, verdict: GroupVerdict, signal: AbortSignal): void {
    const { parts: { deps, writes }, groups } = this.#deps;
    const podGroup = groups.podGroup(group);
    deps.log.info(verdict.type === "scheduled" ? "pod group scheduled" : "pod group not scheduled", { podGroup: group, ...("message" in verdict && { message: verdict.message }) });
    if (podGroup) writes.add(tellGroup(podGroup, verdict, { ...deps, signal }));
  }
}

function resultOf(verdict: GroupVerdict): "scheduled" | "unschedulable" | "waiting_on_preemption" | "error" {
  return verdict.type === "unschedulable" && verdict.waits ? "waiting_on_preemption" : verdict.type;
}
