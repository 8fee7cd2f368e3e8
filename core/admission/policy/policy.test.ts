import { expect, test, vi } from "vitest";
import { admissionRequest } from "../../../test/admission-request.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from "../../api/gen/admissionregistration.v1.ts";
import type { Namespace } from "../../api/gen/core.v1.ts";
import { copyOf } from "../../api/meta/copy.ts";
import { parseLabelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { notFound, type StatusError } from "../../api/meta/status-error.ts";
import { builtInSchemas } from "../../api/patch/facts-schema.ts";
import type { Authorizer } from "../../authz/authorizer.ts";
import type { Client, ResourceRef } from "../../client/client.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { admissionChain } from "../chain.ts";
import type { AdmissionRequest } from "../plugin.ts";
import type { ObjectVersions } from "../webhook/object-versions.ts";
import { mutatingPolicies } from "./mutating.ts";
import { rowOfKind } from "./params.ts";
import { validatingPolicies } from "./validating.ts";
import { type ConditionMeter, type MutationMeter, mutationMeter, type PolicyMeter, policyMeter } from "../admission-metrics.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { customResourceSchema } from "../../api/patch/openapi-schema.ts";
import { Activation } from "../../cel/admission/activation.ts";
import { AdmissionScope, APPLY_CONFIGURATION, JSON_PATCHES } from "../../cel/admission/expressions.ts";
import { ofKind } from "../patched-kind.ts";
import { patched } from "./patch.ts";

const DEPLOYMENT = { group: "apps", version: "v1", kind: "Deployment" };
const versions: ObjectVersions = {
  equivalents: () => [], inOrder: (object) => object, kindOf: () => DEPLOYMENT, schemaOf: () => builtInSchemas.schemaOf(DEPLOYMENT), shown: async (object) => object, restored: async (value) => value as unknown as ApiObject,
};
const rules = [{ operations: ["*"], apiGroups: ["apps"], apiVersions: ["v1"], resources: ["deployments"], scope: "*" }];
const matchConstraints = { resourceRules: rules, matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {} };

const deployment = (more: object = {}): object => ({ apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "default", labels: { app: "web" } }, spec: { replicas: 5, template: { spec: { containers: [{ name: "a", image: "a:1" }] } } }, ...more });
const configMap = (name: string, data: object, namespace = "default"): ApiObject => stored("v1", "ConfigMap", `${namespace}/${name}`, { metadata: { labels: { set: "limits" } }, data });

interface World {
  readonly validating?: readonly object[];
  readonly mutating?: readonly object[];
  /** Of all policies; by default one binding each. */
  readonly binding?: object;
  readonly params?: readonly ApiObject[];
  readonly equivalents?: ReturnType<ObjectVersions["equivalents"]>;
  readonly shown?: ObjectVersions["shown"];
  readonly kindOf?: ObjectVersions["kindOf"];
  readonly request?: Partial<Parameters<typeof admissionRequest>[0]>;
}

async function run({ validating = [], mutating = [], binding = {}, params = [], equivalents = [], shown = versions.shown, kindOf = versions.kindOf, request = {}, clock = systemClock, meter, conditionMeter, mutationMeter: mutations }: World & { readonly clock?: Clock; readonly meter?: PolicyMeter; readonly conditionMeter?: ConditionMeter; readonly mutationMeter?: MutationMeter }) {
  const GROUP = "admissionregistration.k8s.io/v1";
  const policiesOf = <P extends ApiObject>(kind: string, specs: readonly object[]) => staticInformer(...specs.map((spec, i) => stored<P>(GROUP, kind, `p${i}`, { spec: { failurePolicy: "Fail", matchConstraints, ...spec } })));
  const bindingsOf = <B extends ApiObject>(kind: string, specs: readonly object[]) => staticInformer(...specs.map((_, i) => stored<B>(GROUP, kind, `b${i}`, { spec: { policyName: `p${i}`, validationActions: ["Deny"], ...binding } })));
  const client = { resource: ({ plural }: ResourceRef) => ({
    get: async ({ metadata: { name, namespace } }: ApiObject) => params.find(({ metadata }) => metadata.name === name && metadata.namespace === namespace) ?? Promise.reject(notFound({ group: "", resource: plural }, name)),
    list: async (query: { namespace?: string; labelSelector: string }) => ({ items: params.filter(({ metadata }) => metadata.namespace === query.namespace && parseLabelSelector(query.labelSelector).matches(metadata.labels)) }),
  }) } as unknown as Client;
  const authorizer = { authorize: async (attributes: { verb: string }) => ({ decision: attributes.verb === "breakglass" ? "allow" : "no-opinion", reason: "" }) } as unknown as Authorizer;
  const common = {
    client, versions: { ...versions, shown, kindOf, equivalents: () => equivalents }, conditionMeter, authorizer, clock, resourceOf: ({ kind }: { kind: string }) => (kind === "ConfigMap" ? { group: "", version: "v1", plural: "configmaps", kind, namespaced: true } : undefined),
    namespaces: { find: async (_: string, name: string) => stored<Namespace>("v1", "Namespace", name, { metadata: { labels: { env: "prod" } }, status: { phase: "Active" } }) },
  };
  const chain = admissionChain([
    mutatingPolicies({ ...common, mutationMeter: mutations, policies: policiesOf<MutatingAdmissionPolicy>("MutatingAdmissionPolicy", mutating), bindings: bindingsOf<MutatingAdmissionPolicyBinding>("MutatingAdmissionPolicyBinding", mutating) }),
    validatingPolicies({ ...common, meter, policies: policiesOf<ValidatingAdmissionPolicy>("ValidatingAdmissionPolicy", validating), bindings: bindingsOf<ValidatingAdmissionPolicyBinding>("ValidatingAdmissionPolicyBinding", validating) }),
  ]);
  const [warnings, annotations]: [string[], Record<string, string>] = [[], {}];
  const object = copyOf(deployment()) as ApiObject;
  const asked: AdmissionRequest = { ...admissionRequest({ resource: "deployments.apps", object, ...request }), warn: (text) => warnings.push(text), annotate: (key, value) => { annotations[key] = value; } };
  const outcome = await (async () => { await chain.admit(asked); await chain.validate(asked); return "ok"; })().catch(({ code, reason, message }: StatusError) => `${code} ${reason}: ${message}`);
  return { outcome, warnings, annotations, object: asked.object as unknown as { metadata: { labels?: Record<string, string> }; spec: { replicas: number; template: { spec: { containers: object[] } } } } };
}

