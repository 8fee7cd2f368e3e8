/** `coracle check`: looks for damage in a data directory. The server must not be running. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { checkStore, repairStore, type StoreReport } from "../storage/check.ts";
import { setNativeDirectory } from "./assets.ts";
import { ConfigError } from "./config/config.ts";
import { paths } from "./paths.ts";
import { machineSettings, mustReach } from "./tools.ts";

const USAGE = `Usage: coracle check [--repair] [--data-dir DIR]   looks for damage in a server's store; the server must be stopped

  --repair      drops what cannot be read, if there is damage
  --data-dir    of which server; default: the one that is installed here`;

export async function check(argv: readonly string[]): Promise<number> {
  const { help, repair, dataDir: given } = readFlags(argv);
  if (help) {
    console.log(USAGE);
    return 0;
  }
  const { dataDir } = machineSettings(given === undefined ? [] : ["--data-dir", given]);
  const { store: path, native, tls } = paths(dataDir);
  mustReach(path);
  if (!existsSync(path)) throw new ConfigError(`${path}: there is no store; is --data-dir right?`);
  setNativeDirectory(native);
  const report = await checkStore(path, { wasUsed: existsSync(tls) });
  console.log(summary(report));
  for (const { what, key } of report.problems) console.log(`  ${key === undefined ? "" : `${key}: `}${what}`);
  if (report.repair === "not needed") {
    console.log("nothing is wrong");
    return 0;
  }
  if (!repair || report.repair === "impossible") {
    console.log(report.repair === "possible" ? "run again with --repair to drop what cannot be read, or restore a snapshot" : "this store cannot be repaired: restore a snapshot");
    return 1;
  }
  const repaired = await repairStore(path);
  console.log(`repaired: ${repaired.rows} rows kept`);
  return 0;
}

function summary({ path, opened, rows, revision, bytes, closedInOrder }: StoreReport): string {
  if (!opened) return `${path}: ${bytes} bytes, damaged`;
  return `${path}: ${rows} rows, revision ${revision}, ${bytes} bytes, ${closedInOrder ? "closed in order" : "not closed in order (a crash or a power cut; harmless)"}`;
}

function readFlags(argv: readonly string[]): { readonly help: boolean; readonly repair: boolean; readonly dataDir: string | undefined } {
  try {
    const { values } = parseArgs({ args: [...argv], options: { "data-dir": { type: "string" }, repair: { type: "boolean" }, help: { type: "boolean", short: "h" } } });
    return { help: values.help === true, repair: values.repair === true, dataDir: values["data-dir"] };
  } catch (cause) {
    throw new ConfigError(`${(cause as Error).message}\n\n${USAGE}`, { cause });
  }
}
