import { generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { expect, test } from "vitest";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import type { PodCertificateRequest } from "../../api/gen/certificates.v1beta1.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { NO_ALT_NAMES } from "../../pki/alt-names.ts";
import { bitString, integer, oid, sequence } from "../../pki/asn1.ts";
import { encodeCertificateRequest } from "../../pki/certificate-request.ts";
import { toPem } from "../../pki/pem.ts";
import { spkiOf } from "../../pki/signature.ts";
import { encodeSubject } from "../../pki/subject.ts";
import { signCertificate } from "../../pki/x509.ts";
import { podCertificateRequests } from "./pod-certificate-request.ts";

const ec = (namedCurve: string): KeyObject => generateKeyPairSync("ec", { namedCurve }).privateKey;
const rsa = (modulusLength: number): KeyObject => generateKeyPairSync("rsa", { modulusLength }).privateKey;
const KEYS = { ed25519: generateKeyPairSync("ed25519").privateKey, P224: ec("P-224"), P256: ec("P-256"), P384: ec("P-384"), P521: ec("P-521"), RSA2048: rsa(2048), RSA3072: rsa(3072) };
const X25519 = generateKeyPairSync("x25519").privateKey;
const UID = "pod-uid";

const stub = (key: KeyObject): string => Buffer.from(encodeCertificateRequest({ commonName: "", organizations: [] }, NO_ALT_NAMES, key)).toString("base64");
const spki = (key: KeyObject): string => Buffer.from(spkiOf(key)).toString("base64");
const proof = (key: KeyObject, text = UID): string => {
  if (key.asymmetricKeyType === "ed25519") return sign(null, Buffer.from(text), key).toString("base64");
  return sign("sha256", Buffer.from(text), key.asymmetricKeyType === "rsa" ? { key, padding: 6, saltLength: 32 } : key).toString("base64"); // PSS
};
const SPEC = { signerName: "e.com/s", podName: "p", podUID: UID, serviceAccountName: "sa", serviceAccountUID: "sa-uid", nodeName: "n", nodeUID: "n-uid", maxExpirationSeconds: 86400, stubPKCS10Request: stub(KEYS.ed25519) };
const errorsOf = (spec: Given): readonly string[] => created(podCertificateRequests, { metadata: { name: "a" }, spec: { ...SPEC, ...spec } }).errors;
const byPkix = (key: KeyObject, signed: string): Given => ({ stubPKCS10Request: undefined, pkixPublicKey: spki(key), proofOfPossession: signed });

test.each(["ed25519", "P256", "P384", "P521", "RSA3072"] as const)("%s keys are good, said in either way; not with another's proof, nor with one of something else", (name) => {
  const key = KEYS[name];
  expect(errorsOf({ stubPKCS10Request: stub(key) })).toEqual([]);
  expect(errorsOf(byPkix(key, proof(key)))).toEqual([]);
  const refused = ["spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature"];
  expect(errorsOf(byPkix(key, proof(key, "other")))).toEqual(refused);
  expect(errorsOf(byPkix(key, proof(name === "P256" ? KEYS.P384 : KEYS.P256)))).toEqual(refused);
});

const STUB = "spec.stubPKCS10Request", PKIX = "spec.pkixPublicKey";
const subdomain = `a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`;
const oneOf = "spec: Invalid value: exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set";
const long = Buffer.alloc(10 * 1024 + 1).toString("base64");
const forged = (): string => {
  const der = Buffer.from(stub(KEYS.P256), "base64");
  der[der.length - 1]! ^= 1;
  return der.toString("base64");
};
/** A request for a P-224 key, signed by nobody. */
const foreign = (): string => {
  const own = Buffer.from(spki(KEYS.P224), "base64"), name = Buffer.of(0x30, 0), attributes = Buffer.of(0xa0, 0);
  return Buffer.from(sequence(sequence(integer(0), name, own, attributes), sequence(oid("1.2.840.10045.4.3.2")), bitString(Buffer.of(0)))).toString("base64");
};
test.each<[string, Given, string[]]>([
  ["a short RSA key", { stubPKCS10Request: stub(KEYS.RSA2048) }, [`${STUB}: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or 4096`]],
  ["a short RSA key, plain", byPkix(KEYS.RSA2048, proof(KEYS.RSA2048)), [`${PKIX}: Invalid value: "2048-bit modulus": RSA keys must have modulus size 3072 or 4096`]],
  ["another curve, asked for", { stubPKCS10Request: foreign() }, [`${STUB}: Invalid value: "curve P-224": elliptic public keys must use curve P256, P384, or P521`]],
  ["another curve", byPkix(KEYS.P224, proof(KEYS.P224)), [`${PKIX}: Invalid value: "curve P-224": elliptic public keys must use curve P256 or P384`]],
  ["a key that signs nothing", byPkix(X25519, "eA=="), [`${PKIX}: Invalid value: "${spki(X25519)}": unknown public key type; supported types are Ed25519, ECDSA, and RSA`]],
  ["no key", byPkix(KEYS.P256, "eA=="), ["spec.proofOfPossession: Invalid value: could not verify proof-of-possession signature"]],
  ["nothing of a key", { ...byPkix(KEYS.P256, "eA=="), pkixPublicKey: "eA==" }, [`${PKIX}: Invalid value: "eA==": must be a valid PKIX-serialized public key`]],
  ["no request", { stubPKCS10Request: "eA==" }, [`${STUB}: Invalid value: must be a valid PKCS#10 CSR`]],
  ["a forged request", { stubPKCS10Request: forged() }, [`${STUB}: Invalid value: invalid signature`]],
  ["a key in both ways", { ...byPkix(KEYS.P256, proof(KEYS.P256)), stubPKCS10Request: stub(KEYS.P256) }, [oneOf]],
  ["a key without its proof", { ...byPkix(KEYS.P256, "") }, [oneOf]],
  ["too long a request", { stubPKCS10Request: long }, [`${STUB}: Too long: may not be more than 10240 bytes`]],
  ["too long a key", { ...byPkix(KEYS.P256, "eA=="), pkixPublicKey: long }, [`${PKIX}: Too long: may not be more than 10240 bytes`]],
  ["too long a proof", byPkix(KEYS.P256, long), ["spec.proofOfPossession: Too long: may not be more than 10240 bytes"]],
  ["no signer", { signerName: "s" }, [`spec.signerName: Invalid value: "s": must be a fully qualified domain and path of the form 'example.com/signer-name'`]],
  ["bad names", { podName: "p!", serviceAccountName: "s!", nodeName: "n!" }, ["podName: Invalid value: \"p!\"", "serviceAccountName: Invalid value: \"s!\"", "nodeName: Invalid value: \"n!\""].map((start) => `spec.${start}: ${subdomain}`)],
  ["no uids", { podUID: "", serviceAccountUID: "", nodeUID: "" }, ["podUID", "serviceAccountUID", "nodeUID"].map((field) => `spec.${field}: Invalid value: "": must not be empty`)],
  ["a long uid", { nodeUID: "n".repeat(129) }, ["spec.nodeUID: Too long: may not be more than 128 bytes"]],
  ["too short a life", { maxExpirationSeconds: 3599 }, ["spec.maxExpirationSeconds: Invalid value: 3599: must be in the range [3600, 7862400]"]],
  ["too long a life", { maxExpirationSeconds: 7862401 }, ["spec.maxExpirationSeconds: Invalid value: 7862401: must be in the range [3600, 7862400]"]],
  ["too long a life of Kubernetes' own", { signerName: "kubernetes.io/s", maxExpirationSeconds: 86401 }, ["spec.maxExpirationSeconds: Invalid value: 86401: must be in the range [3600, 86400]"]],
  ["a word without a domain", { unverifiedUserAnnotations: { foo: "x" } }, ['spec.unverifiedUserAnnotations: Invalid value: "foo": must be a domain-prefixed key (such as "acme.io/foo")']],
  ["too many words", { unverifiedUserAnnotations: { "e.com/a": "x".repeat(256 * 1024) } }, ["spec.unverifiedUserAnnotations: Too long: may not be more than 262144 bytes"]],
])("%s", (_, spec, errors) => expect(errorsOf(spec)).toEqual(errors));

test("a life is a day where nothing is said; only its metadata changes later, and what it may be found by", () => {
  const { object } = created(podCertificateRequests, { spec: { ...SPEC, maxExpirationSeconds: undefined }, status: { certificateChain: "x" } });
  expect([object.spec.maxExpirationSeconds, object.status, podCertificateRequests.fields?.(object)]).toEqual([86400, undefined, { "spec.signerName": "e.com/s", "spec.podName": "p", "spec.nodeName": "n" }]);
  expect(updated(podCertificateRequests, object, { metadata: { ...object.metadata, labels: { a: "b" } } }).errors).toEqual([]);
  expect(updated(podCertificateRequests, object, { spec: { ...object.spec, podName: "other" } }).errors).toEqual([expect.stringMatching(/^spec: Invalid value: \{.*: field is immutable$/)]);
});

const NOW = Date.UTC(2026, 0, 1), MINUTE = 60_000, HOUR = 60 * MINUTE;
const CONTEXT = { user: { name: "signer", groups: [] }, nowMs: NOW, dryRun: false, uuid: () => "" };
interface Issue { readonly fromMs?: number; readonly toMs?: number; readonly key?: KeyObject; readonly dnsNames?: string[]; readonly emailAddresses?: string[]; readonly chain?: (leaf: string) => string; readonly status?: Given }
function issued({ fromMs = NOW, toMs = NOW + 24 * HOUR, key = KEYS.ed25519, dnsNames = ["a.b"], emailAddresses = [], chain = (leaf) => leaf, status = {} }: Issue = {}): Given {
  const name = encodeSubject({ commonName: "ca", organizations: [] });
  const leaf = toPem("CERTIFICATE", signCertificate({ serial: Buffer.alloc(8, 1), issuerRaw: name, subjectRaw: name, notBeforeMs: fromMs, notAfterMs: toMs, spki: spkiOf(key), usages: ["server auth"], altNames: { ...NO_ALT_NAMES, dnsNames, emailAddresses }, isCa: false }, KEYS.P256));
  return { ...outcome("Issued"), certificateChain: chain(leaf), notBefore: timestamp(fromMs), beginRefreshAt: timestamp(fromMs + 12 * HOUR), notAfter: timestamp(toMs), ...status };
}
function outcome(type: string, status = "True"): { conditions: Given[] } { return { conditions: [{ type, status, reason: "Why", message: "m", lastTransitionTime: timestamp(NOW) }] }; }
const { object: PENDING } = created(podCertificateRequests, { spec: SPEC });
const told = (status: Given, old: PodCertificateRequest = PENDING): readonly string[] => updated(podCertificateRequests, old, { status }, { subresource: "status", context: CONTEXT }).errors.map((text) => text.replace(/"-----BEGIN.*-----\\n"/, "<chain>"));
const after = (status: Given): PodCertificateRequest => updated(podCertificateRequests, PENDING, { status }, { subresource: "status", context: CONTEXT }).object;
const junk = toPem("CERTIFICATE", Buffer.from("x"));

const CHAIN = "status.certificateChain: Invalid value: ";
const LASTING = "status: Invalid value: immutable after PodCertificateRequest is issued, denied, or failed";
test.each<[string, Given, string[]]>([
  ["issued", issued(), []],
  ["issued, with those above it and text between them", issued({ chain: (leaf) => `text\n${leaf}text\n${leaf}` }), []],
  ["denied", outcome("Denied"), []], ["failed", outcome("Failed"), []], ["nothing", {}, []],
  ["a condition of another type", outcome("Unknown"), ['status.conditions.[0].type: Unsupported value: "Unknown": supported values: "Issued", "Denied", "Failed"']],
  ["not issued", outcome("Issued", "False"), ['status.conditions.[0].status: Unsupported value: "False": supported values: "True"']],
  ["two outcomes", { conditions: [...outcome("Denied").conditions, ...outcome("Failed").conditions] }, ['status.conditions.[1].type: Invalid value: "Failed": There may be at most one condition with type "Issued", "Denied", or "Failed"']],
  ["denied, with a chain", { ...issued(), ...outcome("Denied") }, ["status: Invalid value: non-condition status fields must be empty when denying or failing the PodCertificateRequest"]],
  ["no outcome, with a chain", { certificateChain: "x" }, ['status: Invalid value: status is immutable unless transitioning to "Issued", "Denied", or "Failed"']],
  ["no certificate", issued({ chain: () => "x" }), [`${CHAIN}"x": issued certificate chain must contain at least one certificate`]],
  ["something else first", issued({ chain: (leaf) => toPem("KEY", Buffer.from("x")) + leaf }), [`${CHAIN}<chain>: issued certificate chain must consist entirely of CERTIFICATE PEM blocks`]],
  ["something else above", issued({ chain: (leaf) => leaf + toPem("KEY", Buffer.from("x")) }), [`${CHAIN}<chain>: issued certificate chain must consist entirely of CERTFICATE PEM blocks`]],
  ["junk", issued({ chain: () => junk }), [`${CHAIN}<chain>: leaf certificate does not parse as valid X.509`]],
  ["junk above", issued({ chain: (leaf) => leaf + junk }), [`${CHAIN}<chain>: intermediate certificate does not parse as valid X.509`]],
  ["too much", issued({ chain: (leaf) => leaf + " ".repeat(100 * 1024) }), ["status.certificateChain: Too long: may not be more than 102400 bytes"]],
  ["another key's", issued({ key: KEYS.P384 }), [`${CHAIN}<chain>: leaf certificate was not issued to the requested public key`]],
  ["bad names", issued({ dnsNames: ["", "a..b", ".a", "b."], emailAddresses: ["ann@e.com", "Ann <ann@e.com>", "ann"] }), [
    `${CHAIN}"": leaf certificate should not contain empty DNSName`, `${CHAIN}"a..b": leaf certificate's DNSName should not contain '..'`, `${CHAIN}".a": leaf certificate's DNSName should not start or end with '.'`,
    `${CHAIN}"b.": leaf certificate's DNSName should not start or end with '.'`, `${CHAIN}"ann": leaf certificate should not contain invalid EmailAddress`,
  ]],
  ["no times", issued({ status: { notBefore: undefined, notAfter: undefined, beginRefreshAt: undefined } }), [
    "status.notBefore: Required value: must be present and consistent with the issued certificate", "status.notAfter: Required value: must be present and consistent with the issued certificate",
    "status.beginRefreshAt: Required value: must be present and in the range [notbefore+10min, notafter-10min]",
  ]],
  ["another beginning", issued({ status: { notBefore: timestamp(NOW + 1000) } }), ['status.notBefore: Invalid value: "2026-01-01T00:00:01Z": must be set to the NotBefore time encoded in the leaf certificate']],
  ["another end", issued({ status: { notAfter: timestamp(NOW) } }), ['status.notAfter: Invalid value: "2026-01-01T00:00:00Z": must be set to the NotAfter time encoded in the leaf certificate']],
  ["long since", issued({ fromMs: NOW - 5 * MINUTE }), [`status.notBefore: Invalid value: "2025-12-31T23:55:00Z": must be set to within 5 minutes of kube-apiserver's current time`]],
  ["just now", issued({ fromMs: NOW - 5 * MINUTE + 1000, toMs: NOW + 23 * HOUR }), []],
  ["too short a life", issued({ toMs: NOW + HOUR - 1000 }), [`${CHAIN}3599000000000: leaf certificate lifetime must be >= 1 hour`]],
  ["too long a life", issued({ toMs: NOW + 25 * HOUR }), [`${CHAIN}90000000000000: leaf certificate lifetime must be <= spec.maxExpirationSeconds (86400)`]],
  ["too early a refresh", issued({ status: { beginRefreshAt: timestamp(NOW + 10 * MINUTE - 1000) } }), ['status.beginRefreshAt: Invalid value: "2026-01-01T00:09:59Z": must be at least 10 minutes after status.notBefore']],
  ["too late a refresh", issued({ status: { beginRefreshAt: timestamp(NOW + 24 * HOUR - 10 * MINUTE + 1000) } }), ['status.beginRefreshAt: Invalid value: "2026-01-01T23:50:01Z": must be at least 10 minutes before status.notAfter']],
])("status: %s", (_, status, errors) => expect(told(status)).toEqual(errors));

test("what has come of it is for good", () => {
  const states = { Issued: issued(), Denied: outcome("Denied"), Failed: outcome("Failed"), pending: {} };
  for (const from of ["Issued", "Denied", "Failed"] as const) for (const [to, status] of Object.entries(states)) expect([from, to, told(status, after(states[from]))]).toEqual([from, to, from === to ? [] : [LASTING]]);
  expect(told(issued({ toMs: NOW + 20 * HOUR }), after(states.Issued))).toEqual([LASTING]);
});

test("who tells of the outcome changes nothing else", () => {
  const { object } = updated(podCertificateRequests, PENDING, { metadata: { ...PENDING.metadata, labels: { a: "b" } }, spec: { ...SPEC, podName: "other" }, status: outcome("Denied") }, { subresource: "status", context: CONTEXT });
  expect([object.metadata.labels, object.spec.podName, object.status?.conditions?.[0]?.type]).toEqual([undefined, "p", "Denied"]);
});
