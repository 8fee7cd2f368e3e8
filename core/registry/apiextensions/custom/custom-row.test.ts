import { expect, test } from "vitest";
import type { CustomKind } from "./custom-kind.ts";
import { customRow } from "./custom-row.ts";

test("discovery tells of the status before the scale", () => {
  const served = { group: "a.b", crd: { metadata: { name: "things.a.b" }, spec: { scope: "Namespaced" } }, versions: () => [] } as unknown as CustomKind;
  const { subresources } = customRow(served, { kind: "Thing", plural: "things" }, { name: "v1", served: true, storage: true, subresources: { scale: { specReplicasPath: ".a", statusReplicasPath: ".b" }, status: {} } });
  expect(subresources.map(({ name }) => name)).toEqual(["status", "scale"]);
});
