/**
 * Answers ResourcePoolStatusRequests: how much there is of a driver's pools of devices, and how much of it is taken. An answer is kept for an hour, a request without one for a day.
 *
 * A pool that its driver is still publishing is waited for: the answer comes with the slices that are missing. Upstream asks five times within a fifth of a second, and then never again.
 *
 * Source: kubernetes v1.36 pkg/controller/resourcepoolstatusrequest/controller.go
 */
import type { ResourceClaim, ResourceSlice } from "../../api/gen/resource.v1.ts";
import type { Condition } from "../../api/gen/meta.v1.ts";
import type { PoolStatus, ResourcePoolStatusRequest } from "../../api/gen/resource.v1alpha3.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { keyOf } from "../../api/meta/object-meta.ts";
import { RESOURCE_CLAIMS, RESOURCE_POOL_STATUS_REQUESTS, RESOURCE_SLICES } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { type Controller, itself, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

const ANSWERED_MS = 3_600_000;
const PENDING_MS = 24 * 3_600_000;
/** Pools of an answer. Source: resource/v1alpha3 ResourcePoolStatusRequestLimitDefault */
const LIMIT = 100;
/** In seconds. */
const TOOK = [0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128, 0.256, 0.512, 1.024, 2.048, 4.096, 8.192, 16.384];

export function resourcePoolStatusController({ client, informers, clock, metrics }: Pick<ControllerDeps, "client" | "informers" | "clock" | "metrics">): Controller {
  const requests = informers.of(RESOURCE_POOL_STATUS_REQUESTS), slices = informers.of(RESOURCE_SLICES), claims = informers.of(RESOURCE_CLAIMS);
  const requestClient = client.resource(RESOURCE_POOL_STATUS_REQUESTS);
  const name = (what: string): string => `resourcepoolstatusrequest_controller_${what}`;
  const processed = metrics?.counter(name("requests_processed_total"), "[ALPHA] Total number of ResourcePoolStatusRequests processed");
  const failed = metrics?.counter(name("request_processing_errors_total"), "[ALPHA] Total number of errors encountered while processing ResourcePoolStatusRequests");
  const took = metrics?.histogram(name("request_processing_duration_seconds"), "[ALPHA] Time taken to process a ResourcePoolStatusRequest", TOOK);

  return {
    name: "resourcepoolstatusrequest",
    workers: 1,
    watches: [itself(requests), mapped(slices, ({ object }) => [...requests.list()].filter(({ spec, status }) => status === undefined && spec.driver === object.spec.driver).map(keyOf))],
    reads: [claims],
    async reconcile(key, { signal }): Promise<Next> {
      const request = requests.get(key);
      if (!request) return;
      const leftMs = expiresMs(request) - clock.nowMs();
      if (leftMs < 0) return void await ifFound(requestClient.delete(request, { preconditions: { uid: request.metadata.uid } }, { signal }));
      const untilGone = { againInMs: Math.min(leftMs, PENDING_MS) + 1 };
      if (request.status) return untilGone;
      const startMs = clock.uptimeMs();
      const pools = poolsOf(request, slices.list(), claims.list());
      const told = pools.slice(0, request.spec.limit ?? LIMIT);
      if (told.some(({ validationError }) => validationError !== undefined)) return untilGone;
      const labels = { driver_name: request.spec.driver };
      try {
        await requests.caughtUp([await requestClient.updateStatus({ ...request, status: { poolCount: pools.length, pools: told, conditions: [complete(told.length, timestamp(clock.nowMs()))] } }, { signal })], signal);
      } catch (error) {
        failed?.inc(labels);
        throw error;
      } finally {
        processed?.inc(labels);
        took?.observe((clock.uptimeMs() - startMs) / 1000, labels);
      }
    },
  };
}

/** By the server's clock. */
export function expiresMs({ metadata, status }: Readonly<ResourcePoolStatusRequest>): number {
  const madeMs = Date.parse(metadata.creationTimestamp ?? "");
  if (!status) return (madeMs || Number.POSITIVE_INFINITY) + PENDING_MS;
  const answered = status.conditions?.find(({ type }) => type === "Complete" || type === "Failed");
  return ((answered ? Date.parse(answered.lastTransitionTime) : madeMs) || Number.POSITIVE_INFINITY) + ANSWERED_MS;
}

function complete(pools: number, now: string): Condition {
  return { type: "Complete", status: "True", lastTransitionTime: now, reason: "CalculationComplete", message: `Calculated status for ${pools} pools` };
}

/** Those that are asked for, by their names, each as the newest generation of its slices has it. One of which slices are missing has a `validationError` instead of numbers. */
export function poolsOf({ spec: { driver, poolName = "" } }: Readonly<ResourcePoolStatusRequest>, slices: Iterable<Readonly<ResourceSlice>>, claims: Iterable<Readonly<ResourceClaim>>): PoolStatus[] {
  const taken = new Map<string, number>();
  for (const { status } of claims) for (const result of status?.allocation?.devices?.results ?? []) if (result.driver === driver) taken.set(result.pool, (taken.get(result.pool) ?? 0) + 1);
  const asked = Iterator.from(slices).filter(({ spec }) => spec.driver === driver && (poolName === "" || spec.pool.name === poolName));
  const pools = [...Map.groupBy(asked, ({ spec }) => spec.pool.name)].map(([name, all]): PoolStatus => {
    const generation = all.reduce((most, { spec }) => (spec.pool.generation > most ? spec.pool.generation : most), all[0]!.spec.pool.generation); // a driver may count in nanoseconds, which no double holds
    const known = all.filter(({ spec }) => spec.pool.generation === generation);
    const nodes = new Set(known.map(({ spec }) => spec.nodeName ?? "")), [node = ""] = nodes;
    const head = { driver, poolName: name, generation, ...(nodes.size === 1 && node !== "" ? { nodeName: node } : {}) };
    const expected = Number(known[0]!.spec.pool.resourceSliceCount);
    if (known.length < expected) return { ...head, validationError: `pool ${driver}/${name} is incomplete: observed ${known.length}/${expected} slices at generation ${generation}`.slice(0, 256) };
    const totalDevices = known.reduce((sum, { spec }) => sum + (spec.devices ?? []).length, 0), allocatedDevices = taken.get(name) ?? 0;
    return { ...head, resourceSliceCount: known.length, totalDevices, allocatedDevices, availableDevices: Math.max(0, totalDevices - allocatedDevices), unavailableDevices: 0 };
  });
  return pools.sort((a, b) => (a.poolName! < b.poolName! ? -1 : 1));
}
