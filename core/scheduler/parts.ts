/** What the parts of one scheduler share: what it knows of the cluster, which pods wait, what is under way, and whom it tells. */
import type { Pod } from "../api/gen/core.v1.ts";
import { keyOf, type ObjectKey } from "../api/meta/object-meta.ts";
import type { Client } from "../client/client.ts";
import type { EventReporter, Events } from "../client/events.ts";
import type { Informers } from "../client/informer-factory.ts";
import { POD_GROUPS, PODS } from "../client/resources.ts";
import type { BackoffOptions } from "../lifecycle/backoff.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Log } from "../observe/log.ts";
import type { Metrics } from "../observe/metrics.ts";
import { EXTENDER } from "./ask-extenders.ts";
import { type ClusterChange, eventsOf } from "./changes.ts";
import { type Cluster, clusterOf } from "./cluster.ts";
import { ClaimBinder } from "./devices/claim-binder.ts";
import { podClaimsOf } from "./devices/claims.ts";
import { DYNAMIC_RESOURCES } from "./devices/dynamic-resources.ts";
import type { Extender } from "./extender.ts";
import type { SchedulingExplainer } from "./explainer.ts";
import { mayBringBack } from "./hint-times.ts";
import { type SchedulerMetrics, schedulerMetrics } from "./metrics.ts";
import type { PlacedPod } from "./node-info.ts";
import type { PluginTimes } from "./plugin-times.ts";
import { DEFAULT_PROFILE, DEFAULT_SCHEDULER, type Profile } from "./plugins.ts";
import { GANG_SCHEDULING, groupOf, PodGroups } from "./pod-groups.ts";
import { tryWritePodStatus } from "./pod-status.ts";
import { type Attempt, hasGates, SCHEDULING_GATES, SchedulingQueue } from "./queue.ts";
import { isEnded, Snapshot } from "./snapshot.ts";
import { VolumeBinder } from "./volume-binder.ts";
import { Writes } from "./writes.ts";

/** Bindings and status writes under way at once. Those that wait for volumes do not count. */
const WRITES_MAX = 64;
/** What keeps pods back whose group others are told to go for. */
const DEFAULT_PREEMPTION = "DefaultPreemption";
/** What an event's text may have. Source: schedule_one.go truncateMessage, NoteLengthLimit */
const NOTE_BYTES_MAX = 1024;

export interface SchedulerDeps {
  readonly client: Client;
  readonly informers: Informers;
  readonly events: Events;
  /** The machine it runs on: its events tell. */
  readonly nodeName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Each with its own scheduler name; by default the default scheduler alone. */
  readonly profiles?: readonly Profile[] | undefined;
  readonly extenders?: readonly Extender[] | undefined;
  /** How long a pod waits after it fitted nowhere. */
  readonly backoff?: BackoffOptions | undefined;
  /** Feature gates that are off by default and were switched on. */
  readonly gates?: ReadonlySet<string> | undefined;
  /** Told what this scheduler knows, while it runs. */
  readonly explainer?: SchedulingExplainer | undefined;
}

/** A pod that is being given a node. */
export interface Tried {
  readonly attempt: Attempt;
  readonly candidate: PlacedPod;
  readonly profile: Profile;
  readonly startMs: number;
  readonly signal: AbortSignal;
}

export class Parts {
  readonly deps: SchedulerDeps;
  readonly extenders: readonly Extender[];
  readonly snapshot = new Snapshot();
  readonly cluster: Cluster;
  readonly queue: SchedulingQueue;
  readonly volumes: VolumeBinder;
  readonly claims: ClaimBinder;
  /** Absent: every pod stands alone. */
  readonly groups: PodGroups | undefined;
  readonly metrics: SchedulerMetrics;
  readonly times: PluginTimes;
  readonly writes = new Writes(WRITES_MAX);
  /** Bindings that wait for volumes and devices. */
  readonly waits = new Writes(Number.POSITIVE_INFINITY);
  readonly #profiles: ReadonlyMap<string, Profile>;

