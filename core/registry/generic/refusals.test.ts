import { expect, test } from "vitest";
import { type FieldError, required } from "../../api/meta/field-error.ts";
import { validateSecurityContext } from "../core/pod/validation/security.ts";
import { resourceQuotas } from "../core/resource-quota.ts";
import { csiNodes } from "../storage/csi-node.ts";
import { storageClasses } from "../storage/storage-class.ts";
import { gathered } from "./refusals.ts";

test("errors are gathered in their order, and not for ever", () => {
  function* endless(): Iterable<FieldError> { for (;;) yield required("a"); }
  expect(gathered([required("a"), required("b")]).map(({ field }) => field)).toEqual(["a", "b"]);
  expect([gathered(undefined), gathered(endless()).length]).toEqual([[], 100_000]);
});

test("a StorageClass with a hundred thousand terms that say nothing is refused", () => {
  const terms = Array.from({ length: 100_000 }, () => ({}));
  const errors = gathered(storageClasses.validate!({ metadata: { name: "a" }, provisioner: "a.b/c", allowedTopologies: terms } as never, undefined, {} as never));
  expect(errors.some(({ type, field }) => type === "FieldValueDuplicate" && field === "allowedTopologies[0].matchLabelExpressions")).toBe(true);
});

test("of very many drivers of a CSINode the one that is there twice is told, and the one that became another", () => {
  const drivers = Array.from({ length: 30_000 }, (_, i) => ({ name: `d${i}`, nodeID: "a", topologyKeys: null }));
  const node = (list: readonly unknown[]): never => ({ metadata: { name: "a" }, spec: { drivers: list } }) as never;
  expect(gathered(csiNodes.validate!(node([...drivers, drivers[7]]), undefined, {} as never)).map(({ field }) => field)).toEqual(["spec.drivers[30000].name"]);
  const changed = drivers.map((driver) => (driver.name === "d9" ? { ...driver, nodeID: "b" } : driver));
  expect(gathered(csiNodes.validateUpdate!(node(changed.toReversed()), node(drivers))).map(({ badValue }) => badValue)).toEqual([{ Name: "d9", NodeID: "b", TopologyKeys: null, Allocatable: null }]);
});

test("what is wrong with each of very many scopes or capabilities is shown as the one thing it is", () => {
  const scopes = Array.from({ length: 2_000 }, () => "BestEffort"), hard = { "requests.cpu": "1", "limits.cpu": "1", pods: "1" };
  const quota = (spec: object) => gathered(resourceQuotas.validate!({ metadata: { name: "a" }, spec: { hard, ...spec } } as never, undefined, {} as never));
  for (const found of [quota({ scopes }), quota({ scopeSelector: { matchExpressions: scopes.map((scopeName) => ({ scopeName, operator: "Exists" })) } })]) {
    const unfit = found.filter(({ detail }) => detail === "unsupported scope applied to resource");
    expect([unfit.length, new Set(unfit.map(({ badValue }) => badValue)).size]).toEqual([4_000, 1]);
  }
  const context = { allowPrivilegeEscalation: false, capabilities: { add: scopes.map(() => "CAP_SYS_ADMIN") } };
  const found = gathered(validateSecurityContext("a", context, false));
  expect([found.length, new Set(found.map(({ badValue }) => badValue)).size]).toEqual([2_000, 1]);
});
