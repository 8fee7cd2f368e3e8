/**
 * Does what plan.ts says of a claim or of a volume, and tells of it.
 *
 *   bind       the volume's claimRef ─▶ its phase Bound ─▶ the claim's volumeName ─▶ its status; each step only if it is not done yet
 *   unbind     the volume is as before it was bound ─▶ phase Available
 *   reclaim    phase Released ─▶ Failed, if nobody can reclaim it
 *
 * Each write is waited for until our copy has it, so that the next plan is not made of what was before.
 *
 * Source: kubernetes v1.36 pkg/controller/volume/persistentvolume/pv_controller.go
 */
import type { PersistentVolume, PersistentVolumeClaim } from "../../api/gen/core.v1.ts";
import { annotationsOf, isDeleting, keyOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { isQuantity } from "../../api/meta/quantity.ts";
import type { Client, ResourceClient } from "../../client/client.ts";
import type { EventRecorder } from "../../client/events.ts";
import type { Informer } from "../../client/informer.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../../client/resources.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { sameValue } from "../conditions.ts";
import type { Call, Next } from "../controller.ts";
import { isBoundTo } from "./match.ts";
import type { OperationTimes } from "./operation-times.ts";
import { ANNOTATION, type ClaimPlan, reclaimFailure, type Said, type VolumePlan, withDriver } from "./plan.ts";

type Volume = Readonly<PersistentVolume>;
type Claim = Readonly<PersistentVolumeClaim>;
type VolumePhase = "Available" | "Bound" | "Released" | "Failed";
type ClaimPhase = "Pending" | "Bound" | "Lost";

/** How often it is told anew of a claim what it waits for: events go after an hour, and it may wait for longer. Source: kubernetes v1.36 pvbinder-sync-period */
const TELL_MS = 15_000;

interface Deps {
  readonly clock: Clock;
  readonly client: Client;
  readonly claims: Informer<PersistentVolumeClaim>;
  readonly volumes: Informer<PersistentVolume>;
  readonly recorder: EventRecorder;
  /** A claim that was made without a class has been given the default one, or could not be. */
  readonly onDefaultClass?: (failed: boolean) => void;
  readonly times?: OperationTimes | undefined;
  /** Who takes a volume of that class away. */
  readonly provisionerOf?: (volume: Volume) => string;
}

export class PlanApplier {
  readonly #deps: Deps;
  readonly #claims: ResourceClient<PersistentVolumeClaim>;
  readonly #volumes: ResourceClient<PersistentVolume>;
  readonly #told = new Map<ObjectKey, { readonly resourceVersion: string; readonly atMs: number }>(); // of claims that wait, what last

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#claims = deps.client.resource(PERSISTENT_VOLUME_CLAIMS);
    this.#volumes = deps.client.resource(PERSISTENT_VOLUMES);
  }

  async applyToClaim(claim: Claim, plan: ClaimPlan, { signal, log }: Call): Promise<Next> {
    const told = withDriver(claim);
    if (told) return void (await this.#writeClaim(told, signal)); // and it is looked at again
    switch (plan.type) {
      case "bind":
        this.forget(keyOf(claim));
        await this.#counted(claim, this.#bind(plan.volume, claim, signal));
        return this.#deps.times?.ended(keyOf(claim));
      case "pending":
        await this.#setClaimStatus(claim, "Pending", undefined, signal);
        return plan.event && this.#tell(claim, plan.event);
      case "lost":
        if (claim.status?.phase === "Lost") return;
        await this.#setClaimStatus(claim, "Lost", undefined, signal);
        return this.#say(claim, plan.event);
      case "wrong":
        this.#tell(claim, plan.event);
        throw new Error(plan.message);
      case "tell": return this.#tell(claim, plan.event);
      case "set-class": return await this.#setClass(claim, plan.name, signal);
      case "select-node":
        log.info("a volume is wanted where the pod is", { node: plan.name });
        return void (await this.#writeClaim(annotated(claim, { [ANNOTATION.selectedNode]: plan.name }), signal));
      case "provision": {
        const annotations = { [ANNOTATION.provisioner]: plan.provisioner, [ANNOTATION.betaProvisioner]: plan.provisioner };
        this.#deps.times?.began(keyOf(claim), plan.provisioner, "provision");
        if (annotationsOf(claim)[ANNOTATION.provisioner] !== plan.provisioner) await this.#counted(claim, this.#writeClaim(annotated(claim, annotations), signal));
        return this.#tell(claim, plan.event);
      }
    }
  }

  /** A claim that is gone, or waits no more. */
  forget(claim: ObjectKey): void { this.#told.delete(claim); }

  /** `claim`: the one it names, if that is there. */
  async applyToVolume(volume: Volume, claim: Claim | undefined, plan: VolumePlan, signal: AbortSignal): Promise<void> {
    const told = withDriver(volume);
    if (told) return void (await this.#writeVolume(told, signal));
    switch (plan.type) {
      case "phase": return void (await this.#setVolumePhase(volume, plan.phase, undefined, signal));
      case "claim": return; // its own key is woken by the same change
      case "mismatch":
        this.#say(volume, { type: "Warning", reason: "VolumeMismatch", message: plan.volumeMessage });
        return this.#say(claim!, { type: "Warning", reason: "VolumeMismatch", message: plan.claimMessage });
      case "unbind": return void (await this.#setVolumePhase(await this.#writeVolume(unbound(volume), signal), "Available", undefined, signal));
      case "reclaim": return await this.#reclaim(volume, signal);
    }
  }

  /** A step of what takes long. */
  async #counted(of: Claim | Volume, work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      this.#deps.times?.failed(keyOf(of));
      throw error;
    }
  }

  async #setClass(claim: Claim, storageClassName: string, signal: AbortSignal): Promise<void> {
    let failed = true;
    try {
      await this.#writeClaim({ ...claim, spec: { ...claim.spec, storageClassName } }, signal);
      failed = false;
    } finally {
      this.#deps.onDefaultClass?.(failed);
    }
  }

  async #bind(volume: Volume, claim: Claim, signal: AbortSignal): Promise<void> {
    let bound = volume;
    const { apiVersion, kind, metadata: { name, uid, resourceVersion } } = claim;
    const namespace = namespaceOf(claim);
    const byController = !isBoundTo(volume, claim);
    if (byController || volume.spec.claimRef?.uid !== uid) {
      const claimed: Volume = { ...volume, spec: { ...volume.spec, claimRef: { apiVersion, kind, namespace, name, uid, resourceVersion } } };
      bound = await this.#writeVolume(byController ? annotated(claimed, { [ANNOTATION.boundByController]: "yes" }) : claimed, signal);
    }
    await this.#setVolumePhase(bound, "Bound", undefined, signal);
    let given = claim;
    if (claim.spec.volumeName !== volume.metadata.name) given = annotated({ ...claim, spec: { ...claim.spec, volumeName: volume.metadata.name } }, { [ANNOTATION.boundByController]: "yes" });
    if (annotationsOf(given)[ANNOTATION.bindCompleted] === undefined) given = annotated(given, { [ANNOTATION.bindCompleted]: "yes" });
    if (given !== claim) given = await this.#writeClaim(given, signal);
    await this.#setClaimStatus(given, "Bound", bound, signal);
  }

  async #reclaim(volume: Volume, signal: AbortSignal): Promise<void> {
    if (volume.spec.persistentVolumeReclaimPolicy === "Delete" && !annotationsOf(volume)[ANNOTATION.migratedTo]) this.#deps.times?.began(keyOf(volume), this.#deps.provisionerOf?.(volume) ?? "N/A", "delete");
    const phase = volume.status?.phase;
    const released = phase === "Released" || phase === "Failed" ? volume : await this.#setVolumePhase(volume, "Released", undefined, signal);
    const failure = isDeleting(volume) ? undefined : reclaimFailure(released);
    if (failure === undefined || phase === "Failed") return;
    await this.#setVolumePhase(released, "Failed", failure.message, signal);
    this.#say(volume, failure);
  }

  async #setVolumePhase(volume: Volume, phase: VolumePhase, message: string | undefined, signal: AbortSignal): Promise<Volume> {
    if (volume.status?.phase === phase) return volume;
    const { message: _, ...status } = volume.status ?? {};
    const written = await this.#volumes.updateStatus({ ...volume, status: { ...status, phase, ...(message === undefined ? {} : { message }) } }, { signal });
    await this.#deps.volumes.caughtUp([written], signal);
    return written;
  }

  async #setClaimStatus(claim: Claim, phase: ClaimPhase, volume: Volume | undefined, signal: AbortSignal): Promise<void> {
    const { accessModes: _, capacity, currentVolumeAttributesClassName, ...rest } = claim.status ?? {};
    const status = volume === undefined ? { ...rest, phase } : {
      ...rest, phase, accessModes: volume.spec.accessModes,
      capacity: claim.status?.phase === phase ? capacity : capacityFor(claim, volume), // once bound, the size is for those who expand it to tell
      currentVolumeAttributesClassName: claim.status?.phase === phase ? currentVolumeAttributesClassName : volume.spec.volumeAttributesClassName,
    };
    if (sameValue(status, claim.status)) return;
    await this.#deps.claims.caughtUp([await this.#claims.updateStatus({ ...claim, status }, { signal })], signal);
  }

  async #writeClaim(claim: Claim, signal: AbortSignal): Promise<Claim> {
    const written = await this.#claims.update(claim, { signal });
    await this.#deps.claims.caughtUp([written], signal);
    return written;
  }

  async #writeVolume(volume: Volume, signal: AbortSignal): Promise<Volume> {
    const written = await this.#volumes.update(volume, { signal });
    await this.#deps.volumes.caughtUp([written], signal);
    return written;
  }

  /** What a claim waits for: when it changes itself and again and again, not each time something else does. */
  #tell(claim: Claim, said: Said): Next {
    const key = keyOf(claim), { resourceVersion } = claim.metadata, nowMs = this.#deps.clock.uptimeMs();
    const before = this.#told.get(key);
    const againInMs = before?.resourceVersion === resourceVersion ? before.atMs + TELL_MS - nowMs : 0;
    if (againInMs > 0) return { againInMs };
    this.#told.set(key, { resourceVersion, atMs: nowMs });
    this.#say(claim, said);
    return { againInMs: TELL_MS };
  }

  #say(about: Claim | Volume, { type, reason, message }: Said): void { this.#deps.recorder.event(about, type, reason, message); }
}

/** Free again: as it was made, if its claimRef is ours; else meant for whoever has that name. */
function unbound(volume: Volume): Volume {
  const { claimRef, ...spec } = volume.spec;
  const { [ANNOTATION.boundByController]: byController, ...annotations } = annotationsOf(volume);
  return byController === undefined ? { ...volume, spec: { ...spec, claimRef: { ...claimRef, uid: "" } } } : { ...volume, metadata: { ...volume.metadata, annotations }, spec };
}

/** Of a volume whose file system is still to be expanded, what it had before. */
function capacityFor({ status }: Claim, { metadata, spec }: Volume): Volume["spec"]["capacity"] {
  const storage = metadata.annotations?.[ANNOTATION.sizeBefore];
  return storage !== undefined && isQuantity(storage) ? { ...status?.capacity, storage } : spec.capacity;
}

function annotated<T extends Claim | Volume>(object: T, annotations: Readonly<Record<string, string>>): T {
  return { ...object, metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } } };
}
