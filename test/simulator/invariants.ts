/**
 * What must hold whatever happens, checked with every event the API server commits.
 *
 *   a ReplicaSet has no more pods than it was told to have            a Deployment's ReplicaSets together ask for no more than maxSurge allows
 *   a quota is never exceeded                                         a rollout in fair weather leaves no fewer available than maxUnavailable allows
 *   a StatefulSet's ordinal runs on one machine at a time, and starts when those before it were ready
 *   a Job runs no more pods at once than it may, and counts each pod that has ended once, each index of an Indexed one once
 *   a DaemonSet has one pod on a node     evictions alone leave as many as their budget wants
 *
 * In the end nothing is without its owner, and what runs, by its pods and not by what a status says of them, is what was asked for; no Job has lost a pod.
 *
 * Where an answer was lost its client may do again what was done: such writes are allowed for, as many as there were.
 */
import type { DaemonSet, Deployment, ReplicaSet, StatefulSet } from "../../core/api/gen/apps.v1.ts";
import type { Job } from "../../core/api/gen/batch.v1.ts";
import type { Pod, PodTemplateSpec, ResourceQuota } from "../../core/api/gen/core.v1.ts";
import type { ApiObject } from "../../core/api/meta/object-meta.ts";
import { targetNode } from "../../core/controllers/daemonset/pods.ts";
import { TRACKING_FINALIZER } from "../../core/controllers/job/pods.ts";
import type { CacheEvent } from "../../core/registry/generic/audience.ts";
import type { SimulatedCluster } from "./cluster.ts";

/** Who acts may have looked so long ago. */
const STALE_MS = 60_000;

const controllerOf = ({ metadata }: Readonly<ApiObject>): string | undefined => metadata.ownerReferences?.find(({ controller }) => controller)?.uid;
const isDone = ({ status }: Readonly<Pod>): boolean => status?.phase === "Succeeded" || status?.phase === "Failed";
const isActive = (pod: Readonly<Pod>): boolean => !isDone(pod) && pod.metadata.deletionTimestamp === undefined;
const isIndexed = ({ spec }: Readonly<Job>): boolean => spec.completionMode === "Indexed";
const imageOf = ({ spec }: Readonly<Pod> | Readonly<PodTemplateSpec>): string => spec?.containers[0]?.image ?? "";
const isReady = ({ status }: Readonly<Pod>): boolean => status?.conditions?.some(({ type, status: value }) => type === "Ready" && value === "True") ?? false;

/** What a pod runs, and whether it does. */
const look = (pod: Readonly<Pod>): string => `${imageOf(pod)}${isActive(pod) && isReady(pod) ? "" : " (not ready)"}`;
const running = (looks: readonly string[]): string => [...Map.groupBy(looks, (one) => one)].map(([one, same]) => `${same.length} × ${one}`).sort().join(", ");

/** "25%" and 3: of `total`, surge rounded up and unavailability down. */
function share(value: number | string | undefined, total: number, round: (n: number) => number): number {
  if (typeof value === "number") return value;
  return round((Number((value ?? "25%").replace("%", "")) * total) / 100);
}

/** What a number has been lately. */
class Lately {
  readonly #nowMs: () => number;
  #values: { readonly atMs: number; readonly value: number }[] = [];

