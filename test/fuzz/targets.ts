/** What is fuzzed: decoders, patches, selectors, expressions, schemas of custom resources and objects of them. */
import { decodeBody, decodeUntypedBody } from "../../core/api/codec/body.ts";
import { cborCodec } from "../../core/api/codec/cbor/codec.ts";
import { readCbor } from "../../core/api/codec/cbor/items.ts";
import { cborNotation } from "../../core/api/codec/cbor/notation.ts";
import { cborObject } from "../../core/api/codec/cbor/values.ts";
import { encodeJson, jsonText, parseJson } from "../../core/api/codec/json.ts";
import { parseJsonDocument } from "../../core/api/codec/json-document.ts";
import { protobufCodec } from "../../core/api/codec/protobuf.ts";
import { encodeYaml, parseYaml } from "../../core/api/codec/yaml.ts";
import { plainYaml } from "../../core/api/codec/yaml-plain.ts";
import { YamlTextError } from "../../core/api/codec/yaml-writer.ts";
import { parseFieldSelector } from "../../core/api/meta/field-selector.ts";
import { labelSelector, parseLabelSelector } from "../../core/api/meta/label-selector.ts";
import { StatusError } from "../../core/api/meta/status-error.ts";
import type { ApiObject } from "../../core/api/meta/object-meta.ts";
import { serverSideApply } from "../../core/api/patch/apply/apply.ts";
import { updateManagedFields } from "../../core/api/patch/apply/update.ts";
import { builtInSchemas } from "../../core/api/patch/facts-schema.ts";
import { applyJsonPatch } from "../../core/api/patch/json-patch.ts";
import { isMap, type JsonMap } from "../../core/api/patch/json-value.ts";
import { applyMergePatch } from "../../core/api/patch/merge-patch.ts";
import { applyStrategicMerge } from "../../core/api/patch/strategic-merge.ts";
import { canonical } from "../../core/api/schema/canonical.ts";
import { builtInFacts } from "../../core/api/schema/facts.ts";
import type { CustomResourceDefinition } from "../../core/api/gen/apiextensions.v1.ts";
import { created } from "../rehearse.ts";
import { customResourceDefinitions } from "../../core/registry/apiextensions/custom-resource-definition.ts";
import { CustomKind } from "../../core/registry/apiextensions/custom/custom-kind.ts";
import { customResource } from "../../core/registry/apiextensions/custom/custom-resource.ts";
import { compileJsonPath } from "../../core/registry/apiextensions/custom/json-path.ts";
import { type Chance, garbled, garbledBytes, json, mutated, record, word } from "./chance.ts";
import { celTarget } from "./cel.ts";
import type { Target } from "./fuzz.ts";

const DEPLOYMENT = { group: "apps", version: "v1", kind: "Deployment" };
const OBJECT: JsonMap = {
  apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "a", labels: { app: "web" }, annotations: { n: "1" }, finalizers: ["a.b/c"], ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "u" }] },
  spec: {
    replicas: 3, selector: { matchLabels: { app: "web" } }, strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: "25%", maxUnavailable: 1 } },
    template: {
      metadata: { labels: { app: "web" }, creationTimestamp: "2026-01-01T00:00:00Z" },
      spec: {
        containers: [{ name: "a", image: "i:1", env: [{ name: "X", value: "1" }, { name: "Y" }], ports: [{ containerPort: 80, protocol: "TCP" }], resources: { limits: { cpu: "500m", memory: "1Gi" } } }, { name: "b", image: "i:2", command: ["x", "y"] }],
        tolerations: [{ key: "k", operator: "Exists" }], nodeSelector: { a: "b" }, volumes: [{ name: "v", emptyDir: {} }, { name: "s", secret: { secretName: "s", items: [{ key: "a", path: "b" }] } }],
      },
    },
  },
};
const TYPE = builtInFacts.typeOf(DEPLOYMENT)!;
const SCHEMA = builtInSchemas.schemaOf(DEPLOYMENT)!;
const proper = (value: unknown): JsonMap => canonical(TYPE, isMap(value) ? value : {}).object as JsonMap;

