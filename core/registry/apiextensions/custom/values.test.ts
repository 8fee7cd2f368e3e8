import { expect, test } from "vitest";
import { formatFieldError } from "../../../api/meta/field-error.ts";
import { Correlated } from "./correlate.ts";
import { defaulted } from "./default.ts";
import { CustomKind } from "./custom-kind.ts";
import { customResource } from "./custom-resource.ts";
import { coerceEmbedded, validateEmbedded } from "./embedded.ts";
import { isKnownFormat, formatCheck } from "./formats.ts";
import { compileJsonPath } from "./json-path.ts";
import { validateLists } from "./list-types.ts";
import { pruned, withoutNulls } from "./prune.ts";
import { type Schema, structureOf } from "./structure.ts";
import { validateValue } from "./validate-value.ts";
import { validateScaleSpec } from "./scale.ts";

const object = (properties: Record<string, Schema>, more: Schema = {}): Schema => ({ type: "object", properties, ...more });
const string: Schema = { type: "string" };
const keep: Schema = { "x-kubernetes-preserve-unknown-fields": true };

function prune(schema: Schema, value: unknown): [unknown, string[]] {
  const paths: string[] = [];
  return [pruned(value, structureOf(schema), (path) => void paths.push(path)), paths];
}

test.each<[string, Schema, unknown, unknown, string[]]>([
  ["what is not known goes, at every level", object({ a: object({ b: string }) }), { kind: "K", a: { b: "1", c: 1 }, x: 1 }, { kind: "K", a: { b: "1" } }, ["a.c", "x"]],
  ["metadata of the object is not the schema's", object({}), { metadata: { z: 1 } }, { metadata: { z: 1 } }, []],
  ["but that of others is", object({ a: object({}) }), { a: { metadata: 1 } }, { a: {} }, ["a.metadata"]],
  ["what preserves keeps, but for what its properties say", object({ a: { ...keep, ...object({ b: object({}) }) } }), { a: { x: 1, b: { y: 1 } } }, { a: { x: 1, b: {} } }, ["a.b.y"]],
  ["a list that preserves keeps what is in its items", object({ a: { type: "array", items: object({}), ...keep } }), { a: [{ x: 1 }] }, { a: [{ x: 1 }] }, []],
  ["embedded resources keep type and metadata", object({ a: object({}, { "x-kubernetes-embedded-resource": true }) }), { a: { kind: "P", metadata: {}, spec: 1 } }, { a: { kind: "P", metadata: {} } }, ["a.spec"]],
  ["map values, list items", object({ m: { type: "object", additionalProperties: object({ a: string }) }, l: { type: "array", items: object({ a: string }) } }), { m: { k: { b: 1 } }, l: [{}, { b: 1 }] }, { m: { k: {} }, l: [{}, {}] }, ["m.k.b", "l[1].b"]],
  ["additionalProperties: true says nothing of what they hold", object({}, { additionalProperties: true }), { a: { b: 1 }, c: 1 }, { a: {}, c: 1 }, ["a.b"]],
])("pruning: %s", (_, schema, given, wanted, paths) => expect(prune(schema, given)).toEqual([wanted, paths]));

test("an object that fits is the same object, and __proto__ is a name like any other", () => {
  const schema = structureOf(object({ a: object({ b: string }) }));
  const value = { a: { b: "1" } };
  expect(pruned(value, schema)).toBe(value);
  expect(defaulted(value, schema)).toBe(value);
  const odd = JSON.parse('{"a":{"__proto__":{"x":1},"b":"1","c":2}}') as object;
  expect([JSON.stringify(pruned(odd, schema)), ({} as { x?: number }).x]).toEqual(['{"a":{"b":"1"}}', undefined]);
});

test("nulls that are neither allowed nor defaulted go; defaults fill what is missing or null", () => {
  const schema = structureOf(object({ a: string, b: { ...string, nullable: true }, c: { ...string, default: "x" }, o: object({ p: { type: "integer", default: 7 } }, { default: {} }), l: { type: "array", items: object({ q: { ...string, default: "q" } }) } }));
  const bare = withoutNulls({ a: null, b: null, c: null, l: [{}] }, schema);
  expect(bare).toEqual({ b: null, c: null, l: [{}] });
  expect(defaulted(bare, schema)).toEqual({ b: null, c: "x", l: [{ q: "q" }], o: { p: 7 } });
});

