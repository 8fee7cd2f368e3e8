/**
 * What follows when a pod fits nowhere: who could go so that it fits (preempt.ts), claims that could give back their devices, what the pod is told, and the evictions (evict.ts).
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one.go handleSchedulingFailure, framework/preemption
 */
import type { Pod } from "../api/gen/core.v1.ts";
import type { PodGroup } from "../api/gen/scheduling.v1alpha2.ts";
import { errorText } from "../api/meta/error-text.ts";
import { isDeleting, keyOf } from "../api/meta/object-meta.ts";
import { POD_DISRUPTION_BUDGETS, PODS } from "../client/resources.ts";
import { victimsByExtenders } from "./ask-extenders.ts";
import type { Binder } from "./binder.ts";
import { devicePlan, DYNAMIC_RESOURCES } from "./devices/dynamic-resources.ts";
import { DevicePlan } from "./devices/plan.ts";
import { evict, type Preemptor, preemptedBy, preemptorOf } from "./evict.ts";
import type { Parts, Tried } from "./parts.ts";
import type { NoPlacement } from "./place.ts";
import type { Profile } from "./plugins.ts";
import { groupPriority } from "./pod-group-victims.ts";
import { groupOf } from "./pod-groups.ts";
import { tryWritePodStatus } from "./pod-status.ts";
import type { Attempt } from "./queue.ts";
import { candidatesFor, chosen, preempt, type Preemption } from "./preempt.ts";

/** What preemption came to: "" as node, whatever it was nominated to is over. */
export interface Room {
  readonly message: string;
  readonly nominatedNodeName: string | undefined;
  readonly victims: readonly Readonly<Pod>[];
  /** It could not be found out: nothing else is told. */
  readonly isError?: boolean;
}

/** Whether all have been told to go that have to. */
export type Leaving = Promise<"all" | "error" | "stopped">;

/** What stands for the node where others leave for a group. Source: framework/preemption/executor.go actuatePodGroupPreemption */
const CLUSTER = "cluster";
const NO_ROOM: Room = { message: "", nominatedNodeName: undefined, victims: [] };
/** There are no nodes, or nobody to ask who could go. Source: schedule_one.go schedulingAlgorithm, clearNominatedNode */
const NOWHERE: Room = { ...NO_ROOM, nominatedNodeName: "" };
/** A filter before DynamicResources has refused all nodes: that plugin does not find what it would have noted, says so, and nobody is asked after it. Source: dynamicresources.go PostFilter, getStateData */
const UNNOTED: Room = { ...NO_ROOM, message: "not found", isError: true };

export class RoomMaker {
  readonly #parts: Parts;
  readonly #binder: Binder;

  constructor(parts: Parts, binder: Binder) {
    this.#parts = parts;
    this.#binder = binder;
  }

  /** The pod fits nowhere, and whoever would have to go is told to. */
  makeRoom(tried: Tried, failure: NoPlacement): void { this.take(tried, failure, this.find(tried, failure)); }

  async makeRoomWithExtenders(tried: Tried, failure: NoPlacement): Promise<void> { this.take(tried, failure, await this.findWithExtenders(tried, failure)); }

  /** Where the pod, which fits nowhere, could have room. Nobody is told to go yet. */
  find(tried: Tried, failure: NoPlacement): Room {
    const startMs = this.#parts.deps.clock.uptimeMs();
    const room = isUnnoted(tried.profile, failure) ? UNNOTED : this.#withDevices(tried, failure, this.#preempt(tried, failure));
    this.#took(tried, failure, room, startMs);
    return room;
  }

  async findWithExtenders(tried: Tried, failure: NoPlacement): Promise<Room> {
    const startMs = this.#parts.deps.clock.uptimeMs();
    const room = isUnnoted(tried.profile, failure) ? UNNOTED : this.#withDevices(tried, failure, await this.#preemptWithExtenders(tried, failure));
    this.#took(tried, failure, room, startMs);
    return room;
  }

