import { expect, test } from "vitest";
import { growth } from "../../../test/reads.ts";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { findCondition, namesTaken, planStatus } from "./crd-status.ts";
import { customResourceDefinitions as crds } from "./custom-resource-definition.ts";
import { inconvertible } from "./schema.ts";
import { shownSchema } from "./shown.ts";

const schema = { type: "object", properties: { spec: { type: "object", properties: { size: { type: "integer" } } } } };
const version = (more: Given = {}): Given => ({ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema }, ...more });
const crd = (spec: Given = {}, metadata: Given = {}): Given => ({
  metadata: { name: "widgets.example.com", ...metadata },
  spec: { group: "example.com", scope: "Namespaced", names: { plural: "widgets", kind: "Widget" }, versions: [version()], ...spec },
});
const withSchema = (root: Given): Given => crd({ versions: [version({ schema: { openAPIV3Schema: root } })] });

test("what the API fills in", () => {
  const { object, errors } = created(crds, crd());
  expect(errors).toEqual([]);
  expect([object.spec.names, object.spec.conversion, object.status!.storedVersions]).toEqual([
    { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" }, { strategy: "None" }, ["v1"],
  ]);
});

const LABEL = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

test.each<[Given, string[]]>([
  [crd({}, { name: "widgets" }), ['metadata.name: Invalid value: "widgets": must be spec.names.plural+"."+spec.group']],
  [crd({}, { generateName: "widgets" }), ['metadata.generateName: Invalid value: "widgets": must be spec.names.plural+"."+spec.group']],
  [crd({}, { generateName: "widgets.example.com" }), []],
  [crd({ scope: "Global" }), ['spec.scope: Unsupported value: "Global": supported values: "Cluster", "Namespaced"']],
  [crd({ versions: [version({ name: "V1" })] }), ["spec.versions[0].name", "spec.version"].map((path) => `${path}: Invalid value: "V1": ${LABEL}`)],
  [crd({ versions: [version({ name: "" })] }), [`spec.versions[0].name: Invalid value: "": ${LABEL}`]],
  [crd({ names: { plural: "widgets", kind: "Widget", shortNames: [""], categories: [""] } }), ["shortNames", "categories"].map((list) => `spec.names.${list}[0]: Invalid value: "": ${LABEL}`)],
  ...[undefined, []].map((versions): [Given, string[]] => [crd({ versions }), [
    `spec.versions: Invalid value: ${versions ? "[]" : "null"}: must have exactly one version marked as storage version`, "status.storedVersions: Invalid value: null: must have at least one stored version",
  ]]),
  [crd({ versions: [version({ schema: undefined })] }), ["spec.versions[0].schema.openAPIV3Schema: Required value"]],
  [crd({ conversion: { strategy: "Webhook", webhook: { conversionReviewVersions: ["v2"], clientConfig: { url: "http://x" } } } }), [
    `spec.conversion.webhookClientConfig.url: Invalid value: "http": 'https' is the only allowed URL scheme; desired format: https://host[/path]`,
    'spec.conversion.conversionReviewVersions: Invalid value: ["v2"]: must include at least one of v1, v1beta1',
  ]],
  ...([
    ["https://h:port", `invalid port ":port" after host`], ["https://[::1", "missing ']' in host"], ["https://a/%zz", `invalid URL escape "%zz"`], ["://x", "missing protocol scheme"], ["https://a b", `invalid character " " in host name`],
  ] as const).map(([url, problem]): [Given, string[]] => [crd({ conversion: { strategy: "Webhook", webhook: { conversionReviewVersions: ["v1"], clientConfig: { url } } } }), [
    `spec.conversion.webhookClientConfig.url: Required value: url must be a valid URL: parse "${url}": ${problem}; desired format: https://host[/path]`,
  ]]),
  [crd({ conversion: { strategy: "Webhook", webhook: { conversionReviewVersions: ["v1"], clientConfig: { url: "https://@h" } } } }), ['spec.conversion.webhookClientConfig.url: Invalid value: "": user information is not permitted in the URL']],
  [withSchema({ type: "object", properties: { spec: {} } }), ["spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields"]],
  [withSchema({ type: "object", properties: { a: { type: "array" } } }), ["spec.validation.openAPIV3Schema.properties[a].items: Required value: must be specified"]],
  [withSchema({ type: "object", properties: { a: { type: "array", items: [{ type: "string" }] }, b: {} } }), ["spec.validation.openAPIV3Schema.properties[a].items: Forbidden: items must be a schema object and not an array"]],
  [withSchema({ type: "object", properties: { a: { $ref: "#/b" } } }), ["spec.validation.openAPIV3Schema.properties[a].$ref: Forbidden: $ref is not supported"]],
  [withSchema({ type: "object", properties: { a: { type: "string", $ref: "", id: "" } } }), ["spec.validation.openAPIV3Schema.properties[a].$ref: Forbidden: $ref is not supported"]],
  [withSchema({ type: "object", properties: { a: { type: "array", items: [{ uniqueItems: true }], definitions: { x: { type: "y" } }, dependencies: { x: { nullable: true, type: "null" }, y: ["z"], w: "z", v: null } } } }), [
    ...["definitions", "dependencies"].map((name) => `${name}: Forbidden: ${name} is not supported`), "items: Forbidden: items must be a schema object and not an array",
    'definitions[x].type: Unsupported value: "y": supported values: "array", "boolean", "integer", "number", "object", "string"',
    'dependencies[x].type: Unsupported value: "null": supported values: "array", "boolean", "integer", "number", "object", "string"',
    "dependencies[x].type: Forbidden: type cannot be set to null, use nullable as an alternative",
    "items[0].uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
  ].map((error) => `spec.validation.openAPIV3Schema.properties[a].${error}`)],
  [{ ...crd({ preserveUnknownFields: true, versions: [version({ schema: { openAPIV3Schema: { type: "object", properties: { a: { type: "string", default: "x" } } } } })] }) }, [
    "spec.preserveUnknownFields: Invalid value: true: must be false in order to use defaults in the schema",
    "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
  ]],
  [withSchema({ type: "object", properties: { a: { type: "string", $schema: "x" } } }), [`spec.validation.openAPIV3Schema: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`]],
  [withSchema({ type: "object", properties: { a: { type: "object", default: { x: 2n ** 63n - 1n } } } }), ['spec.validation.openAPIV3Schema.properties[a].default: Invalid value: {"x":9223372036854775807}: must not have unknown fields']],
  [withSchema({ type: "object", properties: { t: { type: "object", "x-kubernetes-embedded-resource": true, properties: {
    kind: { type: "string", default: "A b" },
    metadata: { type: "object", default: { labels: 5 }, properties: { name: { type: "string", default: "." }, finalizers: { type: "array", items: { type: "string", default: "good/one" } } } },
    spec: { type: "object", properties: { name: { type: "string", default: "." } } },
  } } } }), [
    `[kind].default: Invalid value: "A b": must result in valid metadata: kind: Invalid value: "A b": may have mixed case, but should otherwise match: ${LABEL}`,
    '[metadata].default: Invalid value: {"labels":5}: must result in valid metadata: metadata: Invalid value: {"labels":5}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string',
    `[metadata].properties[name].default: Invalid value: ".": must result in valid metadata: metadata.name: Invalid value: ".": may not be '.'`,
  ].map((error) => `spec.validation.openAPIV3Schema.properties[t].properties${error}`)],
  [withSchema({ type: "object", properties: { t: { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true, default: { apiVersion: "v1", kind: "Pod", metadata: { name: 5 } } } } }), [
    'spec.validation.openAPIV3Schema.properties[t].default.metadata: Invalid value: {"name":5}: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string',
  ]],
  [withSchema({ type: "object", properties: { t: { type: "object", "x-kubernetes-embedded-resource": true, properties: { a: { type: "string" } }, default: { apiVersion: "v1", kind: "Pod", metadata: { name: "a", no: 1 }, b: 1 } } } }), [
    'spec.validation.openAPIV3Schema.properties[t].default: Invalid value: {"apiVersion":"v1","b":1,"kind":"Pod","metadata":{"name":"a"}}: must not have unknown fields',
  ]],
  [withSchema({ type: "object", properties: { a: { "x-kubernetes-int-or-string": true, default: [] }, b: { type: "object", properties: { c: { "x-kubernetes-int-or-string": true } }, default: { c: null } } } }), []],
  [withSchema({ type: "object", properties: { a: { "x-kubernetes-int-or-string": true, anyOf: [{ type: "integer" }, { type: "string" }], default: true } } }), [
    'spec.validation.openAPIV3Schema.properties[a].default: Invalid value: "": "" must validate at least one schema (anyOf)',
    'spec.validation.openAPIV3Schema.properties[a].default: Invalid value: "boolean":  in body must be of type integer: "boolean"',
  ]],
  [crd({ versions: [version({ selectableFields: [{ jsonPath: "spec.size" }, { jsonPath: ".spec.size[0]" }] })] }), [
    'spec.selectableFields[0].jsonPath: Invalid value: "spec.size": is an invalid path: expected [ or . but got: spec',
    'spec.selectableFields[1].jsonPath: Invalid value: ".spec.size[0]": is an invalid path: array notation is not allowed',
  ]],
  [crd({ versions: [version({ selectableFields: [{ jsonPath: ".spec.size" }] }), version({ name: "v2", storage: false })] }), ["spec.versions[0].selectableFields: Invalid value: \"\": may only be set when `version.schema.openAPIV3Schema` is not included"]],
  [crd({ versions: [version({ selectableFields: [{ jsonPath: ".spec.size" }] }), version({ name: "v2", storage: false, selectableFields: [{ jsonPath: ".spec.size" }], schema: { openAPIV3Schema: { type: "object" } } })] }), ['spec.selectableFields: Invalid value: "": may only be set when validations.schema is included']],
  [crd({ versions: [version({ schema: {}, selectableFields: [{ jsonPath: "x" }, { jsonPath: "[a]" }] })] }), [
    "spec.versions[0].schema.openAPIV3Schema: Required value", 'spec.selectableFields[0].jsonPath: Invalid value: "x": is an invalid path: expected [ or . but got: x',
    'spec.selectableFields[1].jsonPath: Invalid value: "[a]": is an invalid path: array notation is not allowed',
  ]],
  [crd({ versions: [version({ schema: { openAPIV3Schema: { type: "object", properties: { a: { type: "string", $schema: "x" } } } }, selectableFields: [{ jsonPath: "a" }] })] }), [
    ...["validation", "schema"].map((part) => `spec.${part}.openAPIV3Schema: Invalid value: "": OpenAPIV3Schema 'schema' is not supported`), 'spec.selectableFields[0].jsonPath: Invalid value: "a": is an invalid path: expected [ or . but got: a',
  ]],
  [crd({ versions: [version({ storage: false, subresources: { scale: { specReplicasPath: ".spec.size" } } }), version({ name: "v2", storage: false })] }), [
    'spec.versions[0].subresources.scale.statusReplicasPath: Required value',
    'spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":{"Status":null,"Scale":{"SpecReplicasPath":".spec.size","StatusReplicasPath":"","LabelSelectorPath":null}},"AdditionalPrinterColumns":null,"SelectableFields":null},{"Name":"v2","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version',
    "status.storedVersions: Invalid value: null: must have at least one stored version",
  ]],
  [{ ...crd({ versions: [version(), version()] }), status: { storedVersions: ["v1"] } }, ["spec.versions", "spec.versions", "status.storedVersions"].map((path) => expect.stringMatching(new RegExp(`^${path}: Invalid value`)) as string)],
  [withSchema({ type: "object", properties: { a: { type: "object", "x-kubernetes-preserve-unknown-fields": false }, b: {} } }), ["spec.validation.openAPIV3Schema.properties[a].x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"]],
  [crd({ versions: [version({ schema: { openAPIV3Schema: { type: "object", additionalProperties: false } }, subresources: { status: {} } })] }), [expect.stringMatching(/^spec.validation.openAPIV3Schema: Invalid value: .*"AdditionalProperties":\{"Allows":false,"Schema":null\}.*: only \[Description Type/) as string, "spec.validation.openAPIV3Schema.additionalProperties: Forbidden: must not be used at the root"]],
  [withSchema({ type: "object", anyOf: [{ required: ["a"] }, { properties: { b: { type: "string" } } }] }), [
    "spec.validation.openAPIV3Schema.anyOf[1].properties[b].type: Forbidden: must be empty to be structural",
    "spec.validation.openAPIV3Schema.properties[b]: Required value: because it is defined in spec.validation.openAPIV3Schema.anyOf[1].properties[b]",
  ]],
  [withSchema({ type: "object", properties: { p: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], items: { type: "object", properties: { name: { type: "string" } } } } } }), [
    "spec.validation.openAPIV3Schema.properties[p].items.properties[name].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property",
  ]],
  [withSchema({ type: "object", properties: { q: { anyOf: [{ type: "integer" }, { type: "string" }], "x-kubernetes-int-or-string": true, pattern: "^(?P<n>[0-9]+)$" } } }), []],
  [withSchema({ type: "object", "x-kubernetes-preserve-unknown-fields": true }), []],
  [crd({ versions: [version({ additionalPrinterColumns: [{ name: "A", type: "text", jsonPath: "spec.a" }], selectableFields: [{ jsonPath: ".spec" }] })] }), [
    'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
    'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "spec.a": must be a simple json path starting with .',
    'spec.selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.',
  ]],
  [crd({ group: "x.k8s.io" }, { name: "widgets.x.k8s.io" }), ['metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation "api-approved.kubernetes.io", see https://github.com/kubernetes/enhancements/pull/1111']],
])("a definition %#", (given, errors) => expect(created(crds, given).errors).toEqual(errors));

