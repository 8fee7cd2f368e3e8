import { expect, test } from "vitest";
import { withControllers } from "../../../test/run-controllers.ts";
import { staticInformer } from "../../../test/static-informer.ts";
import type { ValidatingAdmissionPolicy } from "../../api/gen/admissionregistration.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { VALIDATING_ADMISSION_POLICIES } from "../../client/resources.ts";
import { validatingAdmissionPolicyStatusController } from "./validatingadmissionpolicystatus.ts";

const rule = (apiGroups: string[], resources: string[]) => ({ operations: ["CREATE"], apiGroups, apiVersions: ["v1"], resources });

async function warningsOf(spec: object): Promise<readonly string[]> {
  let warnings: readonly string[] = [];
  await withControllers((deps) => [validatingAdmissionPolicyStatusController(deps)], async (api, { signal }) => {
    const client = api.client.resource(VALIDATING_ADMISSION_POLICIES);
    await client.create({ apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy", metadata: { name: "p", generation: 1 }, spec } as unknown as NewObject<ValidatingAdmissionPolicy>, { signal });
    await expect.poll(async () => (await client.get({ metadata: { name: "p" } }, { signal })).status?.observedGeneration).toBe(1);
    const { status } = await client.get({ metadata: { name: "p" } }, { signal });
    warnings = (status?.typeChecking?.expressionWarnings ?? []).map(({ fieldRef, warning }) => `${fieldRef}: ${warning}`);
  });
  return warnings;
}

test("expressions that fit", async () => {
  expect(await warningsOf({
    matchConstraints: { resourceRules: [rule(["apps"], ["deployments"])] }, variables: [{ name: "min", expression: "object.spec.replicas - 1" }],
    validations: [{ expression: "variables.min > 1 && object.spec.template.spec.containers.all(c, c.ports.all(p, p.containerPort > 1024)) && namespaceObject.metadata.name != 'x'", messageExpression: "request.name + object.metadata.labels['a']" }],
  })).toEqual([]);
});

test("expressions that do not, of each kind they are about", async () => {
  expect(await warningsOf({
    matchConstraints: { resourceRules: [rule(["apps"], ["deployments", "statefulsets", "deployments/scale"]), rule(["*"], ["pods"])] }, variables: [{ name: "replicas", expression: "object.spec.replicas" }],
    validations: [{ expression: "variables.replicas > 'two'" }, { expression: "object.spec.strategy.type == 'Recreate'", messageExpression: "object.nope" }],
  })).toEqual([
    "spec.validations[0].expression: apps/v1, Kind=Deployment: ERROR: <input>:1:20: found no matching overload for '_>_' applied to '(int, string)'\n | variables.replicas > 'two'\n | ...................^\n\n"
      + "apps/v1, Kind=StatefulSet: ERROR: <input>:1:20: found no matching overload for '_>_' applied to '(int, string)'\n | variables.replicas > 'two'\n | ...................^\n",
    "spec.validations[1].expression: apps/v1, Kind=StatefulSet: ERROR: <input>:1:12: undefined field 'strategy'\n | object.spec.strategy.type == 'Recreate'\n | ...........^\n",
    "spec.validations[1].messageExpression: apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'nope'\n | object.nope\n | ......^\n\n"
      + "apps/v1, Kind=StatefulSet: ERROR: <input>:1:7: undefined field 'nope'\n | object.nope\n | ......^\n",
  ]);
});

test("expressions are not gone through any further once the controller is to stop", async () => {
  let looks = 0;
  const stop = new AbortController();
  const validations = Array.from({ length: 500 }, () => ({ expression: "object.metadata.name == ''" }));
  const policy = { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy", metadata: { name: "p", generation: 1 }, spec: { matchConstraints: { resourceRules: [rule(["apps"], ["deployments"])] }, validations } };
  const uptimeMs = (): number => {
    if (++looks === 20) stop.abort(new Error("stopped"));
    return looks;
  };
  const informers = { of: ({ plural }: { plural: string }) => (plural === "validatingadmissionpolicies" ? staticInformer(policy as never) : staticInformer()) };
  const controller = validatingAdmissionPolicyStatusController({ client: { resource: () => ({}) }, informers, clock: { uptimeMs } } as never);
  await expect(controller.reconcile("p" as never, { signal: stop.signal } as never)).rejects.toThrow("stopped");
  expect(looks).toBeLessThan(50);
});

test("what is found out about a policy is not said of another that has its name by then", async () => {
  const policyOf = (uid: string): unknown => ({ apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingAdmissionPolicy", metadata: { name: "p", generation: 1, uid }, spec: { matchConstraints: { resourceRules: [rule(["apps"], ["deployments"])] }, validations: [{ expression: "object.nope" }] } });
  let now = policyOf("a"), writes = 0;
  const policies = { ...staticInformer(), get: () => now, caughtUp: async () => {} };
  const informers = { of: ({ plural }: { plural: string }) => (plural === "validatingadmissionpolicies" ? policies : staticInformer()) };
  const clock = { uptimeMs: () => { now = policyOf("b"); return 0; } }; // while it pauses
  const controller = validatingAdmissionPolicyStatusController({ client: { resource: () => ({ apply: async () => void writes++ }) }, informers, clock } as never);
  const signal = new AbortController().signal;
  now = policyOf("a"); // its breather has looked at the clock
  await controller.reconcile("p" as never, { signal } as never);
  expect(writes).toBe(0);
  await controller.reconcile("p" as never, { signal } as never);
  expect(writes).toBe(1);
});
