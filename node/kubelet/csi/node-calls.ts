/**
 * What a CSI driver is asked to do with a volume on this node, and back. What is asked for is noted on disk first (vol_data.json), and the note goes when
 * it is undone: a kubelet that was killed between the two does it again, which is idempotent by the CSI's word.
 *
 * Source: kubernetes v1.36 pkg/volume/csi/{csi_attacher,csi_mounter,csi_block}.go
 */
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import type { Pod, SecretReference } from "../../../core/api/gen/core.v1.ts";
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import { SECRETS } from "../../../core/client/resources.ts";
import { RpcError } from "../../cri/rpc-client.ts";
import { attachmentName, type capabilityOf, type CsiVolume, type Places, podInfo, publishTarget, stagingDirectory } from "./csi-volume.ts";
import type { CsiVolumesDeps } from "./csi-volumes-deps.ts";
import type { CsiDriver } from "./drivers.ts";
import { UNCERTAIN } from "./expand.ts";
import type { NotedVolume } from "./noted-volumes.ts";
import { makeParent, readNote, removeNote, removeTarget, writeNote } from "./volume-note.ts";

/** One volume, and what its driver has to know to stage it. */
export interface Staging {
  readonly driver: CsiDriver;
  readonly volume: CsiVolume;
  /** What attaching it has told; none if it is not attached. */
  readonly publishContext: Record<string, string>;
  readonly capability: ReturnType<typeof capabilityOf>;
  readonly attaches: boolean;
}

export interface Publishing extends Staging {
  readonly pod: Pod;
  readonly object: Readonly<CSIDriver> | undefined;
  /** Undefined: this driver does not stage. */
  readonly stagingPath: string | undefined;
  /** The pod has had nothing of it so far: what a driver leaves that refuses is taken away. */
  readonly first: boolean;
  /** Until `finish`: there is more to be done with it. */
  readonly unfinished: boolean;
}

type SecretField = "NodeStageSecretRef" | "NodePublishSecretRef" | "NodeExpandSecretRef";

/** Where a volume names its secrets, and what was being done that cannot go on without one. */
const SECRETS_OF: Readonly<Record<SecretField, { readonly of: (volume: CsiVolume) => SecretReference | undefined; readonly failure: (where: string, block: boolean) => string }>> = {
  NodeStageSecretRef: { of: ({ stageSecret }) => stageSecret, failure: (where, block) => (block ? `kubernetes.io/csi: failed to get ${where}` : `fetching ${where} failed`) },
  NodePublishSecretRef: { of: ({ publishSecret }) => publishSecret, failure: (where, block) => (block ? `kubernetes.io/csi: blockMapper.publishVolumeForBlock failed to get ${where}` : `fetching ${where} failed`) },
  NodeExpandSecretRef: { of: ({ expandSecret }) => expandSecret, failure: (where) => `expander.NodeExpand failed to get ${where}` },
};

export interface NodeCalls {
  /** Returns the staging path. */
  stage(staging: Staging, signal: AbortSignal): Promise<string>;
  /** Returns the path for containers. */
  publish(publishing: Publishing, signal: AbortSignal): Promise<string>;
  /** What was unfinished is done. */
  finish(pod: Pod, volume: CsiVolume): Promise<void>;
  unpublish(noted: NotedVolume, signal: AbortSignal): Promise<void>;
  unstage(noted: NotedVolume, signal: AbortSignal): Promise<void>;
  /** What the secret holds that the volume names in `field`; nothing if it names none. */
  secretData(field: SecretField, volume: CsiVolume, signal: AbortSignal): Promise<Record<string, string>>;
}

