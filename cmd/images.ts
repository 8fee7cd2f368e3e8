/** `coracle images import FILE…`, `coracle images list` and `coracle images remove NAME…`. What is imported by hand stays until it is removed by hand: no registry might bring it back, so it is pinned. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../core/lifecycle/clock.ts";
import { type Cri, criClient } from "../node/cri/client.ts";
import { forgetPulls, PULL_RECORDS } from "../node/kubelet/images/pull-records.ts";
import { runtimePaths } from "../node/runtime/paths.ts";
import { importImages, listImages, PAUSE_IMAGE, untilCriKnows, waitForRuntime } from "../node/runtime/images.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { paths as pathsOf } from "./paths.ts";
import { machineSettings, mustReach, runtimeSocket } from "./tools.ts";

const USAGE = "Usage: coracle images import FILE…    archives of images (OCI layout or docker save; .tar, .tar.gz, .tar.zst); they stay until they are removed\n       coracle images list\n       coracle images remove NAME…    that no container uses\n\n  --data-dir DIR    of which server or agent; default: the one that is installed here";
/** A first start unpacks the runtime and starts it: seconds, on a small machine many. */
const WAIT_MS = 60_000;

export async function images(argv: readonly string[]): Promise<number> {
  const [action, ...rest] = argv;
  if (action !== "list" && action !== "import" && action !== "remove") {
    console.log(USAGE);
    return action === "--help" || action === "-h" || action === "help" ? 0 : 2;
  }
  const { settings, files: words } = read(rest);
  if (action !== "list" && words.length === 0) throw new ConfigError(`images ${action} needs the ${action === "import" ? "archive to import" : "name of an image"}\n${USAGE}`);
  if (action === "list" && words.length > 0) throw new ConfigError(`images list takes no names, and there is ${JSON.stringify(words[0])}\n${USAGE}`);
  if (action === "import") for (const file of words) if (!existsSync(file)) throw new ConfigError(`${file}: no such file`);
  const paths = { binDir: runtimePaths(settings.dataDir).binDir, socket: runtimeSocket(settings) };
  mustReach(paths.socket);
  await waitForRuntime(paths, { clock: systemClock, waitMs: WAIT_MS, waiting: (what) => console.error(what) });
  if (action === "list") {
    for (const { name, digest, pinned } of await listImages(paths)) console.log(`${name}\t${digest}${pinned ? "\tpinned" : ""}`);
    return 0;
  }
  const cri = criClient({ socket: paths.socket, nowMs: systemClock.nowMs });
  try {
    if (action === "remove") return await removed(words, cri);
    const unknown: string[] = [];
    for (const file of words) {
      const names = await importImages(paths, file, { pin: true });
      unknown.push(...(await untilCriKnows(names, { cri, clock: systemClock, signal: new AbortController().signal })));
      forgetPulls(join(pathsOf(settings.dataDir).kubelet, PULL_RECORDS), names);
      for (const name of names) console.log(`imported ${name}`);
    }
    for (const name of unknown) console.error(`${name}: imported, but the runtime does not know it yet: pods may have to wait for it`);
    return 0;
  } finally {
    cri.close();
  }
}

/** By any name the runtime knows them by. One that a container has been made of stays: it could not be made anew. */
async function removed(names: readonly string[], cri: Pick<Cri, "call">): Promise<number> {
  let failures = 0;
  for (const name of names) {
    const named = { image: { image: name } };
    const { image } = await cri.call("ImageService/ImageStatus", named);
    const { containers = [] } = await cri.call("RuntimeService/ListContainers", {});
    const user = image?.id && containers.find(({ image: of, image_ref: ref }) => [of?.image, ref].some((one) => one === image.id || image.repo_tags?.includes(one ?? "") || image.repo_digests?.includes(one ?? "")));
    if (!image?.id) console.error(`${name}: there is no such image here`);
    else if (image.repo_tags?.includes(PAUSE_IMAGE)) console.error(`${name}: every pod here is made of it`);
    else if (user) console.error(`${name}: the container ${user.metadata?.name ?? user.id} is made of it`);
    else {
      await cri.call("ImageService/RemoveImage", named);
      console.log(`removed ${name}`);
      continue;
    }
    failures++;
  }
  return failures === 0 ? 0 : 1;
}

function read(words: readonly string[]): { readonly settings: Settings; readonly files: readonly string[] } {
  const flags: string[] = [], files: string[] = [];
  for (let i = 0; i < words.length; i++) {
    if (words[i] === "--data-dir") flags.push(words[i]!, ...words.slice(++i, i + 1));
    else (words[i]!.startsWith("--") ? flags : files).push(words[i]!);
  }
  return { settings: machineSettings(flags), files };
}