const denied = (text: string, code = "422 Invalid"): string => `${code}: deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p0' with binding 'b0' denied request: ${text}`;

test.each<[string, object, string]>([
  ["holds", { validations: [{ expression: "object.spec.replicas <= 5 && request.operation == 'CREATE' && oldObject == null" }] }, "ok"],
  ["its expression", { validations: [{ expression: " object.spec.replicas < 5 " }] }, denied("failed expression: object.spec.replicas < 5")],
  ["its message and reason", { validations: [{ expression: "false", message: "no", reason: "Forbidden" }] }, denied("no", "403 Forbidden")],
  ["a computed message", { validations: [{ expression: "false", messageExpression: "'at most ' + string(object.spec.replicas - 1) + ' in ' + namespaceObject.metadata.labels.env", message: "no" }] }, denied("at most 4 in prod")],
  ["a computed message of two lines is none", { validations: [{ expression: "false", messageExpression: "'a\\nb'", message: "no" }] }, denied("no")],
  ["an error", { validations: [{ expression: "object.none == 1" }] }, denied("expression 'object.none == 1' resulted in error: no such key: none")],
  ["an error that is ignored", { failurePolicy: "Ignore", validations: [{ expression: "object.none == 1" }] }, "ok"],
  ["a no is not ignored", { failurePolicy: "Ignore", validations: [{ expression: "false" }] }, denied("failed expression: false")],
  ["does not compile", { validations: [{ expression: "object." }] }, denied("compilation error: compilation failed: ERROR: <input>:1:8: Syntax error: no viable alternative at input '.'\n | object.\n | .......^")],
  ["variables", { variables: [{ name: "a", expression: "object.spec.replicas" }, { name: "b", expression: "variables.a * 2" }], validations: [{ expression: "variables.b == 10 && variables.a == 4" }] }, denied("failed expression: variables.b == 10 && variables.a == 4")],
  ["a variable without a value", { variables: [{ name: "a", expression: "object.none" }], validations: [{ expression: "variables.a == 1" }] }, denied("expression 'variables.a == 1' resulted in error: composited variable \"a\" fails to evaluate: no such key: none")],
  ["a condition that does not hold", { matchConditions: [{ name: "c", expression: "object.spec.replicas > 5" }], validations: [{ expression: "false" }] }, "ok"],
  ["a condition with an error", { matchConditions: [{ name: "c", expression: "object.none" }], validations: [{ expression: "false" }] }, denied("compilation error: must evaluate to bool but got dyn")],
  ["the authorizer", { validations: [{ expression: "authorizer.requestResource.check('breakglass').allowed() && !authorizer.requestResource.check('x').allowed()" }] }, "ok"],
  ["too dear", { validations: [{ expression: "[1,2,3].all(x, authorizer.group('').resource('x').check('get').allowed() == false)" }] }, denied("expression '[1,2,3].all(x, authorizer.group('').resource('x').check('get').allowed() == false)' resulted in error: operation cancelled: actual cost limit exceeded")],
  ["another kind of resource", { matchConstraints: { ...matchConstraints, resourceRules: [{ ...rules[0], resources: ["pods"] }] }, validations: [{ expression: "false" }] }, "ok"],
  ["an exception by name", { matchConstraints: { ...matchConstraints, excludeResourceRules: [{ ...rules[0], resourceNames: ["web"] }] }, validations: [{ expression: "false" }] }, "ok"],
  ["an exception for another name", { matchConstraints: { ...matchConstraints, excludeResourceRules: [{ ...rules[0], resourceNames: ["other"] }] }, validations: [{ expression: "false" }] }, denied("failed expression: false")],
  ["labels of the namespace", { matchConstraints: { ...matchConstraints, namespaceSelector: { matchLabels: { env: "dev" } } }, validations: [{ expression: "false" }] }, "ok"],
  ["labels of the object", { matchConstraints: { ...matchConstraints, objectSelector: { matchLabels: { app: "other" } } }, validations: [{ expression: "false" }] }, "ok"],
  ["an unknown kind of parameter", { paramKind: { apiVersion: "example.com/v1", kind: "Limit" }, validations: [{ expression: "true" }] },
    `422 Invalid: deployments.apps "web" is forbidden: ValidatingAdmissionPolicy 'p0' denied request: failed to configure policy: failed to find resource referenced by paramKind: 'example.com/v1, Kind=Limit'`],
])("a validating policy: %s", async (_, policy, outcome) => expect((await run({ validating: [policy] })).outcome).toBe(outcome));

