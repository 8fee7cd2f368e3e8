import { expect, test } from "vitest";
import { Changes } from "./changes.ts";
import { Overwritten } from "./overwritten.ts";
import { ResourceCache } from "./resource-cache.ts";

const PREFIX = "/registry/core/configmaps/";

/** One object that is written again and again: each version is of so many bytes. */
function written(bytes: number) {
  const cache = new ResourceCache(PREFIX, 0, { clock: { uptimeMs: () => 0 }, overwritten: new Overwritten(), windows: { sum: 0 } });
  const text = "x".repeat(bytes);
  let revision = 0;
  const write = (): void => {
    revision++;
    cache.apply({ type: "put", row: { key: `${PREFIX}default/a`, revision, value: { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "a", namespace: "default", uid: "u" }, data: { text } } } });
  };
  return { cache, write, watch: () => new Changes(cache, { after: revision, signal: new AbortController().signal }) };
}

test.each([
  ["versions of a megabyte", 1024 * 1024, 101],
  ["of a hundred kilobytes", 100 * 1024, 327],
  ["small ones", 10, 16_385],
])("a watch that is not read ends before what it holds back takes the memory: %s", (_, bytes, events) => {
  const { cache, write, watch } = written(bytes);
  write();
  const [unread, read] = [watch(), watch()];
  let count = 0;
  for (; !unread.isOver && count < 20_000; count++) {
    write();
    if (count % 10 === 9) read.take();
  }
  expect([count, read.isOver, unread.take(), cache.counts.terminated]).toEqual([events, false, undefined, 1]);
});
