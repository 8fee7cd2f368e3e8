import { expect, test } from "vitest";
import { Audience, type CacheEvent, type Topic } from "./audience.ts";
import { Cached } from "./cached.ts";

const pod = (name: string, nodeName?: string) => new Cached(`/registry/core/pods/default/${name}`, { apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { nodeName } } as never, 1);
const modified = (previous: Cached, entry: Cached): CacheEvent => ({ type: "MODIFIED", entry, previous });

test("a listener with a topic hears of what is of it, or was, and of nothing else", () => {
  const audience = new Audience();
  const heard: string[] = [];
  const listen = (who: string, topic?: Topic) => audience.add(({ entry }) => heard.push(`${who}: ${entry.object.metadata.name}`), topic);
  listen("all");
  listen("n1", { of: "node", value: "n1" });
  listen("n2", { of: "node", value: "n2" });
  listen("undecided", { of: "node", value: "" });
  listen("a", { of: "key", value: "/registry/core/pods/default/a" });
  listen("default", { of: "prefix", value: "/registry/core/pods/default/" });
  const stop = listen("elsewhere", { of: "prefix", value: "/registry/core/pods/elsewhere/" });

  audience.tell(modified(pod("a"), pod("a", "n1")), 0);
  expect(heard.splice(0).sort()).toEqual(["a: a", "all: a", "default: a", "n1: a", "undecided: a"]);
  audience.tell({ type: "ADDED", entry: pod("b", "n2"), previous: undefined }, 0);
  expect(heard.splice(0).sort()).toEqual(["all: b", "default: b", "n2: b"]);
  audience.tell(modified(pod("b", "n1"), pod("b", "n2")), 0); // not through the API, but whoever had it must hear
  expect(heard.splice(0).sort()).toEqual(["all: b", "default: b", "n1: b", "n2: b"]);
  expect(audience.listenersOf("/registry/core/pods/elsewhere/a")).toBe(3);
  stop();
  stop();
  expect(audience.listenersOf("/registry/core/pods/elsewhere/a")).toBe(2);
});

test("a write is charged for those who hear of what is written, not for other nodes', other namespaces' and other objects' watchers", () => {
  const audience = new Audience();
  const listen = (topic?: Topic) => audience.add(() => {}, topic);
  listen();
  for (let i = 0; i < 1000; i++) listen({ of: "node", value: `n${i}` });
  listen({ of: "node", value: "" });
  for (const name of ["default", "elsewhere"]) listen({ of: "prefix", value: `/registry/core/pods/${name}/` });
  for (const name of ["a", "a", "b"]) listen({ of: "key", value: `/registry/core/pods/default/${name}` });
  expect(["default/a", "default/b", "default/", "third/a"].map((key) => audience.listenersOf(`/registry/core/pods/${key}`))).toEqual([5, 4, 3, 2]);
});

test("a thousand nodes that watch their own pods cost a change of one pod no more than one does", () => {
  const audience = new Audience();
  let calls = 0;
  for (let i = 0; i < 1000; i++) audience.add(() => calls++, { of: "node", value: `n${i}` });
  audience.tell(modified(pod("a"), pod("a", "n7")), 0);
  expect(calls).toBe(1);
});
