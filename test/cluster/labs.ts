/** What tests leave of their hosts when they are interrupted ends with the run. vitest calls this before it starts workers; a worker's lab is host.ts' to name. */
import { join } from "node:path";
import { LAB } from "./host.ts";
import { WORKERS } from "./vitest.config.ts";

export default function setUp(): () => void {
  return () => {
    for (let worker = 1; worker <= WORKERS; worker++) Bun.spawnSync(["bash", join(import.meta.dirname, "host.sh"), "sweep"], { env: { ...process.env, LAB: `${LAB}${worker}` } });
  };
}
