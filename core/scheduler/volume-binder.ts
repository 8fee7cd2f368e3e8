/**
 * Carries out a VolumePlan once its pod has a node: writes which volume is for which claim and where claims are to be provisioned, then waits until
 * the volume controller and the provisioners have bound them.
 *
 * Source: kubernetes v1.36 pkg/scheduler/framework/plugins/volumebinding/binder.go
 */
import type { Node, PersistentVolume, PersistentVolumeClaim } from "../api/gen/core.v1.ts";
import { annotationsOf, keyOf } from "../api/meta/object-meta.ts";
import type { Client } from "../client/client.ts";
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES } from "../client/resources.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { LiveNode } from "./node-info.ts";
import { revision, type Storage } from "./storage.ts";
import { isMeantFor, reaches } from "./volume-choice.ts";
import { isFullyBound, SELECTED_NODE, type VolumePlan } from "./volume-plan.ts";

const BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller";

interface Deps {
  readonly client: Client;
  readonly clock: Clock;
  readonly storage: Storage;
  readonly node: (name: string) => LiveNode | undefined;
}

interface Binding { readonly claim: Readonly<PersistentVolumeClaim>; volume: Readonly<PersistentVolume> }

/** What was decided for one pod, held from the decision until it is carried out or taken back. */
export interface Reservation {
  readonly node: string;
  readonly bindings: Binding[];
  readonly provisions: Readonly<PersistentVolumeClaim>[];
}

export class VolumeBinder {
  readonly #deps: Deps;
  #waiting = new Set<() => void>();

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** From now on the volumes count as taken. undefined: there is nothing to do. */
  reserve({ bind, provision }: VolumePlan, node: string): Reservation | undefined {
    if (bind.length === 0 && provision.length === 0) return undefined;
    const { storage } = this.#deps;
    const bindings = bind.map(({ claim, volume }) => ({ claim, volume: boundTo(volume, claim) }));
    const provisions = provision.map((claim) => ({ ...claim, metadata: { ...claim.metadata, annotations: { ...annotationsOf(claim), [SELECTED_NODE]: node } } }));
    for (const { volume } of bindings) storage.volumes.assume(volume);
    for (const claim of provisions) storage.claims.assume(claim);
    return { node, bindings, provisions };
  }

  takeBack({ bindings, provisions }: Reservation): void {
    const { storage } = this.#deps;
    for (const { volume } of bindings) storage.volumes.takeBack(volume);
    for (const claim of provisions) storage.claims.takeBack(claim);
  }

  /** A claim or a volume has changed. */
  changed(): void {
    const waiting = this.#waiting;
    this.#waiting = new Set();
    for (const wake of waiting) wake();
  }

  /** Resolves once all claims are bound. Throws if that cannot be any more, or takes too long. */
  async bind(reservation: Reservation, timeoutMs: number, signal: AbortSignal): Promise<void> {
    const { client, clock, storage } = this.#deps;
    for (const binding of reservation.bindings) {
      binding.volume = await client.resource(PERSISTENT_VOLUMES).update(binding.volume as PersistentVolume, { signal });
      storage.volumes.assume(binding.volume);
    }
    for (const [i, claim] of reservation.provisions.entries()) {
      const written = await client.resource(PERSISTENT_VOLUME_CLAIMS).update(claim as PersistentVolumeClaim, { signal });
      reservation.provisions[i] = written;
      storage.claims.assume(written);
    }
    const endMs = clock.uptimeMs() + timeoutMs;
    while (!this.#isBound(reservation)) {
      signal.throwIfAborted();
      if (clock.uptimeMs() >= endMs) throw new Error("binding volumes: context deadline exceeded");
      await this.#change(endMs, signal);
    }
  }

  #change(endMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#deps.clock.after(Math.max(0, endMs - this.#deps.clock.uptimeMs()), () => wake());
      const wake = (): void => {
        timer.cancel();
        signal.removeEventListener("abort", wake);
        this.#waiting.delete(wake);
        resolve();
      };
      this.#waiting.add(wake);
      signal.addEventListener("abort", wake, { once: true });
    });
  }

  /** What the informers know must be as new as what we wrote. */
  #isBound({ node: nodeName, bindings, provisions }: Reservation): boolean {
    const { storage } = this.#deps;
    const node = this.#deps.node(nodeName)?.node;
    if (!node) throw new Error(`binding volumes: failed to get node "${nodeName}": node "${nodeName}" not found`);
    for (const { claim, volume } of bindings) {
      const known = storage.volumes.known(keyOf(volume));
      if (!known) throw new Error(`binding volumes: failed to check binding: persistentvolumes "${volume.metadata.name}" not found`);
      if (revision(known) < revision(volume)) return false;
      checkReach(known, node);
      if (!known.spec.claimRef?.uid) throw new Error(`binding volumes: ClaimRef got reset for pv "${volume.metadata.name}"`);
      const now = storage.claims.known(keyOf(claim));
      if (!now) throw new Error(`binding volumes: failed to check binding: persistentvolumeclaims "${keyOf(claim)}" not found`);
      if (!isFullyBound(now)) return false;
    }
    for (const claim of provisions) {
      const known = storage.claims.known(keyOf(claim));
      if (!known) throw new Error(`binding volumes: failed to check provisioning pvc: persistentvolumeclaims "${keyOf(claim)}" not found`);
      if (revision(known) < revision(claim)) return false;
      if (Object.keys(annotationsOf(known)).length === 0) throw new Error(`binding volumes: selectedNode annotation reset for PVC "${claim.metadata.name}"`);
      if (annotationsOf(known)[SELECTED_NODE] !== nodeName) throw new Error(`binding volumes: provisioning failed for PVC "${claim.metadata.name}"`); // how provisioners say no
      if (known.spec.volumeName) {
        const volume = storage.volume(known.spec.volumeName);
        if (!volume) return false;
        checkReach(volume, node);
      }
      if (!isFullyBound(known)) return false;
    }
    return true;
  }
}

function checkReach(volume: Readonly<PersistentVolume>, node: Readonly<Node>): void {
  if (!reaches(volume, node)) throw new Error(`binding volumes: pv "${volume.metadata.name}" node affinity doesn't match node "${node.metadata.name}": no matching NodeSelectorTerms`);
}

function boundTo(volume: Readonly<PersistentVolume>, claim: Readonly<PersistentVolumeClaim>): PersistentVolume {
  const { name, namespace, uid, resourceVersion } = claim.metadata;
  const preset = isMeantFor(volume, claim); // by hand: the controller will not free it
  return {
    ...volume,
    metadata: { ...volume.metadata, annotations: preset ? { ...volume.metadata.annotations } : { ...volume.metadata.annotations, [BOUND_BY_CONTROLLER]: "yes" } },
    spec: { ...volume.spec, claimRef: { kind: "PersistentVolumeClaim", apiVersion: "v1", name, namespace, uid, resourceVersion } },
  };
}
