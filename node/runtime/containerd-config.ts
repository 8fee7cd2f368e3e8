/**
 * containerd's config.toml (version 3) for this node: everything private to the data directory, nothing that a small machine does not need.
 *
 * Source: containerd v2.1 docs/cri/config.md, `containerd config default`
 */
import type { RuntimePaths } from "./paths.ts";

export interface ContainerdSettings {
  readonly pauseImage: string;
  readonly snapshotter: "overlayfs" | "native";
  /** Without CAP_SYS_RESOURCE a negative oom_score_adj fails every pod. */
  readonly canLowerOomScore: boolean;
  readonly hasApparmor: boolean;
  readonly logLevel: "debug" | "info" | "warn" | "error";
  /** CNI plugins: the bundle's, and those that other software has installed. */
  readonly cniBinDirs: readonly string[];
  readonly cniConfDir: string;
  /** As Go writes durations: how long exec, attach and port-forward may be silent. Absent: containerd's 4 hours. */
  readonly streamIdleTimeout?: string | undefined;
  /** By host: registries.ts. */
  readonly registryAuths?: ReadonlyMap<string, Readonly<Record<string, string>>> | undefined;
}

/** Not of use here: other snapshotters, tracing, NRI (a socket at a fixed path), a poller that restarts containers of `ctr`. */
const DISABLED = [
  "io.containerd.snapshotter.v1.blockfile", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.erofs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.differ.v1.erofs", "io.containerd.internal.v1.tracing", "io.containerd.tracing.processor.v1.otlp", "io.containerd.nri.v1.nri", "io.containerd.monitor.container.v1.restart",
];

type Value = string | number | boolean | readonly string[];

export function renderContainerdConfig(paths: RuntimePaths, settings: ContainerdSettings): string {
  const runtime = `plugins.'io.containerd.cri.v1.runtime'`;
  const images = `plugins.'io.containerd.cri.v1.images'`;
  const tables: readonly (readonly [name: string, values: Readonly<Record<string, Value>>])[] = [
    ["", {
      version: 3, root: paths.root, state: paths.state, temp: `${paths.agent}/containerd-tmp`, disabled_plugins: DISABLED,
      oom_score: settings.canLowerOomScore ? -999 : 0, // as the kubelet: the last to go
    }],
    ["grpc", { address: paths.socket }],
    ["ttrpc", { address: `${paths.socket}.ttrpc` }],
    ["debug", { level: settings.logLevel }],
    [images, {
      snapshotter: settings.snapshotter,
      use_local_image_pull: true, image_pull_with_sync_fs: true, // an image that is there after a power cut is there whole; the transfer service cannot yet promise that
    }],
    [`${images}.pinned_images`, { sandbox: settings.pauseImage }],
    [`${images}.registry`, { config_path: paths.registryDir }],
    ...[...(settings.registryAuths ?? [])].map(([host, auth]) => [`${images}.registry.configs.${JSON.stringify(host)}.auth`, auth] as const),
    [runtime, {
      netns_mounts_under_state_dir: true, enable_unprivileged_ports: true, enable_unprivileged_icmp: true,
      restrict_oom_score_adj: !settings.canLowerOomScore, disable_apparmor: !settings.hasApparmor,
    }],
    [`${runtime}.cni`, { bin_dirs: settings.cniBinDirs, conf_dir: settings.cniConfDir, use_internal_loopback: true }],
    [`${runtime}.containerd`, { default_runtime_name: "runc" }],
    [`${runtime}.containerd.runtimes.runc`, { runtime_type: "io.containerd.runc.v2" }],
    [`${runtime}.containerd.runtimes.runc.options`, { BinaryName: `${paths.binDir}/runc`, Root: paths.runcRoot, SystemdCgroup: false }],
    ["plugins.'io.containerd.grpc.v1.cri'", { stream_server_address: "127.0.0.1", stream_server_port: "0", ...(settings.streamIdleTimeout === undefined ? {} : { stream_idle_timeout: settings.streamIdleTimeout }) }],
    ["plugins.'io.containerd.image-verifier.v1.bindir'", { bin_dir: `${paths.agent}/etc/containerd/image-verifier` }],
    ["plugins.'io.containerd.internal.v1.opt'", { path: `${paths.agent}/containerd-opt` }],
    ["plugins.'io.containerd.monitor.task.v1.cgroups'", { no_prometheus: true }],
  ];
  return tables.map(([name, values]) => [...(name === "" ? [] : [`[${name}]`]), ...Object.entries(values).map(([key, value]) => `${key} = ${toml(value)}`)].join("\n")).join("\n\n").concat("\n");
}

/** JSON's strings, numbers and booleans are TOML's. */
function toml(value: Value): string {
  return Array.isArray(value) ? `[${value.map((item) => JSON.stringify(item)).join(", ")}]` : JSON.stringify(value);
}
