/** What of a node is the operating system's: node-platform.linux.ts, node-platform.windows.ts. */
import type { Client } from "../core/client/client.ts";
import type { Events } from "../core/client/events.ts";
import type { Informers } from "../core/client/informer-factory.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import type { Cri } from "../node/cri/client.ts";
import type { MachineInfo } from "../node/os/machine.ts";
import type { Mounts } from "../node/os/mount.ts";
import type { KubeletSettings } from "../node/kubelet/settings.ts";
import type { Settings } from "./config/flags.ts";
import type { ThisNode } from "./node-identity.ts";
import type { Paths } from "./paths.ts";

export interface PlatformOptions {
  readonly settings: Settings;
  readonly paths: Paths;
  readonly node: ThisNode;
  readonly client: Client;
  readonly informers: Informers;
  readonly mounts: Mounts;
  readonly machine: MachineInfo;
  readonly kubelet: Pick<KubeletSettings, "imageServiceEndpoint" | "runtimeTimeoutMs" | "streamIdleMs">;
  /** The pod's directory is still there. */
  readonly isPodHere: (uid: string) => boolean;
  /** The pods' bridge has its addresses. Nobody tells where there is none. */
  readonly onBridge: () => Promise<void>;
  readonly events: Events;
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Log;
}

export interface NodePlatform {
  readonly cri: Cri;
  /** The container runtime, or what the node needs beside one that somebody else runs. */
  readonly runtime: readonly Runnable[];
  /** `problem`: why there is none yet. */
  readonly network: Runnable & { readonly problem?: (() => string | undefined) | undefined };
  readonly proxy: Runnable;
  /** What may pass: NetworkPolicies, unless somebody else enforces them, and nothing from elsewhere to the loopback. */
  readonly policies: readonly Runnable[];
}
