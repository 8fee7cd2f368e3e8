/**
 * A container runtime that somebody else runs (--container-runtime-endpoint). Of the bundle, the node needs all but the runtime itself: nft, ip, ctr, kubectl,
 * and the CNI plug-ins of the pod network. Those are put where the runtime looks for plug-ins; what it has there stays.
 *
 *   <dir>/bridge, host-local, portmap   scripts that start <agent>/current/cni/… with the bundle's tools at hand
 *   <dir>/loopback                      a script (loopback-plugin.txt): our own runtime has no need of one
 *
 * containerd 1.6 does not say that the image of its sandboxes is pinned; the garbage collection of images is told so here.
 */
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { aborted } from "../../core/lifecycle/aborted.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Log } from "../../core/observe/log.ts";
import { type Cri, CriError } from "../cri/client.ts";
import type { ListImagesResponse, StatusResponse } from "../cri/gen/runtime.v1.ts";
import loopback from "./loopback-plugin.txt" with { type: "text" };
import { runtimePaths } from "./paths.ts";
import { type BundleAsset, type UnpackArchive, unpackBundle } from "./unpack.ts";

export interface ExternalRuntimeOptions {
  readonly dataDir: string;
  /** Where it listens. */
  readonly endpoint: string;
  /** The node components; a build without them leaves it to the machine to have those programs. */
  readonly asset: BundleAsset | undefined;
  readonly unpack?: UnpackArchive | undefined;
}

/** CNI's own default, and that of containerd. */
const CNI_BIN_DIR = "/opt/cni/bin";
const LOOPBACK = "loopback";
/** Then it is told that it is waited for. */
const ANSWER_MS_MAX = 10_000;
/** Of what refuses at once, as containerd does while it starts. */
const LOOK_PERIOD_MS = 100;

interface Directories { readonly cniBinDir: string; readonly binDir: string }

export interface ExternalRuntime extends Runnable {
  /** Where it looks for the network's configuration, as all do. */
  readonly cniConfDir: string;
  /** The runtime uses our plug-in of that name, not one of its own. Known once ready. */
  hasOurs(plugin: string): boolean;
  readonly cri: Cri;
}

/** Ready when the runtime has answered. */
export function externalRuntime({ dataDir, endpoint, asset, unpack }: ExternalRuntimeOptions, { cri, clock, log }: { readonly cri: Cri; readonly clock: Pick<Clock, "sleep" | "uptimeMs">; readonly log: Log }): ExternalRuntime {
  const { agent, binDir, cniBinDir } = runtimePaths(dataDir);
  let directory = CNI_BIN_DIR;
  let sandboxImage = "";
  return {
    name: "container-runtime", cniConfDir: "/etc/cni/net.d",
    cri: pinning(cri, () => sandboxImage),
    hasOurs: (plugin) => fileTextSync(join(directory, plugin)) === pluginScript(plugin, { cniBinDir, binDir }),
    async run(signal, ready) {
      if (asset) {
        await unpackBundle({ asset, agentDir: agent, log, unpack });
        const status = await answerOf({ cri, endpoint, clock, log }, signal);
        if (status === undefined) return;
        const { info = {} } = status;
        const config = decodeConfig(info["config"]);
        directory = cniBinDirOf(config);
        sandboxImage = config.sandboxImage ?? "";
        const installed = installPlugins(directory, { cniBinDir, binDir });
        if (installed.length > 0) log.info("CNI plug-ins installed for the container runtime", { directory, installed });
      }
      ready();
      await aborted(signal);
    },
  };
}

/**
 * What the runtime says of itself, as soon as it does; undefined: told to stop before that. One that is started later is waited for, and so is one whose socket is called something else, by
 * mistake: now and then it is told that nobody answers.
 */
export async function answerOf({ cri, endpoint, clock, log }: { readonly cri: Pick<Cri, "call">; readonly endpoint: string; readonly clock: Pick<Clock, "sleep" | "uptimeMs">; readonly log: Log }, signal: AbortSignal): Promise<StatusResponse | undefined> {
  let toldMs = clock.uptimeMs();
  for (;;) {
    const askedMs = clock.uptimeMs();
    try {
      return await cri.call("RuntimeService/Status", { verbose: true }, { signal, timeoutMs: ANSWER_MS_MAX });
    } catch (error) {
      if (signal.aborted) return undefined;
      if (error instanceof CriError && error.code === "Unimplemented") throw new Error(`what listens at ${endpoint} (--container-runtime-endpoint) speaks no CRI: containerd does unless /etc/containerd/config.toml has "cri" among its disabled_plugins, as Docker's packages do`, { cause: error });
      if (!(error instanceof CriError) || !isToCome(error)) throw error;
      if (error.code === "DeadlineExceeded" || askedMs - toldMs >= ANSWER_MS_MAX) {
        log.warn("the container runtime does not answer yet and is waited for: it has to run, and --container-runtime-endpoint to be its socket", { endpoint, error: error.message });
        toldMs = clock.uptimeMs();
      }
      await clock.sleep(LOOK_PERIOD_MS, signal);
    }
  }
}

/** Nobody is there yet; or containerd is, and CRI has not found its containers again. Source: containerd v2.1 internal/cri/instrument/instrumented_service.go, v1.7 pkg/cri/instrument (checkInitialized, without a code) */
function isToCome({ code, detail }: CriError): boolean { return code === "DeadlineExceeded" || code === "Unavailable" || (code === "Unknown" && detail === "server is not initialized yet"); }

/** What containerd tells of its configuration, in its versions 1 and 2. */
interface RuntimeConfig {
  readonly cni?: { readonly binDirs?: readonly string[]; readonly binDir?: string };
  readonly sandboxImage?: string;
}

/** Other runtimes tell nothing, or in a language of their own. */
export function decodeConfig(text = ""): RuntimeConfig {
  try {
    return JSON.parse(text) as RuntimeConfig;
  } catch (error) {
    if (error instanceof SyntaxError) return {};
    throw error;
  }
}

export function cniBinDirOf({ cni = {} }: RuntimeConfig): string {
  return cni.binDirs?.[0] ?? (cni.binDir || CNI_BIN_DIR);
}

/** The same, but that lists of images show `image` as pinned. */
export function pinning(cri: Cri, image: () => string): Cri {
  const pinned = ({ images = [], ...rest }: ListImagesResponse): ListImagesResponse => ({ ...rest, images: images.map((one) => (one.repo_tags?.includes(image()) ? { ...one, pinned: true } : one)) });
  return {
    ...cri,
    call: async (method, request, call) => {
      const answer = await cri.call(method, request, call);
      return method === "ImageService/ListImages" ? pinned(answer as ListImagesResponse) as typeof answer : answer;
    },
  };
}

/** With the tools that a plug-in starts (portmap: nft). */
function pluginScript(name: string, { cniBinDir, binDir }: Directories): string {
  return name === LOOPBACK ? loopback.replace("TOOLS", quoted(binDir)) : `#!/bin/sh\nPATH=${quoted(binDir)}:$PATH exec ${quoted(join(cniBinDir, name))}\n`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/** Puts those in `directory` that are not there, and returns their names. */
export function installPlugins(directory: string, directories: Directories): string[] {
  mkdirSync(directory, { recursive: true });
  const missing = [...readdirSync(directories.cniBinDir), LOOPBACK].filter((name) => !existsSync(join(directory, name)));
  for (const name of missing) {
    const path = join(directory, name);
    writeFileSync(`${path}.new`, pluginScript(name, directories));
    chmodSync(`${path}.new`, 0o755);
    renameSync(`${path}.new`, path);
  }
  return missing;
}
