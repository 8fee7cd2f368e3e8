/** One seed each time; a thousand by command: run.ts. */
import { expect, test } from "vitest";
import { simulateCluster } from "./simulator.ts";

/** One on which all of it happens: Jobs are started and lose pods, budgets are spent, nodes and servers fail. */
const SEED = 3;

test("whatever fails, invariants hold, in the end all is as it was asked for, and the seed replays to the last event", async () => {
  const { violations, unfinished, failures, events, digest } = await simulateCluster(SEED, { nodes: 8 });
  expect({ violations, unfinished, failures }).toEqual({ violations: [], unfinished: [], failures: [] });
  expect(events).toBeGreaterThan(500);
  expect((await simulateCluster(SEED, { nodes: 8 })).digest).toBe(digest);
}, 600_000);
