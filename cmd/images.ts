/** `coracle images import FILE…` and `coracle images list`. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../core/lifecycle/clock.ts";
import { criClient } from "../node/cri/client.ts";
import { forgetPulls, PULL_RECORDS } from "../node/kubelet/images/pull-records.ts";
import { runtimePaths } from "../node/runtime/paths.ts";
import { importImages, listImages, untilCriKnows, waitForRuntime } from "../node/runtime/images.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { paths as pathsOf } from "./paths.ts";
import { machineSettings, mustReach, runtimeSocket } from "./tools.ts";

const USAGE = "Usage: coracle images import FILE…    archives of images (OCI layout or docker save; .tar, .tar.gz, .tar.zst)\n       coracle images list\n\n  --data-dir DIR    of which server or agent; default: the one that is installed here";
/** A first start unpacks the runtime and starts it: seconds, on a small machine many. */
const WAIT_MS = 60_000;

export async function images(argv: readonly string[]): Promise<number> {
  const [action, ...rest] = argv;
  if (action !== "list" && action !== "import") {
    console.log(USAGE);
    return action === "--help" || action === "-h" || action === "help" ? 0 : 2;
  }
  const { settings, files } = read(rest);
  if (action === "import" && files.length === 0) throw new ConfigError(`images import needs the archive to import\n${USAGE}`);
  for (const file of files) if (!existsSync(file)) throw new ConfigError(`${file}: no such file`);
  const paths = { binDir: runtimePaths(settings.dataDir).binDir, socket: runtimeSocket(settings) };
  mustReach(paths.socket);
  await waitForRuntime(paths, { clock: systemClock, waitMs: WAIT_MS, waiting: (what) => console.error(what) });
  if (action === "list") {
    for (const { name, digest, pinned } of await listImages(paths)) console.log(`${name}\t${digest}${pinned ? "\tpinned" : ""}`);
    return 0;
  }
  const cri = criClient({ socket: paths.socket, nowMs: systemClock.nowMs });
  const unknown: string[] = [];
  try {
    for (const file of files) {
      const names = await importImages(paths, file, { local: settings.containerRuntimeEndpoint !== undefined });
      unknown.push(...(await untilCriKnows(names, { cri, clock: systemClock, signal: new AbortController().signal })));
      forgetPulls(join(pathsOf(settings.dataDir).kubelet, PULL_RECORDS), names);
      for (const name of names) console.log(`imported ${name}`);
    }
  } finally {
    cri.close();
  }
  for (const name of unknown) console.error(`${name}: imported, but the runtime does not know it yet: pods may have to wait for it`);
  return 0;
}

function read(words: readonly string[]): { readonly settings: Settings; readonly files: readonly string[] } {
  const flags: string[] = [], files: string[] = [];
  for (let i = 0; i < words.length; i++) {
    if (words[i] === "--data-dir") flags.push(words[i]!, ...words.slice(++i, i + 1));
    else (words[i]!.startsWith("--") ? flags : files).push(words[i]!);
  }
  return { settings: machineSettings(flags), files };
}
