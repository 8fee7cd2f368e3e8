/**
 * The node's container runtime: the bundled containerd, unpacked, configured, supervised, with its images.
 *
 *   const runtime = containerRuntime({ dataDir, asset }, { cri, mounts, clock, log });
 *   await runAll([runtime, …kubelet], signal);          // ready: CRI answers, the pause image and the archives in agent/images are there
 *
 *   paths.ts              what is where
 *   unpack.ts             <agent>/bin-<hash>, once per version (tar-reader.ts)
 *   containerd-config.ts  config.toml; host-facts.ts what it must be told about the machine
 *   registries.ts         mirrors, certificates and credentials of registries
 *   containerd.ts         start, take over, restart; it outlives `coracle`
 *   stray-shims.ts        ends shims that containerd has forgotten
 *   stray-processes.ts    ends what is left of containers that have ended
 *   unread-stdin.ts       takes what commands have not read when they end
 *   images.ts             images from archives
 *
 * What all this leaves on a machine, installers/linux/uninstall.sh removes.
 * Linux only: on Windows containerd is installed by itself and named by --container-runtime-endpoint.
 */
import { createHash } from "node:crypto";
import { chmodSync, existsSync, mkdirSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { fileTextSync } from "../../core/lifecycle/file-text.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import { settleAll } from "../../core/lifecycle/settle-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Cri } from "../cri/client.ts";
import { hasApparmor } from "../os/apparmor.ts";
import { bootId } from "../os/boot-id.ts";
import { mountOf } from "../os/mount-table.ts";
import type { Mounts } from "../os/mount.ts";
import { type ContainerdSettings, renderContainerdConfig } from "./containerd-config.ts";
import { stopContainerd, superviseContainerd } from "./containerd.ts";
import { untilCriAnswers } from "./cri-answers.ts";
import { removeDamagedBlobs, removeDamagedUuid } from "./damaged-blobs.ts";
import { removeDamagedDatabases, removeUnusableDatabases } from "./damaged-databases.ts";
import { removeDeadSockets } from "./dead-sockets.ts";
import { canLowerOomScore, canOverlay } from "./host-facts.ts";
import { ensureHostsFile } from "./hosts-file.ts";
import { importDirectory, importImages, PAUSE_IMAGE, untilCriKnows } from "./images.ts";
import { endShimsThatMissedExits } from "./missed-exits.ts";
import { type RuntimePaths, runtimePaths } from "./paths.ts";
import { hostsFiles, NO_REGISTRIES, type Registries, registryAuths, writeHostsFiles } from "./registries.ts";
import { endStrayProcesses } from "./stray-processes.ts";
import { endStrayShims } from "./stray-shims.ts";
import { type BundleAsset, type UnpackArchive, unpackBundle } from "./unpack.ts";
import { readUnreadStdin } from "./unread-stdin.ts";
import { wholeComponents } from "./whole-components.ts";

export interface ContainerRuntimeOptions {
  readonly dataDir: string;
  /** The node components (cmd/assets.ts). */
  readonly asset: BundleAsset;
  /** Default: this process does it. */
  readonly unpack?: UnpackArchive;
  /** Where the CNI configuration is looked for. Default: <agent>/etc/cni/net.d. */
  readonly cniConfDir?: string;
  /** Absent: containerd's own. */
  readonly streamIdleTimeout?: string | undefined;
  /** Where CNI plugins of other software may be. Default: /opt/cni/bin. */
  readonly cniBinDirs?: readonly string[];
  /** Mirrors, certificates and credentials of registries. */
  readonly registries?: Registries | undefined;
  /** Given to containerd: proxies for pulling images. PATH is set here. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly logLevel?: ContainerdSettings["logLevel"];
}

export interface ContainerRuntimeDeps {
  /** A client of `runtimePaths(dataDir).socket`; used to see that the runtime answers. */
  readonly cri: Pick<Cri, "call">;
  readonly mounts: Mounts;
  readonly clock: Clock;
  readonly log: Log;
}

export interface ContainerRuntime extends Runnable {
  /** While archives of images are being imported: the end of the one that is. */
  importing(): Promise<void> | undefined;
  readonly paths: RuntimePaths;
  readonly socketPath: string;
  readonly binDir: string;
  readonly cniBinDir: string;
  readonly cniConfDir: string;
  /** containerd's and its plugins' PATH: the bundle's tools before the machine's. */
  readonly searchPath: string;
}