test("a schema in an error is as the server's own struct", () => {
  const root = { type: "object", oneOf: [{ required: ["b", "a"] }], properties: { b: { type: "array", items: { type: "string" } }, a: { type: "object", additionalProperties: true } }, "x-kubernetes-validations": [{ rule: "true" }] };
  const [error = ""] = created(crds, crd({ versions: [version({ schema: { openAPIV3Schema: root }, subresources: { status: {} } })] })).errors;
  const shown = JSON.parse(error.slice(error.indexOf("{"), error.lastIndexOf("}") + 1)) as Given;
  const given = (schema: object): Given => Object.fromEntries(Object.entries(schema).filter(([, value]) => value !== null && value !== "" && value !== false));
  expect(Object.keys(shown)).toHaveLength(44);
  expect(Object.keys(given(shown))).toEqual(["Type", "OneOf", "Properties", "XValidations"]);
  expect(Object.entries(shown["Properties"] as object).map(([name, property]) => [name, given(property as object)])).toEqual([
    ["a", { Type: "object", AdditionalProperties: { Allows: true, Schema: null } }], ["b", { Type: "array", Items: { Schema: expect.objectContaining({ Type: "string" }) as object, JSONSchemas: null } }],
  ]);
});

test("formats that nobody checks are warned of, and of those that were there already nothing is said", () => {
  const known = { a: { type: "string", format: "date-time" }, b: { type: "integer", format: "int32" }, c: { type: "number", format: "double" }, d: { type: "string", format: "k8s-short-name" } };
  const before = { type: "object", properties: { ...known, e: { type: "string", format: "binary" } } };
  const { object, warnings } = created(crds, withSchema(before));
  expect(warnings).toEqual(['unrecognized format "binary"']);
  const items = { type: "array", items: { type: "object", additionalProperties: { type: "integer", format: "uint32" } } };
  const next = { ...object.spec, versions: [version({ schema: { openAPIV3Schema: { ...before, properties: { ...before.properties, items } } } })] };
  expect(updated(crds, object, { spec: next }).warnings).toEqual(['unrecognized format "uint32"']);
});

