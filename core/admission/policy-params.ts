/**
 * Who has an admission policy read objects must be allowed to read them: what a policy's expressions say of its parameters, a message for one, is seen by whoever is refused. For a
 * policy all objects of its `paramKind`; for a binding the one that its `paramRef` names, or a list of them.
 *
 * Upstream asks in the registry, which here knows no authorizer, of what is otherwise right. It cannot be switched off, and members of system:masters are not asked.
 *
 * Source: kubernetes v1.36 pkg/registry/admissionregistration/{validating,mutating}admissionpolicy{,binding}/authz.go
 */
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ParamKind } from "../api/gen/admissionregistration.v1.ts";
import { compareText } from "../api/meta/compare-text.ts";
import { forbidden } from "../api/meta/field-error.ts";
import { parseApiVersion } from "../api/meta/gvk.ts";
import { invalid } from "../api/meta/status-error.ts";
import { type Asked, askedOf } from "../api/request/attributes.ts";
import { GROUP_MASTERS, type UserInfo } from "../api/request/user.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import type { OwnerReferencesDeps } from "./owner-references.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";

/** Of either kind: what is read here is the same. */
export type Policy = Readonly<MutatingAdmissionPolicy>;
type Binding = Readonly<MutatingAdmissionPolicyBinding>;

export interface PolicyParamsDeps {
  readonly authorizer: Authorizer;
  readonly resourcesOf: OwnerReferencesDeps["resourcesOf"];
  /** Of that resource; undefined: there is none. */
  policy(resource: string, name: string, signal: AbortSignal): Promise<Policy | undefined>;
}

const GROUP = "admissionregistration.k8s.io";
const BINDINGS = "bindings";
const RESOURCES: ReadonlySet<string> = new Set(["mutatingadmissionpolicies", "validatingadmissionpolicies", "mutatingadmissionpolicybindings", "validatingadmissionpolicybindings"]);

export function policyParams({ authorizer, resourcesOf, policy: find }: PolicyParamsDeps): AdmissionPlugin {
  return {
    name: "AdmissionPolicyParamsAuthorization",
    handles: ({ operation, group, resource, subresource }) => (operation === "CREATE" || operation === "UPDATE") && group === GROUP && subresource === "" && RESOURCES.has(resource),
    async validate(request) {
      if (request.user.groups.includes(GROUP_MASTERS)) return;
      const [field, problem] = request.resource.endsWith(BINDINGS) ? ["spec.paramRef", await problemOfBinding(request)] : ["spec.paramKind", await problemOfPolicy(request)];
      if (problem !== undefined) throw invalid({ group: GROUP, kind: request.kind }, request.name || request.object!.metadata.name || "", [forbidden(field, problem)]);
    },
  };

  async function problemOfPolicy({ object, oldObject, user }: AdmissionRequest): Promise<string | undefined> {
    const { paramKind } = (object as Policy).spec, before = (oldObject as Policy | undefined)?.spec.paramKind;
    if (!paramKind || (before && before.kind === paramKind.kind && before.apiVersion === paramKind.apiVersion)) return undefined;
    const { group, version, resource = "*" } = resourceOf(paramKind);
    const { isAllowed, error } = await may(user, { verb: "get", group, version, resource, namespace: "*", name: "*" });
    return isAllowed ? undefined : error ?? `user ${shown(user)} must have "get" permission on all objects of the referenced paramKind (kind=${paramKind.kind}, apiVersion=${paramKind.apiVersion})`;
  }

  /** Also of one whose `paramRef` is as it was: upstream compares pointers. */
  async function problemOfBinding({ resource: bindings, object, user, signal }: AdmissionRequest): Promise<string | undefined> {
    const { policyName = "", paramRef } = (object as Binding).spec;
    if (!paramRef) return undefined;
    const policy = await find(bindings.replace(/ybindings$/, "ies"), policyName, signal);
    const kind = policy?.spec.paramKind;
    const { group = "*", version = "*", resource } = kind ? resourceOf(kind) : {};
    const verb = paramRef.name ? "get" : "list";
    const { isAllowed, error } = await may(user, { verb, group, version, resource: resource ?? "*", namespace: paramRef.namespace ?? "", name: paramRef.name ?? "" });
    if (isAllowed) return undefined;
    if (error !== undefined) return `failed to authorize request: ${error}`;
    const everything = `to determine minimum required permissions and user ${shown(user)} does not have "${verb}" permission for all groups, versions and resources`;
    if (!policy) return `unable to get policy ${policyName} ${everything}`;
    if (kind && resource === undefined) return `unable to resolve paramKind &{${kind.apiVersion} ${kind.kind}} ${everything}`;
    return `user ${shown(user)} does not have "${verb}" permission on the object referenced by paramRef`;
  }

  /** `resource` is undefined for a kind that nobody serves. */
  function resourceOf({ apiVersion = "", kind = "" }: ParamKind): { readonly group: string; readonly version: string; readonly resource: string | undefined } {
    const { group, version } = parseApiVersion(apiVersion);
    return { group, version, resource: resourcesOf({ group, version, kind })[0]?.plural };
  }

  async function may(user: UserInfo, asked: Asked): Promise<{ readonly isAllowed: boolean; readonly error: string | undefined }> {
    const { decision, error } = await authorizer.authorize(askedOf(user, asked));
    return { isAllowed: decision === "allow", error };
  }
}

/** As Go shows a user. */
function shown({ name, uid = "", groups, extra = {} }: UserInfo): string {
  const pairs = Object.entries(extra).toSorted(([a], [b]) => compareText(a, b)).map(([key, values]) => `${key}:[${values.join(" ")}]`);
  return `&{${name} ${uid} [${groups.join(" ")}] map[${pairs.join(" ")}]}`;
}
