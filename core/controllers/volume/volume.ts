/**
 * Binds claims to volumes, tells provisioners which claims want one, and keeps the phases of both.
 *
 *   PersistentVolumeClaim ┐                 ┌─ plan.ts: claim  ─▶ claimRef, phase Bound, volumeName, status   (bind, in this order)
 *   PersistentVolume      ├─▶ key ─▶ one ───┤
 *   Pod, StorageClass     ┘         worker  └─ plan.ts: volume ─▶ phase, reclaim, unbind
 *
 * A key with a namespace is a claim, one without a volume. There is one worker, which after each write waits until it sees it, so no volume is
 * given to two claims; and an interrupted binding goes on from where it stopped.
 *
 * API:    https://kubernetes.io/docs/concepts/storage/persistent-volumes/
 * Source: kubernetes v1.36 pkg/controller/volume/persistentvolume
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import type { StorageClass } from "../../api/gen/storage.v1.ts";
import { annotationsOf, isDeleting, keyOf, namespaceOf, type ObjectKey, objectKey, splitKey } from "../../api/meta/object-meta.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES } from "../../client/resources.ts";
import { sameValue } from "../conditions.ts";
import { type Controller, itself, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { isTerminal } from "../pod-state.ts";
import { classOfClaim, classOfVolume, isBoundTo } from "./match.ts";
import { ANNOTATION, planClaim, planVolume, reclaimFailure, type Said } from "./plan.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "events">;
type Volume = Readonly<PersistentVolume>;
type Claim = Readonly<PersistentVolumeClaim>;

const PODS_BY_CLAIM: Index<Pod> = { name: "mounted claim", valuesOf: claimsOf };
const UNBOUND_BY_CLASS: Index<PersistentVolumeClaim> = { name: "unbound of class", valuesOf: (claim) => (annotationsOf(claim)[ANNOTATION.bindCompleted] === undefined ? [classOfClaim(claim)] : []) };
const UNBOUND_BY_VOLUME: Index<PersistentVolumeClaim> = { name: "names volume", valuesOf: ({ spec }) => (spec.volumeName ? [spec.volumeName] : []) };
const DEFAULT_CLASS = ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

export function claimsOf(pod: Readonly<Pod>): ObjectKey[] {
  return (pod.spec.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    const claim = persistentVolumeClaim?.claimName ?? (ephemeral ? `${pod.metadata.name}-${name}` : undefined);
    return claim === undefined ? [] : [objectKey(namespaceOf(pod), claim)];
  });
}

export function volumeBinder({ client, informers, events }: Deps): Controller {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const classes = informers.of(STORAGE_CLASSES);
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  const claimClient = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const volumeClient = client.resource(PERSISTENT_VOLUMES);
  const recorder = events.from({ component: "persistentvolume-controller" });
  const say = (about: Claim | Volume, { type, reason, message }: Said): void => recorder.event(about, type, reason, message);

  return {
    name: "persistentvolume-binder",
    workers: 1,
    watches: [
      itself(claims),
      mapped(claims, ({ object, old }) => [object, ...(old === undefined ? [] : [old])].flatMap(({ spec }) => (spec.volumeName ? [objectKey("", spec.volumeName)] : []))),
      mapped(claims, ({ object, old, deleted }) => (old === undefined || deleted ? volumesNaming(object) : [])),
      itself(volumes),
      mapped(volumes, ({ object, old }) => [...claimsFor(object), ...(old === undefined ? [] : claimsFor(old))]),
      mapped(classes, ({ object }) => [...unboundOf(object.metadata.name), ...unboundOf("")]),
      mapped(pods, ({ object, old }) => (old === undefined || old.spec.nodeName !== object.spec.nodeName ? claimsOf(object) : [])),
    ],
    reads: [nodes],
    async reconcile(key, { signal, log }) {
      if (splitKey(key).namespace === "") {
        const volume = volumes.get(key);
        if (volume !== undefined) await syncVolume(volume, signal);
        return;
      }
      const claim = claims.get(key);
      if (claim === undefined) return;
      const plan = planClaim(claim, factsOf(claim));
      switch (plan.type) {
        case "bind": return await bind(plan.volume, claim, signal);
        case "pending":
          if (plan.event !== undefined) say(claim, plan.event);
          return void (await setClaimStatus(claim, "Pending", undefined, signal));
        case "lost":
          if (claim.status?.phase === "Lost") return;
          await setClaimStatus(claim, "Lost", undefined, signal);
          return say(claim, plan.event);
        case "wrong":
          say(claim, plan.event);
          throw new Error(plan.message);
        case "tell": return say(claim, plan.event);
        case "set-class": return void (await writeClaim({ ...claim, spec: { ...claim.spec, storageClassName: plan.name } }, signal));
        case "select-node":
          log.info("a volume is wanted where the pod is", { node: plan.name });
          return void (await writeClaim(annotated(claim, { [ANNOTATION.selectedNode]: plan.name }), signal));
        case "provision": {
          const annotations = { [ANNOTATION.provisioner]: plan.provisioner, [ANNOTATION.betaProvisioner]: plan.provisioner };
          if (annotationsOf(claim)[ANNOTATION.provisioner] !== plan.provisioner) await writeClaim(annotated(claim, annotations), signal);
          return say(claim, plan.event);
        }
      }
    },
  };

  function unboundOf(className: string): ObjectKey[] { return claims.by(UNBOUND_BY_CLASS, className).map(keyOf); }

  /** The claims a change of a volume concerns: the one it names, those that name it, and, while it is free, all that may want it. */
  function claimsFor(volume: Volume): ObjectKey[] {
    const { claimRef } = volume.spec;
    const naming = claims.by(UNBOUND_BY_VOLUME, volume.metadata.name).map(keyOf);
    return claimRef === undefined ? [...naming, ...unboundOf(classOfVolume(volume))] : [...naming, objectKey(claimRef.namespace ?? "", claimRef.name ?? "")];
  }

  function volumesNaming(claim: Claim): ObjectKey[] {
    return [...volumes.list()].filter(({ spec: { claimRef } }) => claimRef?.name === claim.metadata.name && claimRef.namespace === namespaceOf(claim)).map(keyOf);
  }

  function factsOf(claim: Claim): Parameters<typeof planClaim>[1] {
    return {
      named: claim.spec.volumeName ? volumes.get(objectKey("", claim.spec.volumeName)) : undefined,
      volumes: () => volumes.list(),
      storageClass: classes.get(objectKey("", classOfClaim(claim))),
      defaultClass,
      users: pods.by(PODS_BY_CLAIM, keyOf(claim)).filter((pod) => !isTerminal(pod)).map((pod) => ({ name: pod.metadata.name, placed: !!pod.spec.nodeName, node: nodeOf(pod) })),
    };
  }

  function nodeOf({ spec }: Readonly<Pod>): Readonly<Node> | undefined { return spec.nodeName ? nodes.get(objectKey("", spec.nodeName)) : undefined; }

  function defaultClass(): Readonly<StorageClass> | undefined {
    const marked = [...classes.list()].filter((one) => DEFAULT_CLASS.some((annotation) => annotationsOf(one)[annotation] === "true"));
    return marked.toSorted((a, b) => Date.parse(b.metadata.creationTimestamp) - Date.parse(a.metadata.creationTimestamp) || (a.metadata.name < b.metadata.name ? -1 : 1))[0];
  }

  async function bind(volume: Volume, claim: Claim, signal: AbortSignal): Promise<void> {
    let bound = volume;
    const { apiVersion, kind, metadata: { name, uid, resourceVersion } } = claim;
    const namespace = namespaceOf(claim);
    const byController = !isBoundTo(volume, claim);
    if (byController || volume.spec.claimRef?.uid !== uid) {
      const claimed: Volume = { ...volume, spec: { ...volume.spec, claimRef: { apiVersion, kind, namespace, name, uid, resourceVersion } } };
      bound = await writeVolume(byController ? annotated(claimed, { [ANNOTATION.boundByController]: "yes" }) : claimed, signal);
    }
    await setVolumePhase(bound, "Bound", undefined, signal);
    let given = claim;
    if (claim.spec.volumeName !== volume.metadata.name) given = annotated({ ...claim, spec: { ...claim.spec, volumeName: volume.metadata.name } }, { [ANNOTATION.boundByController]: "yes" });
    if (annotationsOf(given)[ANNOTATION.bindCompleted] === undefined) given = annotated(given, { [ANNOTATION.bindCompleted]: "yes" });
    if (given !== claim) given = await writeClaim(given, signal);
    await setClaimStatus(given, "Bound", bound, signal);
  }

  async function syncVolume(volume: Volume, signal: AbortSignal): Promise<void> {
    const claim = await claimOf(volume, signal);
    const plan = planVolume(volume, claim);
    switch (plan.type) {
      case "phase": return void (await setVolumePhase(volume, plan.phase, undefined, signal));
      case "claim": return; // its own key is woken by the same change
      case "mismatch":
        say(volume, { type: "Warning", reason: "VolumeMismatch", message: plan.volumeMessage });
        return say(claim!, { type: "Warning", reason: "VolumeMismatch", message: plan.claimMessage });
      case "unbind": {
        const { claimRef, ...spec } = volume.spec;
        const { [ANNOTATION.boundByController]: byController, ...annotations } = annotationsOf(volume);
        const free: Volume = byController === undefined ? { ...volume, spec: { ...spec, claimRef: { ...claimRef, uid: "" } } } : { ...volume, metadata: { ...volume.metadata, annotations }, spec };
        return void (await setVolumePhase(await writeVolume(free, signal), "Available", undefined, signal));
      }
      case "reclaim": {
        const phase = volume.status?.phase;
        const released = phase === "Released" || phase === "Failed" ? volume : await setVolumePhase(volume, "Released", undefined, signal);
        const failure = isDeleting(volume) ? undefined : reclaimFailure(released);
        if (failure === undefined || phase === "Failed") return;
        await setVolumePhase(released, "Failed", failure.message, signal);
        return say(volume, failure);
      }
    }
  }

  /** The claim that a volume names. Our copy may be old: before one counts as gone, the server is asked. */
  async function claimOf({ spec: { claimRef }, status }: Volume, signal: AbortSignal): Promise<Claim | undefined> {
    if (claimRef === undefined || !claimRef.uid) return undefined;
    const { namespace = "", name = "", uid } = claimRef;
    const known = claims.get(objectKey(namespace, name));
    if (known?.metadata.uid === uid) return known;
    if (known === undefined && (status?.phase === "Released" || status?.phase === "Failed")) return undefined;
    const fresh = await claimClient.get({ metadata: { namespace, name } }, { signal }).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
      return undefined;
    });
    return fresh?.metadata.uid === uid ? fresh : undefined;
  }

  async function setVolumePhase(volume: Volume, phase: "Available" | "Bound" | "Released" | "Failed", message: string | undefined, signal: AbortSignal): Promise<Volume> {
    if (volume.status?.phase === phase) return volume;
    const { message: _, ...status } = volume.status ?? {};
    const written = await volumeClient.updateStatus({ ...volume, status: { ...status, phase, ...(message === undefined ? {} : { message }) } }, { signal });
    await volumes.caughtUp([written], signal);
    return written;
  }

  async function setClaimStatus(claim: Claim, phase: "Pending" | "Bound" | "Lost", volume: Volume | undefined, signal: AbortSignal): Promise<void> {
    const { accessModes: _, capacity, currentVolumeAttributesClassName, ...rest } = claim.status ?? {};
    const status = volume === undefined ? { ...rest, phase } : {
      ...rest, phase, accessModes: volume.spec.accessModes,
      capacity: claim.status?.phase === phase ? capacity : volume.spec.capacity, // once bound, the size is for those who expand it to tell
      currentVolumeAttributesClassName: claim.status?.phase === phase ? currentVolumeAttributesClassName : volume.spec.volumeAttributesClassName,
    };
    if (sameValue(status, claim.status)) return;
    await claims.caughtUp([await claimClient.updateStatus({ ...claim, status }, { signal })], signal);
  }

  async function writeClaim(claim: Claim, signal: AbortSignal): Promise<Claim> {
    const written = await claimClient.update(claim, { signal });
    await claims.caughtUp([written], signal);
    return written;
  }

  async function writeVolume(volume: Volume, signal: AbortSignal): Promise<Volume> {
    const written = await volumeClient.update(volume, { signal });
    await volumes.caughtUp([written], signal);
    return written;
  }
}

function annotated<T extends Claim | Volume>(object: T, annotations: Readonly<Record<string, string>>): T {
  return { ...object, metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } } };
}