const ruled = (more: Given): Given => withSchema({ type: "object", properties: { spec: { type: "object", properties: { a: { type: "integer" }, l: { type: "array", maxItems: 5, items: { type: "string", maxLength: 5 } } }, ...more } } });
const AT = "spec.validation.openAPIV3Schema.properties[spec]";
const TRY = "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)";
test.each<[string, Given, string[]]>([
  ["fits", ruled({ "x-kubernetes-validations": [{ rule: "self.a > 1 && (!has(oldSelf.a) || oldSelf.a < self.a)", messageExpression: "string(self.a)", fieldPath: ".a" }] }), []],
  ["does not compile", ruled({ "x-kubernetes-validations": [{ rule: "self.a >", message: "m" }, { rule: "self.nope == 1" }, { rule: "self.a" }, { rule: "self.a > 1", messageExpression: "self.a" }] }), [
    `${AT}.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.a \\u003e","Message":"m","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | self.a >\n | ........^`,
    `${AT}.x-kubernetes-validations[1].rule: Invalid value: {"Rule":"self.nope == 1","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n | self.nope == 1\n | ....^`,
    `${AT}.x-kubernetes-validations[2].rule: Invalid value: {"Rule":"self.a","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool`,
    `${AT}.x-kubernetes-validations[3].messageExpression: Invalid value: {"Rule":"self.a \\u003e 1","Message":"","MessageExpression":"self.a","Reason":null,"FieldPath":"","OptionalOldSelf":null}: messageExpression must evaluate to a string`,
  ]],
  ["compares what cannot be told apart", ruled({ properties: { l: { type: "array", maxItems: 5, items: { type: "string", maxLength: 5, "x-kubernetes-validations": [{ rule: "self == oldSelf" }, { rule: "self != ''", optionalOldSelf: true }] } } } }), [
    `${AT}.properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within ${AT}.properties[l]`,
    `${AT}.properties[l].items.x-kubernetes-validations[1].optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule`,
  ]],
  ["may cost too much", ruled({ properties: { l: { type: "array", items: { type: "string" } } }, "x-kubernetes-validations": [{ rule: "self.l.all(x, self.l.all(y, x == y))" }] }), [
    `${AT}.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x ${TRY}`,
    `${AT}.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
    `spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${TRY}`,
  ]],
  ["may cost what no number tells", ruled({ properties: { l: { type: "array", maxItems: 2n ** 63n - 1n, items: { type: "string", maxLength: 2n ** 63n - 1n } }, m: { type: "object", maxProperties: 2n ** 63n - 1n, additionalProperties: { type: "string", format: "byte", maxLength: 2n ** 63n - 1n } } }, "x-kubernetes-validations": [{ rule: "self.l.all(x, x != '')" }] }), [
    `${AT}.x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x ${TRY}`,
    `${AT}.x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema`,
    `spec.validation.openAPIV3Schema: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x ${TRY}`,
  ]],
  ["is not asked of a schema that is wrong", ruled({ "x-kubernetes-validations": [{ rule: "self.a >" }, { rule: "self.a > 1", fieldPath: ".none" }] }), [`${AT}.x-kubernetes-validations[1].fieldPath: Invalid value: ".none": must be a valid path`]],
  ["is asked about defaults", ruled({ default: { a: 5, unknown: 1 }, "x-kubernetes-validations": [{ rule: "self.a > 7", message: "more" }] }), [
    `${AT}.default: Invalid value: {"a":5,"unknown":1}: must not have unknown fields`, `${AT}.default: Invalid value: more`,
  ]],
])("a rule that %s", (_, given, errors) => expect(created(crds, given).errors).toEqual(errors));

test("a version that objects are stored in cannot go", () => {
  const { object } = created(crds, crd());
  const { object: both, errors } = updated(crds, object, { spec: { ...object.spec, versions: [version({ storage: false }), version({ name: "v2" })] } });
  expect([errors, both.status!.storedVersions]).toEqual([[], ["v1", "v2"]]);
  expect(updated(crds, both, { spec: { ...both.spec, versions: [version({ name: "v2" })] } }).errors).toEqual([
    'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in v1 and removes v1 from status.storedVersions',
  ]);
});

const noTypes = { type: "object", properties: { a: { type: "bogus" } } };
const looseSet = { type: "object", properties: { a: { type: "array", "x-kubernetes-list-type": "set", items: { type: "object" } } } };
const looseKey = { type: "object", properties: { a: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], items: { type: "object", nullable: true, properties: { k: { type: "string", nullable: true } } } } } };
const looseDefault = { type: "object", properties: { a: { type: "object", default: { no: 1 }, properties: { b: { type: "string" } } } } };
const dear = { type: "object", properties: { l: { type: "array", items: { type: "string" }, "x-kubernetes-validations": [{ rule: "true", messageExpression: "self[0] + self[1] + self[2] + self[3] + self[4] + self[5] + self[6] + self[7]" }] } } };
const free = { type: "object", properties: { a: {} } };
const fields = Object.fromEntries(Array.from({ length: 9 }, (_, i) => [`f${i}`, { type: "string" }]));
const nine = { schema: { openAPIV3Schema: { type: "object", properties: fields } }, selectableFields: Object.keys(fields).map((name) => ({ jsonPath: `.${name}` })) };
const OPEN = { preserveUnknownFields: true };

test.each<[string, Given, Given]>([
  ["a type that there is not", { versions: [version({ schema: { openAPIV3Schema: noTypes } })] }, { type: "object", properties: { b: { type: "bogus" } } }],
  ["items of a set that can be changed in part", { versions: [version({ schema: { openAPIV3Schema: looseSet } })] }, { type: "object", properties: { b: looseSet.properties.a } }],
  ["keys that may be missing or null", { versions: [version({ schema: { openAPIV3Schema: looseKey } })] }, { type: "object", properties: { b: looseKey.properties.a } }],
  ["defaults with unknown fields", { versions: [version({ schema: { openAPIV3Schema: looseDefault } })] }, { type: "object", properties: { b: looseDefault.properties.a } }],
  ["fields that have no type", { ...OPEN, versions: [version({ schema: { openAPIV3Schema: free } })] }, { type: "object", properties: { b: {} } }],
])("what a stored definition has wrong is not held against who changes it: %s", (_, spec, next) => {
  const stored = { ...crd(spec), status: { conditions: [], acceptedNames: { plural: "", kind: "" }, storedVersions: ["v1"] } } as never;
  const changed = { ...crd(spec)["spec"] as Given, versions: [version({ schema: { openAPIV3Schema: next } })] };
  expect(updated(crds, stored, { spec: changed }).errors).toEqual([]);
  expect(updated(crds, created(crds, crd()).object, { spec: { ...changed, preserveUnknownFields: false } }).errors).not.toEqual([]);
});

test("a schema that need not be structural must be as soon as something in it asks for it", () => {
  const stored = { ...crd({ ...OPEN, versions: [version({ schema: { openAPIV3Schema: free } })] }), status: { conditions: [], acceptedNames: { plural: "", kind: "" }, storedVersions: ["v1"] } } as never;
  for (const more of [{ default: "x", type: "string" }, { type: "array", items: { type: "string" }, "x-kubernetes-list-type": "set" }, { "x-kubernetes-int-or-string": true }, { type: "object", "x-kubernetes-preserve-unknown-fields": true }])
    expect(updated(crds, stored, { spec: { ...crd(OPEN)["spec"] as Given, versions: [version({ schema: { openAPIV3Schema: { type: "object", properties: { ...free.properties, b: more } } } })] } }).errors)
      .toContain("spec.validation.openAPIV3Schema.properties[a].type: Required value: must not be empty for specified object fields");
});

test("more fields to select by than there may be stay as they are", () => {
  const stored = { ...crd({ versions: [version(nine)] }), status: { conditions: [], acceptedNames: { plural: "", kind: "" }, storedVersions: ["v1"] } } as never;
  const spec = crd({ versions: [version(nine)] })["spec"] as Given;
  expect(updated(crds, stored, { spec: { ...spec, conversion: { strategy: "None" } } }).errors).toEqual([]);
  expect(updated(crds, stored, { spec: { ...spec, versions: [version({ ...nine, selectableFields: nine.selectableFields.toReversed() })] } }).errors).toEqual(["spec.selectableFields: Too many: 9: must have at most 8 items"]);
});

test("a rule that costs too much may do so in a new version, too, if all versions had its schema", () => {
  const spec = crd({ versions: [version({ schema: { openAPIV3Schema: dear } })] })["spec"] as Given;
  const stored = { ...crd(spec), status: { conditions: [], acceptedNames: { plural: "", kind: "" }, storedVersions: ["v1"] } } as never;
  const other = version({ name: "v2", storage: false });
  expect(created(crds, crd(spec)).errors).toEqual([expect.stringContaining("estimated messageExpression cost exceeds budget by factor of ")]);
  expect(updated(crds, stored, { spec: { ...spec, versions: [version({ schema: { openAPIV3Schema: dear } }), other, version({ name: "v3", storage: false, schema: { openAPIV3Schema: dear } })] } }).errors).toEqual([]);
});

test("what may not change is told before the versions that objects are stored in", () => {
  const { object } = created(crds, crd());
  const { errors } = updated(crds, object, { spec: { ...object.spec, group: "example.org", versions: [version({ name: "v2" })] } });
  expect(errors.map((error) => error.split(":")[0])).toEqual(["spec.group", "status.storedVersions[0]"]);
  const twice = { ...object, status: { ...object.status!, storedVersions: ["v0", "v1", "v0"] } };
  expect(updated(crds, twice, {}).errors.map((error) => error.split(":")[0])).toEqual(["status.storedVersions[2]"]);
});

test.each<[string, Given, string[]]>([
  ["a map of no known type keeps what is in it from being told apart", { "x-kubernetes-map-type": "future", type: "object", properties: { a: { type: "string", maxLength: 9, "x-kubernetes-validations": [{ rule: "self == oldSelf" }] } } }, [
    'spec.validation.openAPIV3Schema.properties[m].x-kubernetes-map-type: Unsupported value: "future": supported values: "atomic", "granular"',
    'spec.validation.openAPIV3Schema.properties[m].properties[a].x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within spec.validation.openAPIV3Schema.properties[m]',
  ]],
  ["a path is one in a schema that cannot be looked at", { $ref: "x", type: "object", "x-kubernetes-validations": [{ rule: "true", fieldPath: ".none" }] }, ["spec.validation.openAPIV3Schema.properties[m].$ref: Forbidden: $ref is not supported"]],
])("%s", (_, m, errors) => expect(created(crds, withSchema({ type: "object", properties: { m } })).errors).toEqual(errors));

test("several schemas where there may be one are shown as the server's own struct", () => {
  const { errors } = created(crds, withSchema({ type: "object", properties: { a: { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], items: [{ type: "string" }] } } }));
  expect(errors).toEqual(expect.arrayContaining([expect.stringMatching(/properties\[a\]\.items: Invalid value: \{"Schema":null,"JSONSchemas":\[\{"ID":"".*\}\]\}: must only have a single schema if x-kubernetes-list-type is map$/)]));
});

test("a format that nobody checks is warned of once where all versions share it", () => {
  const schema = { openAPIV3Schema: { type: "object", properties: { a: { type: "string", format: "binary" } } } };
  const other = { openAPIV3Schema: { type: "object", properties: { a: { type: "string", format: "binary" }, b: { type: "string" } } } };
  const warnings = (second: Given): readonly string[] => created(crds, crd({ versions: [version({ schema }), version({ name: "v2", storage: false, schema: second })] })).warnings;
  expect([warnings(schema), warnings(other)].map(({ length }) => length)).toEqual([1, 2]);
});

test("a schema that cannot be looked at is not known to be structural or not", () => {
  const given = crd({ versions: [version({ schema: { openAPIV3Schema: { type: "object", properties: { a: { $ref: "x" } } } } })] }) as never;
  expect(findCondition(planStatus(given, namesTaken([]), 0), "NonStructuralSchema")).toMatchObject({ status: "Unknown", reason: "StructuralError", message: "failed to check validation schema for version v1: OpenAPIV3Schema '$ref' is not supported" });
});

test.each([
  ["id", { $schema: "s", $ref: "r", id: "i" }], ["schema", { $ref: "r", patternProperties: {}, $schema: "s" }], ["dependencies", { items: [{}], definitions: {}, additionalItems: true, dependencies: {} }],
])("of several things for which a schema cannot be looked at, %s is told", (name, part) => {
  expect(inconvertible({ type: "object", properties: { a: part } } as never)).toBe(`OpenAPIV3Schema '${name}' is not supported`);
});

test("who gives up the names that were taken is accepted", () => {
  const names = { plural: "widgets", singular: "widget", kind: "Widget", listKind: "WidgetList" };
  const taken = namesTaken([{ status: { acceptedNames: { plural: "others", singular: "other", kind: "Other", listKind: "OtherList", shortNames: ["w"] } } } as never]);
  const asks = (more: Given, status?: unknown): never => ({ ...crd({ names: { ...names, ...more } }), ...(status ? { status } : {}) }) as never;
  const refused = planStatus(asks({ shortNames: ["w"] }), taken, 0);
  expect([refused.acceptedNames, ["NamesAccepted", "Established"].map((type) => findCondition(refused, type)!.reason)]).toEqual([names, ["ShortNamesConflict", "NotAccepted"]]);
  const accepted = planStatus(asks({}, refused), taken, 0);
  expect([accepted.acceptedNames, ["NamesAccepted", "Established"].map((type) => findCondition(accepted, type)!.reason)]).toEqual([names, ["NoConflicts", "InitialNamesAccepted"]]);
  expect(planStatus(asks({}, accepted), taken, 1)).toBe(accepted);
});

test("values in a schema are shown by the names of their members", () => {
  const value = { b: [{ d: 1, c: 2 }], a: null } as never, ordered = '{"a":null,"b":[{"c":2,"d":1}]}';
  expect(JSON.stringify(shownSchema({ default: value, example: value, enum: [value] }))).toMatch(new RegExp([`"Default":${ordered}`, `"Enum":[${ordered}]`, `"Example":${ordered}`].map(RegExp.escape).join(".*")));
});

test("of very many versions each is looked at a few times", () => {
  const versions = (n: number) => Array.from({ length: n }, (_, i) => ({ name: `v${i % 7}`, served: true, storage: false, schema: { openAPIV3Schema: { type: "object" } } }));
  expect(growth((n, reads) => {
    const spec = { group: "x.io", scope: "Namespaced", names: { plural: "as", kind: "A", listKind: "AList", singular: "a" }, versions: reads.of(versions(n)) };
    const errors = [...crds.validate!({ metadata: { name: "as.x.io" }, spec, status: { storedVersions: ["v1"] } } as never, undefined, {} as never)];
    expect(errors.some(({ detail }) => detail === "must contain unique version names")).toBe(true);
  }, 200)).toBeLessThan(3);
});
