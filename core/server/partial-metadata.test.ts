import { expect, test } from "vitest";
import { jsonText } from "../api/codec/json.ts";
import { assemble } from "../api/codec/pieces.ts";
import { protobufCodec } from "../api/codec/protobuf.ts";
import { protobufWatchPieces } from "../api/codec/watch-frames.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import { atOnce } from "../lifecycle/breather.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { ListAnswer } from "./answer.ts";
import { metadataEvent, metadataList } from "./partial-metadata.ts";

const POD = builtInFacts.typeOf({ group: "", version: "v1", kind: "Pod" })!;
const entries = ["a", "b".repeat(40), "c".repeat(400)].map((name, i) => new Cached(name, {
  kind: "Pod", apiVersion: "v1", metadata: { name, namespace: "n", uid: `u${i}`, resourceVersion: String(i), creationTimestamp: "2026-01-01T00:00:00Z", ...(i > 0 && { labels: { app: name.slice(0, 60) }, finalizers: ["x/y"] }) },
  spec: { containers: [{ name: "c", image: "i" }] }, status: {},
} as never, i));
const served = { custom: undefined, fromStorage: (object: unknown) => object } as unknown as ServedResource;
const partial = entries.map(({ object: { metadata } }) => ({ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata }));
const list = { kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", metadata: { resourceVersion: "9" } };
const answer = { type: "list", served, entries, metadata: list.metadata } as unknown as ListAnswer;

test.each(["encoded by itself", "cut out of the object's own message, where that is at hand", "as it was kept"])("metadata is what it would be if it were encoded anew: %s", (how) => {
  if (how.startsWith("cut")) for (const entry of entries) {
    entry.forget();
    entry.protobuf((object) => protobufCodec.encodeMessage(POD, object));
  }
  expect(assemble(atOnce(metadataList(answer, "protobuf", "v1"))).equals(protobufCodec.encode({ ...list, items: partial } as never))).toBe(true);
  expect(assemble(atOnce(metadataList(answer, "json", "v1"))).toString()).toBe(`${jsonText({ ...list, items: partial })}\n`);
  for (const [i, entry] of entries.entries()) {
    expect(assemble(metadataEvent("ADDED", { served, entry }, "json", "v1")).toString()).toBe(`${jsonText({ type: "ADDED", object: partial[i]! })}\n`);
    expect(assemble(metadataEvent("ADDED", { served, entry }, "protobuf", "v1")).equals(assemble(protobufWatchPieces("ADDED", [protobufCodec.encode(partial[i]!)])))).toBe(true);
  }
});

test("an empty list: Go's null as JSON, nothing as protobuf", () => {
  const none = { ...answer, entries: [] };
  expect(assemble(atOnce(metadataList(none, "json", "v1"))).toString()).toBe(`${jsonText({ ...list, items: null })}\n`);
  expect(assemble(atOnce(metadataList(none, "protobuf", "v1"))).equals(protobufCodec.encode({ ...list, items: [] } as never))).toBe(true);
});

test("the generation of a DaemonSet's template is no part of its metadata alone", () => {
  const set = (annotations: object) => new Cached("d", { kind: "DaemonSet", apiVersion: "apps/v1", metadata: { name: "d", annotations } } as never, 1);
  const shown = (annotations: object, encoding: "json" | "protobuf" = "json") => assemble(atOnce(metadataList({ ...answer, entries: [set({ "deprecated.daemonset.template.generation": "1", ...annotations })] }, encoding, "v1")));
  expect(JSON.parse(shown({}).toString()).items[0].metadata).toEqual({ name: "d" });
  expect(JSON.parse(shown({ a: "b" }).toString()).items[0].metadata).toEqual({ name: "d", annotations: { a: "b" } });
  expect(shown({ a: "b" }, "protobuf").includes("deprecated")).toBe(false);
});

test("of custom resources metadata is put in its own order once, and anew where another version is shown", () => {
  const entry = new Cached("t", { apiVersion: "k.example.com/v1", kind: "Thing", metadata: { creationTimestamp: "2026-01-01T00:00:00Z", labels: { a: "b" }, name: "t", namespace: "n", uid: "u" } } as never, 1);
  let shown = 0;
  const custom = { custom: {}, fromStorage: (object: object) => { shown++; return object; } } as unknown as ServedResource;
  const items = (of: ServedResource, encoding: "json" | "protobuf" = "json") => assemble(atOnce(metadataList({ ...answer, served: of, entries: [entry] }, encoding, "v1")));
  const metadata = '"metadata":{"name":"t","namespace":"n","uid":"u","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"a":"b"}}';
  for (let i = 0; i < 2; i++) expect(items(custom).toString()).toContain(metadata);
  const kept = entry.metadataJson();
  expect(entry.metadataJson().bytes).toBe(kept.bytes);
  const renamed = { custom: {}, fromStorage: (object: { metadata: object }) => ({ ...object, metadata: { ...object.metadata, labels: { a: "other" } } }) } as unknown as ServedResource;
  expect(items(renamed).toString()).toContain('"labels":{"a":"other"}');
  expect(items(custom).toString()).toContain(metadata);
  expect(items(custom, "protobuf").equals(items(custom, "protobuf"))).toBe(true);
  expect(items(renamed, "protobuf").includes("other")).toBe(true);
  expect(shown).toBeGreaterThan(0);
});