  constructor(deps: SchedulerDeps) {
    const { client, clock, random, log, informers, profiles = [DEFAULT_PROFILE] } = deps;
    const { snapshot } = this;
    this.deps = deps;
    this.extenders = deps.extenders ?? [];
    this.#profiles = new Map(profiles.map((profile) => [profile.schedulerName, profile]));
    this.cluster = clusterOf(snapshot, informers, { nowMs: () => clock.nowMs(), uptimeMs: () => clock.uptimeMs(), gates: deps.gates });
    this.claims = new ClaimBinder({ client, clock, random, log, devices: this.cluster.devices, onMade: (status) => this.metrics.claimMade(status) });
    this.volumes = new VolumeBinder({ client, clock, storage: this.cluster.storage, node: (name) => snapshot.node(name) });
    this.groups = deps.gates?.has("GenericWorkload") ? new PodGroups({ podGroup: (key) => informers.of(POD_GROUPS).get(key), isPlaced: (pod) => snapshot.isPlaced(pod) }) : undefined;
    this.metrics = schedulerMetrics(deps.metrics, { queue: () => this.queue, snapshot, bindings: () => this.writes.size + this.waits.size, hasGroups: this.groups !== undefined });
    const { pluginTook, hinted } = this.metrics;
    const hints = { nowMs: () => clock.uptimeMs(), hinted };
    this.times = { nowMs: () => clock.uptimeMs(), took: pluginTook };
    this.queue = new SchedulingQueue({
      clock, backoff: deps.backoff,
      gateOf: (pod) => this.#timedGateOf(pod),
      mayHelp: (pod, rejectedBy, change, event) => rejectedBy.has(EXTENDER) || mayBringBack(this.profileOf(pod)?.filters ?? [], { pod, rejectedBy, change, event, cluster: this.cluster }, hints),
      onQueued: (queue, event) => this.metrics.queued(queue, event),
      isGrouped: (pod) => this.groups !== undefined && groupOf(pod) !== undefined,
    });
  }

  profileOf({ spec }: Readonly<Pod>): Profile | undefined {
    return this.#profiles.get(spec.schedulerName || DEFAULT_SCHEDULER);
  }

  reporter({ schedulerName }: Profile): EventReporter {
    return this.deps.events.reporter({ component: schedulerName, host: this.deps.nodeName });
  }

  /** It is ours to give a node to, and has none. One that is being deleted stays in the queue, to be told that it gets none. */
  isWaiting(pod: Readonly<Pod>): boolean {
    return !pod.spec.nodeName && !isEnded(pod) && this.profileOf(pod) !== undefined;
  }

  /** There is another pod of its name by now: of this one nothing is told any more. Source: schedule_one.go handleSchedulingFailure */
  isReplaced({ key, pod }: Pick<Attempt, "key" | "pod">): boolean {
    const now = this.deps.informers.of(PODS).get(key);
    return now !== undefined && now.metadata.uid !== pod.metadata.uid;
  }

  /** Pods that wait, or those of them that it `concerns`, are told what happened. */
  changed(change: ClusterChange, concerns?: (pod: Readonly<Pod>) => boolean): void {
    for (const event of eventsOf(change)) {
      const startMs = this.deps.clock.uptimeMs();
      this.queue.changed(change, event, concerns);
      this.metrics.handled(event, this.deps.clock.uptimeMs() - startMs);
    }
  }

  tellUnscheduled(pod: Readonly<Pod>, profile: Profile, message: string): void {
    this.reporter(profile).report(pod, { type: "Warning", reason: "FailedScheduling", action: "Scheduling", note: noted(message) });
  }

  async tellError({ pod, profile, startMs, signal }: { readonly pod: Readonly<Pod> } & Pick<Tried, "profile" | "startMs" | "signal">, message: string): Promise<void> {
    this.metrics.attempt("error", profile.schedulerName, this.deps.clock.uptimeMs() - startMs);
    if (this.isReplaced({ key: keyOf(pod), pod })) return;
    this.snapshot.denominate(pod);
    this.tellUnscheduled(pod, profile, message);
    await tryWritePodStatus(pod, { condition: { type: "PodScheduled", status: "False", reason: "SchedulerError", message }, nominatedNodeName: "" }, { ...this.deps, signal });
  }

  #timedGateOf(pod: Readonly<Pod>): string | undefined {
    const { clock } = this.deps;
    const startMs = clock.uptimeMs();
    const gate = this.#gateOf(pod);
    this.metrics.point("PreEnqueue", pod.spec.schedulerName || DEFAULT_SCHEDULER, clock.uptimeMs() - startMs); // upstream counts what is held back as a success, too
    return gate;
  }

  /** Its scheduling gates are closed, claims it names do not exist yet, or its gang is not complete. */
  #gateOf(pod: Readonly<Pod>): string | undefined {
    const profile = this.profileOf(pod);
    if (hasGates(pod) && (profile?.honorsGates ?? true)) return SCHEDULING_GATES;
    if ((pod.spec.resourceClaims ?? []).length > 0 && profile?.awaitsClaims === true && "refused" in podClaimsOf(pod, this.cluster.devices)) return DYNAMIC_RESOURCES;
    if (this.groups && profile?.preemptsForGroups && this.groups.isCleared.has(groupOf(pod) ?? ("" as ObjectKey))) return DEFAULT_PREEMPTION;
    return this.groups && profile?.gangs?.awaited && this.groups.heldBack(pod) !== undefined ? GANG_SCHEDULING : undefined;
  }
}

/** As much as an event has room for, in whole characters. */
function noted(message: string): string {
  const bytes = Buffer.from(message);
  if (bytes.length <= NOTE_BYTES_MAX) return message;
  const end = " ...";
  return new TextDecoder().decode(bytes.subarray(0, NOTE_BYTES_MAX - end.length), { stream: true }) + end;
}