test.each<[Schema, unknown, string[]]>([
  [string, 5, ['v: Invalid value: "integer": v in body must be of type string: "integer"']],
  [{ type: "integer" }, 1.5, ['v: Invalid value: "number": v in body must be of type integer: "number"', '<nil>: Invalid value: "": Checked value must be of type integer (default format) in v']],
  [{ type: "integer", format: "int32" }, 2 ** 31, ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in v']],
  [{ type: "number", format: "float" }, 3.4028235e38, []],
  [{ type: "number", format: "float" }, 3.5e38, [`<nil>: Invalid value: "": Checked value must be of type number with format float in v`]],
  [{ type: "number" }, 1, []],
  [{ ...string, nullable: true }, null, []],
  [string, null, ['v: Invalid value: "null": v in body must be of type string: "null"']],
  [{ "x-kubernetes-int-or-string": true }, 1e19, ['v: Invalid value: "number": v in body must be of type integer,string: "number"']],
  [{ type: "integer" }, 2 ** 63, ['v: Invalid value: "number": v in body must be of type integer: "number"', '<nil>: Invalid value: "": Checked value must be of type integer (default format) in v']],
  [{ "x-kubernetes-int-or-string": true }, true, ['v: Invalid value: "boolean": v in body must be of type integer,string: "boolean"']],
  [{ ...string, enum: ["a", "b"] }, null, ['v: Invalid value: "null": v in body must be of type string: "null"', 'v: Unsupported value: null: supported values: "a", "b"']],
  [{ ...string, enum: ["a", "b"] }, "c", ['v: Unsupported value: "c": supported values: "a", "b"']],
  [{ type: "number", enum: [1, 2] }, 1.5, []],
  [{ type: "number", enum: [1, 2] }, 3.5, ['v: Unsupported value: 3.5: supported values: "1", "2"']],
  [{ "x-kubernetes-int-or-string": true, enum: ["a"] }, 97, []],
  [{ "x-kubernetes-int-or-string": true, enum: ["a", "98"] }, 98, ['v: Unsupported value: 98: supported values: "a", "98"']],
  [{ ...string, minLength: 2 }, "\u{1f600}", ['v: Invalid value: "\u{1f600}": v in body should be at least 2 chars long']],
  [{ ...string, maxLength: 1 }, "ab", ["v: Too long: may not be more than 1 byte"]],
  [{ ...string, pattern: "^(?i)a+$" }, "AAb", ["v: Invalid value: \"AAb\": v in body should match '^(?i)a+$'"]],
  [{ type: "integer", minimum: 1, exclusiveMinimum: true }, 1, ["v: Invalid value: 1: v in body should be greater than 1"]],
  [{ type: "number", maximum: 0.00001 }, 1, ["v: Invalid value: 1: v in body should be less than or equal to 0"]],
  [{ type: "number", maximum: 0.00001 }, 1.5, ["v: Invalid value: 1.5: v in body should be less than or equal to 1e-05"]],
  [{ type: "number", maximum: 1e6 }, 1234567.5, ["v: Invalid value: 1.2345675e+06: v in body should be less than or equal to 1e+06"]],
  [{ type: "number", maximum: 1e6 }, 1234567, ["v: Invalid value: 1234567: v in body should be less than or equal to 1000000"]],
  [{ type: "number", maximum: 1.5 }, 2 ** 63, ["v: Invalid value: 9.223372036854776e+18: v in body should be less than or equal to 1.5"]],
  [{ type: "number", multipleOf: 0.1 }, 0.35, ["v: Invalid value: 0.35: v in body should be a multiple of 0.1"]],
  [{ type: "number", multipleOf: 0.5 }, 1, ["v: Invalid value: 0: factor MultipleOf declared for v must be positive: 0"]],
  [{ type: "number", minimum: 0.5 }, 0, []],
  [{ type: "number", maximum: 1.5 }, 2, ["v: Invalid value: 2: v in body should be less than or equal to 1"]],
  [{ type: "integer", maximum: 1.5 }, 2, ["<nil>: Invalid value: \"\": Maximum boundary value must be of type integer (default format) in v", "v: Invalid value: 2: v in body should be less than or equal to 1.5"]],
  [{ type: "integer", format: "double" }, 1.5, ['v: Invalid value: "number": v in body must be of type integer: "number"', '<nil>: Invalid value: "": Checked value must be of type integer (default format) in v']],
  [{ type: "array", items: string, maxItems: 1 }, ["a", 1], ['v[1]: Invalid value: "integer": v[1] in body must be of type string: "integer"', "v: Too many: 2: must have at most 1 item"]],
  [object({ a: string }, { required: ["a"], minProperties: 2, maxProperties: 3 }), {}, ["v: Invalid value: 0: v in body should have at least 2 properties", "v.a: Required value"]],
  [{ type: "object", additionalProperties: string }, { k: 1 }, ['v.k: Invalid value: "integer": v.k in body must be of type string: "integer"']],
  [object({ a: string, b: string }, { oneOf: [{ required: ["a"] }, { required: ["b"] }] }), { a: "", b: "" }, ['<nil>: Invalid value: "": "v" must validate one and only one schema (oneOf). Found 2 valid alternatives']],
  [object({ a: string }, { anyOf: [{ required: ["a"] }, { properties: { a: { enum: ["x"] } } }] }), { a: "y" }, []],
  [{ ...string, allOf: [{ minLength: 1 }, { pattern: "^b" }] }, "a", ["v: Invalid value: \"a\": v in body should match '^b'", '<nil>: Invalid value: "": "v" must validate all the schemas (allOf)']],
  [{ ...string, pattern: "+" }, "a", ["v: Invalid value: \"a\": v in body should match '+, but pattern is invalid: error parsing regexp: missing argument to repetition operator: `+`'"]],
  [{ ...string, not: { enum: ["a"] } }, "a", ['<nil>: Invalid value: "": "v" must not validate the schema (not)']],
  [{ ...string, format: "date-time" }, "2020-01-01", ['v: Invalid value: "2020-01-01": v in body must be of type date-time: "2020-01-01"']],
])("validation %#", (schema, value, errors) => expect(validateValue({ v: value }, structureOf(object({ v: schema }))).map(formatFieldError)).toEqual(errors));

test("what has not changed need not be valid", () => {
  const structure = structureOf(object({ a: { ...string, maxLength: 1 }, l: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], items: object({ name: string, v: { type: "integer", minimum: 5 } }) } }));
  const old = { a: "long", l: [{ name: "x", v: 1 }] };
  const check = (next: object): string[] => validateValue(next, structure, { correlated: new Correlated(next, old, structure) }).map(formatFieldError);
  expect(check({ ...old, l: [{ name: "y", v: 9 }, { name: "x", v: 1 }] })).toEqual([]);
  expect(check({ a: "longer", l: [{ name: "y", v: 1 }] })).toEqual(["a: Too long: may not be more than 1 byte", "l[0].v: Invalid value: 1: l[0].v in body should be greater than or equal to 5"]);
});

