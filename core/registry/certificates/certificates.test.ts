import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { NO_ALT_NAMES } from "../../pki/alt-names.ts";
import { createCertificateRequest } from "../../pki/certificate-request.ts";
import { growth } from "../../../test/reads.ts";
import { created, type Given, updated } from "../../../test/rehearse.ts";
import { certificateSigningRequests as requests } from "./certificate-signing-request.ts";

const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const request = Buffer.from(createCertificateRequest({ commonName: "ann", organizations: [] }, NO_ALT_NAMES, privateKey)).toString("base64");
const csr = (spec: Given = {}): Given => ({ spec: { request, signerName: "example.com/signer", usages: ["client auth"], username: "somebody else", ...spec } });

test("who asks is written down by the server", () => {
  const { object, errors } = created(requests, csr(), { user: { name: "ann", uid: "7", groups: ["people"], extra: { a: ["b"] } }, nowMs: 0, dryRun: false, uuid: () => "" });
  expect(errors).toEqual([]);
  expect(object.spec).toMatchObject({ username: "ann", uid: "7", groups: ["people"], extra: { a: ["b"] } });
});

test.each<[Given, string[]]>([
  [{ request: "" }, ["spec.request: Invalid value: \"\": PEM block type must be CERTIFICATE REQUEST"]],
  [{ usages: ["client auth", "client auth"] }, ['spec.usages[1]: Duplicate value: "client auth"']],
  [{ usages: [] }, ["spec.usages: Required value"]],
  [{ signerName: "kubernetes.io/legacy-unknown" }, ['spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version']],
  [{ expirationSeconds: 1 }, ["spec.expirationSeconds: Invalid value: 1: may not specify a duration less than 600 seconds (10 minutes)"]],
])("a request with %j", (spec, errors) => expect(created(requests, csr(spec)).errors).toEqual(errors));

test.each([
  [["client auth"], []], [["digital signature", "key encipherment", "client auth"], []], [["signing", "client auth"], []],
  [["key encipherment", "client auth"], ['spec.usages: a certificate for key encipherment, client auth alone is none that the API server can be shown: add "digital signature"']],
])("what is signed for %j can be shown to the API server, or is warned of", (usages, warnings) => {
  expect(created(requests, csr({ usages, signerName: "kubernetes.io/kube-apiserver-client" })).warnings).toEqual(warnings);
  expect(created(requests, csr({ usages })).warnings).toEqual([]);
});

test("each part is written through its own subresource, and approvals last", () => {
  const { object } = created(requests, csr());
  const approved = { conditions: [{ type: "Approved", status: "True" }] };
  expect(updated(requests, object, { status: approved }, { subresource: "status" }).errors).toEqual(['status.conditions: Forbidden: updates may not add a condition of type "Approved"']);
  const { object: next, errors } = updated(requests, object, { status: { ...approved, certificate: "eA==" }, spec: {} }, { subresource: "approval" });
  expect([errors, next.spec, next.status]).toEqual([[], object.spec, { conditions: [{ type: "Approved", status: "True", lastUpdateTime: "1970-01-01T00:00:00Z", lastTransitionTime: "1970-01-01T00:00:00Z" }] }]);
  expect(updated(requests, next, { status: {} }, { subresource: "approval" }).errors).toEqual(['status.conditions: Forbidden: updates may not remove a condition of type "Approved"']);
  expect(updated(requests, next, { status: { ...next.status, certificate: "eA==" } }, { subresource: "status" }).errors).toEqual(['status.certificate: Invalid value: "<certificate data>": must contain at least one CERTIFICATE PEM block']);
  const headed = Buffer.from("-----BEGIN CERTIFICATE-----\nProc-Type: 4,ENCRYPTED\n\neA==\n-----END CERTIFICATE-----\n").toString("base64");
  expect(updated(requests, next, { status: { ...next.status, certificate: headed } }, { subresource: "status" }).errors).toEqual(['status.certificate: Invalid value: "<certificate data>": no PEM block headers are permitted']);
  const empty = Buffer.from("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n").toString("base64");
  expect(updated(requests, next, { status: { ...next.status, certificate: empty } }, { subresource: "status" }).errors).toEqual(['status.certificate: Invalid value: "<certificate data>": found CERTIFICATE PEM block containing 0 certificates']);
});

test("a change of an approval is shown as the server holds it", () => {
  const { object } = created(requests, csr());
  const timeless = { ...object, status: { conditions: [{ type: "Approved" as const, status: "True" as const }] } };
  expect(updated(requests, timeless, { status: timeless.status }, { subresource: "status" }).errors[0]).toContain('   "Message": "",\n-  "LastUpdateTime": null,\n');
});

test("conditions keep their times, and are looked up among those before", () => {
  const { object } = created(requests, csr());
  const { approval } = requests.subresources!;
  expect(growth((n, reads) => {
    const before = Array.from({ length: n }, (_, i) => ({ type: `t-${i}`, status: "True" as const, lastTransitionTime: "2020-01-01T00:00:00Z" }));
    const old = { ...object, status: { conditions: reads.of(before) } };
    const next = { ...object, status: { conditions: before.map(({ type, status }) => ({ type, status })) } };
    if (approval?.type === "part") approval.prepare!(next, old, { user: { name: "", groups: [] }, nowMs: 0, dryRun: false, uuid: () => "" });
    expect(next.status.conditions.at(-1)).toMatchObject({ lastTransitionTime: "2020-01-01T00:00:00Z" });
  })).toBeLessThan(3);
});
