/**
 * Pods of one group are thought through together, each as any other pod and with those before it in place; then all of them are bound, or none:
 *
 *   one is taken ──▶ the others of its group that wait ──▶ each: place.ts, held where it would go ──▶ pod-group-verdict.ts ──▶ scheduled: bound
 *                                                                                                                       └──▶ else: let go, told why, tried again
 *
 * With WorkloadAwarePreemption others go for the group as a whole, wherever they are (pod-group-victims.ts); without it, for each of its pods from one node.
 * Unlike upstream, nobody is evicted for a pod whose group would not get off all the same, and after a failure a group waits out its back-off unless something happens that may help.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { isDeleting, keyOf, type ObjectKey, splitKey } from "../api/meta/object-meta.ts";
import { POD_DISRUPTION_BUDGETS, PODS } from "../client/resources.ts";
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
import { inOrderOfMercy, moreImportant, type Unit, unitsOn, whoMayGo } from "./pod-group-victims.ts";
import type { Leaving, Room, RoomMaker } from "./room-maker.ts";

/** The only nodes they may go to; absent: all. */
type Within = readonly LiveNode[] | undefined;

/** How one is looked at. */
interface Look {
  readonly within: Within;
  /** Whether others could leave for one that fits nowhere. */
  readonly findsRoom: boolean;
}

/** As things are. */
const AS_IT_IS: Look = { within: undefined, findsRoom: true };

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
  /** Where it would go. */
  readonly node?: string;
  /** It counts there until the group's fate is known. */
  readonly held?: Held;
  readonly failure?: NoPlacement;
  readonly room?: Room;
  readonly tookMs: number;
}

