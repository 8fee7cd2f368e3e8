/** One seed each time; a thousand by command: run.ts. */
import { expect, test } from "vitest";
import { simulateCluster } from "./simulator.ts";

test("whatever fails, invariants hold, and in the end all is as it was asked for", async () => {
  const { violations, unfinished, failures, events } = await simulateCluster(1, { nodes: 8 });
  expect({ violations, unfinished, failures }).toEqual({ violations: [], unfinished: [], failures: [] });
  expect(events).toBeGreaterThan(500);
}, 300_000);

test("a seed replays, to the last event", async () => {
  const brief = { nodes: 3, foulMs: 20_000 };
  const [first, again, other] = [await simulateCluster(5, brief), await simulateCluster(5, brief), await simulateCluster(6, brief)];
  expect(again.digest).toBe(first.digest);
  expect(other.digest).not.toBe(first.digest);
}, 400_000);
