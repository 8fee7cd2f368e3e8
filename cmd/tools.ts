/** kubectl and ctr: the bundled programs, told where this machine's cluster and runtime are. */
import { accessSync, constants, existsSync, lstatSync, mkdirSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { pinoLog } from "../core/observe/log.ts";
import { runtimePaths, WINDOWS_PIPE } from "../node/runtime/paths.ts";
import { unpackBundle, waitForUnpacking } from "../node/runtime/unpack.ts";
import { nodeBundle } from "./assets.ts";
import { ConfigError, readText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { installedSettings } from "./config/installed.ts";

export const kubectl = (argv: readonly string[]): Promise<number> => {
  const { writeKubeconfig } = machineSettings();
  const ours = process.env["KUBECONFIG"] || hasFlag(argv, "--kubeconfig") || !existsSync(writeKubeconfig) ? {} : { KUBECONFIG: writeKubeconfig };
  return run("kubectl", argv, ours);
};

export const ctr = (argv: readonly string[]): Promise<number> => {
  const address = hasFlag(argv, "--address") || hasFlag(argv, "-a") ? [] : ["--address", runtimeSocket(machineSettings())];
  const namespace = hasFlag(argv, "--namespace") || hasFlag(argv, "-n") ? [] : ["--namespace", "k8s.io"];
  return run("ctr", [...address, ...namespace, ...argv], {});
};

/** What the server or agent of this machine was told. `argv`: flags of `coracle server` that go before it. */
export function machineSettings(argv: readonly string[] = []) {
  return installedSettings({ argv, env: process.env, readFile: readText });
}

/** Where the node's container runtime listens. */
export function runtimeSocket({ dataDir, containerRuntimeEndpoint }: Pick<Settings, "dataDir" | "containerRuntimeEndpoint">, platform: NodeJS.Platform = process.platform): string {
  return containerRuntimeEndpoint?.replace(/^unix:\/\//, "") ?? (platform === "win32" ? WINDOWS_PIPE : runtimePaths(dataDir).socket);
}

/** Throws ConfigError where this user may not look: what is there would pass for missing. */
export function mustReach(path: string, access: (path: string, mode: number) => void = accessSync): void {
  try {
    access(path, constants.R_OK);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EACCES") throw new ConfigError(`${path}: this user may not read it; run this as root`);
  }
}

function hasFlag(argv: readonly string[], name: string): boolean {
  return argv.some((word) => word === name || word.startsWith(`${name}=`));
}

async function run(name: string, argv: readonly string[], env: Record<string, string>): Promise<number> {
  const child = Bun.spawn([await toolPath(name), ...argv], { stdio: ["inherit", "inherit", "inherit"], env: { ...process.env, ...env } });
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  return child.exited;
}

/** The program in the data directory, where the node unpacks it; for who may not write there, or where nothing is installed, in a directory of their own. */
async function toolPath(name: string): Promise<string> {
  const { dataDir } = machineSettings();
  const { agent, binDir } = runtimePaths(dataDir);
  const installed = join(binDir, name);
  if (existsSync(installed)) return installed;
  const asset = nodeBundle();
  if (!asset) throw new ConfigError(`this build of coracle has no ${name} for this machine`);
  const home = isWritable(dataDir) ? agent : cacheDirectory(process.env, { home: homedir, temporary: tmpdir(), uid: process.getuid?.() });
  const log = pinoLog({ level: "warn", write: (line) => void process.stderr.write(line) });
  await waitForUnpacking({ asset, agentDir: home }, { sleep: Bun.sleep, told: () => console.error("the node components are being unpacked: this waits for them") });
  await unpackBundle({ asset, agentDir: home, log });
  return join(home, "current", "bin", name);
}

/** Where a user's own copy of the programs is. Who has no home has it where everybody may write, in a directory that is nobody else's: what lies there is run. Throws ConfigError. */
export function cacheDirectory({ XDG_CACHE_HOME, HOME }: Readonly<Record<string, string | undefined>>, { home, temporary, uid }: { readonly home: () => string; readonly temporary: string; readonly uid: number | undefined }): string {
  if (XDG_CACHE_HOME) return join(XDG_CACHE_HOME, "coracle");
  try {
    return join(HOME || home(), ".cache", "coracle");
  } catch {
    const own = join(temporary, `coracle-cache-${uid ?? 0}`);
    mkdirSync(own, { recursive: true, mode: 0o700 });
    const found = lstatSync(own);
    if (uid !== undefined && (!found.isDirectory() || found.uid !== uid || (found.mode & 0o022) !== 0)) throw new ConfigError(`${own} is not this user's alone: set HOME to a directory that is`);
    return own;
  }
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false; // not there, or not for this user: either way not the place
  }
}
