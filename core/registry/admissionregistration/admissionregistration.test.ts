import { expect, test, vi } from "vitest";
import { created, type Given } from "../../../test/rehearse.ts";
import { formatFieldError } from "../../api/meta/field-error.ts";
import { AdmissionScope } from "../../cel/admission/expressions.ts";
import type { Resource, WriteContext } from "../generic/resource.ts";
import { mutatingAdmissionPolicies, mutatingAdmissionPolicyBindings, validatingAdmissionPolicies, validatingAdmissionPolicyBindings } from "./admission-policy.ts";
import { mutatingWebhookConfigurations, validatingWebhookConfigurations } from "./webhook-configuration.ts";

const rule = { operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] };
const hook = (more: Given = {}): Given => ({ name: "a.example.com", clientConfig: { service: { namespace: "n", name: "s" } }, rules: [rule], sideEffects: "None", admissionReviewVersions: ["v1"], ...more });

test("what the API fills in", () => {
  const { object, errors } = created(mutatingWebhookConfigurations, { webhooks: [hook()] });
  expect(errors).toEqual([]);
  expect(object.webhooks![0]).toMatchObject({
    failurePolicy: "Fail", matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {}, timeoutSeconds: 10, reinvocationPolicy: "Never", rules: [{ scope: "*" }], clientConfig: { service: { port: 443 } },
  });
  expect(created(validatingAdmissionPolicies, { spec: { matchConstraints: { resourceRules: [rule] } } }).object.spec).toMatchObject({
    failurePolicy: "Fail", matchConstraints: { matchPolicy: "Equivalent", namespaceSelector: {}, objectSelector: {}, resourceRules: [{ scope: "*" }] },
  });
});

