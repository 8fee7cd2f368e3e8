/**
 * CSI volumes on this node:
 *
 *   attached   by the attacher on the control plane, if the driver wants that: waited for
 *   staged     once for the node (NodeStageVolume), if the driver has that (staged-volumes.ts)
 *   published  for each pod (NodePublishVolume), again and again if the driver wants that
 *
 * and back: unpublished when the pod's containers are gone, unstaged with the last pod. What has been begun is noted on disk first (vol_data.json), so
 * that a kubelet that was killed at any moment finds and ends it. All calls (node-calls.ts) are idempotent by the CSI's word; those of one volume come one by one.
 *
 * Source: kubernetes v1.36 pkg/volume/csi, pkg/kubelet/volumemanager
 */
import { stat } from "node:fs/promises";
import { dirname } from "node:path";
import type { PersistentVolume, PersistentVolumeClaim, Pod } from "../../../core/api/gen/core.v1.ts";
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import { ifFound } from "../../../core/api/meta/if-found.ts";
import { CSI_DRIVERS } from "../../../core/client/resources.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import { podReference } from "../pod-spec.ts";
import type { ClaimExpander } from "../volumes/expand-claim.ts";
import { MountFailure, VolumePending } from "../volumes/mount-failure.ts";
import { giveToGroup } from "../volumes/volume-directory.ts";
import { attachments } from "./attachment.ts";
import { capabilityOf, checkLifecycle, type CsiVolume, type DriverFacts, groupOf, publishTarget, stagingDirectory, volumeKey } from "./csi-volume.ts";
import type { CsiVolumesDeps } from "./csi-volumes-deps.ts";
import type { CsiDriver } from "./drivers.ts";
import { growCsiVolume } from "./expand.ts";
import { keyedTurns } from "../../../core/lifecycle/keyed-turns.ts";
import { nodeCalls } from "./node-calls.ts";
import { keyOfNote, podsOnDisk, publishedVolumes } from "./noted-volumes.ts";
import { StagedVolumes } from "./staged-volumes.ts";
import { readNote } from "./volume-note.ts";

/** A claimed volume's objects; an inline volume has none. `readOnly`: the pod only reads it, whatever the volume is. */
export interface Claimed { readonly claim: Readonly<PersistentVolumeClaim>; readonly volume: Readonly<PersistentVolume>; readonly readOnly?: boolean | undefined }

export interface CsiVolumes {
  /** The path containers get. Repeats nothing that is done. Throws MountFailure, VolumePending. */
  setUp(pod: Pod, volume: CsiVolume, claimed: Claimed | undefined, signal: AbortSignal): Promise<string>;
  /** Everything of the pod: its containers are gone. Throws while a driver cannot do its part. */
  tearDown(podUid: string, signal: AbortSignal): Promise<void>;
  /** Ends what a kubelet that was killed has left staged. */
  sweep(signal: AbortSignal): Promise<void>;
  /** For the node's status. */
  inUse(): Promise<readonly string[]>;
  /** The node's status has been written with these. */
  told(inUse: readonly string[]): void;
  /** The driver may need no attaching any more: what is in use of it is then held by nobody. */
  reconsider(driver: Readonly<CSIDriver>): void;
  /** What the pod has published, by the name of the volume's object. */
  published(podUid: string): readonly { readonly volume: CsiVolume; readonly target: string; readonly claim: { readonly namespace: string; readonly claim: string } | undefined }[];
}

interface Published { readonly volume: CsiVolume; readonly target: string; readonly claim: { readonly namespace: string; readonly claim: string } | undefined; readonly republish: boolean }

