/** How a run on mistreated machines goes and ends: fault by fault; what failed is told, the machines' network goes, and the exit code says whether all was well. */
import { switchDown } from "../cluster/host.ts";

export interface Faults<F> {
  /** By what each of them is called. */
  readonly faults: Readonly<Record<string, F>>;
  /** Only those whose names hold one of these; none: all. */
  readonly words: readonly string[];
  readonly cause: (fault: F) => Promise<unknown>;
  /** Throws unless all is as it should be. */
  readonly well: () => Promise<unknown>;
  readonly say: (text: string) => void;
  /** Tells how things stand after one that failed. */
  readonly story: () => Promise<unknown>;
}

/** One after the other, whatever becomes of them. False: some have failed. Throws for a word that no name holds. */
export async function eachFault<F>({ faults, words, cause, well, say, story }: Faults<F>): Promise<boolean> {
  const names = Object.keys(faults), unknown = words.find((word) => !names.some((name) => name.includes(word)));
  if (unknown !== undefined) throw new Error(`nothing is called "${unknown}"; there are\n  ${names.join("\n  ")}`);
  let good = true;
  for (const [what, fault] of Object.entries(faults).filter(([name]) => words.length === 0 || words.some((word) => name.includes(word)))) {
    try {
      await cause(fault);
      await well();
      say(what);
    } catch (error) {
      good = false;
      say(`FAILED: ${what}`);
      console.error(error);
      await story();
    }
  }
  return good;
}

/** Ends the process: with 0 if `run` answered true. */
export async function endWith(run: () => Promise<boolean>): Promise<never> {
  let good = false;
  try {
    good = await run();
  } catch (error) {
    console.error(error);
  } finally {
    await switchDown();
  }
  process.exit(good ? 0 : 1);
}
