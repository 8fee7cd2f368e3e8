/** The API server in one process, over a store in memory: the real registry, handler and watch cache; everybody may do everything, nothing is admitted away. */
import { builtInResources } from "../core/api/schema/resources.ts";
import type { Client } from "../core/client/client.ts";
import { clientOver } from "../core/client/resource-client.ts";
import { IP_ADDRESSES } from "../core/client/resources.ts";
import { type Clock, systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { convert } from "../core/registry/conversions.ts";
import { registryDefinitions } from "../core/registry/definitions.ts";
import { WatchCache } from "../core/registry/generic/watch-cache.ts";
import { Registry } from "../core/registry/registry.ts";
import { discoveryPaths } from "../core/server/discovery.ts";
import { apiHandler } from "../core/server/handler.ts";
import { servedResources } from "../core/server/runtime-config.ts";
import type { Handler } from "../core/server/scope.ts";
import { inProcessTransport } from "../core/server/in-process.ts";
import { specialHandlers } from "../core/server/special/special.ts";
import { VERBS } from "../core/server/verbs/all.ts";
import { memoryStore } from "../storage/memory.ts";

/** Runs until `signal` aborts; then wait for `ended`. `gates`: features that are switched on, with `runtimeConfig`. */
export async function inProcessServer({ clock = systemClock, signal, gates = new Set(), runtimeConfig = [] }: { readonly clock?: Clock; readonly signal: AbortSignal; readonly gates?: ReadonlySet<string>; readonly runtimeConfig?: readonly string[] }): Promise<{ readonly client: (name: string) => Client; readonly registry: Registry; readonly ended: Promise<void> }> {
  const store = await memoryStore({ clock });
  const cache = new WatchCache(store, clock);
  let ended: Promise<void> = Promise.resolve();
  await new Promise<void>((ready) => { ended = cache.run(signal, ready, silentLog); });
  const clientOf = (name: string): Client => clientOver(inProcessTransport((request) => handler(request), { user: { name, groups: ["system:masters"] }, userAgent: name }));
  const registry: Registry = new Registry(gates.size > 0 ? servedResources(runtimeConfig, gates) : builtInResources.rows(), registryDefinitions({
    gates, serviceCidrs: ["10.43.0.0/16"], nodePortRange: "30000-32767", storeOf: (group, plural) => registry.storeOf(group, plural), random: systemRandom, ipAddresses: clientOf("system:apiserver").resource(IP_ADDRESSES),
  }), { store, cache, clock, random: systemRandom, convert });
  const handler: Handler = apiHandler({
    registry, cache, clock, random: systemRandom, log: silentLog, metrics: metricsRegistry(), paths: [discoveryPaths(registry, "10.0.0.1:6443")],
    authenticator: { authenticate: () => Promise.resolve(undefined) },
    authorizer: { authorize: () => ({ decision: "allow", reason: "" }), rulesFor: () => Promise.resolve({ resourceRules: [], pathRules: [], incomplete: false }) },
    impersonate: ({ user }) => Promise.resolve({ user, constraint: "" }),
    admission: { admit: () => Promise.resolve(), validate: () => Promise.resolve() },
    special: specialHandlers({ tokens: undefined as never, tokenReviews: undefined as never, review: () => Promise.reject(new Error("no reviews here")), connections: () => undefined }),
  }, VERBS);
  return { client: clientOf, registry, ended };
}