const decoding: Target[] = [
  { name: "json", allows: ["JsonSyntaxError", "SyntaxError"], make: (chance) => garbled(chance, JSON.stringify(chance.is(0.5) ? mutated(chance, OBJECT) : json(chance))), take(text: string) { parseJson(text); jsonText(parseJsonDocument(text)); } },
  { name: "yaml", allows: ["YamlError", "YamlTextError"], make: (chance) => garbled(chance, Buffer.from(yamlOf(chance.is(0.5) ? mutated(chance, OBJECT) : json(chance))).toString()), take(text: string) { encodeYaml(parseYaml(text)); } },
  {
    name: "yaml-lines", allows: ["YamlTextError"], make: (chance) => { const text = yamlOf(chance.is(0.5) ? mutated(chance, OBJECT) : json(chance)); return chance.is(0.5) ? text : Buffer.from(garbled(chance, text)).toString(); },
    take(text: string) {
      const plain = plainYaml(text);
      if (plain !== undefined && !Bun.deepEquals(plain, parseYaml(text))) throw new Error("two readers read two values");
    },
  },
  {
    name: "body", allows: ["StatusError"], make: (chance) => (chance.is(0.8) ? JSON.stringify(mutated(chance, OBJECT)) : garbled(chance, JSON.stringify(OBJECT))),
    take(text: string) { for (const fieldValidation of ["Ignore", "Strict"] as const) decodeBody({ bytes: Buffer.from(text), encoding: "json", expected: DEPLOYMENT, fieldValidation } as never); },
  },
  {
    name: "protobuf", allows: ["ProtobufError", "StatusError"], make: (chance) => [...garbledBytes(chance, protobufCodec.encode({ ...proper(mutated(chance, OBJECT)), apiVersion: "apps/v1", kind: "Deployment" }))],
    take(bytes: number[]) { const { object } = decodeBody({ bytes: Uint8Array.from(bytes), encoding: "protobuf", expected: DEPLOYMENT, fieldValidation: "Ignore" } as never); encodeJson(object); protobufCodec.encode(object as never); },
  },
  {
    name: "cbor", allows: ["CborError", "StatusError"], make: (chance) => (chance.is(0.2) ? chance.many(40, () => chance.below(256)) : [...garbledBytes(chance, cborCodec.encode({ ...mutated(chance, OBJECT) as object, apiVersion: "apps/v1", kind: "Deployment" }))]),
    take(bytes: number[]) {
      const body = { bytes: Uint8Array.from(bytes), encoding: "cbor", expected: DEPLOYMENT } as const;
      for (const read of [() => decodeUntypedBody(body), () => decodeBody({ ...body, fieldValidation: "Ignore" })]) try { cborCodec.encode(read().object); } catch (error) { if (!(error instanceof StatusError)) throw error; }
      const item = readCbor(body.bytes);
      cborNotation(item);
      cborCodec.encode(cborObject(item));
    },
  },
];

const OPERATIONS = ["add", "remove", "replace", "move", "copy", "test", "none"];
const pathsOf = (value: unknown, at = ""): string[] => [at, ...(typeof value === "object" && value !== null ? Object.entries(value).flatMap(([key, below]) => pathsOf(below, `${at}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`)) : [])];
const PATHS = pathsOf(OBJECT);
const pointer = (chance: Chance): string => (chance.is(0.6) ? chance.one(PATHS) : `${chance.one(PATHS)}/${word(chance)}`);

