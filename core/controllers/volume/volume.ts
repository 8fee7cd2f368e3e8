/**
 * Binds claims to volumes, tells provisioners which claims want one, and keeps the phases of both.
 *
 *   PersistentVolumeClaim ┐                  what to do (plan.ts)
 *   PersistentVolume      ├─▶ key ─▶ one ───▶ about the claim, or ──▶ done (apply.ts)
 *   Pod, StorageClass     ┘         worker   about the volume
 *
 * A key with a namespace is a claim, one without a volume. There is one worker, which after each write waits until it sees it, so no volume is
 * given to two claims; and an interrupted binding goes on from where it stopped.
 *
 * API:    https://kubernetes.io/docs/concepts/storage/persistent-volumes/
 * Source: kubernetes v1.36 pkg/controller/volume/persistentvolume
 */
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod } from "../../api/gen/core.v1.ts";
import type { StorageClass } from "../../api/gen/storage.v1.ts";
import { DEFAULT_CLASS_ANNOTATIONS } from "../../api/meta/default-class.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { provisionerNow } from "../../api/meta/in-tree-volumes.ts";
import { annotationsOf, isDeleting, keyOf, type ObjectKey, objectKey, splitKey } from "../../api/meta/object-meta.ts";
import type { Index } from "../../client/informer.ts";
import { NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, STORAGE_CLASSES } from "../../client/resources.ts";
import { type Controller, itself, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { claimsOf, isTerminal } from "../pod-state.ts";
import { PlanApplier } from "./apply.ts";
import { classOfClaim, classOfVolume, mayHave } from "./match.ts";
import { operationTimes } from "./operation-times.ts";
import { ANNOTATION, type ClaimFacts, planClaim, planVolume } from "./plan.ts";
import { volumeCounts } from "./volume-counts.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "events" | "clock" | "metrics">;
type Volume = Readonly<PersistentVolume>;
type Claim = Readonly<PersistentVolumeClaim>;

const PODS_BY_CLAIM: Index<Pod> = { name: "mounted claim", valuesOf: claimsOf };
const UNBOUND_BY_CLASS: Index<PersistentVolumeClaim> = { name: "unbound of class", valuesOf: (claim) => (annotationsOf(claim)[ANNOTATION.bindCompleted] === undefined ? [classOfClaim(claim)] : []) };
const UNBOUND_BY_VOLUME: Index<PersistentVolumeClaim> = { name: "names volume", valuesOf: ({ spec }) => (spec.volumeName ? [spec.volumeName] : []) };
const VOLUMES_BY_CLAIM: Index<PersistentVolume> = { name: "names claim", valuesOf: ({ spec: { claimRef } }) => (claimRef === undefined ? [] : [objectKey(claimRef.namespace ?? "", claimRef.name ?? "")]) };
const FREE_BY_CLASS: Index<PersistentVolume> = { name: "free of class", valuesOf: (volume) => (volume.spec.claimRef === undefined && volume.status?.phase === "Available" ? [classOfVolume(volume)] : []) };

/** It needs its volumes no more: it has ended, or is to go and no container of it runs, be it that its node does not answer. Source: kubernetes v1.36 pkg/volume/util/util.go IsPodTerminated */
export function isDoneWithVolumes(pod: Readonly<Pod>): boolean {
  const { initContainerStatuses = [], containerStatuses = [], ephemeralContainerStatuses = [] } = pod.status ?? {};
  return isTerminal(pod) || (isDeleting(pod) && [...initContainerStatuses, ...containerStatuses, ...ephemeralContainerStatuses].every(({ state }) => state?.terminated || state?.waiting));
}

export function volumeBinder({ client, informers, events, clock, metrics }: Deps): Controller {
  const claims = informers.of(PERSISTENT_VOLUME_CLAIMS);
  const volumes = informers.of(PERSISTENT_VOLUMES);
  const classes = informers.of(STORAGE_CLASSES);
  const pods = informers.of(PODS);
  const nodes = informers.of(NODES);
  if (metrics) volumeCounts(metrics, { volumes: () => volumes.list(), claims: () => claims.list() });
  const claimClient = client.resource(PERSISTENT_VOLUME_CLAIMS);
  const classesGiven = metrics?.counter("retroactive_storageclass_total", "[ALPHA] Total number of retroactive StorageClass assignments to persistent volume claim").with({});
  const classesNotGiven = metrics?.counter("retroactive_storageclass_errors_total", "[ALPHA] Total number of failed retroactive StorageClass assignments to persistent volume claim").with({});
  function onDefaultClass(failed: boolean): void {
    classesGiven?.inc(); // be it that it failed, as upstream counts
    if (failed) classesNotGiven?.inc();
  }
  const times = metrics && operationTimes(metrics, clock);
  const applier = new PlanApplier({ client, clock, claims, volumes, onDefaultClass, times, provisionerOf, recorder: events.from({ component: "persistentvolume-controller" }) });

  return {
    name: "persistentvolume-binder",
    workers: 1,
    watches: [
      itself(claims),
      mapped(claims, ({ object, old }) => [object, ...(old === undefined ? [] : [old])].flatMap(({ spec }) => (spec.volumeName ? [objectKey("", spec.volumeName)] : []))),
      mapped(claims, ({ object, old, deleted }) => (old === undefined || deleted ? volumesNaming(object) : [])),
      itself(volumes),
      mapped(volumes, ({ object, old, deleted }) => [...claimsFor(object), ...(old === undefined ? [] : claimsFor(old)), ...(deleted ? [] : takersOf(object))]),
      mapped(classes, ({ object }) => [...unboundOf(object.metadata.name), ...unboundOf("")]),
      mapped(pods, ({ object, old }) => (object.spec.nodeName && old?.spec.nodeName !== object.spec.nodeName ? claimsOf(object) : [])),
    ],
    reads: [nodes],
    async reconcile(key, call) {
      if (splitKey(key).namespace === "") {
        const volume = volumes.get(key);
        if (volume === undefined) return times?.ended(key);
        const claim = await claimOf(volume, call.signal);
        await applier.applyToVolume(volume, claim, planVolume(volume, claim), call.signal);
      } else {
        const claim = claims.get(key);
        if (claim !== undefined) return await applier.applyToClaim(claim, planClaim(claim, factsOf(claim)), call);
        applier.forget(key);
        times?.forget(key);
      }
    },
  };

  function unboundOf(className: string): ObjectKey[] { return claims.by(UNBOUND_BY_CLASS, className).map(keyOf); }

  /** The claims a change of a volume concerns: the one it names, and those that name it. */
  function claimsFor({ metadata, spec: { claimRef } }: Volume): ObjectKey[] {
    const naming = claims.by(UNBOUND_BY_VOLUME, metadata.name).map(keyOf);
    return claimRef === undefined ? naming : [...naming, objectKey(claimRef.namespace ?? "", claimRef.name ?? "")];
  }

  /** While it is free, all that it would do for: each of them looks at all volumes. */
  function takersOf(volume: Volume): ObjectKey[] {
    if (volume.spec.claimRef !== undefined) return [];
    return claims.by(UNBOUND_BY_CLASS, classOfVolume(volume)).filter((claim) => mayHave(claim, volume)).map(keyOf);
  }

  function volumesNaming(claim: Claim): ObjectKey[] { return volumes.by(VOLUMES_BY_CLAIM, keyOf(claim)).map(keyOf); }

  function factsOf(claim: Claim): ClaimFacts {
    return {
      named: claim.spec.volumeName ? volumes.get(objectKey("", claim.spec.volumeName)) : undefined,
      volumes: () => [...volumes.by(VOLUMES_BY_CLAIM, keyOf(claim)), ...volumes.by(FREE_BY_CLASS, classOfClaim(claim))],
      storageClass: classes.get(objectKey("", classOfClaim(claim))),
      defaultClass: () => defaultClass(classes.list()),
      users: pods.by(PODS_BY_CLAIM, keyOf(claim)).filter((pod) => !isDoneWithVolumes(pod)).map((pod) => ({ name: pod.metadata.name, placed: !!pod.spec.nodeName, node: nodeOf(pod) })),
    };
  }

  function provisionerOf(volume: Volume): string {
    const { provisioner } = classes.get(objectKey("", classOfVolume(volume))) ?? {};
    return provisioner === undefined ? "N/A" : provisionerNow(provisioner);
  }

  function nodeOf({ spec }: Readonly<Pod>): Readonly<Node> | undefined { return spec.nodeName ? nodes.get(objectKey("", spec.nodeName)) : undefined; }

  /** The claim that a volume names. Our copy may be old: before one counts as gone, the server is asked. */
  async function claimOf({ spec: { claimRef }, status }: Volume, signal: AbortSignal): Promise<Claim | undefined> {
    if (claimRef === undefined || !claimRef.uid) return undefined;
    const { namespace = "", name = "", uid } = claimRef;
    const known = claims.get(objectKey(namespace, name));
    if (known?.metadata.uid === uid) return known;
    if (known === undefined && (status?.phase === "Released" || status?.phase === "Failed")) return undefined;
    const fresh = await ifFound(claimClient.get({ metadata: { namespace, name } }, { signal }));
    return fresh?.metadata.uid === uid ? fresh : undefined;
  }
}

/** Of several that are marked, the newest. */
function defaultClass(classes: Iterable<Readonly<StorageClass>>): Readonly<StorageClass> | undefined {
  const marked = [...classes].filter((one) => DEFAULT_CLASS_ANNOTATIONS.some((annotation) => annotationsOf(one)[annotation] === "true"));
  return marked.toSorted((a, b) => Date.parse(b.metadata.creationTimestamp) - Date.parse(a.metadata.creationTimestamp) || (a.metadata.name < b.metadata.name ? -1 : 1))[0];
}
