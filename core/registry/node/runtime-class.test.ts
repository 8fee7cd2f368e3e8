import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { runtimeClasses } from "./runtime-class.ts";

test.each<[Given, string[]]>([
  [{ handler: "kata", overhead: { podFixed: { cpu: "250m" } } }, []],
  [{}, ["handler: Required value"]],
  [{ handler: "kata", overhead: { podFixed: { widgets: "1" } } }, ['overhead.limits[widgets]: Invalid value: "widgets": must be a standard resource type or fully qualified', 'overhead.limits[widgets]: Invalid value: "widgets": must be a standard resource for containers']],
  [{ handler: "kata", scheduling: { tolerations: [{ key: "a", operator: "Exists" }, { key: "a", operator: "Exists", tolerationSeconds: 1, effect: "" }] } }, [
    "scheduling.tolerations[1].effect: Invalid value: \"\": effect must be 'NoExecute' when `tolerationSeconds` is set", 'scheduling.tolerations[1]: Duplicate value: {"Key":"a","Operator":"Exists","Value":"","Effect":"","TolerationSeconds":1}',
  ]],
])("a class %j", (given, errors) => expect(created(runtimeClasses, given).errors).toEqual(errors));

test("the handler stays; old labels are warned about", () => {
  const { object, warnings } = created(runtimeClasses, { handler: "kata", scheduling: { nodeSelector: { "beta.kubernetes.io/os": "linux" } } });
  expect(warnings).toEqual([`scheduling.nodeSelector: deprecated since v1.14; use "kubernetes.io/os" instead`]);
  expect(updated(runtimeClasses, object, { handler: "runc" }).errors).toEqual(['handler: Invalid value: "runc": field is immutable']);
});
