/** The scale subresource of what an autoscaler points to, of whatever kind that is. */
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import { namespaceOf } from "../../api/meta/object-meta.ts";
import { isConflict } from "../../api/meta/status-error.ts";
import type { Client } from "../../client/client.ts";
import { pluralOf } from "./metrics-source.ts";

export interface Scale {
  readonly path: string;
  readonly object: { readonly metadata: object; readonly spec?: { readonly replicas?: number }; readonly status?: { readonly replicas?: number; readonly selector?: string } };
}

/** Source: retry.DefaultRetry */
const WRITES_MAX = 5;

export async function getScale(client: Client, autoscaler: Readonly<HorizontalPodAutoscaler>, signal: AbortSignal): Promise<Scale> {
  const { apiVersion = "v1", kind, name } = autoscaler.spec.scaleTargetRef;
  const plural = await pluralOf(client, { apiVersion, kind }, signal);
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const path = `${root}/namespaces/${encodeURIComponent(namespaceOf(autoscaler))}/${plural}/${encodeURIComponent(name)}/scale`;
  return { path, object: (await client.request({ method: "GET", path, signal })) as Scale["object"] };
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
