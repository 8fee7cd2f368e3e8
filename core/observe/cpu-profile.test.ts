import { expect, test } from "vitest";
import { WireReader } from "../protobuf/wire.ts";
import { pprofOf } from "./cpu-profile.ts";

/** Field numbers with what they hold, messages within messages as their bytes. */
function fieldsOf(bytes: Uint8Array): [number, number | Buffer][] {
  const reader = new WireReader(bytes), found: [number, number | Buffer][] = [];
  while (!reader.done) {
    const tag = reader.varint();
    found.push([tag >> 3, (tag & 7) === 0 ? reader.varint() : reader.bytes()]);
  }
  return found;
}

test("a profile in the form of pprof: each stack once, leaf first, with its samples and its time", () => {
  const call = (functionName: string, lineNumber = 0) => ({ functionName, url: "file:///a.ts", lineNumber });
  const fields = fieldsOf(pprofOf({
    nodes: [{ id: 1, callFrame: { functionName: "(root)", url: "", lineNumber: -1 }, children: [2] }, { id: 2, callFrame: call("serve", 9), children: [3] }, { id: 3, callFrame: call("") }],
    samples: [3, 2, 3], startTime: 1_000_000, endTime: 1_040_000,
  }));
  const all = (field: number) => fields.filter(([number]) => number === field).map(([, value]) => value);
  const texts = all(6).map(String);
  expect(texts.slice(0, 5)).toEqual(["", "cpu", "nanoseconds", "count", "samples"]);
  expect(all(2).map((sample) => fieldsOf(sample as Buffer))).toEqual([[[1, 3], [1, 2], [2, 2], [2, 20_000_000]], [[1, 2], [2, 1], [2, 10_000_000]]]);
  const functions = new Map(all(5).map((one) => { const [[, id], [, name], , [, file], [, line]] = fieldsOf(one as Buffer) as [number, number][] as never as [[0, number], [0, number], unknown, [0, number], [0, number]]; return [id, [texts[name], texts[file], line]]; }));
  expect([functions.get(2), functions.get(3)]).toEqual([["serve", "file:///a.ts", 10], ["(anonymous)", "file:///a.ts", 1]]);
  expect([all(9), all(10), all(12)]).toEqual([[1_000_000_000], [40_000_000], [10_000_000]]);
});
