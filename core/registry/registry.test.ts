import { expect, test } from "vitest";
import { memoryRegistry } from "../../test/memory-registry.ts";
import { CustomKind } from "./apiextensions/custom/custom-kind.ts";

test("what is served is gathered once, for all groups that ask, until something else is served", async () => {
  const registry = await memoryRegistry();
  const plurals = (group: string, version = "v1"): string => registry.rowsOf({ group, version }).map(({ plural }) => plural).join();
  const rows = registry.rows(), core = registry.rowsOf({ group: "", version: "v1" });
  expect([registry.rows(), registry.rowsOf({ group: "", version: "v1" })]).toEqual([rows, core]);
  expect([registry.rows() === rows, registry.rowsOf({ group: "", version: "v1" }) === core]).toEqual([true, true]);
  expect(core.map(({ plural }) => plural)).toEqual(rows.filter(({ group }) => group === "").map(({ plural }) => plural));
  expect(plurals("ops.io")).toBe("");
  const names = { plural: "boxes", singular: "box", kind: "Box", listKind: "BoxList" };
  const define = (versions: readonly string[]): void => registry.setCustom(new CustomKind({
    crd: { metadata: { name: "boxes.ops.io" }, spec: { group: "ops.io", scope: "Namespaced", names, versions: versions.map((name, i) => ({ name, served: true, storage: i === 0, schema: { openAPIV3Schema: { type: "object" } } })) } } as never, remote: undefined,
  }), names);
  define(["v1"]);
  expect([plurals("ops.io"), plurals("ops.io", "v2"), registry.rows().length]).toEqual(["boxes", "", rows.length + 1]);
  define(["v1", "v2"]);
  expect([plurals("ops.io"), plurals("ops.io", "v2"), registry.rows().length]).toEqual(["boxes", "boxes", rows.length + 2]);
  registry.removeCustom("ops.io", "boxes");
  expect([plurals("ops.io"), plurals("ops.io", "v2"), registry.rows().length]).toEqual(["", "", rows.length]);
});
