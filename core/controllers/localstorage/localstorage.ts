/**
 * The provisioner of the class local-path: a volume is a directory on the node of the first pod that uses it, and stays there.
 *
 *   claim, node chosen ─▶ the node makes the directory ─▶ PersistentVolume (local, bound to the node) ─▶ the binder binds it
 *   volume released    ─▶ the node removes it          ─▶ PersistentVolume deleted
 *
 * The node is asked over its kubelet (node/kubelet/volumes/local-path.ts), so an object says no more than what the disk holds. A node that is
 * away is asked again later; one that no longer exists took its directories with it. Sizes are not enforced: the disk is shared.
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import { findCondition, isReady } from "../../api/meta/conditions.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";
import { annotationsOf, hasFinalizer, isDeleting, keyOf, namespaceOf, type ObjectKey, objectKey, splitKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNotFound } from "../../api/meta/status-error.ts";
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from "../../client/resources.ts";
import { type Controller, mapped, type Next } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { ANNOTATION } from "../volume/plan.ts";
import { type NodeDirectories, nodeDirectories } from "./node-directories.ts";
import { NodeTurns } from "./node-turns.ts";
import { directoryName, doomedDirectory, FINALIZER, isOrphanedFinalizer, PROVISIONER, refusal, volumeFor, volumeName, wantsVolume } from "./plan.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "events"> & { readonly directories?: NodeDirectories };
type Claim = Readonly<PersistentVolumeClaim>;
type Volume = Readonly<PersistentVolume>;

/** They wait for nodes, most of the time: thirty that do not answer, with two requests each, hold up no other. */
const WORKERS = 64;
/** Who waits for its turn is woken; this is for who is not. */
const WAITING_MS = 10_000;
/** A node that is silent is not asked; when it is back it is asked at once. */
const SILENT_MS = 60_000;

