import { expect, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import { created, type Given } from "../../../test/rehearse.ts";
import { flowSchemas } from "./flow-schema.ts";
import { mandatoryFlowSchema, mandatoryPriorityLevel } from "./mandatory.ts";
import { priorityLevelConfigurations as levels } from "./priority-level.ts";

const rule = { subjects: [{ kind: "User", user: { name: "u" } }], nonResourceRules: [{ verbs: ["get"], nonResourceURLs: ["/healthz"] }] };
const schema = (spec: Given = {}): Given => ({ spec: { priorityLevelConfiguration: { name: "l" }, rules: [rule], ...spec } });
const queued = (queuing: Given): Given => ({ spec: { type: "Limited", limited: { limitResponse: { type: "Queue", queuing } } } });

test("what the API fills in", () => {
  expect(created(flowSchemas, schema()).object.spec.matchingPrecedence).toBe(1000);
  expect(created(levels, queued({})).object.spec.limited).toEqual({
    nominalConcurrencyShares: 30, lendablePercent: 0, limitResponse: { type: "Queue", queuing: { queues: 64, handSize: 8, queueLengthLimit: 50 } },
  });
});

test.each<[Given, string[]]>([
  [schema(), []],
  [schema({ matchingPrecedence: 1 }), ["spec.matchingPrecedence: Invalid value: 1: only the schema named 'exempt' may have matchingPrecedence 1"]],
  [schema({ rules: [{ ...rule, subjects: [{ kind: "User", group: { name: "g" } }] }] }), [
    "spec.rules[0].subjects[0].user: Required value: user is required when subject kind is 'User'", "spec.rules[0].subjects[0].group: Forbidden: group is forbidden when subject kind is not 'Group'",
  ]],
  [schema({ rules: [{ ...rule, nonResourceRules: [{ verbs: ["look"], nonResourceURLs: ["/a*"] }] }] }), [
    'spec.rules[0].nonResourceRules[0].verbs: Unsupported value: ["look"]: supported values: "create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"',
    'spec.rules[0].nonResourceRules[0].nonResourceURLs[0]: Invalid value: "/a*": wildcard can only do suffix matching',
  ]],
  [{ metadata: { name: "exempt" }, spec: mandatoryFlowSchema("exempt") }, []],
  [{ metadata: { name: "catch-all" }, spec: { priorityLevelConfiguration: { name: "l" } } }, [
    `spec: Invalid value: {"PriorityLevelConfiguration":{"Name":"l"},"MatchingPrecedence":1000,"DistinguisherMethod":null,"Rules":null}: spec of 'catch-all' must equal the fixed value`,
  ]],
])("a schema %#", (given, errors) => expect(created(flowSchemas, given).errors).toEqual(errors));

test.each<[Given, string[]]>([
  [queued({ queues: 128, handSize: 9 }), ["spec.limited.limitResponse.queuing.handSize: Invalid value: 9: required entropy bits of deckSize 128 and handSize 9 should not be greater than 60"]],
  [{ spec: { type: "Exempt" } }, ["spec.type: Invalid value: \"Exempt\": must be 'Exempt' if and only if `name` is 'exempt'"]],
  [{ spec: { type: "Limited" } }, ["spec.limited: Required value: must not be empty when type is Limited"]],
  [{ metadata: { name: "catch-all" }, spec: mandatoryPriorityLevel("catch-all") }, []],
  [{ metadata: { name: "catch-all" }, spec: { type: "Limited" } }, [
    "spec.limited: Required value: must not be empty when type is Limited", `spec: Invalid value: {"Type":"Limited","Limited":null,"Exempt":null}: spec of 'catch-all' must equal the fixed value`,
  ]],
])("a level %#", (given, errors) => expect(created(levels, given).errors).toEqual(errors));

test.each([["flowschemas", schema()], ["prioritylevelconfigurations", queued({})]])("a write of the status of %s touches nothing else, whatever it says of the metadata", async (plural, given) => {
  await using api = await apiServer();
  const at = `/apis/flowcontrol.apiserver.k8s.io/v1/${plural}`;
  await api.ask("POST", at, { body: { metadata: { name: "own", labels: { a: "b" } }, ...given } });
  const { body: before } = await api.ask("GET", `${at}/own`);
  const metadata = { uid: "other", deletionGracePeriodSeconds: 5, labels: null, generateName: "x", finalizers: ["bad"] };
  const { code, body } = await api.ask("PATCH", `${at}/own/status`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata } });
  expect({ code, metadata: { ...body.metadata, managedFields: undefined, resourceVersion: undefined } }).toEqual({ code: 200, metadata: { ...before.metadata, managedFields: undefined, resourceVersion: undefined } });
});
