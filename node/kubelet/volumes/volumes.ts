/**
 * The volumes of pods: made before the first container starts, kept current while the pod lives, taken apart when its containers are gone.
 *
 * `prepare` is called at every sync and repeats nothing: a mount that is there (after a restart of the kubelet, say) is used as it is, files
 * are written only when they differ. A volume that fails is reported and tried again later and later.
 *
 * Source: kubernetes v1.36 pkg/volume/*, pkg/kubelet/volumemanager
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { PersistentVolume, Pod, Volume } from "../../../core/api/gen/core.v1.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import { settleEach } from "../../../core/lifecycle/settle-all.ts";
import { selectsNode } from "../admission.ts";
import { allContainers, podReference } from "../pod-spec.ts";
import { iscsiVolumes } from "./iscsi/iscsi-volumes.ts";
import { localDevices } from "./local-devices.ts";
import { AttachLimitReached, MountFailure, mountErrorText, UnusableVolume, VolumePending } from "./mount-failure.ts";
import { unmountNfs } from "./nfs.ts";
import { podDirectories, podDirectory, subPathsDirectory } from "./pod-directories.ts";
import type { ReadyVolume } from "./ready-volume.ts";
import { removeButMessages } from "./remove-but-messages.ts";
import { removeTree } from "./remove-tree.ts";
import { nestedMountPoints } from "./nested-mounts.ts";
import { type SetUpCall, setUpVolume, tmpfsMounter } from "./set-up.ts";
import type { VolumeDeps } from "./volume-deps.ts";
import { pluginOf } from "./volume-metrics.ts";

/** Some volume is not there yet; it is worth trying again in `retryMs`. */
export class VolumesNotReady extends Error {
  readonly retryMs: number;
  constructor(message: string, retryMs: number) {
    super(message);
    this.name = "VolumesNotReady";
    this.retryMs = retryMs;
  }
}

/** The node has no room for another volume, and had none for a while: the pod belongs elsewhere. */
export class AttachLimitExceeded extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AttachLimitExceeded";
  }
}

export interface Volumes {
  /** By name. Throws VolumesNotReady, AttachLimitExceeded. */
  prepare(pod: Pod, signal: AbortSignal): Promise<ReadonlyMap<string, ReadyVolume>>;
  /** Unmounts and removes everything of the pod: its containers must be gone. `keepMessages`: but for what they said at their end. Throws when something is still held. */
  release(podUid: string, options: { readonly keepMessages: boolean; readonly signal: AbortSignal }): Promise<void>;
  /** Ends what volumes without a pod have left on the node. */
  sweep(signal: AbortSignal): Promise<void>;
  /** Uids of pods that left something behind on this machine. */
  leftBehind(): Promise<readonly string[]>;
  /** Something has come that a volume may have failed for, of any pod or of this one: the next `prepare` tries again. */
  retryNow(podUid?: string): void;
  /** For the node's status: volumes that others attach. */
  inUse(): Promise<readonly string[]>;
}

const RETRY = { minMs: 500, maxMs: 122_000 };
/** What others have to do first is looked for this often, and after this long the user is told. */
const PENDING = { minMs: 100, maxMs: 2_000 };
const PENDING_MS_MAX = 123_000;
/** Volumes of a pod that are made at a time: a ConfigMap is a megabyte, and a pod may have thousands of it. */
const AT_ONCE = 16;

