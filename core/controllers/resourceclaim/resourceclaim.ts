/**
 * ResourceClaims from templates, for the pods that ask for them; reservations of pods that are gone; devices that nobody uses any more.
 *
 *   pod with a template ─▶ claim, owned by the pod ─▶ status.resourceClaimStatuses tells its name
 *   claim               ─▶ plan.ts ─▶ reservations go, then the allocation, then the finalizer; a claim made for a pod that has ended goes, too
 *
 * A key "namespace/name" is a claim's; pods have "namespace/name" of their own in a second controller, as both may have the same name.
 * The scheduler reserves claims for pods it places; pods that somebody else has placed get their reservation here.
 *
 * API:    https://kubernetes.io/docs/concepts/scheduling-eviction/dynamic-resource-allocation/
 * Source: kubernetes v1.36 pkg/controller/resourceclaim
 */
import type { Pod, PodResourceClaim, PodResourceClaimStatus } from "../../api/gen/core.v1.ts";
import type { ResourceClaim } from "../../api/gen/resource.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { annotationsOf, controllerOf, isControlledBy, isDeleting, keyOf, namespaceOf, type ObjectKey, objectKey } from "../../api/meta/object-meta.ts";
import { claimStatusesOf } from "../../api/meta/pod-references.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { PODS, RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS } from "../../client/resources.ts";
import { type Controller, itself, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import { messageOf } from "../pod-control.ts";
import { isTerminal } from "../pod-state.ts";
import { claimMeter } from "./metrics.ts";
import { claimFrom, FINALIZER, isPod, planClaim, POD_CLAIM } from "./plan.ts";

type Deps = Pick<ControllerDeps, "client" | "informers" | "events" | "metrics">;

/** Pods that may use a claim at once. Source: resource/v1 ResourceClaimReservedForMaxSize */
const RESERVED_MAX = 256;
const FIELD_MANAGER = "ResourceClaimController";

const PODS_BY_CLAIM: Index<Pod> = { name: "resource claim", valuesOf: (pod) => claimKeysOf(pod) };
const PODS_BY_TEMPLATE: Index<Pod> = {
  name: "resource claim template",
  valuesOf: (pod) => (pod.spec.resourceClaims ?? []).flatMap(({ resourceClaimTemplateName }) => (resourceClaimTemplateName === undefined ? [] : [objectKey(namespaceOf(pod), resourceClaimTemplateName)])),
};

export function resourceClaimControllers(deps: Deps): readonly Controller[] {
  return [podClaimsController(deps), resourceClaimController(deps)];
}

function podClaimsController({ client, informers, events, metrics }: Deps): Controller {
  const pods = informers.of(PODS);
  const claims = informers.of(RESOURCE_CLAIMS);
  const meter = metrics && claimMeter(metrics, () => claims.list());
  const templates = informers.of(RESOURCE_CLAIM_TEMPLATES);
  const claimClient = client.resource(RESOURCE_CLAIMS);
  const podClient = client.resource(PODS);
  const recorder = events.from({ component: "resource_claim" });
  return {
    name: "pod_resource_claim",
    workers: 10,
    watches: [
      mapped(pods, ({ object, deleted }) => (deleted || isDeleting(object) || isTerminal(object) || !object.spec.resourceClaims?.length ? [] : [keyOf(object)])),
      mapped(claims, ({ object }) => pods.by(PODS_BY_CLAIM, keyOf(object)).map(keyOf)),
      mapped(templates, ({ object, deleted }) => (deleted ? [] : pods.by(PODS_BY_TEMPLATE, keyOf(object)).map(keyOf))),
    ],
    async reconcile(key, { signal }) {
      const pod = pods.get(key);
      if (!pod || isDeleting(pod) || isTerminal(pod)) return;
      const named = new Map<string, string>();
      const statuses = claimStatusesOf(pod);
      let isNew = false;
      for (const one of pod.spec.resourceClaims ?? []) {
        try {
          const name = await ensureClaim(pod, one, statuses.get(one.name), signal);
          if (name === undefined) continue;
          named.set(one.name, name);
          isNew ||= statuses.get(one.name)?.resourceClaimName !== name;
        } catch (error) {
          if (!signal.aborted) recorder.event(pod, "Warning", "FailedResourceClaimCreation", `PodResourceClaim ${one.name}: ${messageOf(error)}`);
          throw new Error(`pod ${key}, PodResourceClaim ${one.name}: ${messageOf(error)}`, { cause: error });
        }
      }
      if (isNew) { // all of them: what we applied before and leave out now would go
        const { name, namespace } = pod.metadata;
        const resourceClaimStatuses = [...named].map(([claim, resourceClaimName]) => ({ name: claim, resourceClaimName }));
        const body = { apiVersion: "v1", kind: "Pod", metadata: { name, namespace }, status: { resourceClaimStatuses } };
        await pods.caughtUp([await podClient.apply(body as never, { signal, fieldManager: FIELD_MANAGER, force: true, subresource: "status" })], signal);
      }
      if (pod.spec.nodeName) await reserve(pod, signal);
    },
  };

  /** The name of the claim that is made from a template. */
  async function ensureClaim(pod: Readonly<Pod>, one: PodResourceClaim, status: PodResourceClaimStatus | undefined, signal: AbortSignal): Promise<string | undefined> {
    const { resourceClaimTemplateName: templateName } = one;
    if (templateName === undefined || (status && status.resourceClaimName === undefined)) return undefined;
    const known = status && claims.get(objectKey(namespaceOf(pod), status.resourceClaimName!));
    if (known && isControlledBy(known, pod)) return known.metadata.name;
    const orphan = claims.ownedBy(pod.metadata.uid).find((claim) => annotationsOf(claim)[POD_CLAIM] === one.name);
    if (orphan) return orphan.metadata.name;
    const template = templates.get(objectKey(namespaceOf(pod), templateName));
    if (!template) throw new Error(`resource claim template "${templateName}": resourceclaimtemplate.resource.k8s.io "${templateName}" not found`);
    const draft = claimFrom(template, pod, one);
    const claim = await claimClient.create(draft, { signal }).catch((cause: unknown) => {
      meter?.created("failure", draft);
      throw new Error(`create ResourceClaim : ${messageOf(cause)}`, { cause });
    });
    meter?.created("success", draft);
    await claims.caughtUp([claim], signal);
    return claim.metadata.name;
  }

  /** For pods that did not come by our scheduler. */
  async function reserve(pod: Readonly<Pod>, signal: AbortSignal): Promise<void> {
    for (const key of claimKeysOf(pods.get(keyOf(pod)) ?? pod)) {
      const claim = claims.get(key);
      const reservedFor = claim?.status?.reservedFor ?? [];
      if (!claim?.status?.allocation || reservedFor.some(({ uid }) => uid === pod.metadata.uid) || reservedFor.length >= RESERVED_MAX) continue;
      const mine = { resource: "pods", name: pod.metadata.name, uid: pod.metadata.uid };
      const written = await claimClient.updateStatus({ ...claim, status: { ...claim.status, reservedFor: [...reservedFor, mine] } } as ResourceClaim, { signal })
        .catch((cause: unknown) => { throw new Error(`reserve claim ${key}: ${messageOf(cause)}`, { cause }); });
      await claims.caughtUp([written], signal);
    }
  }
}

function resourceClaimController({ client, informers }: Deps): Controller {
  const pods = informers.of(PODS);
  const claims = informers.of(RESOURCE_CLAIMS);
  const claimClient = client.resource(RESOURCE_CLAIMS);
  return {
    name: "resource_claim",
    workers: 10,
    watches: [
      itself(claims),
      mapped(pods, ({ object, old, deleted }) => (deleted || isTerminal(object) || isDeleting(object) || old === undefined ? [...claimKeysOf(object), ...claims.ownedBy(object.metadata.uid).map(keyOf)] : [])),
    ],
    async reconcile(key, { signal }) {
      const claim = claims.get(key);
      if (!claim) return;
      const users = await usersOf(claim, signal);
      const made = controllerOf(claim);
      const owner = made?.kind === "Pod" && pods.get(objectKey(namespaceOf(claim), made.name)) ? await podOf(namespaceOf(claim), made, signal) : undefined; // of one that we do not know yet, the garbage collector sees that it is gone
      const { reservedFor, deallocate, removeFinalizer, remove } = planClaim(claim, { users, owner });
      let current = claim;
      try {
        if (reservedFor || deallocate) {
          const { allocation, ...status } = current.status ?? {};
          current = await claimClient.updateStatus({ ...current, status: { ...status, ...(reservedFor ? { reservedFor } : {}), ...(deallocate || !allocation ? {} : { allocation }) } } as ResourceClaim, { signal });
        }
        if (removeFinalizer) current = await claimClient.update({ ...current, metadata: { ...current.metadata, finalizers: (current.metadata.finalizers ?? []).filter((one) => one !== FINALIZER) } } as ResourceClaim, { signal });
        if (remove) await claimClient.delete(current, {}, { signal });
      } catch (error) {
        if (isNotFound(error)) return; // gone is what was coming
        throw error;
      }
      if (remove) await claims.sawDeleted([current], signal);
      else if (current !== claim && !(removeFinalizer && isDeleting(claim))) await claims.caughtUp([current], signal);
    },
  };

  async function usersOf(claim: Readonly<ResourceClaim>, signal: AbortSignal): Promise<Map<string, Readonly<Pod>>> {
    const found = new Map<string, Readonly<Pod>>();
    for (const one of (claim.status?.reservedFor ?? []).filter(isPod)) {
      const pod = await podOf(namespaceOf(claim), one, signal);
      if (pod?.metadata.uid === one.uid) found.set(one.uid, pod);
    }
    return found;
  }

  /** By its name. One that we do not know, or know as another, may be newer than what we know: the API is asked before its reservation, or its claim, is taken. */
  async function podOf(namespace: string, { name, uid }: { readonly name: string; readonly uid: string }, signal: AbortSignal): Promise<Readonly<Pod> | undefined> {
    const known = pods.get(objectKey(namespace, name));
    return known?.metadata.uid === uid ? known : await ifFound(client.resource(PODS).get({ metadata: { name, namespace } }, { signal }));
  }
}

/** Keys of the claims a pod uses, as far as their names are known. */
function claimKeysOf(pod: Readonly<Pod>): ObjectKey[] {
  const extended = pod.status?.extendedResourceClaimStatus?.resourceClaimName;
  const made = claimStatusesOf(pod);
  const named = (pod.spec.resourceClaims ?? []).flatMap(({ name, resourceClaimName }) => resourceClaimName ?? made.get(name)?.resourceClaimName ?? []);
  return [...named, ...(extended ? [extended] : [])].map((name) => objectKey(namespaceOf(pod), name));
}
