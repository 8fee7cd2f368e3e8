import { expect, test } from "vitest";
import { FieldSets } from "./field-sets.ts";
import { protobufCodec } from "./protobuf.ts";

const set = (name: string): object => Object.freeze({ "f:metadata": Object.freeze({ [`f:${name}`]: Object.freeze({}) }) });
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

test("a set that comes back is the very one that was written, or read before", () => {
  const sets = new FieldSets();
  const labels = set("labels");
  const bytes = sets.encode(labels);
  expect([text(bytes), sets.encode(labels), sets.decode(Buffer.from(bytes))].map((one, i) => (i === 0 ? one : one === (i === 1 ? bytes : labels)))).toEqual(['{"f:metadata":{"f:labels":{}}}', true, true]);
  const read = sets.decode(Buffer.from('{"f:spec":{"f:<a>":{}}}')) as { readonly "f:spec": object };
  expect([sets.decode(Buffer.from('{"f:spec":{"f:<a>":{}}}')) === read, Object.isFrozen(read), Object.isFrozen(read["f:spec"])]).toEqual([true, true, true]);
  expect(text(sets.encode(read))).toBe('{"f:spec":{"f:\\u003ca\\u003e":{}}}');
});

test("what may still change is written anew each time; what has not been met for long is forgotten", () => {
  const sets = new FieldSets();
  const growing: Record<string, object> = { "f:a": {} };
  const before = text(sets.encode(growing));
  growing["f:b"] = {};
  expect([before, text(sets.encode(growing))]).toEqual(['{"f:a":{}}', '{"f:a":{},"f:b":{}}']);
  const first = set("a");
  const bytes = sets.encode(first);
  for (let i = 0; i < 1_000; i++) sets.encode(set(`b-${i}`));
  expect(sets.decode(bytes)).not.toBe(first);
  expect(sets.decode(bytes)).toEqual(first);
});

test("through the codec: an object that is sent back as it was got has the stored sets themselves", () => {
  const fieldsV1 = set("labels");
  const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", managedFields: [{ manager: "m", operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1 }] }, spec: { containers: [] } };
  const back = protobufCodec.decode(protobufCodec.encode(pod)) as unknown as typeof pod;
  expect(back.metadata.managedFields[0]!.fieldsV1).toBe(fieldsV1);
});
