/** Subsets, however they come: no address and port is lost or doubled, the same in any order, and cut to capacity with ready ones first. */
import { expect, test } from "vitest";
import { type SeededRandom, seededRandom } from "../../../test/simulator/seeded.ts";
import type { EndpointSubset } from "../../api/gen/core.v1.ts";
import { CAPACITY, repackSubsets, truncateSubsets } from "./plan.ts";

function randomSubsets(random: SeededRandom, addresses: number): EndpointSubset[] {
  const port = () => ({ name: random.pick(["http", "https"]), port: random.pick([80, 443, 8080]), protocol: "TCP" as const });
  return Array.from({ length: random.integer(0, 8) }, (): EndpointSubset => ({
    [random.chance(0.7) ? "addresses" : "notReadyAddresses"]: Array.from({ length: random.integer(1, addresses) }, () => ({ ip: `10.0.${random.integer(0, 3)}.${random.integer(0, 250)}` })), ports: [port()],
  }));
}
const pairs = (subsets: readonly EndpointSubset[], ready: boolean): string[] => subsets.flatMap(({ addresses = [], notReadyAddresses = [], ports = [] }) => (ready ? addresses : notReadyAddresses).flatMap(({ ip }) => ports.map((port) => `${ip} ${port.name} ${port.port}`)));

test("packed: every address with every port once, ready unless it is said not to be", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seededRandom(seed);
    const given = randomSubsets(random, 4);
    const packed = repackSubsets(given);
    const not = new Set(pairs(given, false));
    const ready = new Set(pairs(given, true).filter((pair) => !not.has(pair)));
    expect([pairs(packed, true).sort(), pairs(packed, false).sort()], `seed ${seed}`).toEqual([[...ready].sort(), [...not].sort()]);
    expect(repackSubsets(given.toReversed()), `seed ${seed}: in another order`).toEqual(packed);
    expect(repackSubsets(packed), `seed ${seed}: packed again`).toEqual(packed);
  }
});

test("cut: never more than the capacity, and nobody who is ready goes for one who is not", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed);
    const subsets = randomSubsets(random, 600);
    const count = (some: readonly EndpointSubset[], kind: "addresses" | "notReadyAddresses"): number => some.reduce((sum, subset) => sum + (subset[kind]?.length ?? 0), 0);
    const [ready, not] = [count(subsets, "addresses"), count(subsets, "notReadyAddresses")];
    const { subsets: kept, truncated } = truncateSubsets(subsets);
    expect(truncated, `seed ${seed}`).toBe(ready + not > CAPACITY);
    expect([count(kept, "addresses"), count(kept, "notReadyAddresses")], `seed ${seed}`).toEqual([Math.min(ready, CAPACITY), truncated ? Math.max(0, CAPACITY - ready) : not]);
  }
});
