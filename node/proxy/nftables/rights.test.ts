/** Services that come, change and go at random: at each address is one that has the best right to it, and the kernel is told of what differs. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import type { PortPlan } from "../desired.ts";
import { LiveRuleset } from "./live-ruleset.ts";
import { renderPort } from "./render.ts";
import { type Element, merge, type Piece, rankOf, type Ruleset } from "./ruleset.ts";

const CLUSTER_IPS = ["10.43.0.1", "10.43.0.2", "10.43.0.3"], OUTSIDE = ["192.0.2.1", "192.0.2.2"];
const BACKENDS = [1, 2, 3].map((n) => ({ ip: `10.42.0.${n}`, port: 8080, local: n === 1 }));

type Random = ReturnType<typeof seededRandom>;

function planned(random: Random, service: string): PortPlan[] {
  const clusterIp = random.pick(CLUSTER_IPS), some = (from: readonly string[]) => from.filter(() => random.integer(0, 2) === 0);
  const shared = { externalIps: some([...CLUSTER_IPS, ...OUTSIDE]), loadBalancerIps: some(OUTSIDE), affinitySeconds: random.pick([0, 0, 60]), externalLocal: random.pick([true, false]), internalLocal: random.pick([false, false, true]) };
  return [80, 81].slice(0, random.integer(1, 2)).map((port) => {
    const clusterBackends = random.integer(0, 2) === 0 ? [] : BACKENDS.slice(0, random.integer(1, 3));
    return {
      family: 4, namespace: "default", service, portName: `p${port}`, protocol: "tcp", clusterIp, port, nodePort: 0, sourceRanges: random.pick([[], ["10.9.0.0/16"]]), nodeInSourceRanges: false, preservesDestination: false,
      ...shared, clusterBackends, localBackends: clusterBackends.filter(({ local }) => local), servingBackends: [], anyBackend: clusterBackends.length > 0,
    };
  });
}

const plain = (tables: ReadonlyMap<string, ReadonlyMap<string, string>>) => [...tables].flatMap(([name, elements]) => [...elements].map(([key, value]) => [name, key, value].join(" | "))).toSorted();

/** What may stand at each place; undefined: nothing. */
function best(pieces: Iterable<Piece>): Map<string, Set<string | undefined>> {
  const found = new Map<string, Element[]>();
  for (const { elements } of pieces) for (const one of elements) found.set(`${one.container} | ${one.key}`, [...(found.get(`${one.container} | ${one.key}`) ?? []), one]);
  return new Map([...found].map(([place, all]) => {
    const rank = Math.min(...all.map(rankOf));
    return [place, new Set(all.filter((one) => rankOf(one) === rank).map(({ value, isHeld }) => (isHeld ? undefined : value)))];
  }));
}

test("one after the other they come to what they come to at once", () => {
  for (let seed = 1; seed <= 15; seed++) {
    const random = seededRandom(seed), live = new LiveRuleset(), there = new Map<string, Piece[]>();
    let kernel = new Map<string, string>();
    for (let step = 0; step < 40; step++) {
      const service = `s${random.integer(0, 4)}`, pieces = random.integer(0, 3) === 0 ? undefined : planned(random, service).map((plan) => renderPort(plan, []));
      live.set(service, pieces);
      if (pieces) there.set(service, pieces);
      else there.delete(service);
      const all = [...there.values()].flat(), may = best(all), at = `seed ${seed}, step ${step}`;
      for (const one of [live, merge(all)] satisfies Ruleset[]) {
        for (const [place, values] of may) {
          const [container, key] = place.split(" | ") as [string, string];
          expect(values, `${at}: ${place}`).toContain(one.containers.get(container)?.get(key));
        }
        for (const [container, elements] of one.containers) for (const key of elements.keys()) expect(may.has(`${container} | ${key}`), `${at}: ${container} | ${key}`).toBe(true);
      }
      const whole = merge(all);
      expect([[...live.chains].toSorted(), [...live.sets].toSorted()], at).toEqual([[...whole.chains].toSorted(), [...whole.sets].toSorted()]);
      if (random.integer(0, 2) > 0) continue; // several at once
      const { before, after } = live.delta(), flat = (one: Ruleset) => new Map([...one.containers].flatMap(([name, elements]) => [...elements].map(([key, value]): [string, string] => [`${name} | ${key}`, value])));
      for (const [place, value] of flat(before)) expect(kernel.get(place), `${at}: ${place}`).toBe(value);
      kernel = new Map([...[...kernel].filter(([place]) => !flat(before).has(place)), ...flat(after)]);
      expect([...kernel].map((one) => one.join(" | ")).toSorted(), at).toEqual(plain(live.containers));
      live.commit();
    }
  }
});
