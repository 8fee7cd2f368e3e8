import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { systemRandom } from "../../lifecycle/random.ts";
import { generateKey, keyPem, selfSign } from "../../pki/authority.ts";
import { toPem } from "../../pki/pem.ts";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { configMaps, DATA_BYTES_MAX } from "./config-map.ts";
import { secrets } from "./secret.ts";

const base64 = (text: string): string => Buffer.from(text).toString("base64");

test("stringData is written into data, wins over it, and is never read back", () => {
  expect(created(secrets, { data: { a: base64("old"), b: base64("kept") }, stringData: { a: "new" } }).object).toMatchObject({ data: { a: base64("new"), b: base64("kept") } });
  expect(Object.keys(created(secrets, { stringData: { a: "new" } }).object)).not.toContain("stringData");
  const { object } = created(secrets, { data: { a: base64("1") } });
  expect(updated(secrets, object, { stringData: { a: "2" } }).object.data).toEqual({ a: base64("2") });
});

test.each<[Given, string]>([[{}, "Opaque"], [{ type: "" }, "Opaque"], [{ type: "example.com/mine" }, "example.com/mine"]])("a Secret of %j is of type %s, and may be empty", (given, type) => {
  const { object, errors } = created(secrets, given);
  expect([object.type, errors]).toEqual([type, []]);
});

const required = (name: string): string => `data[${name}]: Required value`;
const broken = (name: string, text: string): string => `data[${name}]: Invalid value: "<secret contents redacted>": ${text}`;
test.each<[string, Record<string, string>, string[]]>([
  ["kubernetes.io/dockercfg", {}, [required(".dockercfg")]],
  ["kubernetes.io/dockercfg", { ".dockercfg": "{}" }, []],
  ["kubernetes.io/dockerconfigjson", { other: "{}" }, [required(".dockerconfigjson")]],
  ["kubernetes.io/dockerconfigjson", { ".dockerconfigjson": `{"anything": 1}` }, []],
  ["kubernetes.io/dockerconfigjson", { ".dockerconfigjson": "{auths}" }, [broken(".dockerconfigjson", "invalid character 'a' looking for beginning of object key string")]],
  ["kubernetes.io/dockerconfigjson", { ".dockerconfigjson": "[]" }, [broken(".dockerconfigjson", "json: cannot unmarshal array into Go value of type map[string]interface {}")]],
  ["kubernetes.io/dockerconfigjson", { ".dockerconfigjson": `{"a":` }, [broken(".dockerconfigjson", "unexpected end of JSON input")]],
  ["kubernetes.io/basic-auth", {}, [required("username"), required("password")]],
  ["kubernetes.io/basic-auth", { username: "" }, []],
  ["kubernetes.io/ssh-auth", { "ssh-privatekey": "" }, [required("ssh-privatekey")]],
  ["kubernetes.io/ssh-auth", { "ssh-privatekey": "x" }, []],
  ["kubernetes.io/tls", {}, [required("tls.crt"), required("tls.key")]],
  ["kubernetes.io/tls", { "tls.crt": "not", "tls.key": "looked at" }, []],
  ["bootstrap.kubernetes.io/token", {}, []],
])("type %s with %j", (type, stringData, errors) => expect(created(secrets, { type, stringData }).errors).toEqual(errors));

test("names, keys and sizes of ConfigMaps and Secrets", () => {
  const keyText = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
  for (const kind of [secrets, configMaps] as const) {
    const fill = (length: number): Given => (kind === secrets ? { data: { a: base64("x".repeat(length)) } } : { binaryData: { a: base64("x".repeat(length)) } });
    expect(created(kind as typeof secrets, { data: { ".dot_-A9": "" } }).errors).toEqual([]);
    expect(created(kind as typeof secrets, { data: { "a/b": "" } }).errors).toEqual([`data[a/b]: Invalid value: "a/b": ${keyText}`]);
    expect(created(kind as typeof secrets, { data: { "..": "" } }).errors).toEqual([`data[..]: Invalid value: "..": must not be '..'`]);
    expect(created(kind as typeof secrets, fill(DATA_BYTES_MAX)).errors).toEqual([]);
    expect(created(kind as typeof secrets, fill(DATA_BYTES_MAX + 1)).errors).toEqual([`${kind === secrets ? "data" : "[]"}: Too long: may not be more than 1048576 bytes`]);
  }
});

test("a certificate that is none, or not of its key, is warned of in Go's words", async () => {
  const key = await generateKey();
  const certificate = selfSign("me", { key, random: systemRandom, notBeforeMs: 0, notAfterMs: 1e12 });
  const { privateKey: rsa } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const warnings = (crt: string, of: string): readonly string[] => created(secrets, { type: "kubernetes.io/tls", stringData: { "tls.crt": crt, "tls.key": of } }).warnings;
  expect(warnings(certificate, keyPem(key))).toEqual([]);
  expect(warnings("", keyPem(key))).toEqual(["tls: failed to find any PEM data in certificate input"]);
  expect(warnings(keyPem(key), certificate)).toEqual(["tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched"]);
  expect(warnings(toPem("X", Buffer.from("x")), "")).toEqual([`tls: failed to find "CERTIFICATE" PEM block in certificate input after skipping PEM blocks of the following types: [X]`]);
  expect(warnings(certificate, "x")).toEqual(["tls: failed to find any PEM data in key input"]);
  expect(warnings(certificate, certificate)).toEqual(["tls: found a certificate rather than a key in the PEM for the private key"]);
  expect(warnings(certificate, toPem("PRIVATE KEY", Buffer.from("x")))).toEqual(["tls: failed to parse private key"]);
  expect(warnings(certificate, keyPem(await generateKey()))).toEqual(["tls: private key does not match public key"]);
  expect(warnings(certificate, keyPem(rsa))).toEqual(["tls: private key type does not match public key type"]);
  expect(created(secrets, { stringData: { "tls.crt": "" } }).warnings).toEqual([]);
});

test("what is immutable stays so, until it is deleted", () => {
  const text = "Forbidden: field is immutable when `immutable` is set";
  const secret = created(secrets, { data: { a: "" }, immutable: true }).object;
  expect(updated(secrets, secret, { data: { a: base64("x") } }).errors).toEqual([`data: ${text}`]);
  expect(updated(secrets, secret, { stringData: { b: "x" } }).errors).toEqual([`data: ${text}`]);
  expect(updated(secrets, secret, { immutable: undefined }).errors).toEqual([`immutable: ${text}`]);
  expect(updated(secrets, secret, { metadata: { ...secret.metadata, labels: { a: "b" } } }).errors).toEqual([]);
  const map = created(configMaps, { binaryData: { a: "" }, immutable: true }).object;
  expect(updated(configMaps, map, { binaryData: { a: base64("x") } }).errors).toEqual([`binaryData: ${text}`]);
  expect(updated(configMaps, created(configMaps, { data: { a: "1" } }).object, { data: { a: "2" }, immutable: true }).errors).toEqual([]);
});

test("text is kept byte for byte", () => {
  const text = "a: b\n\n\t# c\r\n  d \u2028é\n";
  expect(created(configMaps, { data: { "app.properties": text } }).object.data).toEqual({ "app.properties": text });
});