const policy = { matchConstraints: { resourceRules: [rule] }, validations: [{ expression: "true" }] };
test.each<[Resource<never>, Given, string[]]>([
  [validatingWebhookConfigurations as never, { webhooks: [hook({ name: "short.name", sideEffects: "Some", timeoutSeconds: 31 })] }, [
    'webhooks[0].name: Invalid value: "short.name": should be a domain with at least three segments separated by dots',
    'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
    "webhooks[0].timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
  ]],
  [validatingWebhookConfigurations as never, { webhooks: [hook({ sideEffects: undefined, clientConfig: { service: { namespace: "n" } } })] }, [
    "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun", "webhooks[0].clientConfig.service.namespace: Required value",
  ]],
  [validatingWebhookConfigurations as never, { webhooks: [hook({ sideEffects: null })] }, ["webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun"]],
  [validatingWebhookConfigurations as never, { webhooks: [hook(), hook({ admissionReviewVersions: ["v2"] })] }, [
    'webhooks[1].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1', 'webhooks[1].name: Duplicate value: "a.example.com"',
  ]],
  [validatingWebhookConfigurations as never, { webhooks: [hook({ rules: [{ ...rule, operations: ["*", "CREATE"], resources: ["*/*", "pods"] }], clientConfig: {} })] }, [
    `webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
    `webhooks[0].rules[0].resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources`,
    "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
  ]],
  [validatingAdmissionPolicies as never, { spec: policy }, []],
  [mutatingAdmissionPolicyBindings as never, { spec: { policyName: "p", matchResources: { resourceRules: [{ ...rule, operations: ["CREATE", "DELETE"] }] } } }, [
    'spec.matchResources.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
  ]],
  [validatingAdmissionPolicies as never, { spec: { ...policy, paramKind: { kind: "X" }, variables: [{ name: "in", expression: "1" }] } }, [
    "spec.paramKind.apiVersion: Required value", 'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
  ]],
  [validatingWebhookConfigurations as never, { webhooks: [hook({ matchConditions: [{ name: "ok", expression: " authorizer.path('/x').check('get').allowed() " }, { name: "params", expression: "params == null" }, { name: "text", expression: "'x'" }] })] }, [
    'webhooks[0].matchConditions[1].expression: Invalid value: "params == null": compilation failed: ERROR: <input>:1:1: undeclared reference to \'params\' (in container \'\')\n | params == null\n | ^',
    'webhooks[0].matchConditions[2].expression: Invalid value: "\'x\'": must evaluate to bool but got string',
  ]],
  [validatingAdmissionPolicies as never, { spec: {
    ...policy, paramKind: { apiVersion: "v1", kind: "ConfigMap" }, variables: [{ name: "a", expression: "variables.b" }, { name: "b", expression: "size(params.data)" }],
    matchConditions: [{ name: "c", expression: "params != null && !has(variables.a)" }],
    validations: [{ expression: "variables.b > 1 && request.namespace == namespaceObject.metadata.name", messageExpression: "string(authorizer != null)" }, { expression: "variables.b" }, { expression: "request.nothing" }],
    auditAnnotations: [{ key: "k", valueExpression: "variables.b" }, { key: "l", valueExpression: "null" }],
  } }, [
    "spec.matchConditions[0].expression: Invalid value: \"params != null && !has(variables.a)\": compilation failed: ERROR: <input>:1:24: undeclared reference to 'variables' (in container '')\n | params != null && !has(variables.a)\n | .......................^",
    "spec.variables[0].expression: Invalid value: \"variables.b\": compilation failed: ERROR: <input>:1:10: undefined field 'b'\n | variables.b\n | .........^",
    "spec.validations[0].messageExpression: Invalid value: \"string(authorizer != null)\": compilation failed: ERROR: <input>:1:8: undeclared reference to 'authorizer' (in container '')\n | string(authorizer != null)\n | .......^",
    'spec.validations[1].expression: Invalid value: "variables.b": must evaluate to bool but got int',
    "spec.validations[2].expression: Invalid value: \"request.nothing\": compilation failed: ERROR: <input>:1:8: undefined field 'nothing'\n | request.nothing\n | .......^",
    'spec.auditAnnotations[0].valueExpression: Invalid value: "variables.b": must evaluate to one of [string null_type] but got int',
  ]],
  [mutatingAdmissionPolicies as never, { spec: { ...policy, validations: undefined, reinvocationPolicy: "Never", mutations: [
    { patchType: "JSONPatch", jsonPatch: { expression: "[JSONPatch{op: 'add', path: '/metadata/labels/' + jsonpatch.escapeKey('a/b'), value: Object.metadata{name: 'x'}}]" } },
    { patchType: "JSONPatch", jsonPatch: { expression: "[1]" } },
    { patchType: "ApplyConfiguration", applyConfiguration: { expression: "Object{spec: Object.spec{replicas: 3}}" } },
    { patchType: "ApplyConfiguration", applyConfiguration: { expression: "Object.spec{}" } },
    { patchType: "JSONPatch", jsonPatch: { expression: "[JSONPatch{op: 'test', none: 1}]" } },
  ] } }, [
    'spec.mutations[1].jsonPatch.expression: Invalid value: "[1]": must evaluate to list(JSONPatch) but got list(int)',
    'spec.mutations[3].applyConfiguration.expression: Invalid value: "Object.spec{}": must evaluate to Object but got Object.spec',
    "spec.mutations[4].jsonPatch.expression: Invalid value: \"[JSONPatch{op: 'test', none: 1}]\": compilation failed: ERROR: <input>:1:28: expected type of field 'none' is '' but provided type is 'int'\n | [JSONPatch{op: 'test', none: 1}]\n | ...........................^",
  ]],
  [mutatingAdmissionPolicies as never, { spec: { ...policy, validations: undefined, mutations: [{ patchType: "JSONPatch" }] } }, [
    "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch", "spec.reinvocationPolicy: Required value",
  ]],
  [mutatingAdmissionPolicies as never, { spec: { matchConstraints: { resourceRules: [{ ...rule, operations: ["DELETE"] }] }, matchConditions: [{ name: "c", expression: "'x'" }], reinvocationPolicy: "Never" } }, [
    'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": supported values: "*", "CONNECT", "CREATE", "UPDATE"',
    'spec.matchConditions[0].expression: Invalid value: "\'x\'": must evaluate to bool but got string', "spec.mutations: Required value: mutations must contain at least one item",
  ]],
  [validatingAdmissionPolicyBindings as never, { spec: { policyName: "p", paramRef: {} } }, [
    "spec.paramRef: Required value: one of name or selector must be specified", "spec.paramRef.parameterNotFoundAction: Required value", "spec.validationActions: Required value: at least one validation action is required",
  ]],
])("create %#", (kind, given, errors) => expect(created(kind, given).errors).toEqual(errors));

test("without a name of the policy there is no key of an audit annotation", () => {
  const unnamed = { ...created(validatingAdmissionPolicies, { spec: { ...policy, auditAnnotations: [{ key: "k", valueExpression: "'1'" }] } }).object, metadata: {} };
  expect([...validatingAdmissionPolicies.validate!(unnamed as never)].map(formatFieldError)).toEqual(['spec.auditAnnotations[0].key: Invalid value: "k": requires metadata.name be non-empty']);
});

test("expressions of a policy are compiled before it is validated, with a pause after each; it is told the same, and nothing is compiled again", () => {
  const context = { dryRun: false } as WriteContext;
  const spec = {
    ...policy, matchConditions: [{ name: "c", expression: "object.a == 1" }, { name: "d", expression: "1" }], variables: [{ name: "a", expression: "variables.b" }, { name: "b", expression: "1" }, { name: "", expression: " " }],
    validations: [{ expression: "variables.b > 1", messageExpression: "1" }, { expression: "variables.b" }, { expression: "" }], auditAnnotations: [{ key: "k", valueExpression: "variables.b" }],
  };
  const patches = ["[JSONPatch{op: 'test', path: '/a'}]", "variables.b"].map((expression) => ({ patchType: "JSONPatch", jsonPatch: { expression } }));
  const mutating = { ...policy, matchConditions: spec.matchConditions, variables: spec.variables, mutations: [...patches, { patchType: "ApplyConfiguration", applyConfiguration: { expression: "Object{spec: Object.spec{}}" } }], reinvocationPolicy: "Never" };
  for (const [resource, given, expressions, wrong] of [[validatingAdmissionPolicies, spec, 8, 8], [mutatingAdmissionPolicies, mutating, 7, 5]] as unknown as [Resource<never>, Given, number, number][]) {
    const { object, errors } = created(resource, { spec: given });
    const pieces = [...resource.foresee!(object, undefined, context)].length;
    const compiled = vi.spyOn(AdmissionScope.prototype, "compile");
    expect([pieces, [...resource.validate!(object, undefined, context)!].map(formatFieldError), [...resource.validate!(object, undefined, context)!].map(formatFieldError)]).toEqual([expressions, errors, errors]);
    expect(compiled).not.toHaveBeenCalled();
    compiled.mockRestore();
    expect(errors).toHaveLength(wrong);
    const other = structuredClone(object) as { spec: { variables: { expression: string }[] } };
    other.spec.variables[1]!.expression = "nothing";
    expect([...resource.validate!(other as never, undefined, context)!].map(formatFieldError).join()).toContain("undeclared reference to 'nothing'");
  }
});
