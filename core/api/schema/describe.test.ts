import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { describe, paragraphs, readModels } from "./describe.ts";

test("the text of an enum has its values, as the OpenAPI of a server has them", () => {
  const text = 'When to pull.\n\nPossible enum values:\n - `"Always"` always\n - `"Never"` never';
  const found = describe({ models: new Map([["v1/Container#imagePullPolicy", `${text}\n@deprecated`]]), client: new Map(), parameters: new Map() });
  expect(found["io.k8s.api.core.v1.Container"]).toMatchObject({ imagePullPolicy: text });
});

test("a type that is only another name has a text, too", () => {
  const root = mkdtempSync(join(tmpdir(), "models-"));
  try {
    mkdirSync(join(root, "apis/meta/v1"), { recursive: true });
    writeFileSync(join(root, "apis/meta/v1/Time.d.ts"), "/**\n * When.\n */\nexport declare type ITime = string;\nexport declare type Time = ITime;\n");
    const found = describe({ models: readModels(root, "apimachinery/"), client: new Map(), parameters: new Map() });
    expect(found["io.k8s.apimachinery.pkg.apis.meta.v1.Time"]).toEqual({ "": "When." });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test("a model's quotes within quotes stay escaped", () => {
  const root = mkdtempSync(join(tmpdir(), "models-"));
  try {
    mkdirSync(join(root, "v1"), { recursive: true });
    writeFileSync(join(root, "v1/Pod.d.ts"), ["/**", String.raw` * Such as "[{\"a\": 1}]", it\'s *\/ a list.`, " */", "export interface IPod {", "}", ""].join("\n"));
    const found = describe({ models: readModels(root, ""), client: new Map(), parameters: new Map() });
    expect(found["io.k8s.api.core.v1.Pod"]?.[""]).toBe(String.raw`Such as "[{\"a\": 1}]", it's */ a list.`);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
});

test("line breaks of a parameter's text are found in its spaces", () => {
  expect(paragraphs("One event  of many.  Two:    a(x)   b(y)  Lists:   - one   - two  ends so.  Then:   - `a` set   is told. - `b` is not.   Splits:     first     second"))
    .toBe("One event  of many.\n\nTwo:\n\n  a(x)\n  b(y)\n\nLists:\n  - one\n  - two\n\nends so.\n\nThen:\n  - `a` set\n  is told.\n- `b` is not.\n  Splits:\n    first\n    second");
});
