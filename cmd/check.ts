/** `coracle check`: looks for damage in a data directory. Beside a running server at the files alone, which that has in memory. */
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { systemClock } from "../core/lifecycle/clock.ts";
import { checkOpenStore, checkStore, repairStore, type StoreReport } from "../storage/check.ts";
import { finishReplacing } from "../storage/replace.ts";
import { StoreError } from "../storage/store.ts";
import { setNativeDirectory } from "./assets.ts";
import { ConfigError } from "./config/config.ts";
import { mendHere } from "./mend-datastore.ts";
import { paths, withoutLinks } from "./paths.ts";
import { machineSettings, mustReach } from "./tools.ts";

const USAGE = `Usage: coracle check [--repair [--force]] [--data-dir DIR]   looks for damage in a server's store: in all of it while the server is
                                                           stopped, in its files while it runs

  --repair      with the server stopped: makes a sound store of a damaged one, as the server does at its start: of the newest snapshot and what can be read, or, without
                any, of what can be read if that is nearly all; the damaged one is kept
  --force       of what can be read, however little that is, and of nothing else
  --data-dir    of which server; default: the one that is installed here`;

export async function check(argv: readonly string[]): Promise<number> {
  const { help, repair, force, dataDir: given } = readFlags(argv);
  if (help) {
    console.log(USAGE);
    return 0;
  }
  const { dataDir, snapshotDir } = machineSettings(given === undefined ? [] : ["--data-dir", given]);
  const { store: path, native, tls, snapshots } = paths(dataDir);
  mustReach(path);
  if (!existsSync(path)) finishReplacing(withoutLinks(path)); // one that was cut off, as the server would
  if (!existsSync(path)) throw new ConfigError(`${path}: there is no store; is --data-dir right?`);
  setNativeDirectory(native);
  const report = await checkStore(path, { wasUsed: existsSync(tls) }).catch((error: unknown) => {
    if (repair || !(error instanceof StoreError) || error.code !== "locked") throw error;
    return undefined;
  });
  if (report === undefined) return besideServer(path);
  console.log(summary(report));
  for (const { what, key } of report.problems) console.log(`  ${key === undefined ? "" : `${key}: `}${what}`);
  if (report.repair === "not needed") {
    console.log("nothing is wrong");
    return 0;
  }
  if (!repair) {
    console.log("run again with --repair, or restore a snapshot");
    return 1;
  }
  if (!force) return await mended(withoutLinks(path), snapshotDir ?? snapshots);
  if (report.repair === "impossible") {
    console.log("this store cannot be repaired: restore a snapshot");
    return 1;
  }
  const repaired = await repairStore(path);
  console.log(`repaired: ${repaired.rows} rows kept`);
  return 0;
}

function besideServer(store: string): number {
  const { path, problems, bytes } = checkOpenStore(store);
  console.log(`${path}: ${bytes} bytes, open: a server runs with it; its files are looked at, and not each row`);
  for (const { what } of problems) console.log(`  ${what}`);
  if (problems.length === 0) {
    console.log("nothing is wrong with the files");
    return 0;
  }
  console.log("the server goes on with what it has in memory, and would meet this at its next start: keep all of it with `coracle snapshot save`, then restart the server, which mends its store with that");
  return 1;
}

async function mended(path: string, snapshots: string): Promise<number> {
  try {
    console.log(`repaired: ${(await mendHere({ path, snapshots, clock: systemClock })).told}`);
    return 0;
  } catch (error) {
    if (!(error instanceof StoreError) || (error.code !== "corrupt" && error.code !== "full")) throw error;
    console.log(`not repaired: ${String(error.fields["reason"])}; restore a snapshot that is kept elsewhere, or keep what can be read with --repair --force`);
    return 1;
  }
}

function summary({ path, opened, rows, revision, bytes, closedInOrder }: StoreReport): string {
  if (!opened) return `${path}: ${bytes} bytes, damaged`;
  return `${path}: ${rows} rows, revision ${revision}, ${bytes} bytes, ${closedInOrder ? "closed in order" : "not closed in order (a crash or a power cut; harmless)"}`;
}

function readFlags(argv: readonly string[]): { readonly help: boolean; readonly repair: boolean; readonly force: boolean; readonly dataDir: string | undefined } {
  try {
    const { values } = parseArgs({ args: [...argv], options: { "data-dir": { type: "string" }, repair: { type: "boolean" }, force: { type: "boolean" }, help: { type: "boolean", short: "h" } } });
    return { help: values.help === true, repair: values.repair === true, force: values.force === true, dataDir: values["data-dir"] };
  } catch (cause) {
    throw new ConfigError(`${(cause as Error).message}\n\n${USAGE}`, { cause });
  }
}
