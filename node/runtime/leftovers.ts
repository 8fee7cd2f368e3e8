/**
 * What a container runtime leaves on a machine when it is only stopped, and how to remove it: containers and their shims, containerd, mounts, network namespaces,
 * cgroups, sockets. For `coracle reset` and for tests; installers/linux/uninstall.sh does the same for a machine whose `coracle` does not run.
 *
 * Every step works on what it finds, so it can be repeated, and a half-started node is removed as well. The data directory's files stay.
 */
import { existsSync, readdirSync, readFileSync, rmdirSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Log } from "../../core/observe/log.ts";
import { exec } from "../os/exec.ts";
import type { Mounts } from "../os/mount.ts";
import { stopContainerd } from "./containerd.ts";
import type { RuntimePaths } from "./paths.ts";
import { commandLines, identify, isAlive, type ProcessIdentity, signalProcess } from "./process-identity.ts";

interface Deps { readonly mounts: Mounts; readonly clock: Clock; readonly log: Log }

const CGROUPS = "/sys/fs/cgroup";
/** Fixed in containerd and libcni; see paths.ts. */
const SHIM_SOCKETS = "/run/containerd/s", CNI_RESULTS = "/var/lib/cni/results";
/** Removed when nobody has anything in them; inner ones first. */
const FIXED_DIRECTORIES = [SHIM_SOCKETS, "/run/containerd/fifo", "/run/containerd", CNI_RESULTS, "/var/lib/cni"];
const END_TIMEOUT_MS = 10_000;

/** Removes it all and returns one line for each thing removed. `cgroupRoots`: the kubelet's cgroups, as paths below a hierarchy. */
export async function removeLeftovers(paths: RuntimePaths, { cgroupRoots }: { cgroupRoots: readonly string[] }, { mounts, clock, log }: Deps): Promise<string[]> {
  const removed: string[] = [];
  const containerd = await stopContainerd(paths.processFile, { clock, log }); // first: it would start again what is missing
  if (containerd) removed.push(`process ${containerd.pid} (containerd)`);
  const containers = containerIds(paths);
  for (const { namespace, id } of containers) {
    await exec(join(paths.binDir, "runc"), ["--root", join(paths.runcRoot, namespace), "delete", "--force", id]).catch((error: unknown) => log.warn("runc cannot remove a container", { id, error }));
    removed.push(`container ${id}`);
  }
  const processes = ownProcesses(paths);
  await end(processes.map(({ identity }) => identity), clock);
  removed.push(...processes.map(({ identity, what }) => `process ${identity.pid} (${what})`));
  removed.push(...mounts.unmountAll(paths.agent).map((target) => `mount ${target}`));
  for (const root of cgroupRoots) removed.push(...(await removeCgroups(root, clock)).map((path) => `cgroup ${path}`));
  removed.push(...(await removeFixedFiles(containers.map(({ id }) => id))));
  for (const directory of [paths.run, paths.runcRoot]) rmSync(directory, { recursive: true, force: true });
  return removed;
}

/** Containers that runc knows of: <root>/<namespace>/<id>. */
function containerIds({ runcRoot }: RuntimePaths): { namespace: string; id: string }[] {
  return names(runcRoot).flatMap((namespace) => names(join(runcRoot, namespace)).map((id) => ({ namespace, id })));
}

/** containerd and shims of this data directory, by their command lines: both name a path below it. */
function ownProcesses(paths: RuntimePaths): { identity: ProcessIdentity; what: string }[] {
  return commandLines().flatMap(({ pid, args }) => {
    const isShim = /(^|\/)containerd-shim-runc-v2$/.test(args[0] ?? "") && args.includes(paths.socket);
    const isContainerd = /(^|\/)containerd$/.test(args[0] ?? "") && args.includes(paths.config);
    const identity = isShim || isContainerd ? identify(pid) : undefined;
    return identity ? [{ identity, what: isShim ? "containerd-shim" : "containerd" }] : [];
  });
}

async function end(processes: readonly ProcessIdentity[], clock: Clock): Promise<void> {
  for (const process of processes) signalProcess(process, "SIGKILL");
  await until(() => !processes.some(isAlive), clock);
}

/** Kills what is in the cgroup `root` of every hierarchy, then removes it, deepest first. */
async function removeCgroups(root: string, clock: Clock): Promise<string[]> {
  const hierarchies = existsSync(join(CGROUPS, "cgroup.controllers")) ? [CGROUPS] : names(CGROUPS).map((name) => join(CGROUPS, name)).filter((path) => statSync(path).isDirectory());
  const removed: string[] = [];
  for (const top of hierarchies.map((hierarchy) => join(hierarchy, root)).filter((path) => existsSync(path))) {
    const tree = cgroupTree(top);
    await until(() => {
      const pids = tree.flatMap((path) => readFileSync(join(path, "cgroup.procs"), "utf8").split("\n").filter((pid) => pid !== ""));
      for (const pid of pids) {
        const identity = identify(Number(pid));
        if (identity) signalProcess(identity, "SIGKILL");
      }
      return pids.length === 0;
    }, clock);
    for (const path of tree.toReversed()) rmdirSync(path);
    removed.push(top);
  }
  return removed;
}

function cgroupTree(top: string): string[] {
  return [top, ...readdirSync(top, { withFileTypes: true }).filter((entry) => entry.isDirectory()).flatMap((entry) => cgroupTree(join(top, entry.name)))];
}

async function removeFixedFiles(ids: readonly string[]): Promise<string[]> {
  const sockets: string[] = [];
  for (const path of names(SHIM_SOCKETS).map((name) => join(SHIM_SOCKETS, name))) if (await isDead(path)) sockets.push(path);
  const results = names(CNI_RESULTS).filter((name) => ids.some((id) => name.includes(id))).map((name) => join(CNI_RESULTS, name));
  for (const file of [...sockets, ...results]) rmSync(file, { force: true });
  const empty = FIXED_DIRECTORIES.filter((directory) => existsSync(directory) && names(directory).length === 0 && rmdir(directory));
  return [...sockets, ...results, ...empty].map((file) => `file ${file}`);
}

function rmdir(directory: string): true {
  rmdirSync(directory);
  return true;
}

/** A socket that nobody listens on: its shim is gone, whoever's it was. Those of other nodes on this machine answer. */
function isDead(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once("connect", () => resolve(false)).once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
    socket.once("connect", () => socket.destroy());
  });
}

async function until(isTrue: () => boolean, clock: Clock): Promise<void> {
  const never = new AbortController().signal;
  for (const deadlineMs = clock.uptimeMs() + END_TIMEOUT_MS; !isTrue() && clock.uptimeMs() < deadlineMs;) await clock.sleep(20, never);
}

function names(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
