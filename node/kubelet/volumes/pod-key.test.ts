import { createPrivateKey } from "node:crypto";
import { expect, test } from "vitest";
import { decodeCertificateRequest } from "../../../core/pki/certificate-request.ts";
import { sameBytes } from "../../../core/pki/x509.ts";
import { publicKeyOf, spkiOf } from "../../../core/pki/signature.ts";
import { podKey } from "./pod-key.ts";

test.each([
  ["RSA3072", "rsa", 3072], ["RSA4096", "rsa", 4096], ["ECDSAP256", "ec", "prime256v1"], ["ECDSAP384", "ec", "secp384r1"], ["ECDSAP521", "ec", "secp521r1"], ["ED25519", "ed25519", undefined],
])("%s", async (kind, type, size) => {
  const { pem, request } = await podKey(kind);
  const key = createPrivateKey(pem), { spki, subject, signatureProblem } = decodeCertificateRequest(Buffer.from(request, "base64"));
  const { modulusLength, namedCurve } = publicKeyOf(spki).asymmetricKeyDetails ?? {};
  expect([pem.split("\n")[0], key.asymmetricKeyType, modulusLength ?? namedCurve]).toEqual(["-----BEGIN PRIVATE KEY-----", type, size]);
  expect([sameBytes(spkiOf(key), spki), subject.commonName, subject.organizations, signatureProblem]).toEqual([true, "", [], undefined]);
});

test("there is no other kind", () => expect(podKey("RSA1024")).rejects.toThrow('unknown key type "RSA1024"'));
