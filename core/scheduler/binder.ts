/**
 * What follows when a pod is to be on a node: it counts there at once (assumed), its volumes and devices are bound, and it is. If that fails it is taken back and tried again.
 *
 * Source: kubernetes v1.36 pkg/scheduler/schedule_one.go bindingCycle, handleBindingCycleError
 */
import type { Pod } from "../api/gen/core.v1.ts";
import { errorText } from "../api/meta/error-text.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { isNotFound } from "../api/meta/status-error.ts";
import { PODS } from "../client/resources.ts";
import type { DeviceReservation } from "./devices/claim-binder.ts";
import { devicePlan } from "./devices/dynamic-resources.ts";
import { DevicePlan } from "./devices/plan.ts";
import type { Parts, Tried } from "./parts.ts";
import type { Reservation } from "./volume-binder.ts";
import { tryWritePodStatus } from "./pod-status.ts";
import { planVolumes, podClaims, podVolumes, type VolumePlan } from "./volume-plan.ts";

/** Why a pod stops waiting for its volumes. */
const DELETED = Object.freeze(new Error("pod deleted"));
const PREEMPTED = Object.freeze(new Error("preempted by DefaultPreemption"));

/** A pod that counts on a node, with all it needs there: to be bound, or let go of. */
export interface Held extends Tried {
  readonly node: string;
  readonly reservation: Reservation | undefined;
  readonly devices: DeviceReservation | undefined;
  /** There is something to wait for before it can be bound. */
  readonly isPrepared: boolean;
  /** Where others were leaving for it. */
  readonly nominatedNode: string | undefined;
}

interface Binding extends Held {
  /** The pod's status names the node. */
  readonly isNominated?: true;
}