  /** Where there is somebody to ask at all. */
  #took({ profile: { schedulerName, preemption, freesDevices } }: Tried, { evaluation }: NoPlacement, { nominatedNodeName, isError }: Room, startMs: number): void {
    const { deps: { clock }, metrics } = this.#parts;
    if (evaluation && (preemption || freesDevices)) metrics.point("PostFilter", schedulerName, clock.uptimeMs() - startMs, nominatedNodeName ? "Success" : isError ? "Error" : "Unschedulable");
  }

  /** The pod is told, and whoever would have to go. */
  take(tried: Tried, failure: NoPlacement, room: Room, leaving?: Leaving): void {
    const { message } = room;
    this.#nowhere(tried, { room, filters: failure.filters, said: message ? `${failure.message} ${message}` : failure.message, leaving });
  }

  /** The pod would have a place, or room could be made for it; but its group does not get off. `nominatedNodeName`: "", it waits for no node; else nobody is told to go for it. */
  heldUp(tried: Tried, said: string, nominatedNodeName: string, leaving?: Leaving): void { this.#nowhere(tried, { room: { ...NO_ROOM, nominatedNodeName }, filters: "group", said, leaving }); }

  /** Whoever has to go for a group is told to. Until they have been its pods are held back. */
  clear(group: Readonly<PodGroup>, victims: readonly Readonly<Pod>[], { attempts, profile, signal }: Pick<Tried, "profile" | "signal"> & { readonly attempts: readonly Attempt[] }): Leaving {
    const { metrics, writes, queue } = this.#parts, groups = this.#parts.groups!, key = keyOf(group);
    if (!victims.every(isDeleting)) metrics.preempted(victims.length);
    const preemptor: Preemptor = { kind: "podgroup", key, uid: group.metadata.uid, schedulerName: profile.schedulerName, priority: groupPriority(group) };
    groups.isCleared.add(key);
    const leaving = this.#told(preemptor, { attempts, profile, signal }, { victims, node: CLUSTER }).finally(() => {
      groups.isCleared.delete(key);
      queue.regate("AssignedPodDelete", groups.keysOf(key));
    });
    writes.add(leaving.then(() => {}));
    return leaving;
  }

  #nowhere({ attempt, candidate: { pod }, profile, startMs, signal }: Tried, { room, filters, said, leaving }: { readonly room: Room; readonly filters: NoPlacement["filters"] | "group"; readonly said: string; readonly leaving?: Leaving | undefined }): void {
    const { nominatedNodeName, victims } = room;
    const { deps, snapshot, metrics, queue, writes } = this.#parts;
    const now = deps.informers.of(PODS).get(attempt.key);
    const isThere = now?.metadata.uid === pod.metadata.uid && !now.spec.nodeName; // extenders may have taken their time
    if (nominatedNodeName && isThere) snapshot.nominate(pod, nominatedNodeName);
    else if (nominatedNodeName === "") snapshot.denominate(pod);
    deps.log.info("pod fits nowhere", { pod: keyOf(pod), message: said, ...(nominatedNodeName ? { nominatedNodeName, victims: victims.map(keyOf) } : {}) });
    metrics.attempt("unschedulable", profile.schedulerName, deps.clock.uptimeMs() - startMs);
    if (this.#parts.isReplaced(attempt)) return queue.done(attempt);
    this.#parts.tellUnscheduled(pod, profile, said);
    const tell = (): Promise<void> => tryWritePodStatus(pod, { condition: { type: "PodScheduled", status: "False", reason: "Unschedulable", message: said }, nominatedNodeName }, { ...deps, signal });
    if (nominatedNodeName && filters !== "group") {
      if (!victims.every(isDeleting)) metrics.preempted(victims.length);
      return writes.add(tell().then(() => this.#evict({ attempt, pod, profile, signal }, { filters, victims, node: nominatedNodeName })));
    }
    if (leaving) return writes.add(Promise.all([tell(), leaving]).then(([, told]) => { if (told !== "stopped") queue.fail(attempt, told === "all" ? filters : "error"); }));
    queue.fail(attempt, filters);
    writes.add(tell());
  }

  /** The pod is not tried again before all victims have been told to go: until the last one is, nothing that happens would help. */
  async #evict({ attempt, pod, profile, signal }: Pick<Tried, "attempt" | "profile" | "signal"> & { readonly pod: Readonly<Pod> }, { filters, victims, node }: {
    readonly filters: NoPlacement["filters"];
    readonly victims: Room["victims"];
    readonly node: string;
  }): Promise<void> {
    const told = await this.#told(preemptorOf(pod), { attempts: [attempt], profile, signal }, { victims, node });
    if (told !== "stopped") this.#parts.queue.fail(attempt, told === "all" ? filters : "error");
  }

  async #told(preemptor: Preemptor, { attempts, profile, signal }: Pick<Tried, "profile" | "signal"> & { readonly attempts: readonly Attempt[] }, { victims, node }: { readonly victims: Room["victims"]; readonly node: string }): Leaving {
    const { deps, snapshot, queue, metrics } = this.#parts;
    const reporter = this.#parts.reporter(profile);
    const startMs = deps.clock.uptimeMs();
    const ran = (result: "success" | "error"): void => metrics.preemptionRan(result, deps.clock.uptimeMs() - startMs);
    try {
      const [undecided, placed] = [victims.filter((victim) => this.#binder.isWaiting(victim)), victims.filter((victim) => !this.#binder.isWaiting(victim))];
      for (const victim of undecided) { // it waits for volumes: enough that it looks elsewhere
        this.#binder.preempt(victim);
        reporter.report(victim, { type: "Normal", reason: "Preempted", action: "Preempting", note: `${preemptedBy(preemptor, node)} (in kube-scheduler memory).` });
      }
      await evict(preemptor, placed, node, { ...deps, reporter, snapshot, beforeLast: () => attempts.forEach((attempt) => queue.overlook(attempt)), signal });
      if (!victims.every(isDeleting)) ran("success");
      return "all";
    } catch (error) {
      if (signal.aborted) return "stopped";
      deps.log.warn("pods could not be evicted, whoever they were to make room for is tried again", { [preemptor.kind === "pod" ? "pod" : "podGroup"]: preemptor.key, node, error });
      ran("error");
      return "error";
    }
  }

  #preempt({ candidate, profile }: Tried, failure: NoPlacement): Room {
    if (!failure.evaluation) return NOWHERE;
    if (!profile.preemption) return profile.freesDevices ? NO_ROOM : NOWHERE;
    this.#parts.metrics.preemptionTried();
    const bound = this.#boundToGroup(candidate.pod, profile);
    if (bound) return bound;
    return this.#room(preempt(candidate, failure, this.#surroundings(profile.preemption)));
  }

  /** For one pod of a group nobody is told to go where it has to stay together, as each placement would have others go, and where it is the group that others go for. Source: default_preemption.go PostFilter */
  #boundToGroup(pod: Readonly<Pod>, { placements, preemptsForGroups = false }: Profile): Room | undefined {
    const { groups } = this.#parts, group = groupOf(pod);
    if (!groups || group === undefined) return undefined;
    const forAll = preemptsForGroups ? { ...NO_ROOM, message: "preemption: not eligible due to workload aware preemption enabled" } : undefined;
    if (!placements) return forAll;
    const podGroup = groups.podGroup(group);
    if (!podGroup) return { ...NO_ROOM, message: "preemption: pod group for pod not found" };
    return podGroup.spec.schedulingConstraints ? { ...NO_ROOM, message: "preemption: not eligible due to placement-based pod group scheduling limitation" } : forAll;
  }

  async #preemptWithExtenders({ candidate, profile, signal }: Tried, failure: NoPlacement): Promise<Room> {
    const { deps: { log }, extenders, snapshot, metrics } = this.#parts;
    if (!failure.evaluation) return NOWHERE;
    if (!profile.preemption) return profile.freesDevices ? NO_ROOM : NOWHERE;
    metrics.preemptionTried();
    const bound = this.#boundToGroup(candidate.pod, profile);
    if (bound) return bound;
    const found = candidatesFor(candidate, failure, this.#surroundings(profile.preemption));
    if (found.type === "none") return this.#room(found);
    const choices = new Map(found.choices.map(({ node, victims, violations }) => [node, { pods: victims, violations }]));
    try {
      const agreed = await victimsByExtenders(candidate.pod, choices, (name) => snapshot.node(name), { extenders, log, signal });
      return this.#room(chosen([...agreed].map(([node, { pods, violations }]) => ({ node, victims: pods, violations }))));
    } catch (error) {
      if (signal.aborted) throw error;
      log.warn("an extender could not be asked about victims", { pod: keyOf(candidate.pod), error });
      return { ...NO_ROOM, message: `preemption: ${errorText(error)}`, isError: true };
    }
  }

  /** Claims that keep the pod off all nodes may lose their devices. Says so before what preemption says. */
  #withDevices({ candidate, profile, signal }: Tried, { evaluation }: NoPlacement, room: Room): Room {
    if (!evaluation || !profile.freesDevices || room.nominatedNodeName) return room;
    const { cluster, claims, writes } = this.#parts;
    const plan = devicePlan(candidate, cluster);
    let said = "no new claims to deallocate";
    if (plan instanceof DevicePlan) {
      const { pod } = candidate;
      said = claims.deallocation(pod, plan);
      writes.add(claims.deallocateOne(pod, plan, signal));
    }
    return room.isError ? room : { ...room, message: room.message ? `${said}, ${room.message}` : said };
  }

  #surroundings(enough: NonNullable<Profile["preemption"]>): Parameters<typeof preempt>[2] {
    const { deps: { random, informers }, cluster } = this.#parts;
    return { cluster, budgets: [...informers.of(POD_DISRUPTION_BUDGETS).list()], random, enough };
  }

  #room(preemption: Preemption): Room {
    if (preemption.type === "none") return { message: preemption.message, nominatedNodeName: preemption.keepNomination ? undefined : "", victims: [], isError: preemption.isError ?? false };
    return { message: "", nominatedNodeName: preemption.node, victims: preemption.victims };
  }
}

function isUnnoted({ filters, freesDevices }: Profile, { evaluation }: NoPlacement): boolean {
  const place = (name: string): number => filters.findIndex((filter) => filter.name === name);
  return freesDevices && evaluation?.refusal !== undefined && place(evaluation.refusal.filter) < place(DYNAMIC_RESOURCES);
}
