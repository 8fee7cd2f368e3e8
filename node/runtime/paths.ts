/**
 * Where the node keeps what belongs to its container runtime. Everything is below the data directory, so several nodes can run on one machine.
 *
 * containerd and runc have three fixed places of their own that cannot be moved: /run/containerd/s (the shims' sockets, named by a hash that differs between nodes),
 * /run/containerd/fifo and /var/lib/cni/results (named by container).
 */
import { join } from "node:path";

export interface RuntimePaths {
  /** The unpacked node components: a link to bin-<hash>, so that what containers remember of it survives an upgrade. */
  readonly current: string;
  readonly binDir: string;
  readonly cniBinDir: string;
  readonly socket: string;
  readonly config: string;
  readonly cniConfDir: string;
  /** hosts.toml per registry, read by containerd at each pull. */
  readonly registryDir: string;
  /** Images (and what belongs to them) on disk. */
  readonly root: string;
  /** What does not outlive a boot: running containers' bundles, mounts and network namespaces. */
  readonly state: string;
  readonly runcRoot: string;
  /** Archives put here by users are imported at start. */
  readonly imagesDir: string;
  readonly importedFile: string;
  readonly processFile: string;
  readonly bootFile: string;
  readonly logFile: string;
  readonly agent: string;
  readonly run: string;
}

/** Linux's limit for the path of a unix socket, without the final zero. */
const SOCKET_PATH_MAX = 107;

/** Where containerd for Windows, which is the machine's own, listens unless it is told otherwise. */
export const WINDOWS_PIPE = "npipe:////./pipe/containerd-containerd";

/** `dataDir` must be real. */
export function runtimeSocket(dataDir: string): string { return join(dataDir, "agent", "run", "containerd.sock"); }

/** `dataDir` must be real: what is mounted below it shows under its real path. */
export function runtimePaths(dataDir: string): RuntimePaths {
  const agent = join(dataDir, "agent");
  const run = join(agent, "run");
  const current = join(agent, "current");
  const socket = runtimeSocket(dataDir);
  if (Buffer.byteLength(`${socket}.ttrpc`) > SOCKET_PATH_MAX) throw new Error(`data directory ${dataDir}: its path is too long, ${socket}.ttrpc would exceed ${SOCKET_PATH_MAX} bytes. Choose a shorter --data-dir`);
  return {
    agent, run, current, socket,
    binDir: join(current, "bin"), cniBinDir: join(current, "cni"),
    config: join(agent, "etc/containerd/config.toml"), registryDir: join(agent, "etc/containerd/certs.d"), cniConfDir: join(agent, "etc/cni/net.d"),
    root: join(agent, "containerd"), state: join(run, "containerd"), runcRoot: join(run, "runc"),
    imagesDir: join(agent, "images"), importedFile: join(agent, "imported.json"),
    processFile: join(run, "containerd.json"), bootFile: join(run, "boot-id"), logFile: join(agent, "logs/containerd.log"),
  };
}
