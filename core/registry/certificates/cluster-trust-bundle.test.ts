import { beforeAll, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../../test/certificates.ts";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { clusterTrustBundles } from "./cluster-trust-bundle.ts";

let [one, two, leaf] = ["", "", ""];
beforeAll(async () => {
  const pki = await testPki();
  const { cert, clientCas } = servingMaterial(pki);
  [one, two, leaf] = [clientCas[0]!, clientCas[1]!, cert];
});

const bundle = (name: string, spec: Given): Given => ({ metadata: { name }, spec });

test.each<[string, string | undefined, string[]]>([
  ["plain", undefined, []], ["e.com:s:a", "e.com/s", []],
  ["a:b", undefined, ['metadata.name: Invalid value: "a:b": ClusterTrustBundle without signer name must not have ":" in its name']],
  ["plain", "e.com/s", ['metadata.name: Invalid value: "plain": ClusterTrustBundle for signerName e.com/s must be named with prefix e.com:s:']],
  ["com:s:a", "com/s", ['spec.signerName: Invalid value: "com": should be a domain with at least two segments separated by dots']],
])("%s of the signer %s", (name, signerName, errors) => expect(created(clusterTrustBundles, bundle(name, { signerName, trustBundle: one })).errors).toEqual(errors));

test.each<[string, () => string, string[]]>([
  ["two", () => `text\n${one}${two}`, []],
  ["none", () => "text", ["at least one trust anchor must be provided"]],
  ["one twice", () => one + two + one, ["duplicate trust anchor (indices [0 2])"]],
  ["others", () => `${leaf}-----BEGIN KEY-----\neA==\n-----END KEY-----\n${one.replace("-----\n", "-----\nA: b\n\n")}-----BEGIN CERTIFICATE-----\neA==\n-----END CERTIFICATE-----\n`,
    ["entry 0 does not have the CA bit set", "entry 1 has bad block type: KEY", "entry 2 has PEM block headers", "entry 3 does not parse as X.509"]],
])("%s", (_, text, details) => expect(created(clusterTrustBundles, bundle("plain", { trustBundle: text() })).errors).toEqual(details.map((detail) => `spec.trustBundle: Invalid value: "<value omitted>": ${detail}`)));

test("what was taken once is not read again, and whose it is stays", () => {
  const { object } = created(clusterTrustBundles, bundle("plain", { trustBundle: "from before" }));
  expect(updated(clusterTrustBundles, object, { metadata: { ...object.metadata, labels: { a: "b" } } }).errors).toEqual([]);
  expect(updated(clusterTrustBundles, object, { spec: { ...object.spec, signerName: "e.com/s" } }).errors).toContain('spec.signerName: Invalid value: "e.com/s": field is immutable');
});
