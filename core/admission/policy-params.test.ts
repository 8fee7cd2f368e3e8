import { expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../test/admission-request.ts";
import type { ParamKind, ParamRef } from "../api/gen/admissionregistration.v1.ts";
import { GROUP_MASTERS, type UserInfo } from "../api/request/user.ts";
import { builtInResources } from "../api/schema/resources.ts";
import type { Authorizer } from "../authz/authorizer.ts";
import { policyParams } from "./policy-params.ts";

/** Who may do what is named, as "verb resource.group/version namespace/name"; "!": nobody knows. */
const allowing = (...allowed: string[]): Authorizer => ({
  authorize(attributes) {
    if (allowed.includes("!")) return { decision: "no-opinion", reason: "", error: "no webhook" };
    const asked = attributes.isResource ? `${attributes.verb} ${attributes.resource}.${attributes.group}/${attributes.version} ${attributes.namespace}/${attributes.name}` : "";
    return { decision: allowed.includes(asked) ? "allow" : "no-opinion", reason: "" };
  },
  rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }),
});

const KINDS: Readonly<Record<string, ParamKind | undefined>> = { secrets: { apiVersion: "v1", kind: "Secret" }, bogus: { apiVersion: "v1", kind: "Bogus" }, plain: undefined };
const JANE: UserInfo = { name: "jane", uid: "7", groups: ["a", "b"], extra: { y: ["1", "2"], x: [] } };
const SHOWN = "&{jane 7 [a b] map[x:[] y:[1 2]]}";

const plugin = (...allowed: string[]) => policyParams({
  authorizer: allowing(...allowed), resourcesOf: ({ group, version, kind }) => builtInResources.rows().filter((row) => row.group === group && row.version === version && row.kind === kind),
  policy: async (resource, name) => (resource === "validatingadmissionpolicies" && Object.hasOwn(KINDS, name) ? { metadata: { name }, spec: { ...(KINDS[name] && { paramKind: KINDS[name] }) } } as never : undefined),
});

const policy = (paramKind?: ParamKind, kind = "ValidatingAdmissionPolicy") => ({ apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name: "p" }, spec: { ...(paramKind && { paramKind }) } });
const NEEDS = (kind: ParamKind): string => `422 ValidatingAdmissionPolicy.admissionregistration.k8s.io "p" is invalid: spec.paramKind: Forbidden: user ${SHOWN} must have "get" permission on all objects of the referenced paramKind (kind=${kind.kind}, apiVersion=${kind.apiVersion})`;

test.each<[string, ParamKind | undefined, ParamKind | undefined, string[], string]>([
  ["without parameters", undefined, undefined, [], "ok"],
  ["of Secrets that may be read", KINDS["secrets"], undefined, ["get secrets./v1 */*"], "ok"],
  ["of Secrets that may be read in one namespace", KINDS["secrets"], undefined, ["get secrets./v1 a/*"], NEEDS(KINDS["secrets"]!)],
  ["that had them before", KINDS["secrets"], { ...KINDS["secrets"] }, [], "ok"],
  ["that had others before", KINDS["secrets"], { apiVersion: "v1", kind: "ConfigMap" }, [], NEEDS(KINDS["secrets"]!)],
  ["of a kind nobody serves", KINDS["bogus"], undefined, ["get secrets./v1 */*"], NEEDS(KINDS["bogus"]!)],
  ["of a kind nobody serves, by who may read all of that version", KINDS["bogus"], undefined, ["get *./v1 */*"], "ok"],
  ["of a kind in small letters, which would find its objects", { apiVersion: "v1", kind: "secret" }, undefined, [], NEEDS({ apiVersion: "v1", kind: "secret" })],
  ["where nobody knows", KINDS["secrets"], undefined, ["!"], '422 ValidatingAdmissionPolicy.admissionregistration.k8s.io "p" is invalid: spec.paramKind: Forbidden: no webhook'],
])("a policy %s", async (_, paramKind, before, allowed, expected) => {
  for (const operation of before ? ["UPDATE"] as const : ["CREATE", "UPDATE"] as const) {
    expect(await runPlugin(plugin(...allowed), admissionRequest({ operation, resource: "validatingadmissionpolicies.admissionregistration.k8s.io", object: policy(paramKind), old: operation === "UPDATE" ? policy(before) : undefined, user: JANE }))).toBe(expected);
  }
});