test.each<[string, object, string]>([
  ["by name", { name: "low" }, denied("failed expression: object.spec.replicas <= int(params.data.max)")],
  ["by name, in another namespace", { name: "high", namespace: "other" }, "ok"],
  ["all there are in the namespace", { selector: {} }, denied("failed expression: object.spec.replicas <= int(params.data.max)")],
  ["by labels: all must agree", { selector: { matchLabels: { set: "limits" } } }, denied("failed expression: object.spec.replicas <= int(params.data.max)")],
  ["none, and that is well", { name: "none", parameterNotFoundAction: "Allow" }, "ok"],
  ["none, and that is not well", { name: "none", parameterNotFoundAction: "Deny" }, denied("failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction")],
])("parameters %s", async (_, paramRef, outcome) => {
  const params = [configMap("low", { max: "4" }), configMap("high", { max: "9" }), configMap("high", { max: "9" }, "other")];
  const policy = { paramKind: { apiVersion: "v1", kind: "ConfigMap" }, validations: [{ expression: "object.spec.replicas <= int(params.data.max)" }] };
  expect((await run({ validating: [policy], params, binding: { paramRef } })).outcome).toBe(outcome);
});

test("a binding says what becomes of a no, and annotations are for the audit log", async () => {
  const policy = { validations: [{ expression: "true" }, { expression: "object.spec.replicas < 5" }], auditAnnotations: [{ key: "replicas", valueExpression: "'there are ' + string(object.spec.replicas)" }, { key: "none", valueExpression: "null" }] };
  const { outcome, warnings, annotations } = await run({ validating: [policy], binding: { validationActions: ["Warn", "Audit"] } });
  expect(outcome).toBe("ok");
  expect(warnings).toEqual(["Validation failed for ValidatingAdmissionPolicy 'p0' with binding 'b0': failed expression: object.spec.replicas < 5"]);
  expect(annotations).toEqual({
    "validation.policy.admission.k8s.io/validation_failure": '[{"message":"failed expression: object.spec.replicas \\u003c 5","policy":"p0","binding":"b0","expressionIndex":1,"validationActions":["Warn","Audit"]}]', "p0/replicas": "there are 5",
  });
});

test.each(["string(authorizer.path('/x').check('get').allowed())", "variables.asked"])("an annotation may not ask the authorizer: %s", async (valueExpression) => {
  const variables = [{ name: "asked", expression: "string(authorizer.path('/x').check('get').allowed())" }];
  const { outcome } = await run({ validating: [{ variables, validations: [{ expression: "variables.asked == 'false'" }], auditAnnotations: [{ key: "k", valueExpression }] }] });
  expect(outcome).toMatch(/^422 Invalid: .* denied request: expression .* no such attribute\(s\): authorizer$/);
});

test("conditions are told of the resource as it was requested, all else in the version the rule names", async () => {
  const other = { group: "apps", version: "v0", resource: "deployments" };
  const policy = {
    matchConstraints: { ...matchConstraints, resourceRules: [{ ...rules[0], apiVersions: ["v0"] }] }, matchConditions: [{ name: "requested", expression: "request.resource.version == 'v1' && request.requestResource.version == 'v1'" }],
  };
  const [validations, mutations] = [[{ expression: "false", messageExpression: "request.resource.version" }], [json("[JSONPatch{op: 'add', path: '/metadata/labels/told', value: request.resource.version}]")]];
  expect(await run({ validating: [{ ...policy, validations }], mutating: [{ ...policy, mutations }], equivalents: [other] })).toMatchObject({ outcome: denied("v0"), object: { metadata: { labels: { told: "v0" } } } });
});

