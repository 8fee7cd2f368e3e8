/**
 * Makes the claims of generic ephemeral volumes: one named <pod>-<volume>, owned by the pod, which takes it along when it goes.
 *
 * API:    https://kubernetes.io/docs/concepts/storage/ephemeral-volumes/#generic-ephemeral-volumes
 * Source: kubernetes v1.36 pkg/controller/volume/ephemeral
 */
import type { PersistentVolumeClaim, Pod, Volume } from "../../api/gen/core.v1.ts";
import { controllerRef, isControlledBy, isDeleting, keyOf, type NewObject, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import type { Index } from "../../client/informer.ts";
import { PERSISTENT_VOLUME_CLAIMS, PODS } from "../../client/resources.ts";
import { type Controller, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";

const PODS_BY_CLAIM: Index<Pod> = { name: "ephemeral claim", valuesOf: (pod) => ephemeralOf(pod).map((volume) => claimKey(pod, volume)) };

export function ephemeralVolumeController({ client, informers, events, metrics }: Pick<ControllerDeps, "client" | "informers" | "events" | "metrics">): Controller {
  const pods = informers.of(PODS);
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const claimClient = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const creations = metrics?.counter("ephemeral_volume_controller_create_total", "[ALPHA] Number of PersistentVolumeClaim creation requests").with({});
  const failures = metrics?.counter("ephemeral_volume_controller_create_failures_total", "[ALPHA] Number of PersistentVolumeClaim creation requests").with({});
  const recorder = events.from({ component: "ephemeral_volume" });
  return {
    name: "ephemeral_volume",
    workers: 5,
    watches: [
      mapped(pods, ({ object, deleted }) => (deleted || isDeleting(object) || ephemeralOf(object).length === 0 ? [] : [keyOf(object)])),
      mapped(claims, ({ object, deleted }) => (deleted ? pods.by(PODS_BY_CLAIM, keyOf(object)).map(keyOf) : [])),
    ],
    async reconcile(key, { signal }) {
      const pod = pods.get(key);
      if (pod === undefined || isDeleting(pod)) return;
      for (const volume of ephemeralOf(pod)) {
        try {
          await ensureClaim(pod, volume, signal);
        } catch (error) {
          if (!signal.aborted) recorder.event(pod, "Warning", "FailedBinding", `ephemeral volume ${volume.name}: ${messageOf(error)}`);
          throw new Error(`pod ${key}, ephemeral volume ${volume.name}: ${messageOf(error)}`, { cause: error });
        }
      }
    },
  };

  async function ensureClaim(pod: Readonly<Pod>, volume: Readonly<Volume>, signal: AbortSignal): Promise<void> {
    const key = claimKey(pod, volume);
    const found = claims.get(key);
    if (found !== undefined) {
      if (!isControlledBy(found, pod)) throw new Error(`PVC ${key} was not created for pod ${keyOf(pod)} (pod is not owner)`);
      return;
    }
    const name = claimName(pod, volume);
    creations?.inc();
    const made = await claimClient.create(claimFor(pod, volume), { signal }).catch((cause: unknown) => {
      failures?.inc();
      throw new Error(`create PVC ${name}: ${messageOf(cause)}`, { cause });
    });
    await claims.caughtUp([made], signal);
  }
}

function claimFor(pod: Readonly<Pod>, volume: Readonly<Volume>): NewObject<PersistentVolumeClaim> {
  const { metadata, spec } = volume.ephemeral!.volumeClaimTemplate!;
  return {
    apiVersion: "v1", kind: "PersistentVolumeClaim",
    metadata: {
      name: claimName(pod, volume), namespace: namespaceOf(pod), ownerReferences: [controllerRef(pod)],
      ...(metadata?.labels === undefined ? {} : { labels: { ...metadata.labels } }), ...(metadata?.annotations === undefined ? {} : { annotations: { ...metadata.annotations } }),
    },
    spec: structuredClone(spec),
  };
}

function ephemeralOf({ spec }: Readonly<Pod>): readonly Readonly<Volume>[] { return (spec.volumes ?? []).filter(({ ephemeral }) => ephemeral?.volumeClaimTemplate !== undefined); }
function claimName(pod: Readonly<Pod>, { name }: Readonly<Volume>): string { return `${pod.metadata.name}-${name}`; }
function claimKey(pod: Readonly<Pod>, volume: Readonly<Volume>): ObjectKey { return objectKey(namespaceOf(pod), claimName(pod, volume)); }