export function csiVolumes(deps: CsiVolumesDeps): CsiVolumes {
  const { dataDir, client, drivers, mounts, known } = deps;
  const calls = nodeCalls(deps);
  const attached = attachments(deps);
  const inTurn = keyedTurns();
  const staged = new StagedVolumes({ ...deps, calls, inTurn });
  const done = new Map<string, Map<string, Published>>(); // pod → specName →
  const unfinished = new Set<string>(); // targets of what is published and not yet its pod's, or not as large as it should be: their pods wait for that

  async function setUp(pod: Pod, volume: CsiVolume, claimed: Claimed | undefined, signal: AbortSignal): Promise<string> {
    await staged.adopted();
    const key = volumeKey(volume);
    const claimName = claimed && { namespace: claimed.claim.metadata.namespace ?? "", claim: claimed.claim.metadata.name };
    const before = done.get(pod.metadata.uid)?.get(volume.specName);
    if (before && !before.republish && !(claimed && !claimed.readOnly && deps.expander.grows(claimed))) return before.target;
    return await inTurn(key, async () => {
      if (before && claimed) await deps.expander.inUse(growing(volume, claimed, before.target, pod, signal), signal); // a pod that has it does not wait for a driver that is away
      if (before && !before.republish) return before.target;
      const step = (name: string, block = name.replace("Mount", "Map")): string => (volume.block ? block : name);
      const first = firstStep(volume);
      const driver = await attempt(first.step, volume, async () => withContext(first.context, () => drivers.get(volume.driver)));
      const facts = await factsOf(driver, signal);
      const object = await driverObject(volume.driver, signal);
      if (!volume.block) await attempt("MountVolume.SetUp", volume, async () => withContext("mounter.SetupAt failed to check volume lifecycle mode", () => checkLifecycle(volume, object)));
      await attempt(step("MountVolume.SetUp", "MapVolume.SetUpDevice"), volume, () => checkAlone(pod, volume));
      const attaches = volume.lifecycle === "Persistent" && (object?.spec.attachRequired ?? true);
      staged.use(pod.metadata.uid, key, { attaches });
      const { target: published, note } = publishTarget(dataDir, pod.metadata.uid, volume);
      if (!before && !object?.spec.requiresRepublish && !unfinished.has(published) && (await isPublished(pod, volume))) { // by a kubelet before us
        const target = published;
        staged.takeOver(key);
        remember(pod, { volume, target, claim: claimName, republish: false });
        if (claimed) await deps.expander.inUse(growing(volume, claimed, target, pod, signal), signal);
        return target;
      }
      if (attaches && !staged.isTold(key)) throw new VolumePending(`volume ${volume.handle} is not known to be in use on this node yet`); // somebody may be about to detach it
      const publishContext = attaches ? await attached(volume, object, signal) : {};
      const group = groupOf(pod, volume, object, facts);
      const capability = capabilityOf(volume, facts, group.byDriver);
      const stagingPath = volume.lifecycle === "Persistent" ? await attempt(step("MountVolume.MountDevice", "MapVolume.SetUpDevice"), volume, () => staged.stage({ driver, volume, publishContext, capability, attaches }, signal)) : undefined;
      const isNew = !before && (unfinished.has(published) || (await readNote(note)) === undefined); // not begun by a kubelet before us either
      if (!before) unfinished.add(published);
      const more = !before && (group.byUs || (claimed !== undefined && deps.expander.grows(claimed))); // which may take long
      const target = await attempt(step("MountVolume.SetUp", "MapVolume.MapPodDevice"), volume, () => calls.publish({ pod, driver, object, volume, publishContext, capability, attaches, stagingPath, first: isNew, unfinished: more }, signal));
      if (group.byUs && !before) await giveToGroup(pod, target, { readOnly: false, told: deps });
      if (claimed && !before) await deps.expander.beforeUse(growing(volume, claimed, target, pod, signal), signal);
      if (more) await calls.finish(pod, volume);
      unfinished.delete(published);
      remember(pod, { volume, target, claim: claimName, republish: object?.spec.requiresRepublish ?? false });
      if (volume.block && !before) deps.events.event(podReference(pod), "Normal", "SuccessfulMountVolume", `MapVolume.MapPodDevice succeeded for volume "${volume.specName}" volumeMapPath "${dirname(note)}"`);
      return target;
    });
  }

  /** A volume for one pod is not another's as well, whatever its driver thinks of that. Who has it the disk tells: of one that had it before this process nothing else may have been heard yet. */
  async function checkAlone({ metadata: { uid } }: Pod, volume: CsiVolume): Promise<void> {
    if (volume.accessMode !== "ReadWriteOncePod") return;
    const key = volumeKey(volume);
    for (const other of await podsOnDisk(dataDir))
      if (other !== uid && (await publishedVolumes(dataDir, other)).some(({ note }) => keyOfNote(note) === key)) throw new Error("volume uses the ReadWriteOncePod access mode and is already in use by another pod");
  }

  function remember({ metadata: { uid } }: Pod, published: Published): void {
    done.set(uid, (done.get(uid) ?? new Map<string, Published>()).set(published.volume.specName, published));
  }

  async function isPublished(pod: Pod, volume: CsiVolume): Promise<boolean> {
    const { note, target } = publishTarget(dataDir, pod.metadata.uid, volume);
    const noted = await readNote(note);
    return noted !== undefined && noted.unfinished === undefined && (mounts.isMountPoint(target) || (volume.block && (await exists(target))));
  }

  function growing(volume: CsiVolume, claimed: Claimed, target: string, pod: Pod, signal: AbortSignal): Parameters<ClaimExpander["inUse"]>[0] {
    const { target: staging } = stagingDirectory(dataDir, volume);
    async function grow(bytes: number): Promise<boolean> {
      const driver = drivers.get(volume.driver);
      const capability = capabilityOf(volume, await factsOf(driver, signal), undefined);
      const stagingPath = staged.has(volumeKey(volume)) ? known(staging) : "";
      return await growCsiVolume({ driver, volume, capability, path: known(target), stagingPath, secrets: () => calls.secretData("NodeExpandSecretRef", volume, signal) }, bytes, signal);
    }
    return { pod, ...claimed, readOnly: claimed.readOnly ?? false, grow };
  }

  async function driverObject(name: string, signal: AbortSignal): Promise<Readonly<CSIDriver> | undefined> {
    return await ifFound(client.resource(CSI_DRIVERS).get({ metadata: { name } }, { signal }));
  }

  async function tearDown(podUid: string, signal: AbortSignal): Promise<void> {
    await staged.adopted();
    done.delete(podUid);
    for (const target of unfinished) if (target.includes(podUid)) unfinished.delete(target);
    const stuck = new Set<string>(); // keys
    const problems: unknown[] = [];
    await Promise.all((await publishedVolumes(dataDir, podUid)).map(async (noted) => { // what one driver cannot do keeps no other: somebody may wait for that volume elsewhere
      const key = keyOfNote(noted.note);
      await inTurn(key, () => calls.unpublish(noted, signal)).catch((error: unknown) => {
        stuck.add(key);
        problems.push(error);
      });
    }));
    staged.release(podUid, stuck);
    if (problems.length > 0) throw problems[0];
  }

  return {
    setUp, tearDown,
    sweep: (signal) => staged.sweep(signal),
    reconsider: (driver) => staged.reconsider(driver),
    inUse: () => staged.inUse(),
    told: (inUse) => staged.told(inUse),
    published: (podUid) => [...(done.get(podUid)?.values() ?? [])],
  };
}

async function factsOf(driver: CsiDriver, signal: AbortSignal): Promise<DriverFacts> {
  return { fineAccessModes: await driver.can("SINGLE_NODE_MULTI_WRITER", signal), mountsGroup: await driver.can("VOLUME_MOUNT_GROUP", signal) };
}

/** Where it shows that a driver is not there, and what is told of that. */
function firstStep({ lifecycle, block }: CsiVolume): { readonly step: string; readonly context: string } {
  if (block) return { step: "MapVolume.SetUpDevice", context: "blockMapper.SetUpDevice failed to get CSI client" };
  if (lifecycle === "Ephemeral") return { step: "MountVolume.SetUp", context: "mounter.SetUpAt failed to get CSI client" };
  return { step: "MountVolume.MountDevice", context: "attacher.MountDevice failed to create newCsiDriverClient" };
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

async function exists(path: string): Promise<boolean> { return (await ifThere(stat(path))) !== undefined; }
