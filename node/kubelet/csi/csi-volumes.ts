/**
 * CSI volumes on this node:
 *
 *   attached   by the attacher on the control plane, if the driver wants that: waited for
 *   staged     once for the node (NodeStageVolume), if the driver has that
 *   published  for each pod (NodePublishVolume), again and again if the driver wants that
 *
 * and back: unpublished when the pod's containers are gone, unstaged with the last pod. What has been begun is noted on disk first (vol_data.json), so
 * that a kubelet that was killed at any moment finds and ends it. All calls are idempotent by the CSI's word; those of one volume come one by one.
 *
 * Source: kubernetes v1.36 pkg/volume/csi, pkg/kubelet/volumemanager
 */
import { mkdir, stat, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { PersistentVolume, PersistentVolumeClaim, Pod, SecretReference } from "../../../core/api/gen/core.v1.ts";
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import { isNotFound } from "../../../core/api/meta/status-error.ts";
import type { Client } from "../../../core/client/client.ts";
import { CSI_DRIVERS, SECRETS, VOLUME_ATTACHMENTS } from "../../../core/client/resources.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import { RpcError } from "../../cri/rpc-client.ts";
import type { Mounts } from "../../os/mount.ts";
import { setVolumeOwnership } from "../volumes/atomic-writer.ts";
import { type ClaimExpander, wantedSize } from "../volumes/expand-claim.ts";
import { AttachLimitReached, MountFailure, VolumePending } from "../volumes/mount-failure.ts";
import type { TokenSource } from "../volumes/service-account-token.ts";
import { attachmentName, capabilityOf, checkLifecycle, type CsiVolume, type DriverFacts, groupOf, podInfo, publishTarget, stagingDirectory, volumeKey } from "./csi-volume.ts";
import type { CsiDriver, CsiDrivers } from "./drivers.ts";
import { growCsiVolume, UNCERTAIN } from "./expand.ts";
import { keyedTurns } from "./keyed-turns.ts";
import { directoriesIn, makeParent, readNote, removeNote, removeTarget, type VolumeNote, writeNote } from "./volume-note.ts";

export interface CsiVolumesDeps {
  readonly dataDir: string;
  readonly nodeName: string;
  readonly client: Client;
  readonly drivers: CsiDrivers;
  readonly mounts: Mounts;
  readonly tokens: TokenSource;
  readonly expander: ClaimExpander;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends what goes on in the background. */
  readonly signal: AbortSignal;
  /** A path of ours as drivers know it. */
  readonly known: (path: string) => string;
  /** status.volumesInUse changed. */
  readonly onInUse: () => void;
}

/** A claimed volume's objects; an inline volume has none. */
export interface Claimed { readonly claim: Readonly<PersistentVolumeClaim>; readonly volume: Readonly<PersistentVolume> }

export interface CsiVolumes {
  /** The path containers get. Repeats nothing that is done. Throws MountFailure, VolumePending. */
  setUp(pod: Pod, volume: CsiVolume, claimed: Claimed | undefined, signal: AbortSignal): Promise<string>;
  /** Everything of the pod: its containers are gone. Throws while a driver cannot do its part. */
  tearDown(podUid: string, signal: AbortSignal): Promise<void>;
  /** Ends what a kubelet that was killed has left staged. */
  sweep(signal: AbortSignal): Promise<void>;
  /** For the node's status. */
  inUse(): Promise<readonly string[]>;
  /** The driver may need no attaching any more: what is in use of it is then held by nobody. */
  reconsider(driver: Readonly<CSIDriver>): void;
  /** What the pod has published, by the name of the volume's object. */
  published(podUid: string): readonly { readonly volume: CsiVolume; readonly target: string; readonly claim: { readonly namespace: string; readonly claim: string } | undefined }[];
}

interface Published { readonly volume: CsiVolume; readonly target: string; readonly claim: { readonly namespace: string; readonly claim: string } | undefined; readonly republish: boolean }

const RETRY = { minMs: 500, maxMs: 122_000 };
/** As gRPC numbers it. */
const RESOURCE_EXHAUSTED = 8;

export function csiVolumes(deps: CsiVolumesDeps): CsiVolumes {
  const { dataDir, nodeName, client, drivers, mounts, tokens, log, known } = deps;
  const inTurn = keyedTurns();
  const users = new Map<string, Set<string>>(); // volume key → pods, from before their first call to after their last
  const attachable = new Set<string>(); // keys
  const staged = new Set<string>(); // keys, in this process's life
  const done = new Map<string, Map<string, Published>>(); // pod → specName →
  const exhausted = new Set<string>(); // VolumeAttachments the node has no room for; the cluster knows
  let adopted: Promise<void> | undefined;

  /** Who used what before we started. Once, before anything else. */
  async function adopt(): Promise<void> {
    for (const uid of await directoriesIn(join(dataDir, "pods"))) for (const { note } of await notesOf(uid)) claim(uid, keyOfNote(note), note.attachmentID !== undefined && note.attachmentID !== "");
  }

  function claim(podUid: string, key: string, isAttachable: boolean): void {
    users.set(key, (users.get(key) ?? new Set<string>()).add(podUid));
    if (attachable.has(key) === isAttachable) return;
    if (isAttachable) attachable.add(key);
    else attachable.delete(key);
    deps.onInUse();
  }

  function reconsider({ metadata: { name }, spec }: Readonly<CSIDriver>): void {
    if (spec.attachRequired ?? true) return;
    const held = [...attachable].filter((key) => key.startsWith(volumeKey({ driver: name, handle: "" })));
    for (const key of held) attachable.delete(key);
    if (held.length > 0) deps.onInUse();
  }

  /** Unstages what nobody uses any more, again and again until the driver has done it or a pod wants it. Pods that are gone do not wait for that. */
  async function unstageUntilDone(key: string): Promise<void> {
    for (let failures = 0; !deps.signal.aborted && !users.has(key); ) {
      try {
        await inTurn(key, async () => {
          if (users.has(key)) return;
          staged.delete(key); // whatever comes of it: the next one to use it stages it
          await unstage(key, deps.signal);
          if (attachable.delete(key)) deps.onInUse();
        });
        return;
      } catch (error) {
        log.warn("volume not unstaged, next try later", { volume: key, error });
        await deps.clock.sleep(backoffMs(++failures, RETRY), deps.signal);
      }
    }
  }

  const begin = (): Promise<void> => (adopted ??= adopt());

  async function setUp(pod: Pod, volume: CsiVolume, claimed: Claimed | undefined, signal: AbortSignal): Promise<string> {
    await begin();
    const key = volumeKey(volume);
    const claimName = claimed && { namespace: claimed.claim.metadata.namespace ?? "", claim: claimed.claim.metadata.name };
    const before = done.get(pod.metadata.uid)?.get(volume.specName);
    if (before && !before.republish && (claimed === undefined || wantedSize(claimed.claim, claimed.volume) === undefined)) return before.target;
    return await inTurn(key, async () => {
      const step = (name: string, block = name.replace("Mount", "Map")): string => (volume.block ? block : name);
      const driver = await attempt(step("MountVolume.SetUp"), volume, async () => withContext(volume.block ? "blockMapper.SetUpDevice failed to get CSI client" : "mounter.SetUpAt failed to get CSI client", () => drivers.get(volume.driver)));
      const facts: DriverFacts = { fineAccessModes: await driver.can("SINGLE_NODE_MULTI_WRITER", signal), mountsGroup: await driver.can("VOLUME_MOUNT_GROUP", signal) };
      if (before) {
        if (claimed) await deps.expander.inUse(growing(driver, volume, claimed, before.target, pod, facts, signal), signal);
        if (!before.republish) return before.target;
      }
      const object = await driverObject(volume.driver, signal);
      await attempt(step("MountVolume.SetUp"), volume, async () => checkLifecycle(volume, object));
      await attempt(step("MountVolume.SetUp", "MapVolume.SetUpDevice"), volume, async () => checkAlone(pod, volume));
      const attaches = volume.lifecycle === "Persistent" && (object?.spec.attachRequired ?? true);
      claim(pod.metadata.uid, key, attaches);
      if (!before && !object?.spec.requiresRepublish && (await isPublished(pod, volume))) { // by a kubelet before us
        const { target } = publishTarget(dataDir, pod.metadata.uid, volume);
        staged.add(key);
        remember(pod, { volume, target, claim: claimName, republish: false });
        return target;
      }
      const publishContext = attaches ? await attachment(volume, object, signal) : {};
      const group = groupOf(pod, volume, object, facts);
      const capability = capabilityOf(volume, facts, group.byDriver);
      const stagingPath = volume.lifecycle === "Persistent" ? await stage({ driver, volume, publishContext, capability, attaches }, signal) : undefined;
      if (claimed && stagingPath !== undefined && !before) await deps.expander.beforeUse(growing(driver, volume, claimed, undefined, pod, facts, signal), signal);
      const target = await attempt(step("MountVolume.SetUp", "MapVolume.MapPodDevice"), volume, () => publish({ pod, driver, object, volume, publishContext, capability, stagingPath }, signal));
      if (group.byUs && !before) await setVolumeOwnership(target, { gid: group.byDriver ?? pod.spec.securityContext!.fsGroup!, readOnly: false, onlyIfRootDiffers: pod.spec.securityContext?.fsGroupChangePolicy === "OnRootMismatch" });
      remember(pod, { volume, target, claim: claimName, republish: object?.spec.requiresRepublish ?? false });
      return target;
    });
  }

  /** A volume for one pod is not another's as well, whatever its driver thinks of that. */
  function checkAlone({ metadata: { uid } }: Pod, volume: CsiVolume): void {
    if (volume.accessMode !== "ReadWriteOncePod") return;
    const key = volumeKey(volume);
    for (const [other, published] of done)
      if (other !== uid && [...published.values()].some((one) => volumeKey(one.volume) === key)) throw new Error("volume uses the ReadWriteOncePod access mode and is already in use by another pod");
  }

  function remember({ metadata: { uid } }: Pod, published: Published): void {
    done.set(uid, (done.get(uid) ?? new Map<string, Published>()).set(published.volume.specName, published));
  }

  async function isPublished(pod: Pod, volume: CsiVolume): Promise<boolean> {
    const { note, target } = publishTarget(dataDir, pod.metadata.uid, volume);
    return (await readNote(note)) !== undefined && (mounts.isMountPoint(target) || (volume.block && (await exists(target))));
  }

  function growing(driver: CsiDriver, volume: CsiVolume, claimed: Claimed, target: string | undefined, pod: Pod, facts: DriverFacts, signal: AbortSignal): Parameters<ClaimExpander["inUse"]>[0] {
    const { target: staging } = stagingDirectory(dataDir, volume);
    const of = { driver, volume, capability: capabilityOf(volume, facts, undefined), path: known(target ?? staging), stagingPath: staged.has(volumeKey(volume)) ? known(staging) : "", secrets: () => secretData(volume.expandSecret, signal) };
    return { pod, ...claimed, readOnly: volume.readOnly, grow: (bytes) => growCsiVolume(of, bytes, signal) };
  }

  async function driverObject(name: string, signal: AbortSignal): Promise<Readonly<CSIDriver> | undefined> {
    try {
      return await client.resource(CSI_DRIVERS).get({ metadata: { name } }, { signal });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  async function attachment(volume: CsiVolume, object: Readonly<CSIDriver> | undefined, signal: AbortSignal): Promise<Record<string, string>> {
    const name = attachmentName(volume, nodeName);
    const found = await client.resource(VOLUME_ATTACHMENTS).get({ metadata: { name } }, { signal }).catch((error: unknown) => {
      if (isNotFound(error)) throw new VolumePending(`volume ${volume.handle} is not attached to node ${nodeName} yet: there is no VolumeAttachment ${name}`);
      throw error;
    });
    if (found.metadata.deletionTimestamp) throw new VolumePending(`volume attachment is being deleted: ${name}`);
    if (found.status?.attached) {
      exhausted.delete(name);
      return { ...found.status.attachmentMetadata };
    }
    const { message: problem, errorCode } = found.status?.attachError ?? {};
    if (errorCode === RESOURCE_EXHAUSTED && object?.spec.nodeAllocatableUpdatePeriodSeconds !== undefined) {
      if (!exhausted.has(name)) await drivers.refresh(volume.driver, signal).catch((error: unknown) => log.warn("a CSI driver did not say how many volumes the node takes", { driver: volume.driver, error }));
      exhausted.add(name);
      throw new AttachLimitReached(`volume ${volume.handle} is not attached to node ${nodeName}: ${problem ?? ""}`);
    }
    if (problem) throw new MountFailure("MountVolume.WaitForAttach", volume.specName, new Error(problem));
    throw new VolumePending(`volume ${volume.handle} is not attached to node ${nodeName} yet`);
  }

  interface Stage { readonly driver: CsiDriver; readonly volume: CsiVolume; readonly publishContext: Record<string, string>; readonly capability: ReturnType<typeof capabilityOf>; readonly attaches: boolean }

  async function stage({ driver, volume, publishContext, capability, attaches }: Stage, signal: AbortSignal): Promise<string | undefined> {
    const key = volumeKey(volume);
    return await attempt(volume.block ? "MapVolume.SetUpDevice" : "MountVolume.MountDevice", volume, async () => {
      if (!(await driver.can("STAGE_UNSTAGE_VOLUME", signal))) return undefined;
      const { note, target } = stagingDirectory(dataDir, volume);
      if (staged.has(key)) return target;
      await writeNote(note, { driverName: volume.driver, volumeHandle: volume.handle, specVolID: volume.specName, nodeName, ...(attaches ? { attachmentID: attachmentName(volume, nodeName) } : {}) });
      await mkdir(target, { recursive: true, mode: 0o750 });
      try {
        await driver.call("Node/NodeStageVolume", {
          volume_id: volume.handle, publish_context: publishContext, staging_target_path: known(target), volume_capability: capability, secrets: await secretData(volume.stageSecret, signal), volume_context: volume.attributes,
        }, { signal });
      } catch (error) {
        if (error instanceof RpcError && !UNCERTAIN.has(error.code) && !mounts.isMountPoint(target)) {
          await removeTarget(target); // it has said no: nothing is left to be unstaged
          await removeNote(note);
        }
        throw error;
      }
      staged.add(key);
      return target;
    });
  }

  interface Publish extends Omit<Stage, "attaches"> { readonly pod: Pod; readonly object: Readonly<CSIDriver> | undefined; readonly stagingPath: string | undefined }

  async function publish({ pod, driver, object, volume, publishContext, capability, stagingPath }: Publish, signal: AbortSignal): Promise<string> {
    const { note, target } = publishTarget(dataDir, pod.metadata.uid, volume);
    const attributes = { ...volume.attributes, ...(object?.spec.podInfoOnMount ? podInfo(pod, volume) : {}) };
    const secrets = await secretData(volume.publishSecret, signal);
    const forTokens = object?.spec.serviceAccountTokenInSecrets ? secrets : attributes;
    if (object?.spec.tokenRequests?.length) forTokens["csi.storage.k8s.io/serviceAccount.tokens"] = await tokensFor(pod, object);
    await writeNote(note, {
      driverName: volume.driver, volumeHandle: volume.handle, specVolID: volume.specName, nodeName, volumeLifecycleMode: volume.lifecycle,
      ...(volume.lifecycle === "Persistent" && (object?.spec.attachRequired ?? true) ? { attachmentID: attachmentName(volume, nodeName) } : {}),
    });
    await makeParent(target);
    await driver.call("Node/NodePublishVolume", {
      volume_id: volume.handle, publish_context: publishContext, staging_target_path: stagingPath === undefined ? "" : known(stagingPath), target_path: known(target), volume_capability: capability, readonly: volume.readOnly, secrets, volume_context: attributes,
    }, { signal });
    if (volume.block) await symlink(target, join(note, "device")).catch((error: NodeJS.ErrnoException) => { if (error.code !== "EEXIST") throw error; });
    return target;
  }

  async function tokensFor(pod: Pod, object: Readonly<CSIDriver>): Promise<string> {
    const pairs = await Promise.all((object.spec.tokenRequests ?? []).map(async ({ audience, expirationSeconds }) => {
      const { token, expiresMs } = await tokens.held(pod, { path: "", audience, expirationSeconds });
      return [audience ?? "", { token, expirationTimestamp: new Date(expiresMs).toISOString().replace(/\.\d+Z$/, "Z") }] as const;
    }));
    return JSON.stringify(Object.fromEntries(pairs));
  }

  async function secretData(reference: SecretReference | undefined, signal: AbortSignal): Promise<Record<string, string>> {
    if (!reference?.name) return {};
    const { name, namespace = "" } = reference;
    const { data = {} } = await client.resource(SECRETS).get({ metadata: { name, namespace } }, { signal }).catch((cause: Error) => {
      throw new Error(`failed to find the secret ${name} in the namespace ${namespace} with error: ${cause.message}`, { cause });
    });
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value as unknown as string, "base64").toString()]));
  }

  async function tearDown(podUid: string, signal: AbortSignal): Promise<void> {
    await begin();
    done.delete(podUid);
    for (const { directory, target, note } of await notesOf(podUid)) {
      await inTurn(keyOfNote(note), async () => {
        await drivers.get(note.driverName).call("Node/NodeUnpublishVolume", { volume_id: note.volumeHandle, target_path: known(target) }, { signal });
        if (mounts.isMountPoint(target)) mounts.unmount(target);
        await removeTarget(target);
        await removeLink(directory);
        await removeNote(directory);
      });
    }
    for (const [key, pods] of [...users]) {
      if (!pods.delete(podUid) || pods.size > 0) continue;
      users.delete(key);
      void unstageUntilDone(key);
    }
  }

  /** All that is staged of it: nobody uses it any more. */
  async function unstage(key: string, signal: AbortSignal): Promise<void> {
    for (const { directory, target, note } of await stagedNotes()) {
      if (keyOfNote(note) !== key) continue;
      const driver = drivers.get(note.driverName);
      if (await driver.can("STAGE_UNSTAGE_VOLUME", signal)) await driver.call("Node/NodeUnstageVolume", { volume_id: note.volumeHandle, staging_target_path: known(target) }, { signal });
      if (mounts.isMountPoint(target)) mounts.unmount(target);
      await removeTarget(target);
      await removeNote(directory);
    }
  }

  async function sweep(signal: AbortSignal): Promise<void> {
    await begin();
    for (const { note } of await stagedNotes()) {
      const key = keyOfNote(note);
      if (users.has(key)) continue;
      await inTurn(key, async () => {
        if (!users.has(key)) await unstage(key, signal);
      }).catch((error: unknown) => log.debug("volume not unstaged, next try at the next look", { driver: note.driverName, volume: note.volumeHandle, error }));
    }
  }

  interface Noted { readonly directory: string; readonly target: string; readonly note: VolumeNote }

  async function stagedNotes(): Promise<Noted[]> {
    const root = join(dataDir, "plugins/kubernetes.io/csi");
    const found: Noted[] = [];
    for (const driver of await directoriesIn(root)) {
      for (const name of await directoriesIn(join(root, driver))) {
        const block = driver === "volumeDevices";
        const directory = block ? join(root, driver, name, "data") : join(root, driver, name);
        const note = await readNote(directory);
        if (note) found.push({ directory, target: block ? join(root, "volumeDevices/staging", name) : join(directory, "globalmount"), note });
      }
    }
    return found;
  }

  async function notesOf(podUid: string): Promise<Noted[]> {
    const podDir = join(dataDir, "pods", podUid);
    const found: Noted[] = [];
    for (const [kind, block] of [["volumes", false], ["volumeDevices", true]] as const) {
      for (const specName of await directoriesIn(join(podDir, kind, "kubernetes.io~csi"))) {
        const { note: directory, target } = publishTarget(dataDir, podUid, { specName, block });
        const note = await readNote(directory);
        if (note) found.push({ directory, target, note });
      }
    }
    return found;
  }

  return { setUp, tearDown, sweep, reconsider, inUse: () => begin().then(() => [...attachable].toSorted()), published: (podUid) => [...(done.get(podUid)?.values() ?? [])] };
}

async function removeLink(directory: string): Promise<void> {
  await removeTarget(join(directory, "device"));
}

function keyOfNote({ driverName, volumeHandle }: VolumeNote): string {
  return volumeKey({ driver: driverName, handle: volumeHandle });
}

async function attempt<T>(step: string, { specName }: CsiVolume, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (cause instanceof VolumePending || cause instanceof MountFailure) throw cause;
    throw new MountFailure(step, specName, cause as Error);
  }
}

function withContext<T>(context: string, work: () => T): T {
  try {
    return work();
  } catch (cause) {
    throw new Error(`kubernetes.io/csi: ${context}: ${(cause as Error).message}`, { cause });
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}