/** Who has to go anywhere in the cluster so that the group gets off, or why that does not help. */
type Victims = { readonly pods: readonly Readonly<Pod>[] } | { readonly refused: string } | { readonly error: string };

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
    const { found, verdict, leaving } = await this.#withRoom(group, tries, await this.#thought(group, tries, AS_IT_IS));
    if (signal.aborted) return;
    metrics.groupAlgorithm(clock.uptimeMs() - startMs);
    this.#settle(tries, found, { verdict, leaving });
    metrics.groupAttempt(resultOf(verdict), profile.schedulerName, clock.uptimeMs() - startMs);
    this.#tell(group, verdict, signal);
  }

  /** Those that have a place are held there. */
  async #thought(group: ObjectKey, tries: readonly Tried[], look: Look): Promise<Trial> {
    const { placements } = tries[0]!.profile;
    return placements ? this.#inOnePlacement(group, tries, { rules: placements, look }) : this.#trial(tries, look);
  }

  /** Where others go for the group as a whole, and it does not get off: whether it would if they went. Then they are told to. */
  async #withRoom(group: ObjectKey, tries: readonly Tried[], { found, verdict }: Trial): Promise<Trial & { readonly leaving?: Leaving }> {
    const { rooms, groups, parts: { queue } } = this.#deps, { profile, signal } = tries[0]!;
    if (!profile.preemptsForGroups || verdict.type !== "unschedulable" || verdict.waits || signal.aborted) return { found, verdict };
    this.#letGo(found);
    const free = found.map(unheld), victims = await this.#victims(group, tries);
    if (signal.aborted) return { found: free, verdict };
    if ("error" in victims) return { found: free, verdict: { type: "error", message: victims.error } };
    if ("refused" in victims) return { found: free, verdict: { ...verdict, message: `${verdict.message}, ${victims.refused}` } };
    groups.isCleared.add(group);
    const leaving = rooms.clear(groups.podGroup(group)!, victims.pods, { attempts: tries.map(({ attempt }) => attempt), profile, signal }).finally(() => {
      groups.isCleared.delete(group);
      queue.regate("AssignedPodDelete", groups.keysOf(group));
    });
    return { found: free, verdict: { ...verdict, waits: true }, leaving };
  }

  /** All that may go are thought away, then back one after the other; those with whom the group does not get off are who has to. In the end all are where they were. Others get their turn between two looks. */
  async #victims(group: ObjectKey, tries: readonly Tried[]): Promise<Victims> {
    const { parts: { deps: { clock, informers }, snapshot }, groups } = this.#deps, { profile, signal } = tries[0]!;
    const podGroup = groups.podGroup(group);
    if (!profile.preemption) return { refused: "default preemption plugin is not registered, workload aware preemption is disabled" };
    if (!podGroup) return { error: `failed to get pod group object: podgroup.scheduling.k8s.io ${JSON.stringify(splitKey(group).name)} not found` };
    if (podGroup.spec.schedulingConstraints?.topology?.length) return { refused: "workload aware preemption is not supported for pod groups with scheduling constraints" };
    const may = whoMayGo(podGroup, tries.map(({ candidate }) => candidate.pod), unitsOn(snapshot.nodes(), groups));
    if ("refused" in may) return may;
    const away = ({ pods }: Unit): void => pods.forEach(({ pod }) => snapshot.setAside(pod.metadata.uid));
    const back = ({ pods }: Unit): void => pods.forEach(({ pod }) => snapshot.putBack(pod.metadata.uid));
    const verdict = async (): Promise<GroupVerdict> => {
      const anew = tries.map((tried) => ({ ...tried, candidate: placedPod(tried.candidate.pod) })); // what was thought of its devices holds for one look
      const { found, verdict: result } = await this.#thought(group, anew, { within: snapshot.nodes(), findsRoom: false });
      this.#letGo(found);
      await clock.sleep(0, signal);
      return result;
    };
    try {
      may.units.forEach(away);
      const alone = await verdict();
      if (alone.type !== "scheduled") return alone.type === "error" ? { error: alone.message } : { refused: alone.message };
      const victims: Unit[] = [];
      for (const unit of inOrderOfMercy(may.units, [...informers.of(POD_DISRUPTION_BUDGETS).list()])) {
        if (signal.aborted) return { refused: "" };
        back(unit);
        if ((await verdict()).type === "scheduled") continue;
        away(unit);
        victims.push(unit);
      }
      return { pods: victims.sort(moreImportant).flatMap(({ pods }) => pods.map(({ pod }) => pod)) };
    } finally {
      may.units.forEach(back);
    }
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
      const anew = placements.length === 1 ? tries : tries.map((tried) => ({ ...tried, candidate: placedPod(tried.candidate.pod) })); // what was thought of its devices holds for one placement
      const trial = await this.#trial(anew, { ...look, within: placement.nodes.length === cluster.nodes().length ? look.within : placement.nodes });
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
  #findAll(tries: readonly Tried[], look: Look, found: Found[]): void | Promise<void> {
    const { extenders } = this.#deps.parts;
    if (tries.some(({ candidate: { pod } }) => extenders.some((extender) => extender.isInterestedIn(pod)))) return this.#findAllWithExtenders(tries, look, found);
    for (const tried of tries) {
      const one = this.#find(tried, look);
      found.push(one);
      if (one.finding.type === "error") return;
    }
  }

  async #findAllWithExtenders(tries: readonly Tried[], look: Look, found: Found[]): Promise<void> {
    const { parts: { extenders } } = this.#deps;
    for (const tried of tries) {
      if (tried.signal.aborted) return;
      const one = extenders.some((extender) => extender.isInterestedIn(tried.candidate.pod)) ? await this.#findWithExtenders(tried, look) : this.#find(tried, look);
      found.push(one);
      if (one.finding.type === "error") return;
    }
  }

  #find(tried: Tried, { within, findsRoom }: Look): Found {
    const { rooms, place } = this.#deps;
    return this.#timed(tried, () => {
      const placement = place(tried, within);
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

  /** All are bound, or let go of and told why. `leaving`: before others have gone for them they are not tried again. */
  #settle(tries: readonly Tried[], found: readonly Found[], { verdict, leaving }: { readonly verdict: GroupVerdict; readonly leaving?: Leaving | undefined }): void {
    const { parts: { deps: { clock }, metrics }, binder, rooms } = this.#deps;
    if (verdict.type !== "scheduled") this.#letGo(found);
    const going = new Set<string>(); // by uid: two pods of the group may need the same to go
    for (const [i, one] of tries.entries()) {
      const { finding, held, node, failure, room, tookMs = 0 } = found[i] ?? {};
      const tried = { ...one, startMs: clock.uptimeMs() - tookMs };
      const told = toldTo(finding, verdict);
      if (told === "bind") {
        if (finding?.type === "placed" && finding.permit === "wait") metrics.permitWaited(0); // those after it have come at once
        binder.bind({ ...held!, startMs: tried.startMs });
      } else if (told === "own") {
        const victims = room!.victims.filter(({ metadata }) => !going.has(metadata.uid));
        for (const { metadata } of victims) going.add(metadata.uid);
        rooms.take(tried, failure!, { ...room!, victims }, leaving);
      } else if (told.type === "held up") rooms.heldUp(tried, told.message, told.keepsPlace ? node! : "", leaving);
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
