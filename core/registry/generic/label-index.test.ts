import { expect, test } from "vitest";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { Cached } from "./cached.ts";
import { LabelIndex, ON_NODE } from "./label-index.ts";

let revision = 0;
const entry = (name: string, labels?: Record<string, string>): Cached => new Cached(`/registry/core/pods/a/${name}`, { apiVersion: "v1", kind: "Pod", metadata: { name, labels } } as unknown as ApiObject, ++revision);
const names = (found: Iterable<Cached>): string[] => [...found].map(({ object }) => object.metadata.name).sort();

test("what has a label is found, as it is now", () => {
  const [web, db, plain] = [entry("web", { app: "web", tier: "front" }), entry("db", { app: "db" }), entry("plain")];
  const index = new LabelIndex();
  const all = (): Cached[] => [web, db, plain];
  expect(names(index.find("app", "web", all))).toEqual(["web"]);
  expect(names(index.find("constructor", "web", all))).toEqual([]);

  const moved = entry("db", { app: "web" });
  index.replace(db, moved);
  expect(names(index.find("app", "web", all))).toEqual(["db", "web"]);
  expect(names(index.find("app", "db", all))).toEqual([]);
  index.replace(web, undefined);
  index.replace(undefined, entry("new", { app: "web" }));
  expect(names(index.find("app", "web", all))).toEqual(["db", "new"]);
});

test("what is found is in the order of keys, however it came", () => {
  const index = new LabelIndex();
  const found = (): string[] => index.find("app", "web", () => []).map(({ object }) => object.metadata.name);
  expect(found()).toEqual([]);
  const entries = new Map(["m", "z", "a", "q", "b"].map((name) => [name, entry(name, { app: "web" })]));
  for (const one of entries.values()) index.replace(undefined, one);
  expect(found()).toEqual(["a", "b", "m", "q", "z"]);
  const newer = entry("q", { app: "web" });
  index.replace(entries.get("q"), newer);
  index.replace(entries.get("a"), entry("a", { app: "db" }));
  index.replace(entries.get("z"), undefined);
  expect(found()).toEqual(["b", "m", "q"]);
  expect(index.find("app", "web", () => [])[2]).toBe(newer);
});

test("pods are found by their node, and those without one, too", () => {
  const on = (name: string, nodeName?: string): Cached => new Cached(`/registry/core/pods/a/${name}`, { apiVersion: "v1", kind: "Pod", metadata: { name, labels: { [ON_NODE]: "n1" } }, spec: { nodeName } } as unknown as ApiObject, ++revision);
  const [placed, waiting] = [on("placed", "n1"), on("waiting")];
  const index = new LabelIndex();
  const all = (): Cached[] => [placed, waiting];
  expect(names(index.find(ON_NODE, "n1", all))).toEqual(["placed"]);
  expect(names(index.find(ON_NODE, "", all))).toEqual(["waiting"]);
  index.replace(waiting, on("waiting", "n1"));
  expect(names(index.find(ON_NODE, "n1", all))).toEqual(["placed", "waiting"]);
  expect(names(index.find(ON_NODE, "", all))).toEqual([]);
});

test("few labels are kept, and none that nobody asks for", () => {
  const index = new LabelIndex();
  let read = 0;
  const all = (): Cached[] => { read++; return []; };
  const ask = (key: string): void => void index.find(key, "x", all);
  for (const key of ["a", "b", "c", "d", "a", "d"]) ask(key);
  expect(read).toBe(4);
  ask("e");
  ask("a");
  expect(read).toBe(6);
  index.forgetUnused();
  ask("e");
  index.forgetUnused();
  ask("e");
  expect(read).toBe(6);
  ask("a");
  expect(read).toBe(7);
});