const patching: Target[] = [
  {
    name: "json-patch", allows: ["StatusError"],
    make: (chance) => (chance.is(0.1) ? json(chance) : chance.many(6, () => mutated(chance, { op: chance.one(OPERATIONS), path: pointer(chance), from: pointer(chance), value: json(chance, 2) }, 0.02))),
    take(patch) { applyJsonPatch(OBJECT, patch); },
  },
  { name: "merge-patch", allows: ["StatusError"], make: (chance) => (chance.is(0.3) ? json(chance) : mutated(chance, OBJECT)), take(patch) { applyMergePatch(OBJECT, patch); } },
  { name: "strategic-merge", allows: ["StatusError", "Error"], make: (chance) => (chance.is(0.2) ? json(chance) : mutated(chance, OBJECT)), take(patch) { applyStrategicMerge(OBJECT, patch, SCHEMA); } },
  {
    name: "apply", allows: ["StatusError", "Error", "TypedError"], make: (chance) => ({ applied: mutated(chance, OBJECT), live: chance.is(0.7) ? mutated(chance, OBJECT) : null, updated: mutated(chance, OBJECT), force: chance.is(0.5) }),
    take({ applied, live, updated, force }: { applied: unknown; live: unknown; updated: unknown; force: boolean }) {
      const common = { apiVersion: "apps/v1", kind: "Deployment", schema: SCHEMA, nowMs: 0 };
      const before = live === null ? undefined : updateManagedFields<JsonMap>({ ...common, live: undefined, updated: proper(live), manager: "one" });
      const { object } = serverSideApply<JsonMap>({ ...common, live: before, applied, manager: "two", force });
      updateManagedFields<JsonMap>({ ...common, live: proper(object), updated: { ...proper(updated), metadata: { ...(proper(updated)["metadata"] as object), managedFields: isMap(object["metadata"]) ? object["metadata"]["managedFields"] : undefined } }, manager: "three" });
    },
  },
];

const SELECTORS = ["a=b", "a!=b,c", "x in (a,b)", "x notin (a)", "!y", "a.b/c==d", "metadata.name=x", "n>1", "n<2", "a\\,b=c\\=d"];
const selecting: Target[] = [
  { name: "label-selector", allows: ["Error", "StatusError"], make: (chance) => garbled(chance, chance.many(3, () => chance.one(SELECTORS)).join(",")), take(text: string) { parseLabelSelector(text).matches({ a: "b", n: "2", __proto__: "x" }); } },
  { name: "field-selector", allows: ["Error", "StatusError"], make: (chance) => garbled(chance, chance.many(3, () => chance.one(SELECTORS)).join(",")), take(text: string) { parseFieldSelector(text); } },
  { name: "selector-object", allows: ["Error", "StatusError"], make: (chance) => ({ matchLabels: record(chance.many(2, () => [word(chance), word(chance)] as const)), matchExpressions: chance.many(2, () => ({ key: word(chance), operator: chance.one(["In", "NotIn", "Exists", "DoesNotExist", "x"]), values: chance.many(2, () => word(chance)) })) }), take(selector: Parameters<typeof labelSelector>[0]) { labelSelector(selector).matches({ a: "b" }); } },
  { name: "json-path", allows: ["JsonPathError"], make: (chance) => garbled(chance, chance.one([".spec.replicas", ".spec.containers[*].name", ".a['b']", "..name", ".items[?(@.a==1)].b", ".spec.containers[-1:]", ".a[0:3:2]", ".a[?(@.b.c>'x')]"])), take(text: string) { compileJsonPath(text).find(OBJECT); } },
];

const RULES = ["self.a > 1", "!has(oldSelf.a) || self.a >= oldSelf.a", "self.l.all(x, x != '')", "self.m.exists(k, k == 'a')", "self == oldSelf", "self.size() < 5", "self.t > timestamp('2020-01-01T00:00:00Z')", "has(self.s)"];

