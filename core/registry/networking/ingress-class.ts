/**
 * IngressClass (networking.k8s.io/v1): a controller that looks after ingresses.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/service-resources/ingress-class-v1/
 * Source: kubernetes v1.36 pkg/registry/networking/ingressclass/strategy.go, pkg/apis/networking/{v1/defaults,validation/validation}.go
 */
import type { IngressClass, IngressClassParametersReference } from "../../api/gen/networking.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { child, type FieldError, forbidden, notSupported, required, tooLong } from "../../api/meta/field-error.ts";
import { isDomainPrefixedPath } from "../../api/meta/domains.ts";
import { immutable, isDns1123Label } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";
import { validateTypedReference } from "./typed-reference.ts";

const CONTROLLER_BYTES_MAX = 250;

export const ingressClasses = defineResource<IngressClass>({
  group: "networking.k8s.io", version: "v1", kind: "IngressClass", plural: "ingressclasses",
  defaults({ spec }) { if (spec.parameters) spec.parameters.scope ??= "Cluster"; },
  updateOrder: "change first",
  *validate({ spec }): Iterable<FieldError> {
    const controller = spec.controller ?? "";
    if (byteLength(controller) > CONTROLLER_BYTES_MAX) yield tooLong("spec.controller", CONTROLLER_BYTES_MAX);
    yield* isDomainPrefixedPath("spec.controller", controller);
    if (spec.parameters) yield* validateParameters("spec.parameters", spec.parameters);
  },
  validateUpdate: ({ spec }, old) => immutable("spec.controller", spec.controller ?? "", old.spec.controller ?? ""),
});

function* validateParameters(path: string, parameters: IngressClassParametersReference): Iterable<FieldError> {
  const { scope, namespace } = parameters;
  yield* validateTypedReference(path, parameters);
  const namespacePath = child(path, "namespace");
  if (scope === undefined) yield required(child(path, "scope"));
  else if (scope === "Cluster") {
    if (namespace !== undefined) yield forbidden(namespacePath, "`parameters.scope` is set to 'Cluster'");
  } else if (scope !== "Namespace") yield notSupported(child(path, "scope"), scope, ["Cluster", "Namespace"]);
  else if (namespace === undefined) yield required(namespacePath, "`parameters.scope` is set to 'Namespace'");
  else yield* isDns1123Label(namespacePath, namespace);
}