test("a version without the subresource that is asked for is not what a policy speaks of", async () => {
  const kindOf: ObjectVersions["kindOf"] = ({ version }) => (version === "v1" ? DEPLOYMENT : undefined);
  const spec = { matchConstraints: { ...matchConstraints, resourceRules: [{ ...rules[0], apiVersions: ["v0"] }] }, validations: [{ expression: "false" }], mutations: [json("[")] };
  expect(await run({ validating: [spec], mutating: [spec], equivalents: [{ group: "apps", version: "v0", resource: "deployments" }], kindOf })).toMatchObject({ outcome: "ok" });
});

test("what becomes of policies' conditions is told, each once", async () => {
  const told: string[] = [];
  const conditionMeter: ConditionMeter = { asked: ({ name, kind, type }, operation, { hold, error, failures }) => void told.push(`${kind} ${name} ${type} ${operation} ${hold} ${failures} ${error === undefined}`) };
  const asks = (...expressions: string[]) => ({ matchConditions: expressions.map((expression, i) => ({ name: `c${i}`, expression })), validations: [{ expression: "!authorizer.path('/x').check('get').allowed()" }], mutations: [json("[]")] });
  const policies = [asks("authorizer.path('/x').check('breakglass').allowed()"), asks("object.none == 1", "false"), asks("object.none == 1")];
  await run({ validating: policies, mutating: policies.map((policy) => ({ ...policy, failurePolicy: "Ignore" })), conditionMeter });
  expect(told).toEqual(["policy p0 validate CREATE true 0 true", "policy p1 validate CREATE false 1 true", "policy p2 validate CREATE false 1 true", "policy p0 validate CREATE true 0 true", "policy p1 validate CREATE false 1 true", "policy p2 validate CREATE false 1 false"]);
});

test("an object that cannot be shown in the version a policy speaks of counts by its failurePolicy", async () => {
  const spec = { matchConstraints: { ...matchConstraints, resourceRules: [{ ...rules[0], apiVersions: ["v0"] }] }, validations: [{ expression: "true" }], mutations: [json("[]")] };
  const world = { equivalents: [{ group: "apps", version: "v0", resource: "deployments" }], shown: () => Promise.reject(new Error("nobody converts")) };
  expect((await run({ ...world, validating: [spec] })).outcome).toBe(denied("failed to configure binding: failed to convert object version: nobody converts"));
  expect((await run({ ...world, mutating: [spec] })).outcome).toBe("403 Forbidden: policy \"p0\" denied request: failed to configure policy: nobody converts");
  expect((await run({ ...world, validating: [{ ...spec, failurePolicy: "Ignore" }], mutating: [{ ...spec, failurePolicy: "Ignore" }] })).outcome).toBe("ok");
});