export function volumeManager(deps: VolumeDeps): Volumes {
  const { dataDir, mounts, clock, events, log, metrics } = deps;
  const devices = localDevices(deps);
  const iscsi = iscsiVolumes(deps);
  const tmpfs = tmpfsMounter(deps);
  const failures = new Map<string, { readonly count: number; readonly untilMs: number; readonly message: string }>(); // by uid/volume; by uptime, for clocks are set
  const known = new Set<string>(); // likewise: those that have been there; where the node's labels change they stay
  const pending = new Map<string, { readonly count: number; readonly toldMs: number }>(); // likewise

  async function one(pod: Pod, volume: Volume, { signal, nested }: Pick<SetUpCall, "signal" | "nested">): Promise<ReadyVolume> {
    const key = `${pod.metadata.uid}/${volume.name}`;
    const failed = failures.get(key);
    const startMs = clock.uptimeMs();
    if (failed && startMs < failed.untilMs) throw new VolumesNotReady(failed.message, failed.untilMs - startMs);
    let plugin = pluginOf(volume);
    const looked = (failed: boolean): void => { if (plugin !== undefined) metrics.setUp(pod.metadata.uid, volume, { plugin, seconds: (clock.uptimeMs() - startMs) / 1000, failed }); };
    try {
      const onBound = ({ metadata: { name }, spec }: Readonly<PersistentVolume>): void => {
        plugin = pluginOf(spec);
        if (!known.has(key) && !selectsNode(spec.nodeAffinity?.required, deps.node())) throw new MountFailure(`${spec.volumeMode === "Block" ? "MapVolume" : "MountVolume"}.NodeAffinity check`, name, new Error("no matching NodeSelectorTerms"));
      };
      const ready = await setUpVolume({ ...deps, devices, iscsi, tmpfs }, pod, volume, { signal, onBound, nested });
      known.add(key);
      looked(false);
      failures.delete(key);
      pending.delete(key);
      return ready;
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof VolumePending) throw wait(pod, volume, key, cause);
      looked(true);
      const count = (failed?.count ?? 0) + 1;
      const message = cause instanceof MountFailure || cause instanceof UnusableVolume ? cause.message : `MountVolume.SetUp failed for volume "${volume.name}" : ${mountErrorText(cause as Error)}`;
      const retryMs = backoffMs(count, RETRY);
      failures.set(key, { count, untilMs: clock.uptimeMs() + retryMs, message });
      events.event(podReference(pod), "Warning", cause instanceof MountFailure ? cause.reason : "FailedMount", message);
      log.warn("volume not ready", { pod: pod.metadata.name, namespace: pod.metadata.namespace, volume: volume.name, error: cause });
      throw new VolumesNotReady(message, retryMs);
    }
  }

  function wait(pod: Pod, { name }: Volume, key: string, cause: VolumePending): VolumesNotReady {
    const { count, toldMs } = pending.get(key) ?? { count: 0, toldMs: clock.uptimeMs() };
    const late = clock.uptimeMs() - toldMs > PENDING_MS_MAX;
    const problem = `unmounted volumes=[${name}], unattached volumes=[${name}], failed to process volumes=[]: context deadline exceeded`;
    if (late && cause instanceof AttachLimitReached) throw new AttachLimitExceeded(`Node has reached its volume attachment limit, rejecting pod. ${problem}`);
    if (late) events.event(podReference(pod), "Warning", "FailedMount", `Unable to attach or mount volumes: ${problem}`);
    pending.set(key, { count: count + 1, toldMs: late ? clock.uptimeMs() : toldMs });
    return new VolumesNotReady(cause.message, backoffMs(count + 1, PENDING));
  }

  async function release(podUid: string, keepMessages: boolean, signal: AbortSignal): Promise<void> {
    const podDir = podDirectory(dataDir, podUid);
    for (const table of [failures, pending, known]) for (const key of table.keys()) if (key.startsWith(`${podUid}/`)) table.delete(key);
    mounts.unmountAll(subPathsDirectory(podDir)); // first: what is bound there holds its volume, whose driver may take that away with the mount
    await deps.csi?.tearDown(podUid, signal);
    deps.expander.released(podUid);
    deps.tokens.forget(podUid);
    deps.certificates.forget(podUid);
    await unmountNfs(deps, podDir, signal);
    mounts.unmountAll(podDir);
    const left = mounts.list().filter(({ target }) => target.startsWith(`${podDir}/`));
    if (left.length > 0) throw new Error(`still mounted: ${left.map(({ target }) => target).join(", ")}`); // never delete through a mount
    await (keepMessages ? removeButMessages(podDir) : removeTree(podDir));
    await devices.sweep(signal);
    await iscsi.sweep(signal);
  }

  return {
    async prepare(pod, signal) {
      const podDir = podDirectory(dataDir, pod.metadata.uid);
      await mkdir(join(podDir, "volumes"), { recursive: true, mode: 0o750 });
      await mkdir(join(podDir, "plugins"), { recursive: true, mode: 0o750 });
      const used = usedVolumes(pod);
      const wanted = (pod.spec.volumes ?? []).filter(({ name }) => used.has(name));
      metrics.wanted(pod.metadata.uid, wanted);
      const nested = nestedMountPoints(pod);
      const results = await settleEach(wanted, AT_ONCE, async (volume): Promise<PromiseSettledResult<ReadyVolume>> => (await Promise.allSettled([one(pod, volume, { signal, nested })]))[0]);
      const problems = results.flatMap((result) => (result.status === "rejected" ? [result.reason as VolumesNotReady | AttachLimitExceeded] : []));
      signal.throwIfAborted();
      const exceeded = problems.find((problem) => problem instanceof AttachLimitExceeded);
      if (exceeded) throw exceeded;
      if (problems.length > 0) throw new VolumesNotReady(problems.map(({ message }) => message).join("; "), Math.min(...(problems as readonly VolumesNotReady[]).map(({ retryMs }) => retryMs)));
      return new Map(results.flatMap((result, i) => (result.status === "fulfilled" ? [[wanted[i]!.name, result.value] as const] : [])));
    },

    retryNow(podUid) { for (const key of failures.keys()) if (podUid === undefined || key.startsWith(`${podUid}/`)) failures.delete(key); },

    inUse: async () => [...((await deps.csi?.inUse()) ?? []), ...(await iscsi.inUse())],

    async sweep(signal) {
      await deps.csi?.sweep(signal);
      await devices.sweep(signal);
      await iscsi.sweep(signal);
    },

    async release(podUid, { keepMessages, signal }) {
      const startMs = clock.uptimeMs();
      let failed = true;
      try {
        await release(podUid, keepMessages, signal);
        failed = false;
      } finally {
        metrics.released(podUid, { seconds: (clock.uptimeMs() - startMs) / 1000, failed });
      }
    },

    leftBehind: async () => (await ifThere(readdir(podDirectories(dataDir)))) ?? [],

  };
}

/** By name. Volumes nobody mounts are not made. */
export function usedVolumes({ spec }: Pick<Pod, "spec">): ReadonlySet<string> {
  return new Set(allContainers(spec).flatMap(({ container: { volumeMounts = [], volumeDevices = [] } }) => [...volumeMounts, ...volumeDevices].map(({ name }) => name)));
}
