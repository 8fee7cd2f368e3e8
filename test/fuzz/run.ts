/** A long run over all targets in turn: bun test/fuzz/run.ts --minutes 10 [--target NAME] [--seed N] */
import { mkdirSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { fuzz } from "./fuzz.ts";
import { targets } from "./targets.ts";

const TURN_MS = 5000;
const SLOW_MS = 3000;
const { values } = parseArgs({ options: { minutes: { type: "string", default: "1" }, target: { type: "string" }, seed: { type: "string" } } });
const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target);
if (chosen.length === 0) throw new Error(`no such target; there are ${targets.map(({ name }) => name).join(", ")}`);
const end = performance.now() + Number(values.minutes) * 60_000;
const counts = new Map<string, number>();
let found = 0;
for (let seed = values.seed === undefined ? Math.floor(performance.timeOrigin) % 2 ** 31 : Number(values.seed); performance.now() < end; seed += 1_000_003) {
  for (const target of chosen) {
    const { cases, findings } = fuzz(target, { seed, ms: Math.min(TURN_MS, Math.max(0, end - performance.now())), slowMs: SLOW_MS });
    counts.set(target.name, (counts.get(target.name) ?? 0) + cases);
    for (const { value, why, seed: at } of findings) {
      found++;
      const directory = new URL(`./corpus/${target.name}/`, import.meta.url).pathname;
      mkdirSync(directory, { recursive: true });
      writeFileSync(`${directory}${at}.json`, `${JSON.stringify(value)}\n`);
      console.log(`${target.name} ${at}: ${why}\n  ${JSON.stringify(value).slice(0, 400)}`);
    }
  }
}
console.log([...counts].map(([name, cases]) => `${name} ${cases}`).join(" · "), `· ${found} found`);
process.exitCode = found > 0 ? 1 : 0;