test.each([
  ["mutatingwebhookconfigurations", true], ["validatingwebhookconfigurations", true], ["validatingadmissionpolicies", false], ["validatingadmissionpolicybindings", false], ["mutatingadmissionpolicies", false], ["mutatingadmissionpolicybindings", false],
])("%s are asked about: %j", async (resource, asked) => {
  const any = { resourceRules: [{ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*"] }], namespaceSelector: {}, objectSelector: {} };
  const { outcome } = await run({ validating: [{ matchConstraints: any, validations: [{ expression: "false", message: "no" }] }], request: { resource: `${resource}.admissionregistration.k8s.io`, namespace: "" } });
  if (asked) expect(outcome).toMatch(/denied request: no$/);
  else expect(outcome).toBe("ok");
});

test("what validating policies decided is counted by policy, binding, kind of error and what became of it", async () => {
  const counted: string[] = [];
  const meter: PolicyMeter = { checked: (policy, binding, action, message) => void counted.push(`${policy} ${binding} ${action}: ${message}`) };
  const validations = [{ expression: "true" }, { expression: "false", message: "no" }, { expression: "object.none == 1" }];
  await run({ validating: [{ validations }], binding: { validationActions: ["Deny", "Audit"] }, meter });
  await run({ validating: [{ validations: [{ expression: "true" }, { expression: "object.none == 1" }], failurePolicy: "Ignore" }], meter });
  const missing = "expression 'object.none == 1' resulted in error: no such key: none";
  expect(counted).toEqual(["p0 b0 deny: no", "p0 b0 audit: no", `p0 b0 deny: ${missing}`, `p0 b0 audit: ${missing}`, `p0 b0 allow: ${missing}`]);
  const metrics = metricsRegistry();
  const counts = policyMeter(metrics);
  for (const [action, message] of [["deny", "no"], ["allow", "compilation failed: x"], ["warn", "validation failed due to running out of cost budget, no further validation rules will be run"]] as const) counts.checked("p", "b", action, message, 0.5);
  expect([...metrics.render().matchAll(/check_total\{enforcement_action="(\w+)",error_type="(\w+)",policy="p",policy_binding="b"\} 1/g)].map(([, action, error]) => `${action} ${error}`)).toEqual(["deny invalid_error", "allow compile_error", "warn out_of_budget"]);
});

const apply = (expression: string) => ({ patchType: "ApplyConfiguration", applyConfiguration: { expression } });
const json = (expression: string) => ({ patchType: "JSONPatch", jsonPatch: { expression } });
const sidecar = apply("Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: 'side', image: 's:1'}]}}}}");
const refused = (text: string): string => `403 Invalid: policy 'p0' with binding 'b0' denied request: ${text}`;

test.each<[string, object, string, object?]>([
  ["a configuration", { mutations: [apply("Object{metadata: Object.metadata{labels: {'x': request.namespace}}, spec: Object.spec{?replicas: object.spec.replicas > 3 ? optional.of(3) : optional.none()}}")] }, "ok", { metadata: { labels: { app: "web", x: "default" } }, spec: { replicas: 3 } }],
  ["items of a list by their keys", { mutations: [sidecar] }, "ok", { spec: { template: { spec: { containers: [{ name: "a", image: "a:1" }, { name: "side", image: "s:1" }] } } } }],
  ["JSON patches", { mutations: [json("[JSONPatch{op: 'test', path: '/spec/replicas', value: 5}, JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}, JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: 'c'}]")] }, "ok", { metadata: { labels: { "a/b": "c" } }, spec: { replicas: 6 } }],
  ["a test that fails changes nothing", { mutations: [json("[JSONPatch{op: 'test', path: '/spec/replicas', value: 1}, JSONPatch{op: 'remove', path: '/spec/replicas'}]")] }, "ok", { spec: { replicas: 5 } }],
  ["the second sees the first", { mutations: [json("[JSONPatch{op: 'replace', path: '/spec/replicas', value: 7}]"), json("[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}]")] }, "ok", { spec: { replicas: 8 } }],
  ["names that do not fit", { mutations: [apply("Object{spec: Object.metadata{name: 'x'}}")] }, refused('type mismatch: unexpected type name "Object.metadata", expected "Object.spec", which matches field name path from root Object type')],
  ["names in lists that were put together are anybody's", { mutations: [apply("Object{metadata: Object.metadata{finalizers: [Object.spec{}] + [Object.spec{}]}}")] }, refused("error applying patch: failed to convert patch object to typed object: .metadata.finalizers: element 0: associative list without keys has an element that's a map type")],
  ["what is replaced as a whole", { mutations: [apply("Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {'a': 'b'}}}}")] }, refused("error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: .spec.selector")],
  ["no such field", { mutations: [apply("Object{spec: Object.spec{replica: 3}}")] }, refused("error applying patch: failed to convert patch object to typed object: .spec.replica: field not declared in schema")],
  ["a path that is not there", { mutations: [json("[JSONPatch{op: 'remove', path: '/none'}]")] }, refused("JSON Patch: error in remove for path: '/none': Unable to remove nonexistent key: none: missing value")],
  ["JSON patches with what is named by where it goes", { mutations: [json("[JSONPatch{op: 'add', path: '/spec/template/spec/containers/-', value: Object.spec.template.spec.containers{name: 'side', image: 's:1', resources: Object.spec.template.spec.containers.resources{limits: {'cpu': '1'}}}}]")] }, "ok", { spec: { template: { spec: { containers: [{ name: "a", image: "a:1" }, { name: "side", image: "s:1", resources: { limits: { cpu: "1" } } }] } } } }],
  ["JSON patches with what is named otherwise within", { mutations: [json("[JSONPatch{op: 'replace', path: '/spec', value: Object.spec{template: Object.metadata{}}}]")] }, refused('type mismatch: unexpected type name "Object.metadata", expected "Object.spec.template", which matches field name path from root Object type')],
  ["a field that nobody knows, whatever the failurePolicy", { failurePolicy: "Ignore", mutations: [json("[JSONPatch{op: 'add', path: '/spec/none', value: 1}]")] }, '500 InternalError: Internal error occurred: strict decoding error: unknown field "spec.none"'],
  ["another kind", { mutations: [json("[JSONPatch{op: 'replace', path: '/kind', value: 'StatefulSet'}]")] }, "500 InternalError: Internal error occurred: failed to convert object: converting (v1.StatefulSet) to (apps.Deployment): unknown conversion"],
  ["another kind that nobody knows", { mutations: [json("[JSONPatch{op: 'replace', path: '/apiVersion', value: 'apps/v2'}]")] }, '500 InternalError: Internal error occurred: no kind "Deployment" is registered for version "apps/v2" in scheme "pkg/api/legacyscheme/scheme.go:30"'],
  ["no kind is the one it was of", { mutations: [json("[JSONPatch{op: 'remove', path: '/kind'}]")] }, "ok", { kind: "Deployment" }],
  ["a map where an Object is wanted", { mutations: [apply("Object{spec: Object.spec{template: {'spec': {'paused': true}}}}")] }, refused("error applying patch: failed to convert patch object to typed object: .spec.template.spec: expected map, got &{map[paused:true]}")],
  ["maps as items", { mutations: [apply("Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: [{'name': 'a'}]}}}}")] }, refused("error applying patch: failed to convert patch object to typed object: .spec.template.spec.containers: element 0: associative list with keys may not have non-map elements")],
  ["items of the object and another one", { mutations: [apply("Object{spec: Object.spec{template: Object.spec.template{spec: Object.spec.template.spec{containers: object.spec.template.spec.containers + [Object.spec.template.spec.containers{name: 'b', image: 'b:1'}]}}}}")] }, "ok", { spec: { template: { spec: { containers: [{ name: "a" }, { name: "b" }] } } } }],
  ["null", { mutations: [apply("Object{spec: Object.spec{replicas: null}}")] }, refused("error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int or float), got structpb.NullValue")],
  ["a number without a sign", { mutations: [apply("Object{spec: Object.spec{replicas: 1u}}")] }, refused("error applying patch: failed to convert patch object to typed object: .spec.replicas: expected numeric (int or float), got uint64")],
  ["a duration", { mutations: [apply("Object{metadata: Object.metadata{annotations: {'d': duration('1h')}}}")] }, refused("error applying patch: failed to convert patch object to typed object: .metadata.annotations.d: expected string, got &value.valueUnstructured{Value:3600000000000}")],
  ["a time", { mutations: [apply("Object{metadata: Object.metadata{annotations: {'d': timestamp('2020-01-01T00:00:00Z')}}}")] }, refused("error applying patch: failed to convert patch object to typed object: .metadata.annotations.d: expected string, got &value.valueUnstructured{Value:time.Date(2020, time.January, 1, 0, 0, 0, 0, time.UTC)}")],
  ["bytes", { mutations: [apply("Object{metadata: Object.metadata{annotations: {'d': b'x'}}}")] }, refused("error applying patch: failed to convert patch object to typed object: .metadata.annotations.d: expected string, got &value.valueUnstructured{Value:[]uint8{0x78}}")],
  ["keys that are no strings", { mutations: [apply("Object{metadata: Object.metadata{labels: {1: 'v'}}}")] }, refused("error applying patch: failed to convert patch object to typed object: .metadata: expected map, got &{fail to convert field \"labels\": map key '\\x01' is of type types.Int, not string}")],
  ["bytes in an Object in a JSON patch", { mutations: [json("[JSONPatch{op: 'add', path: '/metadata/annotations', value: Object.metadata.annotations{a: b'x', b: b''}}]")] }, "ok", { metadata: { annotations: { a: "eA==", b: "" } } }],
  ["a duration in a JSON patch", { mutations: [json("[JSONPatch{op: 'add', path: '/metadata/labels/d', value: duration('90m')}]")] }, "ok", { metadata: { labels: { d: "5400s" } } }],
  ["a number that JSON cannot hold in a JSON patch", { mutations: [json("[JSONPatch{op: 'add', path: '/metadata/labels/n', value: 9007199254740993}]")] }, "ok", { metadata: { labels: { n: "9007199254740993" } } }],
  ["keys that are no strings in a JSON patch", { mutations: [json("[JSONPatch{op: 'add', path: '/metadata/labels', value: {1: 'a'}}]")] }, refused("JSONPath valueExpression evaluated to a type that could not marshal to JSON: unsupported type conversion from 'int' to string")],
  ["a type in a JSON patch", { mutations: [json("[JSONPatch{op: 'add', path: '/metadata/labels/t', value: type(1)}]")] }, refused("JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion not supported for 'type'")],
  ["a quantity in a JSON patch", { mutations: [json("[JSONPatch{op: 'add', path: '/metadata/labels/q', value: quantity('1')}]")] }, refused("JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from 'Quantity' to '*structpb.Value'")],
  ["null in an Object in a JSON patch", { mutations: [json("[JSONPatch{op: 'replace', path: '/spec', value: Object.spec{replicas: null}}]")] }, refused("JSONPath valueExpression evaluated to a type that could not marshal to JSON: proto: invalid type: structpb.NullValue")],
  ["an operation that is no text", { mutations: [json("[JSONPatch{op: dyn(1), path: '/x'}]")] }, refused("expression '[JSONPatch{op: dyn(1), path: '/x'}]' resulted in error: unexpected type int64 for JSONPatchType 'op' field")],
  ["a test for null never passes", { mutations: [json("[JSONPatch{op: 'test', path: '/spec/none', value: null}, JSONPatch{op: 'remove', path: '/spec/replicas'}]")] }, "ok", { spec: { replicas: 5 } }],
  ["a field that operations do not have", { mutations: [json("[JSONPatch{op: 'test', none: dyn(1)}]")] }, refused("expression '[JSONPatch{op: 'test', none: dyn(1)}]' resulted in error: unexpected JSONPatchType field: none")],
  ["an index that is not there", { mutations: [json("[JSONPatch{op: 'remove', path: '/spec/template/spec/containers/7'}]")] }, refused("JSON Patch: error in remove for path: '/spec/template/spec/containers/7': Unable to access invalid index: 7: invalid index referenced")],
  ["an error", { mutations: [apply("Object{spec: Object.spec{replicas: object.none}}")] }, refused("expression 'Object{spec: Object.spec{replicas: object.none}}' resulted in error: no such key: none")],
  ["an error that is ignored", { failurePolicy: "Ignore", mutations: [apply("Object{spec: Object.spec{replicas: object.none}}")] }, "ok", { spec: { replicas: 5 } }],
  ["a configuration that the kind's type cannot hold", { mutations: [apply("Object{metadata: Object.metadata{creationTimestamp: 'x'}}")] }, refused('unable to convert unstructured object to apps/v1, Kind=Deployment: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"')],
  ["a configuration that the kind's type cannot hold, ignored", { failurePolicy: "Ignore", mutations: [apply("Object{metadata: Object.metadata{creationTimestamp: 'x'}}")] }, "ok", { spec: { replicas: 5 } }],
  ["a number with a fraction where there is none", { mutations: [apply("Object{spec: Object.spec{replicas: 1.5}}")] }, refused("unable to convert unstructured object to apps/v1, Kind=Deployment: cannot convert float64 to int32")],
  ["a quantity", { mutations: [apply("Object{metadata: Object.metadata{annotations: {'q': quantity('1Mi')}}}")] }, refused("error applying patch: failed to convert patch object to typed object: .metadata.annotations.q: expected string, got &value.valueUnstructured{Value:1Mi}")],
  ["an address in a JSON patch", { mutations: [json("[JSONPatch{op: 'add', path: '/metadata/labels/q', value: ip('1.2.3.4')}]")] }, refused("JSONPath valueExpression evaluated to a type that could not marshal to JSON: type conversion error from 'IP' to '*structpb.Value'")],
  ["an endless number within an Object in a JSON patch", { failurePolicy: "Ignore", mutations: [json("[JSONPatch{op: 'replace', path: '/spec', value: Object.spec{replicas: 1.0 / 0.0}}]")] }, "ok", { spec: { replicas: 5 } }],
  ["a kind that is no text", { mutations: [json("[JSONPatch{op: 'add', path: '/kind', value: {}}]")] }, "500 InternalError: Internal error occurred: couldn't get version/kind; json parse error: json: cannot unmarshal object into Go struct field .kind of type string"],
  ["an empty apiVersion is the one it was of", { mutations: [json("[JSONPatch{op: 'add', path: '/apiVersion', value: ''}]")] }, "ok", { apiVersion: "apps/v1" }],
  ["another object in its place", { mutations: [json("[JSONPatch{op: 'replace', path: '', value: {'a': 'b'}}]")] }, '500 InternalError: Internal error occurred: strict decoding error: unknown field "a"'],
  ["fields that nobody knows are told by name", { mutations: [json("[JSONPatch{op: 'add', path: '/spec/strategy', value: {'b': {}, 'a': {}}}, JSONPatch{op: 'add', path: '/spec/paused', value: true}, JSONPatch{op: 'add', path: '/spec/strategy', value: object.metadata}]")] }, '500 InternalError: Internal error occurred: strict decoding error: unknown field "spec.strategy.labels", unknown field "spec.strategy.name", unknown field "spec.strategy.namespace"'],
  ["fields of an Object that nobody knows are told by name", { mutations: [json("[JSONPatch{op: 'add', path: '/spec/strategy', value: Object.spec.strategy{b: 1, a: 2}}]")] }, '500 InternalError: Internal error occurred: strict decoding error: unknown field "spec.strategy.a", unknown field "spec.strategy.b"'],
  ["no from", { mutations: [json("[JSONPatch{op: 'copy', path: '/a'}]")] }, refused("JSON Patch: copy operation failed to decode from: operation, missing from field: missing value")],
  ["a condition that does not hold", { matchConditions: [{ name: "c", expression: "has(object.spec.none)" }], mutations: [apply("Object{spec: Object.spec{replicas: 1}}")] }, "ok", { spec: { replicas: 5 } }],
])("a mutating policy: %s", async (_, policy, outcome, object = {}) => {
  const result = await run({ mutating: [policy] });
  expect(result.outcome).toBe(outcome);
  expect(result.object).toMatchObject(object);
});

test("a custom resource is told of by what does not fit its schema, and by its kind", async () => {
  const schema = customResourceSchema({ type: "object", properties: { spec: { type: "object", properties: { size: { type: "number" }, name: { type: "string" } } } } }, { apiVersion: "ops.io/v1", kind: "Box" });
  const value = (text: string) => { const scope = new AdmissionScope({ params: false, variables: false }); return new Activation({}, scope.variables).evaluate(scope.compile(text, text.startsWith("[") ? JSON_PATCHES : APPLY_CONFIGURATION, { patches: true }), 1_000).value!; };
  const box = (size: unknown) => ({ apiVersion: "ops.io/v1", kind: "Box", metadata: { name: "b" }, spec: { size } }) as unknown as ApiObject;
  const named = value("Object{spec: Object.spec{name: 'x'}}");
  expect(patched(box(1), named, schema)).toMatchObject({ spec: { size: 1, name: "x" } });
  expect(() => patched(box("1"), named, schema)).toThrow("error applying patch: failed to convert original object to typed object: .spec.size: expected numeric (int or float), got string");
  const kindless = patched(box(1), value("[JSONPatch{op: 'remove', path: '/kind'}]"), schema);
  expect(() => ofKind({ group: "ops.io", version: "v1", kind: "Box" }, kindless, (why) => new Error(why))).toThrow(`Object 'Kind' is missing in '{"apiVersion":"ops.io/v1","metadata":{"name":"b"},"spec":{"size":1}}'`);
});

test("mutations are counted by policy, binding and kind of error", async () => {
  const metrics = metricsRegistry();
  const one = (expression: string) => ({ failurePolicy: "Ignore", mutations: [apply(expression)] });
  await run({ mutating: [one("Object{spec: Object.spec{replicas: 5}}"), one("Object{spec: Object.spec{replicas: object.none}}"), one("Object{")], mutationMeter: mutationMeter(metrics) });
  const counted = [...metrics.render().matchAll(/apiserver_mutating_admission_policy_check_(total|duration_seconds_count)\{error_type="(\w+)",policy="p(\d)",policy_binding="b\d"\} (\d)/g)].map(([, what, error, policy, times]) => `${what} ${policy} ${error} ${times}`);
  expect(counted.sort()).toEqual(["duration_seconds_count 0 no_error 1", "duration_seconds_count 1 invalid_error 1", "duration_seconds_count 2 compile_error 1", "total 0 no_error 1", "total 1 invalid_error 1", "total 2 compile_error 1"]);
});

test("a policy that wants to sees the object again when a later one has changed it; the other does not", async () => {
  const grow = (reinvocationPolicy: string) => ({ reinvocationPolicy, mutations: [json("[JSONPatch{op: 'replace', path: '/spec/replicas', value: object.spec.replicas + 1}]")] });
  const label = { reinvocationPolicy: "Never", mutations: [apply("Object{metadata: Object.metadata{labels: {'late': 'yes'}}}")] };
  expect((await run({ mutating: [grow("Never")] })).object).toMatchObject({ spec: { replicas: 6 } });
  expect((await run({ mutating: [grow("IfNeeded")] })).object).toMatchObject({ spec: { replicas: 7 } }); // its own change is one, too
  expect((await run({ mutating: [grow("IfNeeded"), grow("Never"), label] })).object).toMatchObject({ metadata: { labels: { late: "yes" } }, spec: { replicas: 8 } });
});

test("a kind of parameter is found by its small letters, too, and no other way", () => {
  const rows = [{ group: "", version: "v1", kind: "ConfigMap" }, { group: "example.com", version: "v1", kind: "ConfigMap" }];
  const found = (kind: string): unknown => rowOfKind(rows, { group: "", version: "v1", kind });
  expect([found("ConfigMap"), found("configmap"), found("Configmap"), found("configmaps")]).toEqual([rows[0], rows[0], undefined, undefined]);
});

test("many policies that are new to a write are compiled when they first matter, and others have their turn between two", async () => {
  const compile = vi.spyOn(AdmissionScope.prototype, "compile");
  const validating = Array.from({ length: 30 }, () => ({ validations: [{ expression: "object.spec.replicas == 5" }] }));
  const mutating = Array.from({ length: 30 }, () => ({ mutations: [{ patchType: "JSONPatch", jsonPatch: { expression: "[JSONPatch{op: 'test', path: '/spec/replicas', value: 5}]" } }] }));
  expect((await run({ validating, mutating, binding: { matchResources: { ...matchConstraints, resourceRules: [{ ...rules[0], resources: ["replicasets"] }] } } })).outcome).toBe("ok");
  expect(compile).toHaveBeenCalledTimes(0); // no binding is about it
  let upMs = 0, others = 0, isOver = false;
  const turn = (): void => { others++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  expect((await run({ validating, mutating, clock: { ...systemClock, uptimeMs: () => (upMs += 10) } })).outcome).toBe("ok");
  isOver = true;
  expect(compile).toHaveBeenCalledTimes(60);
  expect(others).toBeGreaterThanOrEqual(59);
  compile.mockRestore();
});
