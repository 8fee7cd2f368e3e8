/** The process in which run.ts has cases tried. Which case it is at stands in a file that both have mapped, because a process that hangs cannot say so. */
import { writeFileSync } from "node:fs";
import { type Finding, fuzz } from "./fuzz.ts";
import { targets } from "./targets.ts";

export interface Turn { readonly target: string; readonly seed: number; readonly ms: number; readonly slowMs: number }
export interface Answer { readonly cases: number; readonly findings: readonly Finding[]; readonly residentMiB: number }

/** A number in a file, which the other process sees at once. */
export function openCell(path: string, { make = true } = {}): { seed: number } {
  if (make) writeFileSync(path, new Uint8Array(8));
  const bytes = Bun.mmap(path, { shared: true });
  const view = new DataView(bytes.buffer, bytes.byteOffset, 8);
  return {
    get seed() { return view.getFloat64(0); },
    set seed(value) { view.setFloat64(0, value); },
  };
}

if (import.meta.main) {
  const cell = openCell(process.argv[2]!, { make: false });
  process.on("message", (turn: Turn) => {
    const target = targets.find(({ name }) => name === turn.target)!;
    const { cases, findings } = fuzz(target, { ...turn, begins: (seed) => { cell.seed = seed; } });
    process.send!({ cases, findings, residentMiB: Math.round(process.memoryUsage.rss() / 2 ** 20) } satisfies Answer);
  });
}
