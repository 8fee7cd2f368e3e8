import { expect, test } from "vitest";
import { podTexts } from "./own-texts.ts";

const reference = { name: "B", value: "$(A)/b" }, field = { name: "C", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }, empty = { name: "D", value: "" };
const spec = (own: string) => ({
  initContainers: [{ name: "init", image: "i", command: ["sh", "-c", own] }],
  containers: [{ name: "a", image: "i", args: [own], env: [{ name: "A", value: own }, reference, field, empty] }, { name: "b", image: "i", command: [] }],
  hostname: "h",
});

test("an outline is the same whatever the texts are, and tells where there are some", () => {
  const { outline, texts } = podTexts.apart(spec("1"));
  expect(texts).toEqual([["sh", "-c", "1"], ["1"], "1"]);
  expect(outline).toEqual(podTexts.apart(spec("2")).outline);
  expect(outline).toEqual({ ...spec("1"), initContainers: [{ name: "init", image: "i", command: ["…"] }], containers: [{ name: "a", image: "i", args: ["…"], env: [{ name: "A", value: "…" }, reference, field, empty] }, { name: "b", image: "i", command: [] }] });
  expect(outline).not.toEqual(podTexts.apart({ ...spec("1"), containers: [spec("1").containers[1]] }).outline);
  expect([podTexts.apart({ containers: null }), podTexts.apart({})]).toEqual([{ outline: { containers: null }, texts: [] }, { outline: {}, texts: [] }]);
});

test("a known spec with other texts shares all else with it, and with its own is itself", () => {
  const known = spec("1");
  const other = podTexts.together(known, podTexts.apart(spec("2")).texts) as typeof known;
  expect(other).toEqual(spec("2"));
  expect(Object.keys(other.containers[0]!)).toEqual(Object.keys(known.containers[0]!));
  expect(other.containers[1]).toBe(known.containers[1]!);
  expect(other.containers[0]!.env![1]).toBe(reference);
  expect(podTexts.together(known, podTexts.apart(spec("1")).texts)).toBe(known);
});
