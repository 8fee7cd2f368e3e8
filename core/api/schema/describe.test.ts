import { expect, test } from "vitest";
import { describe } from "./describe.ts";

test("the text of an enum has its values, as the OpenAPI of a server has them", () => {
  const text = 'When to pull.\n\nPossible enum values:\n - `"Always"` always\n - `"Never"` never';
  const found = describe({ models: new Map([["v1/Container#imagePullPolicy", `${text}\n@deprecated`]]), client: new Map(), parameters: new Map() });
  expect(found["io.k8s.api.core.v1.Container"]).toMatchObject({ imagePullPolicy: text });
});