export class Binder {
  readonly #parts: Parts;
  /** Pods that wait for their volumes, by uid: to give up when the pod goes. */
  readonly #waiting = new Map<string, AbortController>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  go(tried: Tried, node: string): void {
    const held = this.hold(tried, node);
    this.#parts.metrics.point("Permit", tried.profile.schedulerName, 0); // nobody is asked
    this.bind(held);
  }

  /** From now on the pod counts on `node`. Throws if it counts on one already: somebody else was faster. */
  hold(tried: Tried, node: string): Held {
    const { attempt, candidate, profile } = tried;
    const { deps: { clock }, snapshot, cluster, metrics } = this.#parts;
    if (snapshot.isPlaced(candidate.pod)) throw new Error(`pod ${candidate.pod.metadata.uid}(${attempt.key}) is in the cache, so can't be assumed`);
    const startMs = clock.uptimeMs();
    const plan = profile.bindsDevices ? devicePlan(candidate, cluster) : undefined;
    const wanted = profile.bindsVolumes ? this.#planVolumes(candidate.pod, node) : undefined;
    const devices = plan instanceof DevicePlan ? this.#reserveDevices(candidate.pod, plan, node) : undefined;
    const reservation = wanted && this.#parts.volumes.reserve(wanted, node);
    metrics.point("Reserve", profile.schedulerName, clock.uptimeMs() - startMs);
    return this.#assumed(tried, node, { reservation, devices, isPrepared: reservation !== undefined || plan !== undefined });
  }

  /** As `hold`, of a pod that others have to leave the node for: what else it needs it gets once they are gone. */
  holdRoom(tried: Tried, node: string): Held { return this.#assumed(tried, node, { reservation: undefined, devices: undefined, isPrepared: false }); }

  #assumed(tried: Tried, node: string, needs: Pick<Held, "reservation" | "devices" | "isPrepared">): Held {
    const { snapshot } = this.#parts;
    const nominatedNode = snapshot.nominatedNodeOf(tried.candidate.pod);
    snapshot.assume(tried.candidate, node);
    return { ...tried, node, nominatedNode, ...needs };
  }

  /** Nothing has come of it: all is as it was before `hold`, but for pods that are gone or have a node meanwhile. */
  letGo({ candidate: { pod }, profile, reservation, devices, nominatedNode, signal }: Held): void {
    const { deps: { clock }, snapshot, volumes, claims, writes, metrics } = this.#parts;
    const startMs = clock.uptimeMs();
    const isThere = snapshot.forget(pod); // devices for those after it may have taken their time
    if (isThere && nominatedNode) snapshot.nominate(pod, nominatedNode);
    if (reservation) volumes.takeBack(reservation);
    if (devices) writes.add(claims.takeBack(devices, signal));
    metrics.point("Unreserve", profile.schedulerName, clock.uptimeMs() - startMs);
  }

  bind(held: Held): void {
    const { attempt, profile, signal } = held;
    const { queue, writes, waits, metrics } = this.#parts;
    metrics.point("PreBindPreFlight", profile.schedulerName, 0, held.isPrepared ? "Success" : "Skip");
    queue.done(attempt);
    if (held.isPrepared) return waits.add(this.#prepareAndBind(held));
    metrics.point("PreBind", profile.schedulerName, 0); // there is nothing to prepare
    writes.add(this.#bind(held, signal));
  }

  /** Whether the pod waits for its volumes still. */
  isWaiting({ metadata }: Readonly<Pod>): boolean { return this.#waiting.has(metadata.uid); }

  /** It need not wait any more: it is gone. */
  forget({ metadata }: Readonly<Pod>): void { this.#waiting.get(metadata.uid)?.abort(DELETED); }

  /** Another takes its place: it is tried again elsewhere. */
  preempt({ metadata }: Readonly<Pod>): void { this.#waiting.get(metadata.uid)?.abort(PREEMPTED); }

  /** Throws if the pod cannot have its volumes there any more: while extenders were asked, others may have taken them. */
  #planVolumes(pod: Readonly<Pod>, nodeName: string): VolumePlan | undefined {
    if (podClaims(pod).length === 0) return undefined;
    const { snapshot, cluster: { storage } } = this.#parts;
    const node = snapshot.node(nodeName)?.node;
    const wanted = podVolumes(pod, storage);
    const plan = !node ? { reasons: [`node "${nodeName}" not found`] } : "refused" in wanted ? { reasons: [wanted.refused] } : planVolumes(wanted, node, storage);
    if ("reasons" in plan) throw new Error(`running Reserve plugin "VolumeBinding": ${plan.reasons.join(", ")}`);
    return plan;
  }

  #reserveDevices(pod: Readonly<Pod>, plan: DevicePlan, nodeName: string): DeviceReservation | undefined {
    const { snapshot, claims } = this.#parts;
    const node = snapshot.node(nodeName);
    return node && claims.reserve(pod, plan, node);
  }

  async #prepareAndBind(binding: Binding): Promise<void> {
    const { attempt, candidate: { pod }, profile, node, reservation, devices } = binding;
    const { deps, volumes, claims, metrics } = this.#parts;
    const { clock, informers } = deps;
    const gone = new AbortController();
    if (informers.of(PODS).get(attempt.key)?.metadata.uid !== pod.metadata.uid) gone.abort(DELETED); // while extenders were asked
    this.#waiting.set(pod.metadata.uid, gone);
    const signal = AbortSignal.any([binding.signal, gone.signal]);
    const startMs = clock.uptimeMs();
    const waiting = (): void => this.#parts.reporter(profile).report(pod, { type: "Normal", reason: "BindingConditionsPending", action: "Scheduling", note: `waiting for binding conditions for device on node ${node}` });
    await tryWritePodStatus(pod, { nominatedNodeName: node }, { ...deps, signal }); // others are told where it will be: this may take long
    const failures = await failuresOf({
      ...(reservation && { VolumeBinding: (stop) => volumes.bind(reservation, profile.bindTimeoutMs, stop) }),
      ...(devices && { DynamicResources: (stop) => claims.bind(devices, { timeoutMs: profile.deviceBindingTimeoutMs, waiting, waited: (wait) => metrics.waitedForDevices(profile.schedulerName, wait), signal: stop }) }),
    }, signal);
    this.#waiting.delete(pod.metadata.uid);
    metrics.point("PreBind", profile.schedulerName, clock.uptimeMs() - startMs, failures.length > 0 ? "Error" : "Success");
    const isGone = gone.signal.reason === DELETED;
    const failure = (isGone ? failures.find(({ plugin }) => plugin === "VolumeBinding") : undefined) ?? failures[0]; // it is the one that looks after the pod
    if (!failure) return this.#bind({ ...binding, isNominated: true }, signal);
    const { plugin, error } = failure;
    const cause = signal.reason === PREEMPTED ? PREEMPTED : error;
    const message = errorText(cause);
    const why = isGone && plugin === "VolumeBinding" ? `binding volumes: pod does not exist any more: pod "${pod.metadata.name}" not found` : message;
    await this.#failed({ ...binding, isNominated: true }, new Error(`running PreBind plugin "${plugin}": ${why}`, { cause: error }), isGone);
  }

  async #bind(binding: Binding, signal: AbortSignal): Promise<void> {
    const { attempt, candidate: { pod }, profile, startMs, node } = binding;
    const { deps: { client, clock, log }, metrics } = this.#parts;
    const { name, namespace, uid } = pod.metadata;
    const bindMs = clock.uptimeMs();
    let whose = "";
    const took = (status: "Success" | "Error"): void => {
      if (whose !== "") metrics.point("Bind", profile.schedulerName, clock.uptimeMs() - bindMs, status); // an extender is no plugin
    };
    try {
      if (!(await this.#boundByExtender(pod, node, signal))) {
        whose = 'running Bind plugin "DefaultBinder": ';
        const body = { apiVersion: "v1", kind: "Binding", metadata: { name, namespace, uid }, target: { apiVersion: "v1", kind: "Node", name: node } };
        await client.resource(PODS).createSubresource(pod, "binding", body, { signal });
      }
    } catch (error) {
      took("Error");
      return this.#failed(binding, new Error(`${whose}${errorText(error)}`, { cause: error }), isNotFound(error));
    }
    took("Success");
    log.info("pod bound", { pod: keyOf(pod), node });
    this.#parts.reporter(profile).report(pod, { type: "Normal", reason: "Scheduled", action: "Binding", note: `Successfully assigned ${namespace}/${name} to ${node}` });
    metrics.attempt("scheduled", profile.schedulerName, clock.uptimeMs() - startMs);
    metrics.scheduled(attempt.attempts, clock.uptimeMs() - attempt.addedMs, attempt.isFlushed);
    metrics.point("PostBind", profile.schedulerName, 0); // nobody is told
  }

  /** Whether there is one that has. One that fails and may be passed over has not. */
  async #boundByExtender(pod: Readonly<Pod>, node: string, signal: AbortSignal): Promise<boolean> {
    const { deps: { log }, extenders } = this.#parts;
    const binder = extenders.find((extender) => extender.binds && extender.isInterestedIn(pod));
    if (!binder) return false;
    try {
      await binder.bind(pod, node, signal);
      return true;
    } catch (error) {
      if (!binder.ignorable || signal.aborted) throw error;
      log.info("an extender could not bind a pod, it is bound without it", { pod: keyOf(pod), extender: binder.name, error });
      return false;
    }
  }

  /** `isGone`: the pod does not exist any more. Another of its name is none of this one's business. */
  async #failed({ attempt, candidate: { pod }, profile, startMs, node, reservation, devices, isNominated, signal }: Binding, error: Error, isGone: boolean): Promise<void> {
    const { deps: { clock, log, informers }, snapshot, volumes, claims, queue, metrics } = this.#parts;
    const unreserveMs = clock.uptimeMs();
    snapshot.forget(pod);
    if (reservation) volumes.takeBack(reservation);
    if (devices) await claims.takeBack(devices, signal);
    metrics.point("Unreserve", profile.schedulerName, clock.uptimeMs() - unreserveMs);
    this.#parts.changed({ of: "placed pod", object: pod, deleted: true });
    if (signal.aborted) return;
    const isAnother = this.#parts.isReplaced(attempt);
    if (isGone || isAnother || !informers.of(PODS).get(attempt.key)) {
      metrics.attempt("error", profile.schedulerName, clock.uptimeMs() - startMs);
      if (!isAnother) this.#parts.tellUnscheduled(pod, profile, error.message);
      return;
    }
    log.warn("binding failed, the pod is tried again", { pod: keyOf(pod), node, error });
    queue.bringBack(attempt);
    await this.#parts.tellError({ pod: isNominated ? { ...pod, status: { ...pod.status, nominatedNodeName: node } } : pod, profile, startMs, signal }, error.message);
  }
}

type Work = (stop: AbortSignal) => Promise<void>;

/** All at once: devices are made ready while volumes are. Why those failed that did, the first of them first: it stops the others. */
async function failuresOf(works: Readonly<Record<string, Work>>, signal: AbortSignal): Promise<readonly { readonly plugin: string; readonly error: unknown }[]> {
  const others = new AbortController();
  const stop = AbortSignal.any([signal, others.signal]);
  const failures: { readonly plugin: string; readonly error: unknown }[] = [];
  await Promise.all(Object.entries(works).map(async ([plugin, work]) => {
    try {
      await work(stop);
    } catch (error) {
      failures.push({ plugin, error });
      others.abort(new Error("some other PreBind operation failed"));
    }
  }));
  return failures;
}
