/** Who is killed when the machine has no memory left: those with the highest score. */
import { writeFileSync } from "node:fs";
import type { Log } from "../../core/observe/log.ts";

/** Of this process, and of what it starts. `adjust`: -1000 (never) to 1000; below what it is takes privileges. */
export function adjustOomScore(adjust: number, log: Log): void {
  try {
    writeFileSync("/proc/self/oom_score_adj", String(adjust));
  } catch (error) {
    log.info("this process may be killed before others when there is no memory left", { wanted: adjust, error: (error as Error).message });
  }
}
