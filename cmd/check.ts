/** `coracle check [--data-dir DIR] [--repair]`: looks for damage in a data directory, that of the installed server if none is named. The server must not be running. */
import { existsSync } from "node:fs";
import { checkStore, repairStore } from "../storage/check.ts";
import { setNativeDirectory } from "./assets.ts";
import { ConfigError } from "./config/config.ts";
import { paths } from "./paths.ts";
import { machineSettings } from "./tools.ts";

export async function check(argv: readonly string[]): Promise<number> {
  const repair = argv.includes("--repair");
  const { dataDir } = machineSettings(argv.filter((word) => word !== "--repair"));
  const { store: path, native } = paths(dataDir);
  if (!existsSync(path)) throw new ConfigError(`${path}: there is no store; is --data-dir right?`);
  setNativeDirectory(native);
  const report = await checkStore(path);
  console.log(`${path}: ${report.rows} rows, revision ${report.revision}, ${report.bytes} bytes, ${report.closedInOrder ? "closed in order" : "not closed in order (a crash or a power cut; harmless)"}`);
  for (const problem of report.problems) console.log(`  ${JSON.stringify(problem)}`);
  if (report.repair === "not needed") {
    console.log("nothing is wrong");
    return 0;
  }
  if (!repair || report.repair === "impossible") {
    console.log(report.repair === "possible" ? "run again with --repair to drop what cannot be read, or restore a backup" : "this store cannot be repaired: restore a backup");
    return 1;
  }
  const repaired = await repairStore(path);
  console.log(`repaired: ${repaired.rows} rows kept`);
  return 0;
}
