/**
 * Which resources the server serves, asked of the server itself: what the garbage collector and the namespace controller work through.
 * Each resource once, in the version its group prefers.
 */
import type { APIGroupList, APIResourceList } from "../api/gen/meta.v1.ts";
import { formatApiVersion, parseApiVersion } from "../api/meta/gvk.ts";
import type { Client, ResourceRef } from "./client.ts";

export interface ServedResource extends ResourceRef { readonly verbs: readonly string[] }

export interface Discovery {
  readonly resources: readonly ServedResource[];
  /** Group-versions that did not answer ("metrics.k8s.io/v1beta1"), with why: their resources are unknown, not absent. */
  readonly failed: ReadonlyMap<string, unknown>;
}

export async function discover(client: Client, signal: AbortSignal): Promise<Discovery> {
  const { groups } = (await client.request({ method: "GET", path: "/apis", signal })) as APIGroupList;
  const versions = [["v1"], ...groups.map((group) => {
    const all = group.versions.map(({ groupVersion }) => groupVersion);
    const preferred = group.preferredVersion?.groupVersion;
    return preferred === undefined ? all : [preferred, ...all.filter((version) => version !== preferred)];
  })];
  const failed = new Map<string, unknown>();
  const found = new Map<string, ServedResource>(); // the first version to name a resource wins
  const lists = await Promise.all(versions.flat().map(async (groupVersion) => ({ groupVersion, list: await listOf(groupVersion) })));
  for (const { groupVersion, list } of lists) {
    const at = parseApiVersion(groupVersion);
    for (const { name, kind, namespaced, verbs, group, version } of list?.resources ?? []) {
      if (name.includes("/")) continue; // a subresource
      const ref = { group: group || at.group, version: version || at.version, plural: name, kind, namespaced, verbs: verbs ?? [] };
      const id = `${at.group}/${name}`;
      if (!found.has(id)) found.set(id, ref);
    }
  }
  return { resources: [...found.values()], failed };

  async function listOf(groupVersion: string): Promise<APIResourceList | undefined> {
    try {
      return wellFormed(await client.request({ method: "GET", path: groupVersion === "v1" ? "/api/v1" : `/apis/${groupVersion}`, signal }));
    } catch (error) {
      failed.set(groupVersion, error);
      return undefined;
    }
  }
}

/** Whether its server tells of it now, in this version. */
export async function isServed(client: Client, { group, version, plural }: ResourceRef, signal: AbortSignal): Promise<boolean> {
  const path = group === "" ? `/api/${version}` : `/apis/${formatApiVersion({ group, version })}`;
  const { resources } = wellFormed(await client.request({ method: "GET", path, signal }));
  return (resources ?? []).some(({ name }) => name === plural);
}

/** Servers behind the API server answer what they like: one that answers nonsense is one that does not answer, and keeps nobody from what the others serve. Throws. */
function wellFormed(answer: unknown): APIResourceList {
  const { resources } = (answer ?? {}) as { resources?: unknown };
  if (resources !== undefined && resources !== null && !(Array.isArray(resources) && resources.every(isResource))) throw new Error("the answer is no list of resources");
  return answer as APIResourceList;
}

function isResource(one: unknown): boolean {
  const { name, verbs } = (one ?? {}) as { name?: unknown; verbs?: unknown };
  return typeof name === "string" && (verbs === undefined || verbs === null || (Array.isArray(verbs) && verbs.every((verb) => typeof verb === "string")));
}