function schemaOf(chance: Chance, depth: number): unknown {
  const kind = depth <= 0 ? chance.below(4) : chance.below(7);
  const more = { ...(chance.is(0.1) && { nullable: true }), ...(chance.is(0.15) && { default: json(chance, 2) }), ...(chance.is(0.15) && { "x-kubernetes-validations": chance.many(2, () => ({ rule: chance.one(RULES), ...(chance.is(0.3) && { message: "m" }), ...(chance.is(0.2) && { messageExpression: "'x'" }) })) }) };
  const below = (): unknown => schemaOf(chance, depth - 1);
  switch (kind) {
    case 0: return { type: "string", ...more, ...(chance.is(0.3) && { maxLength: chance.below(10), pattern: chance.one(["^a+$", "(", "[a-z]*", "(a+)+$"]) }), ...(chance.is(0.2) && { format: chance.one(["date-time", "ip", "uuid", "byte", "duration", "none"]) }), ...(chance.is(0.2) && { enum: ["a", "b"] }) };
    case 1: return { type: "integer", ...more, ...(chance.is(0.3) && { minimum: 0, maximum: 5, multipleOf: 2 }) };
    case 2: return { "x-kubernetes-int-or-string": true, ...more };
    case 3: return { type: chance.one(["boolean", "number"]), ...more };
    case 4: return { type: "array", ...more, items: below(), ...(chance.is(0.4) && { "x-kubernetes-list-type": chance.one(["set", "map", "atomic"]), ...(chance.is(0.5) && { "x-kubernetes-list-map-keys": ["a"] }) }), ...(chance.is(0.3) && { maxItems: 3 }) };
    case 5: return { type: "object", ...more, additionalProperties: chance.is(0.8) ? below() : true };
    default: return { type: "object", ...more, properties: record(chance.many(4, () => [chance.is(0.7) ? chance.one(["a", "l", "m", "s", "t"]) : word(chance), below()] as const)), ...(chance.is(0.2) && { required: ["a"] }), ...(chance.is(0.1) && { "x-kubernetes-preserve-unknown-fields": true }), ...(chance.is(0.1) && { anyOf: [{ required: ["a"] }, { properties: { a: { minimum: 1 } } }] }), ...(chance.is(0.05) && { "x-kubernetes-embedded-resource": true }) };
  }
}

const definitionOf = (schema: unknown): Record<string, unknown> => ({
  metadata: { name: "foos.x.io" },
  spec: { group: "x.io", scope: "Namespaced", names: { plural: "foos", kind: "Foo" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema }, subresources: { status: {} } }] },
});

const custom: Target = {
  name: "custom-resource", allows: ["MalformedError", "StatusError"],
  make(chance) {
    const schema = { type: "object", properties: { spec: schemaOf(chance, 3), status: schemaOf(chance, 2) } };
    const object = (): unknown => ({ apiVersion: "x.io/v1", kind: "Foo", metadata: chance.is(0.9) ? { name: "f" } : json(chance, 2), spec: json(chance, 4), ...(chance.is(0.5) && { status: json(chance, 3) }) });
    return { schema: chance.is(0.8) ? schema : mutated(chance, schema), object: object(), next: object() };
  },
  take({ schema, object, next }: { schema: unknown; object: JsonMap; next: JsonMap }) {
    const { object: crd, errors } = created(customResourceDefinitions, definitionOf(schema));
    if (errors.length > 0) return;
    const kind = new CustomKind({ crd: crd as CustomResourceDefinition, remote: undefined });
    const [version] = kind.versions();
    const definition = customResource({ spec: crd.spec, names: crd.spec.names, version: version!, structure: () => kind.structure("v1") });
    const read = (value: JsonMap): ApiObject => kind.defaulted(kind.decode(value as never, { report: () => undefined }));
    const [old, updated] = [read(object), read(next)];
    Array.from(definition.validate?.(old) ?? []);
    Array.from(definition.validate?.(updated, old) ?? []);
  },
};

export const targets: readonly Target[] = [...decoding, ...patching, ...selecting, celTarget, custom];

/** There is no YAML of some characters: then it is JSON. */
function yamlOf(value: unknown): string {
  try { return encodeYaml(value); }
  catch (error) {
    if (!(error instanceof YamlTextError)) throw error;
    return JSON.stringify(value);
  }
}
