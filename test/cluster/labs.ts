/** What tests have begun ends with the run, also when it is interrupted. vitest calls this before it starts workers; a worker's lab is host.ts' to name. */
import { join } from "node:path";
import { LAB } from "./host.ts";
import { WORKERS } from "./vitest.config.ts";

export default function setUp(): void {
  process.once("exit", () => {
    for (let worker = 1; worker <= WORKERS; worker++) Bun.spawnSync(["bash", join(import.meta.dirname, "host.sh"), "sweep"], { env: { ...process.env, LAB: `${LAB}${worker}` } });
  });
  for (const [signal, code] of [["SIGINT", 130], ["SIGTERM", 143]] as const) process.once(signal, () => process.exit(code));
}