const binding = (policyName: string, paramRef?: ParamRef, kind = "ValidatingAdmissionPolicyBinding") => ({ apiVersion: "admissionregistration.k8s.io/v1", kind, metadata: { name: "b" }, spec: { policyName, ...(paramRef && { paramRef }) } });
const REFUSED = 'ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io "b" is invalid: spec.paramRef: Forbidden: ';
const EVERYTHING = (verb: string): string => `to determine minimum required permissions and user ${SHOWN} does not have "${verb}" permission for all groups, versions and resources`;

test.each<[string, string, ParamRef | undefined, string[], string]>([
  ["without parameters", "secrets", undefined, [], "ok"],
  ["to one that may be read", "secrets", { name: "s", namespace: "a" }, ["get secrets./v1 a/s"], "ok"],
  ["to another one", "secrets", { name: "t", namespace: "a" }, ["get secrets./v1 a/s"], `422 ${REFUSED}user ${SHOWN} does not have "get" permission on the object referenced by paramRef`],
  ["to one in each namespace", "secrets", { name: "s" }, ["get secrets./v1 a/s"], `422 ${REFUSED}user ${SHOWN} does not have "get" permission on the object referenced by paramRef`],
  ["to those of a label", "secrets", { selector: {}, namespace: "a" }, ["get secrets./v1 a/"], `422 ${REFUSED}user ${SHOWN} does not have "list" permission on the object referenced by paramRef`],
  ["to those of a label, by who may list", "secrets", { selector: {}, namespace: "a" }, ["list secrets./v1 a/"], "ok"],
  ["to a policy that is not there yet", "later", { name: "s", namespace: "a" }, ["get secrets./v1 a/s"], `422 ${REFUSED}unable to get policy later ${EVERYTHING("get")}`],
  ["to a policy that is not there yet, by who may all", "later", { name: "s", namespace: "a" }, ["get *.*/* a/s"], "ok"],
  ["to a policy without parameters", "plain", { name: "s", namespace: "a" }, [], `422 ${REFUSED}user ${SHOWN} does not have "get" permission on the object referenced by paramRef`],
  ["to a policy of a kind nobody serves", "bogus", { name: "s", namespace: "a" }, [], `422 ${REFUSED}unable to resolve paramKind &{v1 Bogus} ${EVERYTHING("get")}`],
  ["where nobody knows", "secrets", { name: "s", namespace: "a" }, ["!"], `422 ${REFUSED}failed to authorize request: no webhook`],
])("a binding %s", async (_, policyName, paramRef, allowed, expected) => {
  for (const operation of ["CREATE", "UPDATE"] as const) {
    const object = binding(policyName, paramRef);
    expect(await runPlugin(plugin(...allowed), admissionRequest({ operation, resource: "validatingadmissionpolicybindings.admissionregistration.k8s.io", object, old: operation === "UPDATE" ? object : undefined, user: JANE }))).toBe(expected);
  }
});

test("policies that change objects are looked at, too; members of system:masters and the policy's status are not", async () => {
  const ask = async (resource: string, object: object, user = JANE): Promise<string> => await runPlugin(plugin(), admissionRequest({ resource: resource.replace(/^[a-z]+/, "$&.admissionregistration.k8s.io"), object, user }));
  expect(await ask("mutatingadmissionpolicies", policy(KINDS["secrets"], "MutatingAdmissionPolicy"))).toContain('MutatingAdmissionPolicy.admissionregistration.k8s.io "p" is invalid: spec.paramKind: Forbidden: user ');
  expect(await ask("mutatingadmissionpolicybindings", binding("secrets", { name: "s" }, "MutatingAdmissionPolicyBinding"))).toContain("unable to get policy secrets "); // which changes nothing
  expect(await ask("validatingadmissionpolicies", policy(KINDS["secrets"]), { name: "root", groups: [GROUP_MASTERS] })).toBe("ok");
  expect(await ask("validatingadmissionpolicies/status", policy(KINDS["secrets"]))).toBe("not handled");
});