  constructor(nowMs: () => number) { this.#nowMs = nowMs; }

  set(value: number): void {
    if (this.#values.at(-1)?.value !== value) this.#values.push({ atMs: this.#nowMs(), value });
  }
  get newest(): number | undefined { return this.#values.at(-1)?.value; }
  get max(): number { return Math.max(0, ...this.#recent()); }
  get min(): number { return Math.min(...this.#recent()); }

  #recent(): number[] {
    while (this.#values.length > 1 && this.#values[1]!.atMs < this.#nowMs() - STALE_MS) this.#values.shift();
    return this.#values.map(({ value }) => value);
  }
}

/** Of a Job's pods, by uid. */
class JobPods {
  /** Those that have succeeded, with their index. */
  readonly succeeded = new Map<string, string | undefined>();
  /** Those that have failed, or were deleted before they had ended: their Job counts them as failed, whatever they come to afterwards. Not those that it had given up itself. */
  readonly failed = new Set<string>();

  note({ metadata: { uid, deletionTimestamp, finalizers, labels }, status }: Readonly<Pod>): void {
    const succeeded = status?.phase === "Succeeded";
    if (!this.succeeded.has(uid) && (status?.phase === "Failed" || deletionTimestamp !== undefined) && finalizers?.includes(TRACKING_FINALIZER)) this.failed.add(uid);
    if (succeeded) this.succeeded.set(uid, labels?.["batch.kubernetes.io/job-completion-index"]);
  }

  get indexes(): number { return new Set(this.succeeded.values()).size; }
  get ended(): number { return new Set([...this.succeeded.keys(), ...this.failed]).size; }
  /** Nobody can have seen them fail. */
  get onlySucceeded(): number { return [...this.succeeded.keys()].filter((uid) => !this.failed.has(uid)).length; }
  get onlyFailed(): number { return [...this.failed].filter((uid) => !this.succeeded.has(uid)).length; }
}

export class Invariants {
  readonly violations: string[] = [];
  readonly objects = new Map<string, Map<string, Readonly<ApiObject>>>(); // by prefix, by uid
  readonly #lately = new Map<string, Lately>();
  readonly #jobs = new Map<string, JobPods>(); // by the Job's uid
  readonly #wasReadyMs = new Map<string, number>(); // namespace/name of a pod → when it was ready last
  /** Deployments that were fully available, and are being looked at. */
  readonly #calm = new Set<string>();
  /** Deployments from which pods are evicted, and nothing else happens to: how many have to stay. */
  readonly #budgets = new Map<string, number>();
  #cluster: SimulatedCluster | undefined;

  of(cluster: SimulatedCluster): void { this.#cluster = cluster; }

  all<T extends ApiObject>(prefix: string): Readonly<T>[] { return [...(this.objects.get(prefix)?.values() ?? [])] as Readonly<T>[]; }
  pods(): Readonly<Pod>[] { return this.all<Pod>("/registry/core/pods/"); }
  podsOf(uid: string): Readonly<Pod>[] { return this.pods().filter((pod) => controllerOf(pod) === uid); }

  /** From now on nothing but rollouts takes this Deployment's pods. */
  watchAvailability(uid: string): void { this.#calm.add(uid); }
  forgetAvailability(): void { this.#calm.clear(); }
  /** From now on nothing but evictions takes this Deployment's pods. */
  watchBudget(uid: string, least: number): void { this.#budgets.set(uid, least); }
  forgetBudgets(): void { this.#budgets.clear(); }

  onEvent(prefix: string, { type, entry }: CacheEvent): void {
    const object = entry.object;
    const { uid } = object.metadata;
    const known = this.objects.get(prefix) ?? new Map<string, Readonly<ApiObject>>();
    this.objects.set(prefix, known);
    const old = known.get(uid);
    if (type === "DELETED") known.delete(uid);
    else known.set(uid, object);
    switch (prefix) {
      case "/registry/core/pods/": return this.#onPod(type, object as Readonly<Pod>, old as Readonly<Pod> | undefined);
      case "/registry/apps/replicasets/": return type === "DELETED" ? undefined : this.#onReplicaSet(object as Readonly<ReplicaSet>);
      case "/registry/apps/deployments/": return this.#remember(uid, (object as Readonly<Deployment>).spec?.replicas ?? 1);
      case "/registry/batch/jobs/": return type === "DELETED" ? undefined : this.#onJob(object as Readonly<Job>);
    }
  }

  #onPod(type: CacheEvent["type"], pod: Readonly<Pod>, old: Readonly<Pod> | undefined): void {
    const owner = controllerOf(pod);
    const key = `${pod.metadata.namespace}/${pod.metadata.name}`;
    if ((old !== undefined && isReady(old)) || (type !== "DELETED" && isReady(pod))) this.#wasReadyMs.set(key, this.#nowMs);
    if (owner !== undefined && this.objects.get("/registry/batch/jobs/")?.has(owner)) this.#jobPods(owner).note(pod);
    if (type === "ADDED") {
      this.#checkQuota(pod);
      if (owner !== undefined) this.#checkCount(owner, pod);
    }
    if (owner !== undefined) this.#checkAvailable(owner);
  }

  #checkCount(owner: string, pod: Readonly<Pod>): void {
    const active = this.podsOf(owner).filter(isActive).length;
    const slack = this.#lostCreates(pod.metadata.namespace ?? "");
    const set = this.objects.get("/registry/apps/replicasets/")?.get(owner);
    if (set && active > this.#of(owner).max + slack) this.#violated(`ReplicaSet ${set.metadata.name} has ${active} pods; it was to have at most ${this.#of(owner).max} (and ${slack} answers were lost)`);
    const job = this.objects.get("/registry/batch/jobs/")?.get(owner) as Readonly<Job> | undefined;
    if (job && active > this.#of(owner).max + slack) this.#violated(`Job ${job.metadata.name} runs ${active} pods; its parallelism is at most ${this.#of(owner).max} (and ${slack} answers were lost)`);
    const daemon = this.objects.get("/registry/apps/daemonsets/")?.get(owner);
    if (daemon) {
      const on = targetNode(pod);
      const there = this.podsOf(owner).filter((one) => isActive(one) && targetNode(one) === on).length;
      if (there > 1 + slack) this.#violated(`DaemonSet ${daemon.metadata.name} has ${there} pods on ${on} (and ${slack} answers were lost)`);
    }
    const stateful = this.objects.get("/registry/apps/statefulsets/")?.get(owner) as Readonly<StatefulSet> | undefined;
    if (stateful) this.#checkOrder(stateful, pod);
  }

  #checkOrder(set: Readonly<StatefulSet>, pod: Readonly<Pod>): void {
    if (set.spec?.podManagementPolicy === "Parallel") return;
    const ordinal = Number(pod.metadata.name.slice(set.metadata.name.length + 1));
    for (let before = 0; before < ordinal; before++) {
      const readyMs = this.#wasReadyMs.get(`${set.metadata.namespace}/${set.metadata.name}-${before}`) ?? Number.NEGATIVE_INFINITY;
      if (this.#nowMs - readyMs > STALE_MS && !this.podsOf(set.metadata.uid).some((other) => other.metadata.name === `${set.metadata.name}-${before}` && isReady(other)))
        this.#violated(`StatefulSet ${set.metadata.name}: ordinal ${ordinal} starts, but ${before} was not ready`);
    }
  }

  #checkQuota(pod: Readonly<Pod>): void {
    if (this.#cluster!.agreedForMs < STALE_MS) return; // which pods are overdue is counted by clocks
    const { namespace } = pod.metadata;
    for (const quota of this.all<ResourceQuota>("/registry/core/resourcequotas/")) {
      const hard = quota.spec?.hard?.["pods"];
      if (quota.metadata.namespace !== namespace || hard === undefined) continue;
      const count = this.pods().filter((one) => one.metadata.namespace === namespace && !isDone(one) && !this.#isOverdue(one)).length;
      if (count > Number(hard)) this.#violated(`quota ${quota.metadata.name} allows ${hard} pods, and there are ${count}`);
    }
  }

  /** Should have been gone by now, and is not: its node does not answer. Upstream counts it no more. */
  #isOverdue({ metadata: { deletionTimestamp, deletionGracePeriodSeconds = 0 } }: Readonly<Pod>): boolean {
    return deletionTimestamp !== undefined && this.#cluster!.clock.nowMs() > Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000;
  }

  #onReplicaSet(set: Readonly<ReplicaSet>): void {
    const before = this.#of(set.metadata.uid).newest ?? 0, replicas = set.spec?.replicas ?? 1;
    this.#remember(set.metadata.uid, replicas);
    if (replicas <= before) return; // it comes down to what is allowed now
    const owner = controllerOf(set);
    const deployment = this.all<Deployment>("/registry/apps/deployments/").find(({ metadata }) => metadata.uid === owner);
    if (!deployment || deployment.metadata.deletionTimestamp !== undefined) return;
    const desired = Math.max(this.#of(deployment.metadata.uid).max, deployment.spec?.replicas ?? 1);
    const surge = share(deployment.spec?.strategy?.rollingUpdate?.maxSurge, desired, Math.ceil);
    const asked = this.all<ReplicaSet>("/registry/apps/replicasets/").filter((one) => controllerOf(one) === owner).reduce((sum, one) => sum + (one.spec?.replicas ?? 1), 0);
    if (asked > desired + surge) this.#violated(`Deployment ${deployment.metadata.name}: its ReplicaSets ask for ${asked} pods; ${desired} and ${surge} more are allowed`);
  }

  #checkAvailable(set: string): void {
    const owner = controllerOf(this.objects.get("/registry/apps/replicasets/")?.get(set) ?? { metadata: {} } as ApiObject);
    const least = owner === undefined ? undefined : this.#budgets.get(owner);
    if (least !== undefined) {
      const healthy = this.all<ReplicaSet>("/registry/apps/replicasets/").filter((one) => controllerOf(one) === owner).flatMap(({ metadata }) => this.podsOf(metadata.uid)).filter((pod) => isActive(pod) && isReady(pod)).length;
      if (healthy < least) this.#violated(`evictions left ${healthy} pods; their budget wants ${least}`);
    }
    this.#checkRollout(owner);
  }

  #checkRollout(owner: string | undefined): void {
    if (owner === undefined || !this.#calm.has(owner)) return;
    const deployment = this.all<Deployment>("/registry/apps/deployments/").find(({ metadata }) => metadata.uid === owner);
    if (!deployment) return;
    const least = Math.min(this.#of(owner).min, deployment.spec?.replicas ?? 1);
    const most = Math.max(this.#of(owner).max, deployment.spec?.replicas ?? 1);
    const unavailable = share(deployment.spec?.strategy?.rollingUpdate?.maxUnavailable, most, Math.floor);
    const sets = this.all<ReplicaSet>("/registry/apps/replicasets/").filter((one) => controllerOf(one) === owner);
    const available = sets.flatMap(({ metadata }) => this.podsOf(metadata.uid)).filter((pod) => isActive(pod) && isReady(pod)).length;
    if (available < least - unavailable) this.#violated(`Deployment ${deployment.metadata.name}: ${available} of ${least} pods are available; ${unavailable} may be missing`);
  }

  #onJob(job: Readonly<Job>): void {
    const { uid, name } = job.metadata;
    this.#remember(uid, job.spec?.parallelism ?? 1);
    const { succeeded = 0, failed = 0 } = job.status ?? {};
    const pods = this.#jobPods(uid);
    const [all, what] = isIndexed(job) ? [pods.indexes, "indexes"] : [pods.succeeded.size, "pods"];
    if (succeeded > all) this.#violated(`Job ${name} counts ${succeeded} ${what} as succeeded; ${all} have`);
    if (failed > pods.failed.size) this.#violated(`Job ${name} counts ${failed} pods as failed; ${pods.failed.size} have`);
    if (!isIndexed(job) && succeeded + failed > pods.ended) this.#violated(`Job ${name} counts ${succeeded + failed} pods; ${pods.ended} have ended`);
  }

  #jobPods(uid: string): JobPods {
    const known = this.#jobs.get(uid) ?? new JobPods();
    this.#jobs.set(uid, known);
    return known;
  }

  /** A StatefulSet's pod of one name on two machines that live. Called now and then. */
  checkMachines(): void {
    const cluster = this.#cluster!;
    const where = new Map<string, string>();
    for (const node of cluster.nodeNames) {
      if (!cluster.isNodeUp(node)) continue;
      for (const pod of cluster.podsOn(node)) {
        if (!pod.metadata.labels?.["apps.kubernetes.io/pod-index"] || !isActive(pod) || pod.status?.phase !== "Running") continue;
        const key = `${pod.metadata.namespace}/${pod.metadata.name}`;
        const other = where.get(key);
        if (other !== undefined) this.#violated(`${key} runs on ${other} and on ${node}`);
        where.set(key, node);
      }
    }
  }

  /** Once all has been quiet for long: everything is as it was asked to be, and nothing is left over. */
  unfinished(): string[] {
    const left: string[] = [];
    const alive = new Set([...this.objects.values()].flatMap((known) => [...known.keys()]));
    for (const [prefix, known] of this.objects)
      for (const object of known.values()) {
        const owner = controllerOf(object);
        if (owner !== undefined && !alive.has(owner)) left.push(`${prefix}${object.metadata.name} belongs to nobody`);
        if (object.metadata.deletionTimestamp !== undefined) left.push(`${prefix}${object.metadata.name} is still being deleted`);
      }
    const missed = (what: string, wanted: string, found: string): void => { if (found !== wanted) left.push(`${what}: ${found || "nothing"} where ${wanted || "nothing"} is wanted`); };
    for (const { metadata, spec, status } of this.all<Deployment>("/registry/apps/deployments/")) {
      if (metadata.namespace === "limited") continue; // its quota may keep it from becoming what it is to be
      const sets = this.all<ReplicaSet>("/registry/apps/replicasets/").filter((set) => controllerOf(set) === metadata.uid);
      missed(`Deployment ${metadata.name}`, running(Array.from({ length: spec.replicas ?? 1 }, () => imageOf(spec.template))), running(sets.flatMap((set) => this.podsOf(set.metadata.uid)).map(look)));
      missed(`status of Deployment ${metadata.name}`, `${spec.replicas ?? 1}`, `${status?.availableReplicas ?? 0}`);
    }
    for (const { metadata, spec, status } of this.all<StatefulSet>("/registry/apps/statefulsets/")) {
      const { replicas = 1 } = spec;
      missed(`StatefulSet ${metadata.name}`, running(Array.from({ length: replicas }, (_, ordinal) => `${metadata.name}-${ordinal} ${imageOf(spec.template)}`)), running(this.podsOf(metadata.uid).map((pod) => `${pod.metadata.name} ${look(pod)}`)));
      missed(`status of StatefulSet ${metadata.name}`, `${replicas} ${replicas}`, `${status?.readyReplicas ?? 0} ${status?.updatedReplicas ?? 0}`);
    }
    for (const { metadata, spec, status } of this.all<DaemonSet>("/registry/apps/daemonsets/")) {
      const { nodeNames } = this.#cluster!;
      missed(`DaemonSet ${metadata.name}`, running(nodeNames.map((node) => `${node} ${imageOf(spec.template)}`)), running(this.podsOf(metadata.uid).map((pod) => `${pod.spec.nodeName} ${look(pod)}`)));
      missed(`status of DaemonSet ${metadata.name}`, `${nodeNames.length} ${nodeNames.length}`, `${status?.numberAvailable ?? 0} ${status?.updatedNumberScheduled ?? 0}`);
    }
    for (const job of this.all<Job>("/registry/batch/jobs/")) left.push(...this.#unfinishedJob(job));
    return left;
  }

  #unfinishedJob(job: Readonly<Job>): string[] {
    const { metadata: { uid, name }, spec: { completions = 1 }, status: { conditions, succeeded = 0, failed = 0, uncountedTerminatedPods } = {} } = job;
    const pods = this.#jobPods(uid);
    if (!conditions?.some(({ type, status }) => type === "Complete" && status === "True")) return [`Job ${name} is not complete: ${succeeded} of ${completions}`];
    const left: string[] = [];
    if (succeeded < completions || (isIndexed(job) && succeeded > completions)) left.push(`Job ${name} is complete with ${succeeded} of ${completions}`);
    if (!isIndexed(job) && (succeeded < pods.onlySucceeded || succeeded + failed < pods.ended)) left.push(`Job ${name} has lost pods: it counts ${succeeded} succeeded and ${failed} failed; ${pods.onlySucceeded} have only succeeded, and ${pods.ended} ended`);
    if (failed < pods.onlyFailed) left.push(`Job ${name} has lost pods: it counts ${failed} failed, ${pods.onlyFailed} have`);
    if ([...(uncountedTerminatedPods?.succeeded ?? []), ...(uncountedTerminatedPods?.failed ?? [])].length > 0) left.push(`Job ${name} is complete, and has pods that are not counted yet`);
    if (this.podsOf(uid).some(isActive)) left.push(`Job ${name} is complete, and has pods that run`);
    return left;
  }

  #remember(uid: string, value: number): void { this.#of(uid).set(value); }

  #of(uid: string): Lately {
    const known = this.#lately.get(uid) ?? new Lately(() => this.#nowMs);
    this.#lately.set(uid, known);
    return known;
  }

  #lostCreates(namespace: string): number {
    const path = `/api/v1/namespaces/${namespace}/pods`;
    return this.#cluster!.lost.filter(({ atMs, request }) => request.method === "POST" && request.path === path && this.#nowMs - atMs < STALE_MS).length;
  }

  get #nowMs(): number { return this.#cluster?.clock.uptimeMs() ?? 0; }
  #violated(what: string): void { this.violations.push(`${(this.#nowMs / 1000).toFixed(3)} s: ${what}`); }
}
