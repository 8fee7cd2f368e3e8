/**
 * Gives every pod without a node one.
 *
 *   pods, nodes … ──informers──▶ snapshot, queue ──▶ place.ts decides ──▶ assumed ──▶ volumes bound ──▶ POST …/binding
 *                                   ▲       │ nowhere                        │ fails
 *                                   │       ▼                                │
 *                                   │   preempt.ts ──▶ evict.ts              │
 *                                   └────────── forgotten, tried again ◀─────┘
 *
 * One pod is decided at a time, so each decision sees the ones before it; what follows a decision is written while the next is made.
 * Pods whose spec.schedulerName is no profile's are somebody else's.
 */
import type { Node, Pod } from "../api/gen/core.v1.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { isNotFound } from "../api/meta/status-error.ts";
import type { Client } from "../client/client.ts";
import type { EventRecorder, Events } from "../client/events.ts";
import type { Informers } from "../client/informer-factory.ts";
import { CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, DEVICE_CLASSES, NAMESPACES, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, POD_DISRUPTION_BUDGETS, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, STORAGE_CLASSES, VOLUME_ATTACHMENTS } from "../client/resources.ts";
import type { BackoffOptions } from "../lifecycle/backoff.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Runnable } from "../lifecycle/run-all.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { EXTENDER, filterByExtenders, scoresOfExtenders, victimsByExtenders } from "./ask-extenders.ts";
import { Batch, signatureOf } from "./batch.ts";
import { type ClusterChange, nameOf } from "./changes.ts";
import { type Cluster, clusterOf, OWNER_RESOURCES } from "./cluster.ts";
import { ClaimBinder, type DeviceReservation } from "./devices/claim-binder.ts";
import { DEVICE_RESOURCES, podClaimsOf } from "./devices/claims.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { DevicePlan } from "./devices/plan.ts";
import { evict } from "./evict.ts";
import type { Extender } from "./extender.ts";
import type { Evaluation } from "./evaluation.ts";
import type { SchedulingExplainer } from "./explainer.ts";
import { Kinds } from "./kinds.ts";
import { type SchedulerMetrics, schedulerMetrics } from "./metrics.ts";
import { type PlacedPod, placedPod } from "./node-info.ts";
import { best, type NoPlacement, nowhere, place, type Placement, search, type SearchStart } from "./place.ts";
import { DEFAULT_PROFILE, DEFAULT_SCHEDULER, type Profile } from "./plugins.ts";
import { tryWritePodStatus } from "./pod-status.ts";
import { candidatesFor, chosen, preempt, type Preemption } from "./preempt.ts";
import { type Attempt, hasGates, SchedulingQueue } from "./queue.ts";
import { countsTheSame, isEnded, Snapshot } from "./snapshot.ts";
import { type Reservation, VolumeBinder } from "./volume-binder.ts";
import { planVolumes, podClaims, podVolumes } from "./volume-plan.ts";

/** Bindings and status writes under way at once. Those that wait for volumes do not count. */
const WRITES_MAX = 64;
/** Longest stretch of decisions without letting others run. */
const TURN_MS = 10;
/** Why a pod stops waiting for its volumes. */
const PREEMPTED = Object.freeze(new Error("preempted by DefaultPreemption"));
/** What an event's text may have. Source: schedule_one.go truncateMessage, NoteLengthLimit */
const NOTE_MAX = 1024;

export interface SchedulerDeps {
  readonly client: Client;
  readonly informers: Informers;
  readonly events: Events;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Each with its own scheduler name; by default the default scheduler alone. */
  readonly profiles?: readonly Profile[] | undefined;
  readonly extenders?: readonly Extender[] | undefined;
  /** How long a pod waits after it fitted nowhere. */
  readonly backoff?: BackoffOptions | undefined;
  /** Told what this scheduler knows, while it runs. */
  readonly explainer?: SchedulingExplainer | undefined;
}

export function scheduler(deps: SchedulerDeps): Runnable {
  return {
    name: "scheduler",
    async run(signal, ready) {
      const running = new Scheduler(deps);
      try {
        await running.follow(signal);
        ready();
        await running.schedule(signal);
      } finally {
        running.stop();
      }
    },
  };
}

