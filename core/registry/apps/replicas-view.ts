/** The scale subresource of the kinds of apps/v1. */
import type { LabelSelector } from "../../api/gen/meta.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { scaleView } from "../autoscaling/scale.ts";
import type { Subresource } from "../generic/resource.ts";
import { selectorQuery } from "./selected-template.ts";

interface Replicated extends ApiObject {
  spec: { replicas?: number | undefined; readonly selector?: LabelSelector | undefined };
  readonly status?: { readonly replicas?: number | undefined } | undefined;
}

export function replicasView<T extends Replicated>(): Extract<Subresource<T>, { type: "view" }> {
  return scaleView<T>({
    replicas: ({ spec }) => spec.replicas ?? 0,
    current: ({ status }) => status?.replicas ?? 0,
    selector: ({ spec }) => selectorQuery(spec.selector),
    setReplicas(object, replicas) { object.spec = { ...object.spec, replicas }; },
  });
}