test("what holds a field that the schema does not name counts as changed", () => {
  const structure = structureOf(object({ named: object({ a: string }, { minProperties: 2 }), open: { type: "object", "x-kubernetes-preserve-unknown-fields": true, maxProperties: 0 } }, { maxProperties: 1 }));
  const old = { named: { a: "x" }, open: { b: "y" }, metadata: {} };
  expect(validateValue(old, structure, { correlated: new Correlated(old, old, structure) }).map(formatFieldError)).toEqual(["<nil>: Too many: 3: must have at most 1 item", "open: Too many: 1: must have at most 0 items"]);
});

test("sets and maps of a list have no item twice", () => {
  const structure = structureOf(object({ s: { type: "array", "x-kubernetes-list-type": "set", items: string }, m: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"], items: object({ a: string, b: string }) } }));
  expect([...validateLists({ s: ["x", "y", "x", "x"], m: [{ a: "1", b: "2" }, { a: "1" }, { b: "2", a: "1" }] }, structure, "")].map(formatFieldError)).toEqual([
    's[2]: Duplicate value: "x"', 'm[2]: Duplicate value: {"a":"1","b":"2"}',
  ]);
});

test("an item or a key that is a map is shown in the order of its names", () => {
  const items = object({ b: string, a: string });
  const structure = structureOf(object({ s: { type: "array", "x-kubernetes-list-type": "set", items }, m: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b", "a"], items } }));
  const twice = [{ b: "2", a: "1" }, { b: "2", a: "1" }];
  expect([...validateLists({ s: twice, m: twice }, structure, "")].map(formatFieldError)).toEqual(['s[1]: Duplicate value: {"a":"1","b":"2"}', 'm[1]: Duplicate value: {"a":"1","b":"2"}']);
});

test("what defaults say of a resource inside is in form, too", () => {
  const t = object({ metadata: object({ name: { ...string, default: "" }, labels: { type: "object", default: { a: "b" } } }) }, { "x-kubernetes-embedded-resource": true, default: { apiVersion: "v1", kind: "Pod", metadata: { no: 1 } } });
  const versions = [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: object({ t }) } }];
  const kind = new CustomKind({ crd: { spec: { group: "example.com", scope: "Namespaced", names: { plural: "widgets", kind: "Widget" }, versions } } as never, remote: undefined });
  expect(kind.defaulted({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "a" } } as never)).toMatchObject({ t: { apiVersion: "v1", kind: "Pod", metadata: { labels: { a: "b" } } } });
  expect(Object.keys((kind.defaulted({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "a" } } as never) as never as { t: { metadata: object } }).t.metadata)).toEqual(["labels"]);
});

test("resources inside: their metadata is read, repaired if it is stored, and checked", () => {
  const structure = structureOf(object({ t: object({}, { "x-kubernetes-embedded-resource": true, ...keep }) }));
  const paths: string[] = [];
  expect(coerceEmbedded({ t: { metadata: { name: "a", x: 1 } } }, structure, { report: (path) => void paths.push(path) })).toEqual({ t: { metadata: { name: "a" } } });
  expect(paths).toEqual(["t.metadata.x"]);
  for (const repair of [false, true]) expect(coerceEmbedded({ t: { metadata: null } }, structure, { repair })).toEqual({ t: { metadata: {} } });
  expect(() => coerceEmbedded({ t: { metadata: { name: "a", labels: 5 } } }, structure, {})).toThrow('t.metadata: Invalid value: {"labels":5,"name":"a"}: json: cannot unmarshal number');
  expect(() => coerceEmbedded({ t: { metadata: { name: 5, labels: 5 } } }, structure, {})).toThrow('t.metadata: Invalid value: {"labels":5,"name":5}: json: cannot unmarshal number into Go struct field ObjectMeta.labels');
  expect(() => coerceEmbedded({ t: { kind: 5 } }, structure, {})).toThrow("t.kind: Invalid value: 5: must be a string");
  expect(coerceEmbedded({ t: { kind: 5, metadata: { name: 5, labels: { a: "b" } } } }, structure, { repair: true })).toEqual({ t: { metadata: { labels: { a: "b" } } } });
  expect([...validateEmbedded({ t: { apiVersion: "a/b/c", kind: "Po d", metadata: { labels: { "a/b/c": "" } } } }, structure)].map(formatFieldError)).toEqual([
    't.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
    "t.kind: Invalid value: \"Po d\": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')",
    expect.stringContaining('t.metadata.labels: Invalid value: "a/b/c"'),
  ]);
});

test.each<[string, string[], string[]]>([
  ["date-time", ["2014-12-15T19:30:20.000Z", "2024-02-29t23:59:59+01:00"], ["2014-12-15", "2023-02-29T00:00:00Z", "2014-12-15T24:30:20Z"]],
  ["duration", ["22 ns", "1h30m", "2 weeks"], ["", "x", "5 z"]],
  ["ipv4", ["1.2.3.4", "01.2.3.4"], ["1.2.3", "::1"]], ["ipv6", ["::1", "::ffff:1.2.3.4"], ["1.2.3.4"]], ["cidr", ["10.0.0.0/8", "fd00::/8"], ["10.0.0.0"]],
  ["uri", ["http://a/b", "/x"], ["a b", "x"]], ["email", ["a@b", "A B <a@b.c>"], ["a", "@b", "a@"]], ["hostname", ["a.com", "localhost"], ["-a", "a..b"]],
  ["mac", ["00:11:22:33:44:55", "0011.2233.4455", "001122334455", "0011223344556677"], ["00:11", "00:11:22:33:44-55", "00112233445566"]], ["uuid4", ["25769c03-7a5c-4d8c-9a6b-1f0c3e3d6a11"], ["25769c03-7a5c-1d8c-9a6b-1f0c3e3d6a11"]],
  ["isbn", ["0321751043", "978-0321751041"], ["0321751044"]], ["creditcard", ["4111 1111 1111 1111"], ["4111 1111 1111 1112"]], ["byte", ["YQ=="], ["YQ", ""]],
  ["k8s-short-name", ["a-1"], ["A", "a.b"]], ["k8s-long-name", ["a.b-1"], ["a..b"]], ["hexcolor", ["#fff"], ["#ff"]], ["rgbcolor", ["rgb(1, 2,255)"], ["rgb(1,2,256)"]], ["ssn", ["123-45-6789"], ["123456789"]],
])("format %s", (name, good, bad) => {
  const { accepts } = formatCheck("string", name)!;
  expect([good.filter((text) => !accepts(text)), bad.filter(accepts), isKnownFormat("string", `${name}x`)]).toEqual([[], [], false]);
});

test.each<[string, unknown[]]>([
  [".spec.replicas", [3]], [".spec.none", []], [".list[0].name", ["a"]], [".list[-1:].name", ["b"]], [".list[*].name", ["a", "b"]], ['.list[?(@.name=="b")].v', [2]], [".list[?(@.v>1)].name", ["b"]],
  [".list[?(@.w)].name", ["a"]], ["..name", ["a", "b"]], ["['spec'].replicas", [3]], [".labels.a\\.b/c", ["x"]], [".list[0,1].v", [1, 2]], [".list[0:1].v", [1]],
])("JSONPath %s", (path, found) =>
  expect(compileJsonPath(path).find({ spec: { replicas: 3 }, list: [{ name: "a", v: 1, w: true }, { name: "b", v: 2 }], labels: { "a.b/c": "x" } })).toEqual(found));

test.each([
  ['.list[?(@.name = "a")].v', "unrecognized filter operator ="], [".list[?(@.name==null)].v", "unrecognized identifier null"], [".list[0]x", "unrecognized identifier x"],
  [".list[?(@.v>0.5)].v", "incompatible types for comparison"], [".list[?(@.w<true)].v", "invalid type for comparison"],
])("JSONPath %s is read, and finds nothing that could be shown", (path, problem) => {
  const compiled = compileJsonPath(path);
  expect(() => compiled.find({ list: [{ name: "a", v: 1, w: true }] })).toThrow(problem);
});

test("a JSONPath that ends in what it escapes is none", () => expect(() => compileJsonPath(".spec.a\\")).toThrow("unexpected end"));

test("replicas below what is no object", () => {
  expect([...validateScaleSpec({ spec: [1, { a: "b" }, {}] }, { specReplicasPath: ".spec.n" } as never)]).toMatchObject([{ detail: ".spec.n accessor error: [1 map[a:b] map[]] is of the type []interface {}, expected map[string]interface{}" }]);
  expect([...validateScaleSpec({ spec: "x" }, { specReplicasPath: ".spec.n" } as never)]).toMatchObject([{ detail: ".spec.n accessor error: x is of the type string, expected map[string]interface{}" }]);
});

test("who writes the status changes nothing else: what is not there does not come", () => {
  const version = { name: "v1", served: true, storage: true, subresources: { status: {} } };
  const { status } = customResource({ spec: { group: "a.b" }, names: { plural: "things", kind: "Thing" }, version, structure: () => structureOf(undefined) }).subresources!;
  if (status?.type !== "part") throw new Error("no part");
  const old = { apiVersion: "a.b/v1", kind: "Thing", metadata: { name: "a", labels: { a: "b" } }, data: 1 };
  const next = { apiVersion: "a.b/v1", kind: "Thing", metadata: { name: "a", labels: { c: "d" } }, spec: { a: 1 }, data: 2, status: { ready: true } };
  status.prepare(next as never, old as never, {} as never);
  expect(next).toEqual({ ...old, metadata: { ...old.metadata, resourceVersion: undefined }, status: { ready: true } });
});

test("each of very many wrong items is told once, in their order", () => {
  const items = Array.from({ length: 100_000 }, (_, i) => (i % 2 === 0 ? i : String(i)));
  const structure = structureOf(object({ list: { type: "array", items: { allOf: [{ maxLength: 3 }, { maxLength: 4 }], ...string } } }));
  const found = validateValue({ list: items.slice(0, 40_000) }, structure).map(formatFieldError);
  expect(found[0]).toBe('list[0]: Invalid value: "integer": list[0] in body must be of type string: "integer"');
  expect(new Set(found).size).toBe(found.length);
  expect(found.length).toBeGreaterThan(20_000);
});

test("of very many items that are none of a thousand values so many are told of as an answer holds", () => {
  const values = Array.from({ length: 1_000 }, (_, i) => `value-${i}`);
  const structure = structureOf(object({ list: { type: "array", items: { ...string, enum: values } } }));
  const found = validateValue({ list: Array.from({ length: 20_000 }, (_, i) => `x${i}`) }, structure);
  expect(found[0]).toMatchObject({ type: "FieldValueNotSupported", field: "list[0]", badValue: "x0" });
  expect(new Set(found.map(({ detail }) => detail)).size).toBe(1);
  expect(found.length).toBeGreaterThan(1_000);
  expect(found.length).toBeLessThan(2_000);
  expect(validateValue({ list: values }, structure)).toEqual([]);
});

test("others have their turn while thousands of objects are converted", async () => {
  const versions = ["v1", "v2"].map((name) => ({ name, served: true, storage: name === "v1", schema: { openAPIV3Schema: object({}) } }));
  let nowMs = 0, turns = 0, isOver = false;
  const remote = async (all: readonly { readonly metadata: object }[], apiVersion: string) => all.map((one) => ({ ...one, apiVersion }));
  const kind = new CustomKind({ crd: { spec: { group: "example.com", scope: "Namespaced", names: { plural: "widgets", kind: "Widget" }, versions } } as never, remote: remote as never, clock: { uptimeMs: () => nowMs++ } });
  const stored = Array.from({ length: 300 }, (_, i) => ({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: `w-${i}` } }) as never);
  const turn = (): void => { turns++; if (!isOver) setImmediate(turn); };
  setImmediate(turn);
  await kind.ready(stored, "example.com/v2", new AbortController().signal);
  isOver = true;
  expect(turns).toBeGreaterThan(30);
  expect(stored.map((one) => kind.shown(one, "example.com/v2").apiVersion)).toEqual(stored.map(() => "example.com/v2"));
});

test("what a webhook has converted stays converted, though it fails for the rest: who asks again goes on from there", async () => {
  const versions = ["v1", "v2"].map((name) => ({ name, served: true, storage: name === "v1", schema: { openAPIV3Schema: object({}) } }));
  const asked: number[] = [];
  const remote = async (all: readonly { readonly metadata: object }[], apiVersion: string) => {
    if (asked.push(all.length) === 3) throw new Error("connection refused");
    return all.map((one) => ({ ...one, apiVersion }));
  };
  const kind = new CustomKind({ crd: { spec: { group: "example.com", scope: "Namespaced", names: { plural: "widgets", kind: "Widget" }, versions } } as never, remote: remote as never });
  const stored = Array.from({ length: 500 }, (_, i) => ({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: `w-${i}` } }) as never);
  const { signal } = new AbortController();
  await expect(kind.ready(stored, "example.com/v2", signal)).rejects.toThrow("connection refused");
  await kind.ready(stored, "example.com/v2", signal);
  expect(asked).toEqual([200, 200, 100, 100]);
});
