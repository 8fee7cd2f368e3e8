/** Nodes come and go silent: what is decided of them is decided once, and taken back in full. */
import { expect, test } from "vitest";
import { seededRandom } from "../../../test/simulator/seeded.ts";
import { stored } from "../../../test/static-informer.ts";
import type { Node, Taint } from "../../api/gen/core.v1.ts";
import { evictionFor, scheduleTaints, taintsPerSecond, unknownConditions, zoneState } from "./plan.ts";

const NOW = Date.parse("2026-01-02T00:00:00Z");
const TYPES = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"];

test("taints follow conditions, whatever taints there were; others' taints stay; asked again, nothing changes", () => {
  for (let seed = 1; seed <= 400; seed++) {
    const random = seededRandom(seed);
    const foreign: Taint[] = [{ key: "own", effect: "NoSchedule" }, { key: "own", effect: "NoExecute" }].filter(() => random.chance(0.5)) as Taint[];
    const stale: Taint[] = ["not-ready", "unreachable", "memory-pressure", "disk-pressure", "unschedulable"].flatMap((name) => (random.chance(0.3) ? [{ key: `node.kubernetes.io/${name}`, effect: "NoSchedule" as const }] : []));
    let node = stored<Node>("v1", "Node", "n", {
      spec: { taints: [...foreign, ...stale], ...(random.chance(0.3) ? { unschedulable: true } : {}) },
      status: { conditions: TYPES.flatMap((type) => (random.chance(0.8) ? [{ type, status: random.pick(["True", "False", "Unknown"]) }] : [])) },
    });
    const taints = scheduleTaints(node, NOW);
    if (taints) node = { ...node, spec: { ...node.spec, taints: [...taints] } };
    expect(scheduleTaints(node, NOW), `seed ${seed}: not settled`).toBeUndefined();
    for (const taint of foreign) expect(node.spec.taints, `seed ${seed}`).toContainEqual(taint);
    const is = (type: string): string | undefined => node.status?.conditions?.find((one) => one.type === type)?.status;
    const has = (name: string): boolean => node.spec.taints!.some(({ key, effect }) => key === `node.kubernetes.io/${name}` && effect === "NoSchedule");
    expect([has("not-ready"), has("unreachable"), has("memory-pressure"), has("disk-pressure"), has("pid-pressure"), has("network-unavailable"), has("unschedulable")], `seed ${seed}`).toEqual([
      is("Ready") === "False", is("Ready") === "Unknown", is("MemoryPressure") === "True", is("DiskPressure") === "True", is("PIDPressure") === "True", is("NetworkUnavailable") === "True", node.spec.unschedulable === true,
    ]);
    expect(new Set(node.spec.taints!.map(({ key, effect }) => `${key}:${effect}`)).size, `seed ${seed}: twice`).toBe(node.spec.taints!.length);

    for (const ready of ["False", "Unknown", "True"]) { // driven out, and let in again
      const step = evictionFor(node, ready, NOW);
      if (step.do !== "nothing") node = { ...node, spec: { ...node.spec, taints: [...step.taints] } };
      expect(evictionFor(node, ready, NOW).do, `seed ${seed}, ${ready}: not settled`).toBe("nothing");
      const driven = node.spec.taints!.filter(({ key, effect }) => effect === "NoExecute" && key !== "own").map(({ key }) => key.replace("node.kubernetes.io/", ""));
      expect(driven, `seed ${seed}`).toEqual(ready === "True" ? [] : [ready === "False" ? "not-ready" : "unreachable"]);
      for (const taint of foreign) expect(node.spec.taints, `seed ${seed}`).toContainEqual(taint);
    }
    const unknown = unknownConditions(node, NOW);
    expect(unknownConditions({ ...node, status: { ...node.status, conditions: [...unknown] } }, NOW), `seed ${seed}`).toEqual(unknown);
    expect(unknown.filter(({ type }) => type !== "NetworkUnavailable").every(({ status }) => status === "Unknown"), `seed ${seed}`).toBe(true);
  }
});

test("the more of a zone is silent the slower its nodes are given up, and a zone that is wholly silent like any other", () => {
  for (let total = 1; total <= 120; total++)
    for (let silent = 0; silent <= total; silent++) {
      const state = zoneState(total - silent, silent);
      expect(state === "FullDisruption", `${silent} of ${total}`).toBe(silent === total);
      const rate = taintsPerSecond(state, total);
      expect(rate, `${silent} of ${total}`).toBe(state !== "PartialDisruption" ? 0.1 : total > 50 ? 0.01 : 0);
      if (silent < total) expect(state === "PartialDisruption", `${silent} of ${total}`).toBe(silent > 2 && silent / total >= 0.55);
    }
});
