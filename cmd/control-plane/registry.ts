/** All resources of one server, over its one watch cache. */
import type { ResourceRow } from "../../core/api/schema/resources.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { ruleMeter } from "../../core/registry/apiextensions/rules/rule-meter.ts";
import { convert } from "../../core/registry/conversions.ts";
import type { AddressClient } from "../../core/registry/core/service/allocator/address-objects.ts";
import { allocationMeter } from "../../core/registry/core/service/allocator/allocation-metrics.ts";
import type { Claims } from "../../core/registry/core/service/allocator/claims.ts";
import { registryDefinitions } from "../../core/registry/definitions.ts";
import type { WatchCache } from "../../core/registry/generic/watch-cache.ts";
import { Registry } from "../../core/registry/registry.ts";
import { METRICS_ROWS } from "../../core/server/metrics-api/metrics-api.ts";
import type { Store } from "../../storage/store.ts";
import type { Settings } from "../config/flags.ts";

/** Longer than a write may take, admission webhooks (30 s) included. */
const CLAIM_SECONDS = 60;

interface Options {
  readonly settings: Settings;
  readonly served: readonly ResourceRow[];
  readonly gates: ReadonlySet<string>;
  readonly store: Store;
  readonly cache: WatchCache;
  readonly ipAddresses: AddressClient;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
}

export function registryOf({ settings, served, gates, store, cache, ipAddresses, clock, random, metrics, signal }: Options): Registry {
  const definitions = registryDefinitions({
    gates, serviceCidrs: settings.serviceCidr.split(","), nodePortRange: settings.serviceNodePortRange, random, ipAddresses,
    storeOf: (group, plural) => registry.storeOf(group, plural), claims: claimsOf(store, cache, signal), allocations: allocationMeter(metrics, clock),
  });
  const rows = [...served, ...(settings.disable.includes("metrics-server") ? [] : METRICS_ROWS)];
  const registry: Registry = new Registry(rows, definitions, { store, cache, clock, random, convert, ruleMeter: ruleMeter(metrics, clock) });
  return registry;
}

/** Service addresses and node ports that are being given out: no other server may give them out meanwhile. */
function claimsOf(store: Store, cache: WatchCache, signal: AbortSignal): Claims | undefined {
  return store.claim && { claim: async (name) => await store.claim?.(`/claims/services/${name}`, { ttlSeconds: CLAIM_SECONDS }), fresh: () => cache.fresh(signal) };
}
