/**
 * Scale (autoscaling/v1): how many replicas an object wants and has, the same for every kind that has replicas.
 *
 * Source: kubernetes v1.36 pkg/registry/apps/deployment/storage/storage.go ScaleREST, pkg/apis/autoscaling/validation/validation.go ValidateScale
 */
import type { FieldError } from "../../api/meta/field-error.ts";
import { dns1123Subdomain } from "../../api/meta/names.ts";
import type { Scale } from "../../api/gen/autoscaling.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { nonNegative } from "../core/checks/values.ts";
import { validateMeta } from "../generic/object-meta.ts";
import type { Subresource } from "../generic/resource.ts";

interface Scaled<T extends ApiObject> {
  replicas(object: Readonly<T>): number;
  current(object: Readonly<T>): number;
  /** The pods that are counted, as a query would select them. */
  selector(object: Readonly<T>): string;
  /** Mutates `object`. */
  setReplicas(object: T, replicas: number): void;
}

export function scaleView<T extends ApiObject>({ replicas, current, selector, setReplicas }: Scaled<T>): Extract<Subresource<T>, { type: "view" }> {
  return {
    type: "view",
    read(object): Scale {
      const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
      const text = selector(object);
      return {
        kind: "Scale", apiVersion: "autoscaling/v1",
        metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion, creationTimestamp },
        spec: replicas(object) === 0 ? {} : { replicas: replicas(object) },
        status: { replicas: current(object), ...(text === "" ? {} : { selector: text }) },
      };
    },
    write(object, view) { setReplicas(object, (view as Scale).spec?.replicas ?? 0); },
    isOfItself: true,
    *validate(view): Iterable<FieldError> {
      yield* validateMeta(view, true, dns1123Subdomain);
      yield* nonNegative("spec.replicas", (view as Scale).spec?.replicas);
    },
  };
}
