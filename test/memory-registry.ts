/** The registry of all built-in resources over a store in memory, for tests of what stands on it without a server. */
import { builtInResources } from "../core/api/schema/resources.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { convert } from "../core/registry/conversions.ts";
import { registryDefinitions } from "../core/registry/definitions.ts";
import { WatchCache } from "../core/registry/generic/watch-cache.ts";
import { Registry } from "../core/registry/registry.ts";
import { memoryStore } from "../storage/memory.ts";

export async function memoryRegistry(): Promise<Registry> {
  const store = await memoryStore();
  const registry: Registry = new Registry(builtInResources.rows(), registryDefinitions({ serviceCidrs: ["10.43.0.0/16"], nodePortRange: "30000-32767", storeOf: (group, plural) => registry.storeOf(group, plural), random: systemRandom }), {
    store, cache: new WatchCache(store, systemClock), clock: systemClock, random: systemRandom, convert,
  });
  return registry;
}
