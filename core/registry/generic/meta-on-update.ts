/**
 * What is wrong with the metadata of an update, as often as upstream says it: the causes of a refusal are told apart by nothing else.
 *
 *   all objects:  the metadata as it is, and its change
 *   then by kind: its change once more, and once more as it is, where the kind's own rules look at either
 *
 * A change is looked at with its labels, annotations and owners, a kind's own with its finalizers. Nothing is said twice of what is in order, which is found out first and once.
 *
 * Source: kubernetes v1.36 apiserver/pkg/registry/rest/update.go validateCommonFields, and the ValidateUpdate of each strategy
 */
import type { FieldError } from "../../api/meta/field-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { changeErrors, unqualifiedFinalizers, validateMetaUpdate } from "./object-meta.ts";
import { metaErrors, metaErrorsOfAll, type Refusing } from "./refusals.ts";
import type { Subresource, WriteContext } from "./resource.ts";

/** What a kind's own rules look at once more. */
type Again = "both" | "change" | "whole" | "whole twice" | "nothing";

/** Those of an object itself are looked at both ways, but for these. */
const OBJECTS: Readonly<Record<Exclude<Again, "both">, ReadonlySet<string>>> = {
  change: new Set([
    "/services", "/podtemplates", "/resourcequotas", "/replicationcontrollers", "apps/daemonsets", "apps/deployments", "apps/statefulsets", "apps/replicasets", "autoscaling/horizontalpodautoscalers", "batch/cronjobs", "coordination.k8s.io/leases",
    "events.k8s.io/events", "networking.k8s.io/networkpolicies", "networking.k8s.io/servicecidrs", "scheduling.k8s.io/priorityclasses", "resource.k8s.io/resourceslices", "storage.k8s.io/csidrivers", "apiextensions.k8s.io/customresourcedefinitions",
  ]),
  whole: new Set(["/limitranges", "discovery.k8s.io/endpointslices", "flowcontrol.apiserver.k8s.io/flowschemas", "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations", "storage.k8s.io/volumeattachments", "storage.k8s.io/csinodes"]),
  "whole twice": new Set(["/persistentvolumes"]),
  nothing: new Set(["policy/poddisruptionbudgets"]),
};
/** Of a subresource the change, but for these. */
const PARTS: Readonly<Record<string, Again>> = { "certificates.k8s.io/certificatesigningrequests": "both", "batch/cronjobs": "nothing", "policy/poddisruptionbudgets": "nothing", "storage.k8s.io/volumeattachments": "nothing", "admissionregistration.k8s.io/validatingadmissionpolicies": "nothing" };

/** What is told of all objects, then what a kind's own rules find in a change of the metadata, and in the metadata as it is. */
export interface MetaErrors { readonly common: readonly FieldError[]; readonly change: readonly FieldError[]; readonly whole: readonly FieldError[] }

export function updateErrors(target: Refusing, next: Readonly<ApiObject>, old: Readonly<ApiObject>, { context, subresource }: { readonly context: WriteContext; readonly subresource?: Subresource | undefined }): MetaErrors {
  const own = [...metaErrors(target, next, context)];
  const found = [...own, ...validateMetaUpdate(next, old)];
  if (found.length === 0) return NONE;
  const again = target.definition.anyMeta?.(context) ? "nothing" : lookedAtAgain(target.resource, subresource !== undefined);
  const change = changeErrors(next, old);
  return {
    common: [...metaErrorsOfAll(target, next), ...change],
    change: again === "both" || again === "change" ? [...change, ...(target.definition.anyFinalizer || target.resource.form ? [] : unqualifiedFinalizers(next.metadata.finalizers ?? []))] : [],
    whole: again === "change" || again === "nothing" ? [] : again === "whole twice" ? [...own, ...own] : own,
  };
}

const NONE: MetaErrors = { common: [], change: [], whole: [] };

function lookedAtAgain({ group, askedIn, plural, form }: Refusing["resource"], isPart: boolean): Again {
  if (form) return "change"; // custom resources
  const name = `${askedIn ?? group}/${plural}`;
  if (isPart) return PARTS[name] ?? "change";
  if (group === "admissionregistration.k8s.io") return "whole";
  return (Object.keys(OBJECTS) as (keyof typeof OBJECTS)[]).find((kind) => OBJECTS[kind].has(name)) ?? "both";
}
