/**
 * Whether a webhook wants to hear of a request, and as which resource and kind.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/{generic/webhook.go,predicates/**}
 */
import type { RuleWithOperations } from "../../api/gen/admissionregistration.v1.ts";
import type { GroupVersionKind, GroupVersionResource } from "../../api/meta/gvk.ts";
import type { Namespace } from "../../api/gen/core.v1.ts";
import { notFound } from "../../api/meta/status-error.ts";
import type { Lookup } from "../../client/lookup.ts";
import type { AdmissionRequest } from "../plugin.ts";
import type { Hook } from "./hooks.ts";
import type { ObjectVersions } from "./object-versions.ts";

export interface Invocation {
  readonly hook: Hook;
  /** What the webhook's rule names: another version of what was requested, perhaps. */
  readonly resource: GroupVersionResource;
  readonly kind: GroupVersionKind;
}

/** Configurations of admission: asking webhooks about them could lock everybody out for good. */
const EXEMPT: ReadonlySet<string> = new Set([
  "mutatingwebhookconfigurations", "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
]);

export function isExempt({ group, resource }: AdmissionRequest): boolean {
  return group === "admissionregistration.k8s.io" && EXEMPT.has(resource);
}

/** By its rules alone. */
export function invocationOf(hook: Hook, request: AdmissionRequest, versions: Pick<ObjectVersions, "equivalents" | "kindOf">): Invocation | undefined {
  const { rules = [], matchPolicy } = hook.webhook;
  const { group, version, resource, subresource } = request;
  const own = { group, version, resource };
  if (rules.some((rule) => matchesRule(rule, request, own))) return { hook, resource: own, kind: kindOf(request, own, versions) };
  if (matchPolicy !== "Equivalent") return undefined;
  const others = equivalentsOf(own, subresource, versions);
  for (const rule of rules) { // earlier rules first
    const other = others.find(({ resource: one }) => matchesRule(rule, request, one));
    if (other) return { hook, ...other };
  }
  return undefined;
}

/** The same objects under other versions and groups, where these have the subresource, too. */
export function equivalentsOf(resource: GroupVersionResource, subresource: string, versions: Pick<ObjectVersions, "equivalents" | "kindOf">): readonly Pick<Invocation, "resource" | "kind">[] {
  return [...versions.equivalents(resource)].flatMap((other) => {
    const kind = versions.kindOf(other, subresource);
    return kind ? [{ resource: other, kind }] : [];
  });
}

/** The kind of what was sent. A plug-in is told of a Scale, an Eviction or PodExecOptions by their names alone. */
export function kindOf(request: AdmissionRequest, resource: GroupVersionResource, versions: Pick<ObjectVersions, "kindOf">): GroupVersionKind {
  return versions.kindOf(resource, request.subresource) ?? { group: request.group, version: request.version, kind: request.kind };
}

export function matchesRule({ operations = [], apiGroups = [], apiVersions = [], resources = [], scope = "*" }: RuleWithOperations, request: AdmissionRequest, { group, version, resource }: GroupVersionResource): boolean {
  return inScope(scope, request) && has(operations, request.operation) && has(apiGroups, group) && has(apiVersions, version)
    && resources.some((one) => {
      const [name, subresource = ""] = one.split("/", 2);
      return (name === "*" || name === resource) && (subresource === "*" || subresource === request.subresource);
    });
}

/** Requests for a Namespace carry its name as their namespace, and are of the cluster all the same. */
function inScope(scope: string, { group, resource, namespace }: AdmissionRequest): boolean {
  const namespaced = namespace !== "" && !(group === "" && resource === "namespaces");
  return scope === "*" || (scope === "Namespaced") === namespaced;
}

function has(list: readonly string[], value: string): boolean { return list.includes("*") || list.includes(value); }

/** Either the object as it was or as it is to be. */
export function matchesObject({ objectSelector }: Pick<Hook, "objectSelector">, { object, oldObject }: AdmissionRequest): boolean {
  return objectSelector.empty || [object, oldObject].some((one) => one?.metadata !== undefined && objectSelector.matches(one.metadata.labels));
}

/** By the labels of its namespace. Throws 404 when there is none. */
export async function matchesNamespace({ namespaceSelector }: Pick<Hook, "namespaceSelector">, { group, resource, subresource, namespace, operation, object, signal }: AdmissionRequest, namespaces: Lookup<Namespace>): Promise<boolean> {
  const isNamespace = group === "" && resource === "namespaces";
  if (namespaceSelector.empty || (namespace === "" && !isNamespace)) return true;
  if (isNamespace && subresource === "" && (operation === "CREATE" || operation === "UPDATE") && object?.metadata) return namespaceSelector.matches(object.metadata.labels);
  const found = await namespaces.find("", namespace, signal);
  if (!found) throw notFound({ group: "", resource: "namespaces" }, namespace);
  return namespaceSelector.matches(found.metadata.labels);
}

export function resourceOf({ group, version, resource }: AdmissionRequest): GroupVersionResource { return { group, version, resource }; }
