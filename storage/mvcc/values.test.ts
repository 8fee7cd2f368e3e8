import { expect, test } from "vitest";
import { ValueCodec } from "./values.ts";

test("values can be read with the shapes alone, however many there are, and new ones can be added then", () => {
  let shapes: (readonly string[])[] = [];
  const stored = new Map<number, ReturnType<ValueCodec["encode"]>>();
  const valueOf = (i: number) => ({ kind: "Thing", spec: { [`field${i % 5000}`]: i, nested: [{ [`inner${i % 90}`]: { a: 1 } }] }, labels: { "a/b": `${i}` } });
  for (let life = 0; life < 6; life++) {
    const codec = new ValueCodec(shapes);
    for (const [i, payload] of stored) expect(codec.decode(payload)).toEqual(valueOf(i));
    for (let i = life * 1000; i < life * 1000 + 1000; i++) stored.set(i, { ...codec.encode(valueOf(i)) });
    for (const [i, payload] of stored) expect(codec.decode(payload)).toEqual(valueOf(i));
    expect(codec.fresh[0]?.[0]).toBe(life < 5 ? shapes.length : undefined);
    shapes = [...shapes, ...codec.fresh.map(([, fields]) => fields)];
    codec.markDurable(codec.shapeCount);
    expect(codec.fresh).toEqual([]);
  }
  expect(shapes.length).toBeGreaterThan(4000);
});

test("a shape is a list of API fields; keys that people make up do not become shapes", () => {
  const codec = new ValueCodec([]);
  codec.encode({ metadata: { labels: { "app.kubernetes.io/name": "x" }, annotations: { A_B: "y" } }, data: { "x.yaml": "" }, fieldsV1: { "f:spec": { ".": {} } } });
  expect(codec.fresh.map(([, fields]) => fields)).toEqual([["metadata", "data", "fieldsV1"], ["labels", "annotations"]]);
});
