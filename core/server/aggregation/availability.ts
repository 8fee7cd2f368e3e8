/** Keeps the Available condition of every APIService true: when its Service or endpoints change, and every 30 seconds. */
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { Service } from "../../api/gen/core.v1.ts";
import type { ResourceClient } from "../../client/client.ts";
import type { Informer } from "../../client/informer.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import type { Runnable } from "../../lifecycle/run-all.ts";
import { type WorkQueue, workQueue } from "../../lifecycle/work-queue.ts";
import type { Log } from "../../observe/log.ts";
import type { Labels, Metrics } from "../../observe/metrics.ts";
import type { APIService } from "../../registry/apiregistration/api-service.ts";
import { failedDiscovery, isAvailable, PASSED, planAvailability, type Verdict, withAvailable } from "./availability-plan.ts";
import { askExtension, type ExtensionDeps } from "./extension-server.ts";
import { AGGREGATOR } from "./identity.ts";

export interface AvailabilityDeps extends ExtensionDeps {
  readonly apiServices: Informer<APIService>;
  readonly serviceCopies: Informer<Service>;
  readonly resource: ResourceClient<APIService>;
  readonly log: Log;
  readonly metrics: Metrics;
}

/** Source: NewTypedItemExponentialFailureRateLimiter(5ms, 30s), AddEventHandlerWithResyncPeriod(30s) */
const RETRY = { minMs: 5, maxMs: 30_000 };
const RESYNC_MS = 30_000;
const DISCOVERY_MS = 5_000;
/** Asked at once, of endpoints chosen at random: one that answers will do. */
const ATTEMPTS = 5;
const WORKERS = 5;

export function availability(deps: AvailabilityDeps): Runnable {
  const { apiServices, serviceCopies, endpointSlices, clock, log, metrics } = deps;
  const unavailable = metrics.counter("aggregator_unavailable_apiservice_total", "[ALPHA] Counter of APIServices which are marked as unavailable broken down by APIService name and reason.");
  metrics.gaugeFrom("aggregator_unavailable_apiservice", "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService name.", function* () {
    for (const service of apiServices.list()) yield [{ name: service.metadata.name }, isAvailable(service) ? 0 : 1] as [Labels, number];
  });

  async function sync(name: string, signal: AbortSignal): Promise<boolean> {
    const current = apiServices.get(objectKey("", name));
    if (!current) return true;
    const { spec } = current;
    const at = spec.service;
    const service = at && serviceCopies.get(objectKey(at.namespace ?? "", at.name ?? ""));
    const slices = at ? [...endpointSlices.inNamespace(at.namespace ?? "")].filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === at.name) : [];
    const verdict = planAvailability(current, service, slices) ?? (await probe(current, signal));
    if (signal.aborted) return true;
    await write(current, verdict, signal);
    return verdict.reason !== "FailedDiscoveryCheck";
  }

  async function write(current: Readonly<APIService>, verdict: Verdict, signal: AbortSignal): Promise<void> {
    const conditions = withAvailable(current.status?.conditions, verdict, timestamp(clock.nowMs()));
    if (!conditions) return;
    await deps.resource.updateStatus({ ...(current as APIService), status: { ...current.status, conditions } }, { signal });
    if (verdict.status === "True" || !isAvailable(current)) return; // no news
    unavailable.inc({ name: current.metadata.name, reason: verdict.reason });
    log.warn("an extension API server is unavailable", { apiService: current.metadata.name, reason: verdict.reason, message: verdict.message });
  }

  async function probe(current: Readonly<APIService>, signal: AbortSignal): Promise<Verdict> {
    const { group = "", version = "" } = current.spec;
    const path = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
    const asked = Array.from({ length: ATTEMPTS }, async () => {
      const { status, url } = await askExtension(current.spec, { path, statusOnly: true, user: AGGREGATOR, timeoutMs: DISCOVERY_MS, signal }, deps);
      if (status < 200 || status > 299) throw new Error(`failing or missing response from ${url}: bad status from ${url}: ${status}`);
    });
    return await Promise.any(asked).then(() => PASSED, (errors: AggregateError) => failedDiscovery(messageOf(errors.errors.at(-1) as Error)));
  }

  function messageOf({ message }: Error): string {
    const url = /^Get "([^"]+)"/.exec(message)?.[1];
    return url === undefined ? message : `failing or missing response from ${url}: ${message}`;
  }

  function servedBy(namespace: string, name: string): string[] {
    return [...apiServices.list()].filter(({ spec: { service } }) => service?.namespace === namespace && service.name === name).map(({ metadata }) => metadata.name);
  }

  return {
    name: "APIService availability",
    async run(signal, ready) {
      const queue: WorkQueue<string> = workQueue(clock, { retry: RETRY });
      const ends = [
        apiServices.onChange(({ object, old, deleted }) => {
          if (!deleted && (!old || Bun.deepEquals(old.status, object.status) || !Bun.deepEquals(old.spec, object.spec) || !object.status?.conditions?.length)) queue.add(object.metadata.name); // what is not written by us
        }),
        serviceCopies.onChange(({ object: { metadata } }) => { for (const name of servedBy(metadata.namespace ?? "", metadata.name)) queue.add(name); }),
        endpointSlices.onChange(({ object: { metadata } }) => { for (const name of servedBy(metadata.namespace ?? "", metadata.labels?.["kubernetes.io/service-name"] ?? "")) queue.add(name); }),
      ];
      ready();
      await Promise.all([apiServices, serviceCopies, endpointSlices].map((one: Informer<APIService> | Informer<Service> | Informer<EndpointSlice>) => one.whenSynced(signal)));
      await Promise.all([resync(queue, signal), ...Array.from({ length: WORKERS }, () => work(queue, signal))]);
      for (const end of ends) end();
    },
  };

  async function resync(queue: WorkQueue<string>, signal: AbortSignal): Promise<void> {
    for await (const _ of clock.every(RESYNC_MS, signal)) for (const { metadata, spec } of apiServices.list()) if (spec.service) queue.add(metadata.name);
  }

  async function work(queue: WorkQueue<string>, signal: AbortSignal): Promise<void> {
    for (let name = await queue.take(signal); name !== undefined; name = await queue.take(signal)) {
      try {
        if (await sync(name, signal)) queue.forget(name);
        else queue.addRateLimited(name);
      } catch (error) {
        if (signal.aborted) return;
        if (!isConflict(error) && !isNotFound(error)) log.warn("the availability of an APIService could not be told", { apiService: name, error });
        queue.addRateLimited(name);
      } finally {
        queue.done(name);
      }
    }
  }
}