export function nodeCalls({ dataDir, nodeName, client, drivers, mounts, tokens, known }: Pick<CsiVolumesDeps, "dataDir" | "nodeName" | "client" | "drivers" | "mounts" | "tokens" | "known">): NodeCalls {
  const attachmentId = (volume: CsiVolume, attaches: boolean): { attachmentID?: string } => (attaches ? { attachmentID: attachmentName(volume, nodeName) } : {});

  async function stage({ driver, volume, publishContext, capability, attaches }: Staging, signal: AbortSignal): Promise<string> {
    const places = stagingDirectory(dataDir, volume);
    const { note, target } = places;
    const secrets = await secretData("NodeStageSecretRef", volume, signal); // before the note: without them nothing is begun
    await writeNote(note, { driverName: volume.driver, volumeHandle: volume.handle, specVolID: volume.specName, nodeName, ...attachmentId(volume, attaches) });
    await mkdir(target, { recursive: true, mode: 0o750 });
    try {
      await driver.call("Node/NodeStageVolume", {
        volume_id: volume.handle, publish_context: publishContext, staging_target_path: known(target), volume_capability: capability, secrets, volume_context: volume.attributes,
      }, { signal });
    } catch (error) {
      await refused(error, places);
      throw error;
    }
    return target;
  }

  /** A driver that has said no, and has mounted nothing, has nothing to undo. */
  async function refused(error: unknown, { note, target, around }: Places): Promise<void> {
    if (!(error instanceof RpcError) || UNCERTAIN.has(error.code) || mounts.isMountPoint(target)) return;
    try {
      await removeTarget(target);
    } catch {
      return; // something is in it: then there is something to undo
    }
    await removeNote(note, around);
  }

  async function publish({ pod, driver, object, volume, publishContext, capability, attaches, stagingPath, first, unfinished }: Publishing, signal: AbortSignal): Promise<string> {
    const { note, target } = publishTarget(dataDir, pod.metadata.uid, volume);
    const attributes = { ...volume.attributes, ...(object?.spec.podInfoOnMount ? podInfo(pod, volume) : {}) };
    const secrets = await secretData("NodePublishSecretRef", volume, signal);
    const forTokens = object?.spec.serviceAccountTokenInSecrets ? secrets : attributes;
    if (object?.spec.tokenRequests?.length) forTokens["csi.storage.k8s.io/serviceAccount.tokens"] = await tokensFor(pod, object);
    await writeNote(note, { driverName: volume.driver, volumeHandle: volume.handle, specVolID: volume.specName, nodeName, volumeLifecycleMode: volume.lifecycle, ...attachmentId(volume, attaches), ...(unfinished ? { unfinished: "true" } : {}) });
    await makeParent(target);
    try {
      await driver.call("Node/NodePublishVolume", {
        volume_id: volume.handle, publish_context: publishContext, staging_target_path: stagingPath === undefined ? "" : known(stagingPath), target_path: known(target),
        volume_capability: capability, readonly: volume.readOnly, secrets, volume_context: attributes,
      }, { signal });
    } catch (error) {
      if (first && !volume.block) await refused(error, { note, target }); // some drivers take a directory that is there for a volume they have published
      throw error;
    }
    if (volume.block) await symlink(target, deviceLink(note)).catch((error: NodeJS.ErrnoException) => { if (error.code !== "EEXIST") throw error; });
    return target;
  }

  async function finish({ metadata: { uid } }: Pod, volume: CsiVolume): Promise<void> {
    const { note: directory } = publishTarget(dataDir, uid, volume);
    const { unfinished: _, ...note } = (await readNote(directory)) ?? { driverName: volume.driver, volumeHandle: volume.handle };
    await writeNote(directory, note);
  }

  async function unpublish({ directory, target, around, note }: NotedVolume, signal: AbortSignal): Promise<void> {
    await drivers.get(note.driverName).call("Node/NodeUnpublishVolume", { volume_id: note.volumeHandle, target_path: known(target) }, { signal });
    await clear(target);
    await removeTarget(deviceLink(directory));
    await removeNote(directory, around);
  }

  async function unstage({ directory, target, around, note }: NotedVolume, signal: AbortSignal): Promise<void> {
    const driver = drivers.get(note.driverName);
    if (await driver.can("STAGE_UNSTAGE_VOLUME", signal)) await driver.call("Node/NodeUnstageVolume", { volume_id: note.volumeHandle, staging_target_path: known(target) }, { signal });
    await clear(target);
    await removeNote(directory, around);
  }

  /** What a driver has left where it was asked to put a volume. */
  async function clear(target: string): Promise<void> {
    if (mounts.isMountPoint(target)) mounts.unmount(target);
    await removeTarget(target);
  }

  async function tokensFor(pod: Pod, object: Readonly<CSIDriver>): Promise<string> {
    const pairs = await Promise.all((object.spec.tokenRequests ?? []).map(async ({ audience, expirationSeconds }) => {
      const { token, expiresMs } = await tokens.held(pod, { path: "", audience, expirationSeconds });
      return [audience ?? "", { token, expirationTimestamp: new Date(expiresMs).toISOString().replace(/\.\d+Z$/, "Z") }] as const;
    }));
    return JSON.stringify(Object.fromEntries(pairs.toSorted(([a], [b]) => (a < b ? -1 : 1)))); // as upstream orders them
  }

  async function secretData(field: SecretField, volume: CsiVolume, signal: AbortSignal): Promise<Record<string, string>> {
    const { of, failure } = SECRETS_OF[field];
    const { name = "", namespace = "" } = of(volume) ?? {};
    if (name === "") return {};
    const { data = {} } = await client.resource(SECRETS).get({ metadata: { name, namespace } }, { signal }).catch((cause: Error) => {
      throw new Error(`${failure(`${field} ${namespace}/${name}`, volume.block)}: kubernetes.io/csi: failed to find the secret ${name} in the namespace ${namespace} with error: ${cause.message}`, { cause });
    });
    return Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value as unknown as string, "base64").toString()]));
  }

  return { stage, publish, finish, unpublish, unstage, secretData };
}

/** Beside the note of a block volume: its device. */
function deviceLink(directory: string): string {
  return join(directory, "device");
}
