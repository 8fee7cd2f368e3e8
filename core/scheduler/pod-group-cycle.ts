/**
 * Pods of one group are thought through together, each as any other pod and with those before it in place (pod-group-trials.ts); then all of them are bound, or none:
 *
 *   one is taken ──▶ the others of its group that wait ──▶ each: place.ts, held where it would go ──▶ pod-group-verdict.ts ──▶ scheduled: bound
 *                                                                                                                       └──▶ else: let go, told why, tried again
 *
 * With WorkloadAwarePreemption others go for the group as a whole, wherever they are (pod-group-search.ts); without it, for each of its pods from one node.
 * Unlike upstream, nobody is evicted for a pod whose group would not get off all the same, and after a failure a group waits out its back-off unless something happens that may help.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one_podgroup.go
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { errorText } from "../api/meta/error-text.ts";
import { isDeleting, keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import { POD_DISRUPTION_BUDGETS, PODS } from "../client/resources.ts";
import { placedPod } from "./node-info.ts";
import type { Tried } from "./parts.ts";
import { DEFAULT_SCHEDULER, type Profile } from "./plugins.ts";
import { findVictims, type Victims } from "./pod-group-search.ts";
import { tellGroup } from "./pod-group-status.ts";
import { AS_IT_IS, type Found, GroupTrials, type Trial, type TrialDeps, unheld } from "./pod-group-trials.ts";
import { type GroupVerdict, toldTo } from "./pod-group-verdict.ts";
import { groupOf } from "./pod-groups.ts";
import type { Attempt } from "./queue.ts";
import type { Leaving, RoomMaker } from "./room-maker.ts";

interface Deps extends TrialDeps { readonly rooms: RoomMaker }

export class PodGroupCycle {
  readonly #deps: Deps;
  readonly #trials: GroupTrials;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#trials = new GroupTrials(deps);
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
      for (const attempt of attempts) if (queue.standing(attempt.key)?.queue === "in flight") this.#error(attempt, { startMs, signal }, errorText(error));
    }
  }

  async #decideOn(attempts: readonly Attempt[], group: ObjectKey, { startMs, signal }: Pick<Tried, "startMs" | "signal">): Promise<void> {
    const { deps: { clock }, metrics } = this.#deps.parts;
    const profile = this.#profileOf(attempts, startMs, signal);
    if (!profile) return;
    const tries = attempts.flatMap((attempt) => this.#tried(attempt, { profile, startMs, signal }) ?? []);
    if (tries.length === 0) return;
    const { found, verdict, leaving } = await this.#withRoom(group, tries, await this.#trials.run(group, tries, AS_IT_IS));
    if (signal.aborted) return;
    metrics.groupAlgorithm(clock.uptimeMs() - startMs);
    this.#settle(tries, found, { verdict, leaving });
    metrics.groupAttempt(resultOf(verdict), profile.schedulerName, clock.uptimeMs() - startMs);
    this.#tell(group, verdict, signal);
  }

  /** Where others go for the group as a whole, and it does not get off: whether it would if they went. Then they are told to. */
  async #withRoom(group: ObjectKey, tries: readonly Tried[], { found, verdict }: Trial): Promise<Trial & { readonly leaving?: Leaving }> {
    const { rooms, groups } = this.#deps, { profile, signal } = tries[0]!;
    if (!profile.preemptsForGroups || verdict.type !== "unschedulable" || verdict.waits || signal.aborted) return { found, verdict };
    this.#trials.letGo(found);
    const free = found.map(unheld), victims = await this.#victims(group, tries);
    if (signal.aborted) return { found: free, verdict };
    if ("error" in victims) return { found: free, verdict: { type: "error", message: victims.error } };
    if ("refused" in victims) return { found: free, verdict: { ...verdict, message: `${verdict.message}, ${victims.refused}` } };
    const leaving = rooms.clear(groups.podGroup(group)!, victims.pods, { attempts: tries.map(({ attempt }) => attempt), profile, signal });
    return { found: free, verdict: { ...verdict, waits: true }, leaving };
  }

  async #victims(group: ObjectKey, tries: readonly Tried[]): Promise<Victims> {
    const { parts: { deps: { clock, informers }, snapshot }, groups } = this.#deps, { profile, signal } = tries[0]!;
    if (!profile.preemption) return { refused: "default preemption plugin is not registered, workload aware preemption is disabled" };
    const verdict = async (): Promise<GroupVerdict> => {
      const found = await this.#trials.verdict(group, tries, { within: snapshot.nodes(), findsRoom: false });
      await clock.sleep(0, signal);
      return found;
    };
    return findVictims({ group, pods: tries.map(({ candidate }) => candidate.pod), signal, verdict }, { snapshot, groups, budgets: () => informers.of(POD_DISRUPTION_BUDGETS).list() });
  }

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

  /** All are bound, or let go of and told why. `leaving`: before others have gone for them they are not tried again. */
  #settle(tries: readonly Tried[], found: readonly Found[], { verdict, leaving }: { readonly verdict: GroupVerdict; readonly leaving?: Leaving | undefined }): void {
    const { parts: { deps: { clock }, metrics }, binder, rooms } = this.#deps;
    if (verdict.type !== "scheduled") this.#trials.letGo(found);
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