export function localStorageController({ client, informers, events, directories = nodeDirectories(client) }: Deps): Controller {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const classes = informers.of(STORAGE_CLASSES);
  const nodes = informers.of(NODES);
  const claimClient = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const volumeClient = client.resource(PERSISTENT_VOLUMES);
  const nodeClient = client.resource(NODES);
  const recorder = events.from({ component: PROVISIONER });
  const turns = new NodeTurns();

  return {
    name: "local-storage",
    workers: WORKERS,
    watches: [
      mapped(claims, ({ object, deleted }) => (!deleted && wantsVolume(object) ? [keyOf(object)] : [])),
      mapped(nodes, ({ object, old, deleted }) => (!deleted && isReady(object) && old !== undefined && !isReady(old) ? waitingFor(object) : [])),
      mapped(volumes, ({ object, deleted }) => (!deleted && (doomedDirectory(object) !== undefined || isOrphanedFinalizer(object)) ? [keyOf(object)] : [])),
      turns.watch,
    ],
    reads: [classes],
    async reconcile(key, { signal }): Promise<Next> {
      const node = nodeFor(key);
      if (node === undefined) return await bring(key, signal);
      const turn = await turns.take(node, key, () => bring(key, signal));
      return turn === undefined ? { againInMs: WAITING_MS } : turn.result;
    },
  };

  /** Who has to be asked; undefined: nobody. */
  function nodeFor(key: ObjectKey): string | undefined {
    const volume = volumes.get(key), claim = claims.get(key);
    if (volume !== undefined) return doomedDirectory(volume)?.node;
    return claim !== undefined && wantsVolume(claim) ? annotationsOf(claim)[ANNOTATION.selectedNode] : undefined;
  }

  async function bring(key: ObjectKey, signal: AbortSignal): Promise<Next> {
    if (splitKey(key).namespace === "") {
      const volume = volumes.get(key);
      return volume && (isOrphanedFinalizer(volume) ? await letGo(volume, signal) : await remove(volume, signal));
    }
    const claim = claims.get(key);
    if (claim !== undefined && wantsVolume(claim)) return await provision(claim, signal);
  }

  /** A node that is back has work waiting that failed while it was away. */
  function waitingFor({ metadata: { name } }: Readonly<Node>): ObjectKey[] {
    const wanted = [...claims.list()].filter((claim) => wantsVolume(claim) && annotationsOf(claim)[ANNOTATION.selectedNode] === name);
    const doomed = [...volumes.list()].filter((volume) => doomedDirectory(volume)?.node === name);
    return [...wanted, ...doomed].map(keyOf);
  }

  async function provision(claim: Claim, signal: AbortSignal): Promise<Next> {
    if (volumes.get(objectKey("", volumeName(claim))) !== undefined) return;
    const storageClass = classes.get(objectKey("", claim.spec.storageClassName ?? ""));
    if (storageClass === undefined) return; // the binder says so
    if (storageClass.provisioner !== PROVISIONER) return; // what the claim's annotation says is its user's to write
    const fail = (why: string): void => recorder.event(claim, "Warning", "ProvisioningFailed", `failed to provision volume with StorageClass "${storageClass.metadata.name}": ${why}`);
    const refused = refusal(claim);
    if (refused !== undefined) return fail(refused);
    const selected = annotationsOf(claim)[ANNOTATION.selectedNode];
    if (selected === undefined) return fail(`configuration error, no node was specified: the class needs volumeBindingMode WaitForFirstConsumer`);
    const node = await nodeNamed(selected, signal);
    if (node === undefined) { // to be placed anew
      fail(`node "${selected}" not found`);
      const { [ANNOTATION.selectedNode]: _, ...annotations } = annotationsOf(claim);
      await claims.caughtUp([await claimClient.update({ ...claim, metadata: { ...claim.metadata, annotations } }, { signal })], signal);
      return;
    }
    if (isSilent(node)) {
      fail(silence(selected));
      return { againInMs: SILENT_MS };
    }
    recorder.event(claim, "Normal", "Provisioning", `External provisioner is provisioning volume for claim "${namespaceOf(claim)}/${claim.metadata.name}"`);
    try {
      const path = await directories.make(selected, directoryName(claim), signal);
      const made = await volumeClient.create(volumeFor(claim, { storageClass, node, path }), { signal });
      recorder.event(claim, "Normal", "ProvisioningSucceeded", `Successfully provisioned volume ${made.metadata.name}`);
      await volumes.caughtUp([made], signal);
    } catch (error) {
      if (signal.aborted || isAlreadyExists(error)) return; // made before we were interrupted
      fail(messageOf(error));
      throw error;
    }
  }

  async function remove(volume: Volume, signal: AbortSignal): Promise<Next> {
    const doomed = doomedDirectory(volume);
    if (doomed === undefined) return;
    try {
      const node = await nodeNamed(doomed.node, signal);
      if (node && isSilent(node)) {
        recorder.event(volume, "Warning", "VolumeFailedDelete", silence(doomed.node));
        return { againInMs: SILENT_MS };
      }
      if (node) await directories.remove(doomed.node, doomed.name, signal);
    } catch (error) {
      if (!signal.aborted) recorder.event(volume, "Warning", "VolumeFailedDelete", messageOf(error));
      throw error;
    }
    try {
      const left = isDeleting(volume) ? volume : await volumeClient.delete(volume, { preconditions: { uid: volume.metadata.uid } }, { signal });
      if (left !== undefined && hasFinalizer(left, FINALIZER)) await letGo(left, signal);
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    await volumes.sawDeleted([volume], signal);
  }

  async function letGo(volume: Volume, signal: AbortSignal): Promise<void> {
    await volumeClient.update({ ...volume, metadata: { ...volume.metadata, finalizers: (volume.metadata.finalizers ?? []).filter((one) => one !== FINALIZER) } }, { signal });
  }

  /** Our copy may be old: before a node counts as gone, the server is asked. What a claim's user has written need not be a name at all. */
  async function nodeNamed(name: string, signal: AbortSignal): Promise<Readonly<Node> | undefined> {
    if (dns1123Subdomain(name).length > 0) return undefined;
    const known = nodes.get(name as ObjectKey);
    return known ?? await ifFound(nodeClient.get({ metadata: { name } }, { signal }));
  }
}

/** Nobody hears from it: a request would wait until it is given up. */
function isSilent({ status }: Readonly<Node>): boolean { return findCondition(status?.conditions, "Ready")?.status === "Unknown"; }

function silence(node: string): string { return `node "${node}" does not answer`; }
