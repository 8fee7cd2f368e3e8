/**
 * Many seeds: `bun test/simulator/run.ts [--seeds 1000] [--first 1] [--nodes 50]`; one again, with its story: `--seed 17`.
 * Prints what was violated, and ends with 1 if anything was.
 */
import { parseArgs } from "node:util";
import { wholeNumber } from "../whole-number.ts";
import { simulateCluster } from "./simulator.ts";

const { values } = parseArgs({ options: { seeds: { type: "string", default: "1000" }, first: { type: "string", default: "1" }, seed: { type: "string" }, nodes: { type: "string", default: "50" } } });
const first = wholeNumber(values.seed ?? values.first, "the seed"), count = values.seed === undefined ? wholeNumber(values.seeds, "--seeds") : 1, nodes = wholeNumber(values.nodes, "--nodes");
let bad = 0;
const startMs = performance.now();
/** A sign of life, now and then. */
const TOLD_EVERY = 10;
for (let seed = first; seed < first + count; seed++) {
  const { violations, unfinished, failures, events, digest, story } = await simulateCluster(seed, { nodes });
  if (values.seed !== undefined) console.log(story.join("\n"));
  const wrong = [...violations, ...unfinished.map((what) => `in the end: ${what}`), ...failures.map((error) => `a part failed: ${(error as Error)?.stack ?? String(error)}`)];
  if (wrong.length > 0) bad++;
  if (count > 1 && (seed - first + 1) % TOLD_EVERY === 0) console.log(`${seed - first + 1} seeds, ${bad} bad, ${((performance.now() - startMs) / 1000 / (seed - first + 1)).toFixed(1)} s each`);
  if (wrong.length > 0 || values.seed !== undefined) console.log(`seed ${seed}: ${wrong.length === 0 ? "all holds" : `${wrong.length} violations\n  ${wrong.slice(0, 20).join("\n  ")}`}\n  ${events} events, ${digest.slice(0, 16)}`);
}
console.log(`${count} seeds, ${bad} of them bad, ${((performance.now() - startMs) / 1000 / count).toFixed(1)} s each`);
process.exit(bad > 0 ? 1 : 0);
