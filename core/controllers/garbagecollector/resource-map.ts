/** Kinds to resources, as the server's discovery last told. */
import { parseApiVersion } from "../../api/meta/gvk.ts";
import type { Discovery, ServedResource } from "../../client/discovery.ts";

export class ResourceMap {
  readonly #byKind = new Map<string, ServedResource>();

  /** Groups that did not answer keep the resources they had. */
  update({ resources, failed }: Discovery): void {
    const failedGroups = new Set([...failed.keys()].map((groupVersion) => parseApiVersion(groupVersion).group));
    for (const [key, { group }] of [...this.#byKind]) if (!failedGroups.has(group)) this.#byKind.delete(key);
    for (const resource of resources) this.#byKind.set(`${resource.group}/${resource.kind}`, resource);
  }

  /** Any served version will do: the object is the same. */
  resourceOf({ apiVersion, kind }: { readonly apiVersion: string; readonly kind: string }): ServedResource | undefined {
    return this.#byKind.get(`${parseApiVersion(apiVersion).group}/${kind}`);
  }

  /** Everything the garbage collector can follow and delete. */
  collectable(): ServedResource[] {
    return [...this.#byKind.values()].filter(({ verbs, group, plural }) => ["delete", "list", "watch"].every((verb) => verbs.includes(verb)) && !isIgnored(group, plural));
  }
}

/** Events are many, own nothing and are owned by nothing. */
function isIgnored(group: string, plural: string): boolean { return plural === "events" && (group === "" || group === "events.k8s.io"); }
