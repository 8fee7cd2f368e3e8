import { expect, test } from "vitest";
import { created, type Given } from "../generic/rehearse.ts";
import type { Resource } from "../generic/resource.ts";
import { mutatingAdmissionPolicies, validatingAdmissionPolicies, validatingAdmissionPolicyBindings } from "./admission-policy.ts";
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
  [validatingWebhookConfigurations as never, { webhooks: [hook(), hook({ admissionReviewVersions: ["v2"] })] }, [
    'webhooks[1].admissionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1', 'webhooks[1].name: Duplicate value: "a.example.com"',
  ]],
  [validatingWebhookConfigurations as never, { webhooks: [hook({ rules: [{ ...rule, operations: ["*", "CREATE"], resources: ["*/*", "pods"] }], clientConfig: {} })] }, [
    `webhooks[0].rules[0].operations: Invalid value: ["*","CREATE"]: if '*' is present, must not specify other operations`,
    `webhooks[0].rules[0].resources: Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources`,
    "webhooks[0].clientConfig: Required value: exactly one of url or service is required",
  ]],
  [validatingAdmissionPolicies as never, { spec: policy }, []],
  [validatingAdmissionPolicies as never, { spec: { ...policy, paramKind: { kind: "X" }, variables: [{ name: "in", expression: "1" }] } }, [
    "spec.paramKind.apiVersion: Required value", 'spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier',
  ]],
  [mutatingAdmissionPolicies as never, { spec: { ...policy, validations: undefined, mutations: [{ patchType: "JSONPatch" }] } }, [
    "spec.mutations[0].jsonPatch: Required value: must be specified when patchType is JSONPatch", "spec.reinvocationPolicy: Required value",
  ]],
  [validatingAdmissionPolicyBindings as never, { spec: { policyName: "p", paramRef: {} } }, [
    "spec.paramRef: Required value: one of name or selector must be specified", "spec.paramRef.parameterNotFoundAction: Required value", "spec.validationActions: Required value: at least one validation action is required",
  ]],
])("create %#", (kind, given, errors) => expect(created(kind, given).errors).toEqual(errors));
