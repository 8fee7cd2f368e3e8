/** The scale subresource of what an autoscaler points to, of whatever kind that is. */
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import type { APIGroup, APIResourceList } from "../../api/gen/meta.v1.ts";
import { parseApiVersion } from "../../api/meta/gvk.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { namespaceOf } from "../../api/meta/object-meta.ts";
import { isConflict, isNotFound } from "../../api/meta/status-error.ts";
import type { Client } from "../../client/client.ts";
import { pathPart } from "../../client/path-part.ts";

export interface Scale {
  readonly path: string;
  readonly object: { readonly metadata: object; readonly spec?: { readonly replicas?: number }; readonly status?: { readonly replicas?: number; readonly selector?: string } };
}

/** Source: retry.DefaultRetry */
const WRITES_MAX = 5;

export async function getScale(client: Client, autoscaler: Readonly<HorizontalPodAutoscaler>, signal: AbortSignal): Promise<Scale> {
  const { apiVersion = "v1", kind, name } = autoscaler.spec.scaleTargetRef;
  const { root, plural } = await servedAs(client, { group: parseApiVersion(apiVersion).group, kind }, signal);
  const path = `${root}/namespaces/${pathPart(namespaceOf(autoscaler), "namespace")}/${plural}/${pathPart(name)}/scale`;
  return { path, object: (await client.request({ method: "GET", path, signal })) as Scale["object"] };
}

/** In whichever version its group serves the kind: the one that is asked for may be long gone. Source: horizontal.go RESTMappings */
export async function servedAs(client: Client, { group, kind }: { readonly group: string; readonly kind: string }, signal: AbortSignal): Promise<{ readonly root: string; readonly plural: string }> {
  for (const root of group === "" ? ["/api/v1"] : await versionsOf(client, group, signal)) {
    const { resources = [] } = (await client.request({ method: "GET", path: root, signal })) as APIResourceList;
    const found = resources.find((resource) => resource.kind === kind && !resource.name.includes("/"));
    if (found) return { root, plural: found.name };
  }
  throw new Error(`no matches for kind ${goQuote(kind)} in group ${goQuote(group)}`);
}

/** The preferred one first. */
async function versionsOf(client: Client, group: string, signal: AbortSignal): Promise<string[]> {
  try {
    const { versions, preferredVersion } = (await client.request({ method: "GET", path: `/apis/${group}`, signal })) as APIGroup;
    return [...new Set([preferredVersion, ...versions].flatMap((version) => (version ? [`/apis/${version.groupVersion}`] : [])))];
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** Whatever somebody else has written meanwhile. */
export async function updateScale(client: Client, { path, object }: Scale, replicas: number, signal: AbortSignal): Promise<void> {
  let latest = object;
  for (let tries = 1; ; tries++) {
    try {
      await client.request({ method: "PUT", path, body: { ...latest, spec: { ...latest.spec, replicas } }, signal });
      return;
    } catch (error) {
      if (!isConflict(error) || tries === WRITES_MAX) throw error;
      latest = (await client.request({ method: "GET", path, signal })) as Scale["object"];
    }
  }
}
