/** Random families, from which members are taken by one or the other policy: who is left is who has an owner that lives, or never had one, or was set free. */
import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import type { ConfigMap } from "../../api/gen/core.v1.ts";
import { CONFIG_MAPS } from "../../client/resources.ts";
import { garbageCollector } from "./garbagecollector.ts";

test.each(Array.from({ length: 12 }, (_, i) => i + 1))("family %i", async (seed) => {
  const random = seededRandom(seed);
  const api = fakeApi();
  await withControllers((deps) => [garbageCollector(deps)], async (_, call) => {
    const maps = api.client.resource(CONFIG_MAPS);
    const owners = new Map<string, Set<string>>(); // those that are left, by name
    const made: ConfigMap[] = [];
    for (let i = 0; i < 14; i++) {
      const above = i === 0 || random.chance(0.2) ? [] : [...new Set(Array.from({ length: random.integer(1, 2) }, () => random.pick(made)))];
      made.push(await maps.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: `m${i}`, namespace: "default", ownerReferences: above.map(({ apiVersion, kind, metadata: { name, uid } }) => ({ apiVersion, kind, name, uid, ...(random.chance(0.5) ? { blockOwnerDeletion: true } : {}) })) } }, call));
      owners.set(`m${i}`, new Set(above.map(({ metadata }) => metadata.name)));
    }
    const state = (): string => api.all(CONFIG_MAPS).map(({ metadata }) => `${metadata.name}<${(metadata.ownerReferences ?? []).map(({ name }) => name).sort().join("+")}`).sort().join(" ");
    const expected = (): string => [...owners].map(([name, above]) => `${name}<${[...above].sort().join("+")}`).sort().join(" ");
    const lose = (name: string, keepsDependents: boolean): void => {
      owners.delete(name);
      for (const [other, above] of [...owners]) {
        if (!above.delete(name) || above.size > 0 || keepsDependents) continue;
        lose(other, false);
      }
    };
    for (let round = 0; round < 5 && owners.size > 0; round++) {
      const victim = random.pick([...owners.keys()]);
      const propagationPolicy = random.pick(["Background", "Foreground", "Orphan"] as const);
      await Bun.sleep(20); // the graph knows them
      await maps.delete({ metadata: { name: victim, namespace: "default" } }, { propagationPolicy }, call);
      lose(victim, propagationPolicy === "Orphan");
      await eventually(state, (seen) => seen === expected()).catch(() => { expect(state(), `seed ${seed}: ${victim} was taken, ${propagationPolicy}`).toBe(expected()); });
    }
  }, { api });
});
