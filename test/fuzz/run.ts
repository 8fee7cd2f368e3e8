/**
 * A long run over all targets in turn: bun test/fuzz/run.ts --minutes 10 [--target NAME] [--seed N]
 *
 * Cases are tried in a process of their own (worker.ts), so that one that never ends, or takes all memory, is a finding too and not the end of the run. Says once a minute
 * how far it is; what it finds goes to test/fuzz/corpus/<target>/.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { wholeNumber } from "../whole-number.ts";
import { Chance } from "./chance.ts";
import type { Finding, Target } from "./fuzz.ts";
import { targets } from "./targets.ts";
import { type Answer, openCell, type Turn } from "./worker.ts";

const TURN_MS = 5000;
const SLOW_MS = 3000;
/** How long after its turn a worker may still be at its last case. */
const HUNG_MS = 30_000;
const SAY_MS = 60_000;

/** A worker process: takes one turn after the other, and is replaced when it hangs or dies. */
class Worker implements Disposable {
  readonly #directory = mkdtempSync(join(tmpdir(), "fuzz-"));
  readonly #cell = openCell(join(this.#directory, "seed"));
  #process: Bun.Subprocess | undefined;
  #answered: ((answer: Answer) => void) | undefined;

  async take(turn: Turn, target: Target): Promise<Answer> {
    const worker = (this.#process ??= Bun.spawn([process.execPath, join(import.meta.dirname, "worker.ts"), join(this.#directory, "seed")], { ipc: (answer: Answer) => this.#answered?.(answer), stdout: "inherit", stderr: "inherit" }));
    this.#cell.seed = turn.seed;
    const answer = await Promise.race([
      new Promise<Answer>((resolve) => {
        this.#answered = resolve;
        worker.send(turn);
      }),
      worker.exited.then((code) => `the process ended: ${worker.signalCode ?? code}`),
      Bun.sleep(turn.ms + HUNG_MS).then(() => `has not ended within ${HUNG_MS} ms`),
    ]);
    if (typeof answer !== "string") return answer;
    worker.kill("SIGKILL");
    this.#process = undefined;
    const { seed } = this.#cell;
    return { cases: seed - turn.seed, findings: [{ target: target.name, seed, value: target.make(new Chance(seed)), why: answer }], residentMiB: 0 };
  }

  [Symbol.dispose](): void {
    this.#process?.kill("SIGKILL");
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function keep({ target, seed, value, why }: Finding): void {
  const directory = join(import.meta.dirname, "corpus", target);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, `${seed}.json`), `${JSON.stringify(value)}\n`);
  console.log(`${target} ${seed}: ${why}\n  ${JSON.stringify(value).slice(0, 400)}`);
}

const { values } = parseArgs({ options: { minutes: { type: "string", default: "1" }, target: { type: "string" }, seed: { type: "string" } } });
const chosen = targets.filter(({ name }) => values.target === undefined || name === values.target);
if (chosen.length === 0) throw new Error(`no such target; there are ${targets.map(({ name }) => name).join(", ")}`);
const start = performance.now();
const end = start + wholeNumber(values.minutes, "--minutes") * 60_000;
const counts = new Map<string, number>();
let found = 0;
let saidMs = start;
let seed = values.seed === undefined ? Math.floor(performance.timeOrigin) % 2 ** 31 : wholeNumber(values.seed, "--seed");
console.log(`seed ${seed}, ${values.minutes} minutes`);
using worker = new Worker();
for (; performance.now() < end; seed += 1_000_003) {
  for (const target of chosen) {
    const ms = Math.min(TURN_MS, end - performance.now());
    if (ms <= 0) break;
    const { cases, findings, residentMiB } = await worker.take({ target: target.name, seed, ms, slowMs: SLOW_MS }, target);
    counts.set(target.name, (counts.get(target.name) ?? 0) + cases);
    found += findings.length;
    findings.forEach(keep);
    if (performance.now() - saidMs < SAY_MS) continue;
    saidMs = performance.now();
    console.log(`${Math.round((saidMs - start) / 60_000)} min: ${[...counts.values()].reduce((sum, count) => sum + count, 0)} cases, ${found} found, ${residentMiB} MiB`);
  }
}
console.log([...counts].map(([name, cases]) => `${name} ${cases}`).join(" · "), `· ${found} found`);
process.exitCode = found > 0 ? 1 : 0;