class Scheduler {
  readonly #deps: SchedulerDeps;
  readonly #profiles: ReadonlyMap<string, Profile>;
  readonly #snapshot = new Snapshot();
  readonly #cluster: Cluster;
  readonly #queue: SchedulingQueue;
  readonly #volumes: VolumeBinder;
  readonly #claims: ClaimBinder;
  readonly #metrics: SchedulerMetrics;
  readonly #extenders: readonly Extender[];
  readonly #batch: Batch;
  readonly #start: SearchStart = { next: 0 };
  readonly #kinds = new Kinds();
  readonly #stops: (() => void)[] = [];
  readonly #writes = new Set<Promise<void>>();
  readonly #waits = new Set<Promise<void>>();
  /** Pods that wait for their volumes, by uid: to give up when the pod goes. */
  readonly #bindings = new Map<string, AbortController>();

  constructor(deps: SchedulerDeps) {
    const { client, clock, informers, metrics, profiles = [DEFAULT_PROFILE] } = deps;
    this.#deps = deps;
    this.#extenders = deps.extenders ?? [];
    this.#profiles = new Map(profiles.map((profile) => [profile.schedulerName, profile]));
    const snapshot = this.#snapshot;
    this.#cluster = clusterOf(snapshot, informers, { nowMs: () => clock.nowMs(), uptimeMs: () => clock.uptimeMs() });
    this.#claims = new ClaimBinder({ client, clock, random: deps.random, log: deps.log, devices: this.#cluster.devices });
    this.#volumes = new VolumeBinder({ client, clock, storage: this.#cluster.storage, node: (name) => snapshot.node(name) });
    this.#metrics = schedulerMetrics(metrics, { queue: () => this.#queue, snapshot, bindings: () => this.#writes.size + this.#waits.size });
    this.#batch = new Batch(this.#metrics);
    this.#queue = new SchedulingQueue({
      clock, backoff: deps.backoff,
      isGated: (pod) => this.#isGated(pod),
      mayHelp: (pod, filters, change) => filters.has(EXTENDER) || (this.#profileOf(pod)?.filters.some(({ name, mayHelp }) => filters.has(name) && mayHelp(pod, change, this.#cluster)) ?? false),
      onQueued: (queue, event) => this.#metrics.queued(queue, event),
    });
  }

  async follow(signal: AbortSignal): Promise<void> {
    const { informers } = this.#deps;
    const nodes = informers.of(NODES);
    const pods = informers.of(PODS);
    const sources = [...OWNER_RESOURCES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES, CSI_NODES, CSI_DRIVERS, CSI_STORAGE_CAPACITIES, VOLUME_ATTACHMENTS, POD_DISRUPTION_BUDGETS, ...DEVICE_RESOURCES];
    await Promise.all([nodes, pods, ...sources.map((ref) => informers.of(ref as typeof NAMESPACES))].map((informer) => informer.whenSynced(signal)));
    if (signal.aborted) return;
    const detach = this.#deps.explainer?.attach({ snapshot: this.#snapshot, cluster: this.#cluster, standing: (key) => this.#queue.standing(key) });
    this.#stops.push(
      () => detach?.(),
      nodes.onChange((change) => this.#nodeChanged({ of: "node", ...change })),
      pods.onChange(({ object, old, deleted }) => this.#podChanged(object, old, deleted)),
      informers.of(NAMESPACES).onChange((change) => this.#changed({ of: "namespace", ...change })),
      informers.of(PERSISTENT_VOLUME_CLAIMS).onChange((change) => this.#storageChanged({ of: "claim", ...change })),
      informers.of(PERSISTENT_VOLUMES).onChange((change) => this.#storageChanged({ of: "volume", ...change })),
      informers.of(STORAGE_CLASSES).onChange((change) => this.#changed({ of: "storage class", ...change })),
      informers.of(CSI_NODES).onChange((change) => this.#changed({ of: "CSI node", ...change })),
      informers.of(CSI_DRIVERS).onChange((change) => this.#changed({ of: "CSI driver", ...change })),
      informers.of(CSI_STORAGE_CAPACITIES).onChange((change) => this.#changed({ of: "storage capacity", ...change })),
      informers.of(VOLUME_ATTACHMENTS).onChange((change) => this.#changed({ of: "attachment", ...change })),
      informers.of(RESOURCE_CLAIMS).onChange((change) => {
        if (change.deleted || change.object.status?.allocation) this.#cluster.devices.pending.delete(change.object.metadata.uid);
        this.#queue.regate();
        this.#changed({ of: "resource claim", ...change });
      }),
      informers.of(RESOURCE_SLICES).onChange((change) => this.#changed({ of: "resource slice", ...change })),
      informers.of(DEVICE_CLASSES).onChange((change) => this.#changed({ of: "device class", ...change })),
    );
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }

  async schedule(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps;
    let turnMs = clock.uptimeMs();
    for (;;) {
      const attempt = await this.#queue.take(signal);
      if (!attempt) break;
      const decided = this.#attempt(attempt, signal);
      if (decided) await decided;
      if (this.#writes.size >= WRITES_MAX) await Promise.race(this.#writes);
      if (clock.uptimeMs() - turnMs < TURN_MS) continue;
      await clock.sleep(0, signal);
      turnMs = clock.uptimeMs();
    }
    await Promise.all([...this.#writes, ...this.#waits]);
  }

  #attempt(attempt: Attempt, signal: AbortSignal): void | Promise<void> {
    const startMs = this.#deps.clock.uptimeMs();
    try {
      return this.#decide(attempt, startMs, signal)?.catch((error: unknown) => this.#undecided({ attempt, startMs, signal }, error));
    } catch (error) {
      this.#undecided({ attempt, startMs, signal }, error);
    }
  }

  /** One pod that cannot be thought through does not stop the others. */
  #undecided({ attempt, startMs, signal }: { readonly attempt: Attempt; readonly startMs: number; readonly signal: AbortSignal }, error: unknown): void {
    const { pod } = attempt;
    this.#deps.log.error("a pod could not be decided on, it is tried again", { pod: attempt.key, error });
    const profile = this.#profileOf(pod) ?? DEFAULT_PROFILE;
    this.#queue.fail(attempt, "error");
    this.#run(this.#writes, this.#tellError({ pod, profile, startMs, signal }, error instanceof Error ? error.message : String(error)));
  }

  #decide(attempt: Attempt, startMs: number, signal: AbortSignal): void | Promise<void> {
    const pod = this.#deps.informers.of(PODS).get(attempt.key);
    const profile = pod && this.#profileOf(pod);
    if (!pod || !profile || pod.metadata.uid !== attempt.pod.metadata.uid || !this.#isWaiting(pod) || this.#snapshot.isAssumed(pod)) return this.#queue.done(attempt);
    const candidate = placedPod(pod);
    const tried = { attempt, candidate, profile, startMs, signal };
    if (this.#extenders.some((extender) => extender.isInterestedIn(pod))) return this.#decideWithExtenders(tried);
    const placement = this.#place(candidate, profile);
    this.#tookToDecide(tried, placement.evaluation, placement.type);
    if (placement.type === "none") this.#nowhere(tried, placement, this.#postFilter(tried, placement, this.#makeRoom(tried, placement)));
    else this.#go(tried, placement.node);
  }

  /** As the last one like it was placed, if that still tells. */
  #place(candidate: PlacedPod, profile: Profile): Placement {
    const { random, clock } = this.#deps;
    const signature = signatureOf(candidate, this.#cluster, profile);
    const hint = this.#batch.hint(candidate, signature, { cluster: this.#cluster, profile, nowMs: clock.uptimeMs() });
    const placement = hint ? { type: "node" as const, ...hint, feasible: 1, evaluated: 1 } : place(candidate, this.#cluster, profile, { random, start: this.#start, ranks: signature !== undefined, kind: this.#kinds.of(candidate) });
    const others = hint || placement.type === "none" ? undefined : placement.others ?? [];
    this.#batch.decided(placement.type === "node" ? placement.node : undefined, others, { signature, profile, nowMs: clock.uptimeMs() });
    return placement;
  }

  #tookToDecide({ profile, startMs }: Tried, evaluation: Evaluation | undefined, came: "node" | "none"): void {
    const ms = this.#deps.clock.uptimeMs() - startMs;
    this.#metrics.algorithm(ms);
    this.#metrics.point("Filter", profile.schedulerName, ms, came === "node" ? "Success" : "Unschedulable");
    if (evaluation) this.#metrics.evaluated("Filter", evaluation.asked(), profile.schedulerName);
  }

  /** Others are asked over the network: no other pod is decided meanwhile. */
  async #decideWithExtenders(tried: Tried): Promise<void> {
    const { candidate, profile, signal } = tried;
    const { random, log } = this.#deps;
    const { pod } = candidate;
    this.#batch.skip();
    const asked = { extenders: this.#extenders, log, signal };
    const found = search(candidate, this.#cluster, profile, { start: this.#start });
    const feasible = found.type === "none" ? [] : await filterByExtenders(pod, found.feasible, found.rejections, asked);
    const more = feasible.length > 1 ? await scoresOfExtenders(pod, feasible, asked) : new Map<string, number>();
    this.#tookToDecide(tried, found.evaluation, feasible.length > 0 ? "node" : "none");
    if (feasible.length > 0) return this.#go(tried, best(candidate, this.#cluster, { feasible, scores: profile.scores, random, more }).name);
    const failure = found.type === "none" ? found : nowhere(this.#cluster, found);
    this.#nowhere(tried, failure, this.#postFilter(tried, failure, await this.#makeRoomWithExtenders(tried, failure)));
  }

  /** The pod is to be on `node`: from now on it counts there. */
  #go(tried: Tried, node: string): void {
    const { attempt, candidate, profile, signal } = tried;
    const devices = profile.bindsDevices ? this.#reserveDevices(candidate, node) : undefined;
    const reservation = profile.bindsVolumes ? this.#reserve(candidate.pod, node) : undefined;
    this.#snapshot.assume(candidate, node);
    this.#queue.done(attempt);
    const binding = { ...tried, node, reservation, devices };
    if (reservation || devices) this.#run(this.#waits, this.#prepareAndBind(binding));
    else this.#run(this.#writes, this.#bind(binding, signal));
  }

  #run(set: Set<Promise<void>>, work: Promise<void>): void {
    const running = work.finally(() => set.delete(running));
    set.add(running);
  }

  #reserve(pod: Readonly<Pod>, nodeName: string): Reservation | undefined {
    const node = this.#snapshot.node(nodeName)?.node;
    if (!node || podClaims(pod).length === 0) return undefined;
    const volumes = podVolumes(pod, this.#cluster.storage);
    const plan = "refused" in volumes ? undefined : planVolumes(volumes, node, this.#cluster.storage);
    return plan && !("reasons" in plan) ? this.#volumes.reserve(plan, nodeName) : undefined;
  }

  #reserveDevices(candidate: PlacedPod, nodeName: string): DeviceReservation | undefined {
    const plan = devicePlan(candidate, this.#cluster);
    const node = this.#snapshot.node(nodeName);
    return plan instanceof DevicePlan && node ? this.#claims.reserve(candidate.pod, plan, node) : undefined;
  }

  async #prepareAndBind(binding: Binding): Promise<void> {
    const { candidate: { pod }, profile, node, reservation, devices } = binding;
    const gone = new AbortController();
    this.#bindings.set(pod.metadata.uid, gone);
    const signal = AbortSignal.any([binding.signal, gone.signal]);
    let plugin = "VolumeBinding";
    const startMs = this.#deps.clock.uptimeMs();
    try {
      if (reservation) await this.#volumes.bind(reservation, profile.bindTimeoutMs, signal);
      plugin = "DynamicResources";
      const waiting = (): void => this.#recorder(profile).event(pod, "Normal", "BindingConditionsPending", `waiting for binding conditions for device on node ${node}`);
      if (devices) await this.#claims.bind(devices, { timeoutMs: profile.deviceBindingTimeoutMs, waiting, signal });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return this.#bindingFailed(binding, new Error(`running PreBind plugin "${plugin}": ${message}`, { cause: error }), signal.aborted && signal.reason !== PREEMPTED);
    } finally {
      this.#bindings.delete(pod.metadata.uid);
    }
    this.#metrics.point("PreBind", profile.schedulerName, this.#deps.clock.uptimeMs() - startMs);
    await this.#bind(binding, signal);
  }

  async #bind(binding: Binding, signal: AbortSignal): Promise<void> {
    const { attempt, candidate: { pod }, profile, startMs, node } = binding;
    const { client, clock, log } = this.#deps;
    const { name, namespace, uid } = pod.metadata;
    const bindMs = clock.uptimeMs();
    try {
      const body = { apiVersion: "v1", kind: "Binding", metadata: { name, namespace, uid }, target: { apiVersion: "v1", kind: "Node", name: node } };
      const binder = this.#extenders.find((extender) => extender.binds && extender.isInterestedIn(pod));
      if (binder) await binder.bind(pod, node, signal);
      else await client.resource(PODS).createSubresource(pod, "binding", body, { signal });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      return this.#bindingFailed(binding, new Error(`binding rejected: running Bind plugin "DefaultBinder": ${message}`, { cause: error }), signal.aborted || isNotFound(error));
    }
    this.#metrics.point("Bind", profile.schedulerName, clock.uptimeMs() - bindMs);
    log.info("pod bound", { pod: keyOf(pod), node });
    this.#recorder(profile).event(pod, "Normal", "Scheduled", `Successfully assigned ${namespace}/${name} to ${node}`);
    this.#metrics.attempt("scheduled", profile.schedulerName, clock.uptimeMs() - startMs);
    this.#metrics.scheduled(attempt.attempts, clock.uptimeMs() - attempt.addedMs);
  }

  /** `gone`: the pod does not want a node any more, or we stop. */
  async #bindingFailed({ attempt, candidate: { pod }, profile, startMs, node, reservation, devices, signal }: Binding, error: Error, gone: boolean): Promise<void> {
    const { log } = this.#deps;
    this.#snapshot.forget(pod);
    if (reservation) this.#volumes.takeBack(reservation);
    if (devices) await this.#claims.takeBack(devices, signal);
    this.#changed({ of: "placed pod", object: pod, deleted: true });
    if (gone || signal.aborted) return;
    log.warn("binding failed, the pod is tried again", { pod: keyOf(pod), node, error });
    this.#queue.fail(attempt, "error");
    await this.#tellError({ pod, profile, startMs, signal }, error.message);
  }

  async #tellError({ pod, profile, startMs, signal }: { readonly pod: Readonly<Pod> } & Pick<Tried, "profile" | "startMs" | "signal">, message: string): Promise<void> {
    this.#metrics.attempt("error", profile.schedulerName, this.#deps.clock.uptimeMs() - startMs);
    this.#recorder(profile).event(pod, "Warning", "FailedScheduling", note(message));
    await tryWritePodStatus(pod, { condition: { type: "PodScheduled", status: "False", reason: "SchedulerError", message } }, { ...this.#deps, signal });
  }

  #nowhere({ attempt, candidate, profile, startMs, signal }: Tried, failure: NoPlacement, { message, nominatedNodeName, victims }: Room): void {
    const { pod } = candidate;
    const { clock, log } = this.#deps;
    if (nominatedNodeName) this.#snapshot.nominate(pod, nominatedNodeName);
    else if (nominatedNodeName === "") this.#snapshot.denominate(pod);
    const said = message ? `${failure.message} ${message}` : failure.message;
    log.info("pod fits nowhere", { pod: keyOf(pod), message: said, ...(nominatedNodeName ? { nominatedNodeName, victims: victims.map(keyOf) } : {}) });
    this.#metrics.attempt("unschedulable", profile.schedulerName, clock.uptimeMs() - startMs);
    this.#recorder(profile).event(pod, "Warning", "FailedScheduling", note(said));
    const change = { condition: { type: "PodScheduled", status: "False", reason: "Unschedulable", message: said } as const, nominatedNodeName };
    if (!nominatedNodeName) {
      this.#queue.fail(attempt, failure.filters);
      return this.#run(this.#writes, tryWritePodStatus(pod, change, { ...this.#deps, signal }));
    }
    // Not tried again before all victims have been told to go: until then nothing that happens would help.
    this.#run(this.#writes, (async () => {
      await tryWritePodStatus(pod, change, { ...this.#deps, signal });
      try {
        const [undecided, placed] = [victims.filter((victim) => this.#bindings.has(victim.metadata.uid)), victims.filter((victim) => !this.#bindings.has(victim.metadata.uid))];
        for (const victim of undecided) { // it waits for volumes: enough that it looks elsewhere
          this.#bindings.get(victim.metadata.uid)?.abort(PREEMPTED);
          this.#recorder(profile).event(victim, "Normal", "Preempted", `Preempted by pod ${pod.metadata.uid} on node ${nominatedNodeName} (in kube-scheduler memory).`);
        }
        await evict(pod, placed, nominatedNodeName, { ...this.#deps, recorder: this.#recorder(profile), snapshot: this.#snapshot, signal });
        this.#queue.fail(attempt, failure.filters);
      } catch (error) {
        if (signal.aborted) return;
        log.warn("pods could not be evicted, the pod is tried again", { pod: keyOf(pod), node: nominatedNodeName, error });
        this.#queue.fail(attempt, "error");
      }
    })());
  }

  #makeRoom({ candidate, profile }: Tried, failure: NoPlacement): Room {
    if (!failure.evaluation || !profile.preemption) return NO_ROOM;
    this.#metrics.preemptionTried();
    const startMs = this.#deps.clock.uptimeMs();
    const found = preempt(candidate, failure, this.#surroundings(profile.preemption));
    this.#metrics.point("PostFilter", profile.schedulerName, this.#deps.clock.uptimeMs() - startMs, found.type === "node" ? "Success" : "Unschedulable");
    return this.#room(found);
  }

  async #makeRoomWithExtenders({ candidate, profile, signal }: Tried, failure: NoPlacement): Promise<Room> {
    if (!failure.evaluation || !profile.preemption) return NO_ROOM;
    this.#metrics.preemptionTried();
    const found = candidatesFor(candidate, failure, this.#surroundings(profile.preemption));
    if (found.type === "none") return this.#room(found);
    const agreed = await victimsByExtenders(candidate.pod, new Map(found.choices.map(({ node, victims, violations }) => [node, { pods: victims, violations }])), (name) => this.#snapshot.node(name), { extenders: this.#extenders, log: this.#deps.log, signal });
    return this.#room(chosen([...agreed].map(([node, { pods, violations }]) => ({ node, victims: pods, violations }))));
  }

  /** Claims that keep the pod off all nodes may lose their devices. Says so before what preemption says. */
  #postFilter({ candidate, profile, signal }: Tried, { evaluation }: NoPlacement, room: Room): Room {
    if (!evaluation || !profile.bindsDevices || room.nominatedNodeName) return room;
    const plan = devicePlan(candidate, this.#cluster);
    let said = "no new claims to deallocate";
    if (plan instanceof DevicePlan) {
      const { pod } = candidate;
      said = this.#claims.canDeallocate(pod, plan) ? "deallocation of ResourceClaim completed" : "still not schedulable";
      this.#run(this.#writes, this.#claims.deallocateOne(pod, plan, signal));
    }
    return { ...room, message: room.message ? `${said}, ${room.message}` : said };
  }

  #surroundings(enough: NonNullable<Profile["preemption"]>): Parameters<typeof preempt>[2] {
    const { random, informers } = this.#deps;
    return { cluster: this.#cluster, budgets: [...informers.of(POD_DISRUPTION_BUDGETS).list()], random, enough };
  }

  #room(preemption: Preemption): Room {
    if (preemption.type === "none") return { message: preemption.message, nominatedNodeName: preemption.keepNomination ? undefined : "", victims: [] };
    this.#metrics.preempted(preemption.victims.length);
    return { message: "", nominatedNodeName: preemption.node, victims: preemption.victims };
  }

  #nodeChanged(change: ClusterChange & { readonly of: "node" }): void {
    if (change.deleted) this.#snapshot.removeNode(change.object.metadata.name);
    else this.#snapshot.setNode(change.object);
    if (!change.old || change.deleted || hasChanged(change.object, change.old)) this.#changed(change);
  }

  #podChanged(pod: Readonly<Pod>, old: Readonly<Pod> | undefined, deleted: boolean): void {
    if (deleted) {
      const nominated = this.#snapshot.nominatedNodeOf(pod) !== undefined;
      this.#snapshot.removePod(pod);
      this.#queue.remove(keyOf(pod));
      this.#bindings.get(pod.metadata.uid)?.abort(new Error("pod deleted"));
      if (pod.spec.nodeName || nominated) this.#changed({ of: "placed pod", object: pod, old, deleted: true });
      return;
    }
    this.#snapshot.setPod(pod);
    if (this.#isWaiting(pod)) {
      if (!this.#snapshot.isAssumed(pod)) this.#queue.add(pod);
      return;
    }
    this.#queue.remove(keyOf(pod));
    if (!pod.spec.nodeName) return;
    if (isEnded(pod)) {
      if (old && !isEnded(old)) this.#changed({ of: "placed pod", object: pod, old, deleted: true });
    } else if (!old?.spec.nodeName) this.#changed({ of: "placed pod", object: pod, deleted: false });
    else if (!countsTheSame(old, pod)) this.#changed({ of: "placed pod", object: pod, old, deleted: false });
  }

  #changed(change: ClusterChange): void {
    const startMs = this.#deps.clock.uptimeMs();
    this.#queue.changed(change);
    this.#metrics.handled(nameOf(change), this.#deps.clock.uptimeMs() - startMs);
  }

  #storageChanged(change: ClusterChange): void {
    this.#volumes.changed();
    this.#changed(change);
  }

  /** Its scheduling gates are closed, or claims it names do not exist yet. */
  #isGated(pod: Readonly<Pod>): boolean {
    const profile = this.#profileOf(pod);
    if (hasGates(pod) && (profile?.honorsGates ?? true)) return true;
    return (pod.spec.resourceClaims ?? []).length > 0 && profile?.bindsDevices === true && "refused" in podClaimsOf(pod, this.#cluster.devices);
  }

  #isWaiting(pod: Readonly<Pod>): boolean {
    return !pod.spec.nodeName && pod.metadata.deletionTimestamp == null && !isEnded(pod) && this.#profileOf(pod) !== undefined;
  }

  #profileOf({ spec }: Readonly<Pod>): Profile | undefined {
    return this.#profiles.get(spec.schedulerName || DEFAULT_SCHEDULER);
  }

  #recorder({ schedulerName }: Profile): EventRecorder {
    return this.#deps.events.from({ component: schedulerName });
  }
}

/** What preemption came to: "" as node, whatever it was nominated to is over. */
interface Room { readonly message: string; readonly nominatedNodeName: string | undefined; readonly victims: readonly Readonly<Pod>[] }

const NO_ROOM: Room = { message: "", nominatedNodeName: undefined, victims: [] };

interface Tried {
  readonly attempt: Attempt;
  readonly candidate: PlacedPod;
  readonly profile: Profile;
  readonly startMs: number;
  readonly signal: AbortSignal;
}

interface Binding extends Tried {
  readonly node: string;
  readonly reservation: Reservation | undefined;
  readonly devices: DeviceReservation | undefined;
}

/** Heartbeats and images help no pod. */
function hasChanged(node: Readonly<Node>, old: Readonly<Node>): boolean {
  return !Bun.deepEquals(node.status?.allocatable, old.status?.allocatable) || !Bun.deepEquals(node.status?.declaredFeatures, old.status?.declaredFeatures) || !Bun.deepEquals(node.metadata.labels, old.metadata.labels) || !Bun.deepEquals(node.spec, old.spec);
}

function note(message: string): string {
  return message.length <= NOTE_MAX ? message : `${message.slice(0, NOTE_MAX - 4)} ...`;
}
