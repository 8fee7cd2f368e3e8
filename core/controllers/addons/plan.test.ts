import { expect, test } from "vitest";
import { type Asked, formatAsked, inventoryKey, manifestsIn, noLongerAsked, parseAsked, united } from "./plan.ts";

const names = (text: string): string[] => manifestsIn(text).map(({ kind, metadata }) => `${kind} ${metadata.name}`);

test("a file is its documents, those first that others need", () => {
  expect(names(`---
# the shop
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: shop }
--- # with a comment
apiVersion: v1
kind: Namespace
metadata: { name: shop }
---
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: web, namespace: shop }
`)).toEqual(["Namespace shop", "ServiceAccount web", "Deployment web"]);
});

test("three dashes within a text are no end of a document", () => {
  expect(manifestsIn('apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata:\n  text: |\n    ---\n    more\n')).toMatchObject([{ data: { text: "---\nmore\n" } }]);
});

test("Lists, also within Lists, are what they hold; JSON is YAML", () => {
  const map = (name: string) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
  expect(names(JSON.stringify({ apiVersion: "v1", kind: "List", items: [map("a"), { apiVersion: "v1", kind: "ConfigMapList", items: [map("b")] }] }))).toEqual(["ConfigMap a", "ConfigMap b"]);
});

test("nothing but comments asks for nothing", () => {
  expect(manifestsIn("# later\n---\n# more\n")).toEqual([]);
});

test.each([
  ["kind: Pod", "document 1: apiVersion not set"],
  ["apiVersion: v1", "document 1: kind not set"],
  ["apiVersion: v1\nkind: Pod\nmetadata: { generateName: a- }", "document 1: Pod without a metadata.name"],
  ["# one\n---\n- a\n- b", "document 2: it is not an object"],
  ["a: [", "document 1: yaml: line 1"],
])("%j is refused", (text, message) => expect(() => manifestsIn(text)).toThrow(message));

const asked = (kind: string, name: string, version = "v1"): Asked => ({ apiVersion: `apps/${version}`, kind, namespace: "shop", name });

test("what is no longer asked for goes in the reverse order; another version of it is the same", () => {
  const before = [asked("A", "a"), asked("B", "b"), asked("C", "c")];
  expect(noLongerAsked(before, [asked("B", "b", "v2")]).map(({ name }) => name)).toEqual(["c", "a"]);
  expect(united(before, [asked("B", "b", "v2"), asked("D", "d")]).map(({ apiVersion, name }) => `${apiVersion} ${name}`)).toEqual(["apps/v1 a", "apps/v2 b", "apps/v1 c", "apps/v1 d"]);
});

test("what is remembered is read as it was written", () => {
  const all: Asked[] = [asked("Deployment", "web"), { apiVersion: "v1", kind: "Namespace", namespace: "", name: "shop" }, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "ClusterRole", namespace: "", name: "system:a" }, { apiVersion: "rbac.authorization.k8s.io/v1", kind: "Role", namespace: "shop", name: "may read all" }];
  expect(formatAsked(all).split("\n")[0]).toBe("apps/v1 Deployment shop/web");
  expect(parseAsked(formatAsked(all))).toEqual(all);
  expect(parseAsked("\nnonsense\n")).toEqual([]);
});

test("any file's name is a key of a ConfigMap, and no two are the same", () => {
  const files = ["shop.yaml", "my shop (1).yaml", "my_.20shop.yaml", "Äpfel_und_Birnen.yaml", "a_b.yml"];
  expect(files.map(inventoryKey)).toEqual(["shop.yaml", "my_.20shop_.20_.281_.29.yaml", "my_.5f.20shop.yaml", "_.c3_.84pfel_und_Birnen.yaml", "a_b.yml"]);
});
