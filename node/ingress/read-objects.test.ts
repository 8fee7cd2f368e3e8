import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../test/fake-api.ts";
import { objectKey } from "../../core/api/meta/object-meta.ts";
import { SECRETS } from "../../core/client/resources.ts";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { systemRandom as random } from "../../core/lifecycle/random.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { ReadObjects } from "./read-objects.ts";

const call = { signal: new AbortController().signal };

test("of many objects that are needed at once a few are asked for at a time; what somebody asks for is read, once, until it changes; what makes no sense leaves what did", async () => {
  const api = fakeApi(), secrets = api.client.resource(SECRETS);
  const keys = Array.from({ length: 100 }, (_, i) => objectKey("default", `s${i}`));
  for (const key of keys) await secrets.create({ apiVersion: "v1", kind: "Secret", metadata: { namespace: "default", name: key.split("/")[1]! }, data: { a: "MQ==" } }, call);
  let turns = 0, isOver = false, read = 0;
  const asked: number[] = []; // by turns that others had before
  const client: typeof api.client = { ...api.client, resource: (ref) => {
    const one = api.client.resource(ref);
    return { ...one, list: (...given) => { asked[turns] = (asked[turns] ?? 0) + 1; return one.list(...given); } };
  } };
  const objects = new ReadObjects({ client, clock, random, log }, SECRETS, ({ data = {} }) => {
    read++;
    if (data["a"] === undefined) throw new Error("it has no a");
    return data["a"] as string;
  });
  const turn = (): void => { turns++; if (!isOver) setImmediate(turn); };
  turn();
  objects.use(new Set(keys));
  await eventually(() => asked.reduce((a, b) => a + b, 0), (sum) => sum === 100);
  isOver = true;
  expect(Math.max(...asked.filter(Boolean))).toBeLessThanOrEqual(20);
  expect(read).toBe(0);
  await eventually(() => objects.get(keys[7]!), (value) => value === "MQ==");
  const before = read;
  expect([objects.get(keys[7]!), read - before]).toEqual(["MQ==", 0]);
  const old = api.all(SECRETS).find(({ metadata }) => metadata.name === "s7")!;
  await secrets.update({ ...old, data: {} }, call);
  await eventually(() => { objects.get(keys[7]!); return read; }, (times) => times > before);
  expect(objects.get(keys[7]!)).toBe("MQ==");
  objects.use(new Set(keys.slice(50)));
  expect(objects.get(keys[7]!)).toBeUndefined();
  await objects.close();
});

test("what is needed next in the same turn is asked for, too", async () => {
  const api = fakeApi(), secrets = api.client.resource(SECRETS), [first, next] = ["a", "b"].map((name) => objectKey("default", name));
  for (const name of ["a", "b"]) await secrets.create({ apiVersion: "v1", kind: "Secret", metadata: { namespace: "default", name }, data: { name } }, call);
  const objects = new ReadObjects({ client: api.client, clock, random, log }, SECRETS, ({ data = {} }) => data["name"]);
  objects.use(new Set([first!]));
  objects.use(new Set([next!]));
  await eventually(() => objects.get(next!), (value) => value === "b");
  expect(objects.get(first!)).toBeUndefined();
  await objects.close();
});
