/**
 * How many pods the controllers of some pods are to keep, together: of the kinds we know from our copies, of others (custom resources) by their
 * scale subresource.
 */
import type { Pod } from "../../api/gen/core.v1.ts";
import { controllerOf, namespaceOf, objectKey, type OwnerReference } from "../../api/meta/object-meta.ts";
import { formatGroupResource, parseApiVersion } from "../../api/meta/gvk.ts";
import { isNotFound } from "../../api/meta/status-error.ts";
import type { Client } from "../../client/client.ts";
import type { Informers } from "../../client/informer-factory.ts";
import { pathPart } from "../../client/path-part.ts";
import { DEPLOYMENTS, REPLICA_SETS, REPLICATION_CONTROLLERS, STATEFUL_SETS } from "../../client/resources.ts";

export interface Scale {
  readonly pods: number;
  /** Names of pods without a controller. */
  readonly unmanaged: readonly string[];
}

interface Found { readonly uid: string; readonly replicas: number }

export interface ScaleReader {
  readonly reads: readonly { whenSynced(signal: AbortSignal): Promise<void> }[];
  /** Throws an Error for the user when a pod's controller is not to be found. */
  of(pods: readonly Readonly<Pod>[], signal: AbortSignal): Promise<Scale>;
}

export function scaleReader({ client, informers }: { readonly client: Client; readonly informers: Informers }): ScaleReader {
  const replicaSets = informers.of(REPLICA_SETS);
  const deployments = informers.of(DEPLOYMENTS);
  const statefulSets = informers.of(STATEFUL_SETS);
  const replicationControllers = informers.of(REPLICATION_CONTROLLERS);

  return {
    reads: [replicaSets, deployments, statefulSets, replicationControllers],
    async of(pods, signal) {
      const byController = new Map<string, Promise<Found | undefined> | Found | undefined>();
      const unmanaged: string[] = [];
      const replicas = new Map<string, number>();
      for (const pod of pods) {
        const owner = controllerOf(pod);
        if (owner === undefined) {
          unmanaged.push(pod.metadata.name);
          continue;
        }
        if (!byController.has(owner.uid)) byController.set(owner.uid, find(namespaceOf(pod), owner, signal));
        const found = await byController.get(owner.uid);
        if (found === undefined) throw new Error(`found no controllers for pod "${pod.metadata.name}"`);
        replicas.set(found.uid, found.replicas);
      }
      return { pods: [...replicas.values()].reduce((sum, count) => sum + count, 0), unmanaged };
    },
  };

  function find(namespace: string, owner: Readonly<OwnerReference>, signal: AbortSignal): Promise<Found | undefined> | Found | undefined {
    const key = objectKey(namespace, owner.name);
    switch (`${parseApiVersion(owner.apiVersion).group}/${owner.kind}`) {
      case "/ReplicationController": return sized(replicationControllers.get(key), owner.uid);
      case "apps/StatefulSet": return sized(statefulSets.get(key), owner.uid);
      case "apps/ReplicaSet": {
        const set = replicaSets.get(key);
        const above = set === undefined || set.metadata.uid !== owner.uid ? undefined : controllerOf(set);
        const deployment = above?.kind === "Deployment" ? sized(deployments.get(objectKey(namespace, above.name)), above.uid) : undefined;
        return deployment ?? sized(set, owner.uid); // one whose Deployment is gone speaks for itself
      }
      default: return scaleOf(namespace, owner, signal);
    }
  }

  async function scaleOf(namespace: string, { apiVersion, kind, name, uid }: Readonly<OwnerReference>, signal: AbortSignal): Promise<Found | undefined> {
    const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
    const { resources = [] } = (await client.request({ method: "GET", path: root, signal })) as { readonly resources?: readonly { readonly name: string; readonly kind: string }[] };
    const plural = resources.find((resource) => resource.kind === kind && !resource.name.includes("/"))?.name;
    if (plural === undefined) throw new Error(`no matches for kind "${kind}" in version "${apiVersion}"`);
    if (!resources.some((resource) => resource.name === `${plural}/scale`)) throw new Error(`${formatGroupResource({ group: parseApiVersion(apiVersion).group, resource: plural })} does not implement the scale subresource`);
    try {
      const path = `${root}/namespaces/${pathPart(namespace, "namespace")}/${plural}/${pathPart(name)}/scale`;
      const scale = (await client.request({ method: "GET", path, signal })) as { readonly metadata: { readonly uid?: string }; readonly spec?: { readonly replicas?: number } };
      return scale.metadata.uid === uid ? { uid, replicas: scale.spec?.replicas ?? 0 } : undefined;
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }
}

function sized(object: { readonly metadata: { readonly uid: string }; readonly spec?: { readonly replicas?: number | undefined } } | undefined, uid: string): Found | undefined {
  return object?.metadata.uid === uid ? { uid, replicas: object.spec?.replicas ?? 1 } : undefined;
}