/** After so many in a row that did not stay up it is looked for whom to blame: a machine that is busy, or short of memory, has one or two. */
const FAILURES_OF_COMPONENTS = 2, FAILURES_OF_DATABASES = 3;

const MACHINE_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

export function containerRuntime(options: ContainerRuntimeOptions, { cri, mounts, clock, log }: ContainerRuntimeDeps): ContainerRuntime {
  const { asset, registries = NO_REGISTRIES, environment = {}, logLevel = "info", cniBinDirs = ["/opt/cni/bin"] } = options;
  const paths = runtimePaths(realDirectory(options.dataDir));
  const cniConfDir = options.cniConfDir ?? paths.cniConfDir;
  const searchPath = `${paths.binDir}:${MACHINE_PATH}`;
  let importing: Promise<void> | undefined, archive: Promise<void> | undefined;

  /** Of a file system that runs no programs none would start, and say no more than that it may not. */
  function mustRunPrograms(): void {
    const mount = mountOf(mounts.list(), realDirectory(paths.agent));
    if (mount?.options.includes("noexec")) throw new Error(`${paths.agent} is on a file system that is mounted noexec, and nothing can be run from there: mount ${mount.target} with exec, or have the data somewhere else (--data-dir)`);
  }

  /** What a node that was switched off left: its mounts and processes are gone, only the notes about them are here. */
  function forgetLastBoot(): void {
    const now = bootId();
    if (fileTextSync(paths.bootFile) === now) return;
    const stillMounted = mounts.list().some(({ target }) => target.startsWith(`${paths.run}/`));
    if (!stillMounted) {
      for (const directory of [paths.state, paths.runcRoot]) rmSync(directory, { recursive: true, force: true });
      removeDamagedDatabases(paths, log);
    }
    rmSync(paths.bootFile, { force: true }); // its sectors may be bad
    writeFileSync(paths.bootFile, now);
  }

  function prepare(): string {
    ensureHostsFile("/etc/hosts", log);
    for (const directory of [dirname(paths.config), paths.registryDir, cniConfDir, paths.imagesDir, paths.root, dirname(paths.logFile), paths.run]) mkdirSync(directory, { recursive: true });
    for (const directory of [dirname(paths.agent), paths.agent, paths.run]) makeSearchable(directory);
    forgetLastBoot();
    removeDamagedUuid(paths, log);
    writeHostsFiles(paths.registryDir, hostsFiles(registries));
    const settings: ContainerdSettings = {
      pauseImage: PAUSE_IMAGE, canLowerOomScore: canLowerOomScore(), hasApparmor: hasApparmor(), snapshotter: snapshotter(),
      logLevel, cniBinDirs: [paths.cniBinDir, ...cniBinDirs], cniConfDir, streamIdleTimeout: options.streamIdleTimeout, registryAuths: registryAuths(registries),
    };
    const config = renderContainerdConfig(paths, settings);
    if (fileTextSync(paths.config) !== config) {
      writeFileSync(`${paths.config}.new`, config, { mode: 0o600 });
      renameSync(`${paths.config}.new`, paths.config);
    }
    return config;
  }

  /** Chosen once: images unpacked for one are not found by the other. */
  function snapshotter(): "overlayfs" | "native" {
    const has = (name: string): boolean => existsSync(join(paths.root, `io.containerd.snapshotter.v1.${name}`, "metadata.db"));
    if (has("overlayfs")) return "overlayfs";
    if (has("native") || !canOverlay(paths.root, mounts)) {
      log.warn("no overlay file system here: images and containers take more space and time", { directory: paths.root });
      return "native";
    }
    return "overlayfs";
  }

  /** Beside all else: a gigabyte takes minutes on an SD card, in which nobody must take the node for dead. */
  async function importArchives(present: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
    const untilKnown = async (names: readonly string[]): Promise<void> => {
      const unknown = await untilCriKnows(names, { cri, clock, signal });
      if (unknown.length > 0) log.warn("containerd has not told CRI of images that it has imported", { images: unknown });
    };
    let imported = Promise.withResolvers<void>();
    archive = imported.promise;
    const next = (): void => {
      const { resolve } = imported;
      imported = Promise.withResolvers<void>();
      archive = imported.promise;
      resolve();
    };
    try {
      await importDirectory(paths, present, { log, signal, isBack: (stop) => comesBack({ cri, clock }, stop), imported: (names) => untilKnown(names).catch(() => undefined).finally(next) });
    } catch (error) {
      if (!signal.aborted) log.error("archives of images cannot be imported", { error });
    } finally {
      archive = undefined;
      imported.resolve();
    }
  }

  return {
    name: "container-runtime", importing: () => archive, paths, socketPath: paths.socket, binDir: paths.binDir, cniBinDir: paths.cniBinDir, cniConfDir, searchPath,
    async run(signal, ready) {
      mustRunPrograms();
      const unpacking = { asset, agentDir: paths.agent, log, unpack: options.unpack };
      await unpackBundle(unpacking);
      const components = wholeComponents(unpacking, { clock, log, restart: () => stopContainerd(paths.processFile, { clock, log }) });
      const config = prepare();
      const env = { ...environment, PATH: searchPath };
      const fingerprint = createHash("sha256").update(JSON.stringify([asset.hash, config, env])).digest("hex");
      const heal = async (failures: number, lines: readonly string[], stop: AbortSignal): Promise<void> => {
        removeDamagedDatabases(paths, log);
        if (failures === FAILURES_OF_DATABASES || failures === 2 * FAILURES_OF_DATABASES) removeUnusableDatabases(paths, { lines, isFirst: failures === FAILURES_OF_DATABASES }, log);
        else if (failures === FAILURES_OF_COMPONENTS) await components.mend(stop);
      };
      const over = new AbortController();
      const quit = AbortSignal.any([signal, over.signal]);
      const supervising = superviseContainerd({
        program: join(paths.binDir, "containerd"), configFile: paths.config, logFile: paths.logFile, processFile: paths.processFile, fingerprint, environment: env,
        heal,
        answers: (stop) => untilCriAnswers({ cri, clock }, stop),
        alive: (stop) => cri.call("RuntimeService/ListPodSandbox", { filter: { id: "none" } }, { signal: stop, timeoutMs: 0 }), // it has to look at all of them
        prepare: async (stop) => {
          await removeDamagedBlobs(paths, { log, signal: stop });
          const { images = [] } = await cri.call("ImageService/ListImages", {}, { signal: stop });
          const present = new Set(images.flatMap((image) => image.repo_tags ?? []));
          if (!present.has(PAUSE_IMAGE)) await untilCriKnows(await importImages(paths, join(paths.current, "images/pause.tar"), { pin: true, signal: stop }), { cri, clock, signal: stop });
          importing ??= importArchives(present, quit);
        },
      }, { clock, log }, signal, ready).finally(async () => {
        over.abort();
        await importing;
      });
      await settleAll([
        supervising, endStrayShims({ socket: paths.socket }, { clock, log }, quit), components.keep(quit),
        endShimsThatMissedExits({ socket: paths.socket }, { cri, clock, log }, quit), endStrayProcesses({ socket: paths.socket }, { cri, clock, log }, quit),
        removeDeadSockets({}, { clock, log }, quit), readUnreadStdin(paths, { clock, log }, quit),
      ]);
    },
  };
}

const BACK_MS_MAX = 60_000, LOOK_MS = 500;

/** Whether the runtime, which has failed at something, does not answer, and answers again within a minute. */
async function comesBack({ cri, clock }: Pick<ContainerRuntimeDeps, "cri" | "clock">, signal: AbortSignal): Promise<boolean> {
  const answers = (): Promise<boolean> => cri.call("RuntimeService/Version", {}, { signal, timeoutMs: LOOK_MS }).then(() => true, () => false);
  const startedMs = clock.uptimeMs();
  if (await answers()) return false;
  while (clock.uptimeMs() - startedMs < BACK_MS_MAX && !signal.aborted) {
    await clock.sleep(LOOK_MS, signal);
    if (await answers()) return true;
  }
  return false;
}

/** Users of user namespaces pass through to their volumes and root file systems; what must not be read has its own mode. */
function makeSearchable(directory: string): void {
  const mode = statSync(directory).mode & 0o7777;
  if ((mode & 0o111) !== 0o111) chmodSync(directory, mode | 0o111);
}

function realDirectory(path: string): string {
  mkdirSync(path, { recursive: true });
  return realpathSync(path);
}
