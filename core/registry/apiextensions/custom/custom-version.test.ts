import { expect, test } from "vitest";
import type { ApiObject } from "../../../api/meta/object-meta.ts";
import type { CustomKind } from "./custom-kind.ts";
import { CustomVersion } from "./custom-version.ts";

test("a column of text shows an object as Go writes its JSON", () => {
  const kind = { group: "a.b", crd: { metadata: { name: "things.a.b" } }, schema: () => ({}) } as unknown as CustomKind;
  const { printer } = new CustomVersion(kind, { name: "v1", served: true, storage: true, additionalPrinterColumns: [{ name: "Rule", type: "string", jsonPath: ".rule" }] }, new AbortController().signal);
  const thing = { apiVersion: "a.b/v1", kind: "Thing", metadata: { name: "t" }, rule: { is: "<a&b>" } } as unknown as ApiObject;
  expect(printer.cells(thing, 0)).toEqual(["t", '{"is":"\\u003ca\\u0026b\\u003e"}']);
});
