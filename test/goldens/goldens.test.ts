/** Every kind that upstream has a golden file of, byte for byte: as JSON, as protobuf, as YAML, and each of them read back. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { JsonObject } from "../../core/api/codec/json-document.ts";
import { encodeJson, parseJson } from "../../core/api/codec/json.ts";
import { protobufCodec } from "../../core/api/codec/protobuf.ts";
import { encodeYaml, parseYaml } from "../../core/api/codec/yaml.ts";
import { gvkOf } from "../../core/api/meta/gvk.ts";
import { canonical } from "../../core/api/schema/canonical.ts";
import { builtInFacts } from "../../core/api/schema/facts.ts";
import { builtInResources } from "../../core/api/schema/resources.ts";
import { goldensDirectory } from "./goldens.ts";

/** Group versions with golden files that no server of v1.36 serves. */
const UNSERVED: Readonly<Record<string, string>> = {
  "admission.k8s.io/v1beta1": "reviews are sent as v1",
  "apidiscovery.k8s.io/v2beta1": "removed in v1.35",
  "apps/v1beta1": "removed in v1.16", "apps/v1beta2": "removed in v1.16", "extensions/v1beta1": "removed in v1.22",
  "authorization.k8s.io/v1beta1": "removed in v1.22",
  "batch/v1beta1": "removed in v1.25", "discovery.k8s.io/v1beta1": "removed in v1.25", "events.k8s.io/v1beta1": "removed in v1.25", "policy/v1beta1": "removed in v1.25",
  "flowcontrol.apiserver.k8s.io/v1beta1": "removed in v1.26", "flowcontrol.apiserver.k8s.io/v1beta2": "removed in v1.29",
  "imagepolicy.k8s.io/v1alpha1": "what the server asks of image policy webhooks: JSON alone, not in the facts",
  "node.k8s.io/v1alpha1": "removed in v1.22", "node.k8s.io/v1beta1": "removed in v1.25",
  "rbac.authorization.k8s.io/v1alpha1": "removed in v1.22", "rbac.authorization.k8s.io/v1beta1": "removed in v1.22",
  "scheduling.k8s.io/v1beta1": "removed in v1.22",
};

/** Served, but declared in other modules than k8s.io/api, whose golden files these are. */
const ELSEWHERE = ["apiextensions.k8s.io/v1 CustomResourceDefinition", "apiregistration.k8s.io/v1 APIService"];

const DIRECTORY = goldensDirectory();

type Typed = JsonObject & { readonly apiVersion: string; readonly kind: string };

interface Golden { readonly name: string; readonly object: Typed; readonly json: string; readonly protobuf: Buffer; readonly yaml: string }

function goldens(): readonly Golden[] {
  return readdirSync(DIRECTORY).filter((file) => file.endsWith(".json") && file !== "core.v1.WatchEvent.json" /* an envelope: it has no apiVersion */).map((file) => {
    const path = join(DIRECTORY, file.slice(0, -".json".length));
    const json = readFileSync(`${path}.json`, "utf8");
    const object = parseJson(json).value as Typed;
    const { group, version, kind } = gvkOf(object);
    return { name: `${group === "" ? version : `${group}/${version}`} ${kind}`, object, json, protobuf: readFileSync(`${path}.pb`), yaml: readFileSync(`${path}.yaml`, "utf8") };
  });
}

const ALL = goldens();
const KNOWN = ALL.filter(({ object }) => builtInFacts.typeOf(gvkOf(object)) !== undefined);

/** The names of those that are not as they should be. */
function wrong(right: (golden: Golden) => boolean): readonly string[] {
  return KNOWN.filter((golden) => !right(golden)).map(({ name }) => name);
}

test("every kind that is served has a golden file, and every golden file of a group version that is served is known", () => {
  const names = new Set(KNOWN.map(({ name }) => name));
  const served = new Set(builtInResources.rows().map(({ group, version, kind }) => `${group === "" ? version : `${group}/${version}`} ${kind}`));
  expect([...served].filter((name) => !names.has(name)).sort()).toEqual(ELSEWHERE);
  expect([...new Set(ALL.filter((golden) => !KNOWN.includes(golden)).map(({ name }) => name.split(" ")[0]!))].sort()).toEqual(Object.keys(UNSERVED).sort());
  expect(KNOWN.length).toBeGreaterThan(130);
});

test("JSON: read, brought into canonical form and written, each is upstream's text", () => {
  expect(wrong(({ object, json }) => Buffer.from(encodeJson(canonical(builtInFacts.typeOf(gvkOf(object))!, object).object, { pretty: true })).toString().trim() === json.trim())).toEqual([]);
});

test("protobuf: written from JSON each is upstream's bytes, and read from them it is upstream's JSON", () => {
  expect(wrong(({ object, protobuf }) => protobuf.equals(protobufCodec.encode(object)))).toEqual([]);
  expect(wrong(({ object, protobuf }) => JSON.stringify(protobufCodec.decode(protobuf)) === JSON.stringify(object))).toEqual([]);
});

test("YAML: each is upstream's text, and read from it the same object", () => {
  expect(wrong(({ object, yaml }) => encodeYaml(object) === yaml)).toEqual([]);
  expect(wrong(({ object, yaml }) => Bun.deepEquals(parseYaml(yaml), object))).toEqual([]);
});
