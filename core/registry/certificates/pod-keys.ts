/**
 * Keys that certificates of pods are asked for with: which there may be, and that who asks holds them.
 *
 * Source: kubernetes v1.36 pkg/apis/certificates/validation/validation.go validateStubPKCS10Request, validateDeprecatedPKIXPublicKey
 */
import { constants, type KeyObject, verify } from "node:crypto";
import type { PodCertificateRequestSpec } from "../../api/gen/certificates.v1beta1.ts";
import { child, type FieldError, invalid, OMIT_VALUE, tooLong } from "../../api/meta/field-error.ts";
import { type CertificateRequest, decodeCertificateRequest } from "../../pki/certificate-request.ts";
import { publicKeyOf } from "../../pki/signature.ts";

const BYTES_MAX = 10 * 1024;
const CURVES = ["prime256v1", "secp384r1", "secp521r1"];
/** Those that are none of these, and that Go has a name for. */
const GO_CURVES: Readonly<Record<string, string>> = { secp224r1: "P-224" };
const RSA_BITS = [3072, 4096];
const STUB = child("spec", "stubPKCS10Request"), PKIX = child("spec", "pkixPublicKey"), PROOF = child("spec", "proofOfPossession");

/** Of a request that says its key in one of the two ways. */
export function* validateKey({ stubPKCS10Request: stub, pkixPublicKey: pkix, proofOfPossession: proof, podUID }: Readonly<PodCertificateRequestSpec>): Iterable<FieldError> {
  if (stub && !pkix && !proof) yield* validateStub(bytesOf(stub));
  else if (!stub && pkix && proof) yield* validatePkix(pkix, bytesOf(proof), podUID);
  else yield invalid("spec", OMIT_VALUE, "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set");
}

/** SubjectPublicKeyInfo, DER. Of a spec that was found valid once. */
export function askedKey({ stubPKCS10Request: stub, pkixPublicKey: pkix }: Readonly<PodCertificateRequestSpec>): Uint8Array { return stub ? decodeCertificateRequest(bytesOf(stub)).spki : bytesOf(pkix ?? ""); }

function bytesOf(base64: string): Uint8Array { return Buffer.from(base64, "base64"); }

function* validateStub(der: Uint8Array): Iterable<FieldError> {
  if (der.length > BYTES_MAX) { yield tooLong(STUB, BYTES_MAX); return; }
  let request: CertificateRequest, key: KeyObject;
  try {
    request = decodeCertificateRequest(der);
    key = publicKeyOf(request.spki);
  } catch {
    yield invalid(STUB, OMIT_VALUE, "must be a valid PKCS#10 CSR");
    return;
  }
  const problem = kindProblem(key, "P256, P384, or P521");
  if (problem) yield invalid(STUB, problem.shown ?? OMIT_VALUE, problem.detail);
  else if (request.signatureProblem !== undefined) yield invalid(STUB, OMIT_VALUE, "invalid signature");
}

function* validatePkix(base64: string, proof: Uint8Array, podUid: string): Iterable<FieldError> {
  const der = bytesOf(base64);
  if (der.length > BYTES_MAX) { yield tooLong(PKIX, BYTES_MAX); return; }
  if (proof.length > BYTES_MAX) { yield tooLong(PROOF, BYTES_MAX); return; }
  let key: KeyObject;
  try {
    key = publicKeyOf(der);
  } catch {
    yield invalid(PKIX, base64, "must be a valid PKIX-serialized public key");
    return;
  }
  const problem = kindProblem(key, "P256 or P384");
  if (problem) yield invalid(PKIX, problem.shown ?? base64, problem.detail);
  else if (!proves(key, podUid, proof)) yield invalid(PROOF, OMIT_VALUE, "could not verify proof-of-possession signature");
}

/** `curves`: as they are told of. `shown`: what of the key is told. */
function kindProblem({ asymmetricKeyType, asymmetricKeyDetails: { namedCurve = "", modulusLength = 0 } = {} }: KeyObject, curves: string): { readonly shown?: string; readonly detail: string } | undefined {
  switch (asymmetricKeyType) {
    case "ed25519": return undefined;
    case "ec": return CURVES.includes(namedCurve) ? undefined : { shown: `curve ${GO_CURVES[namedCurve] ?? namedCurve}`, detail: `elliptic public keys must use curve ${curves}` };
    case "rsa": {
      const bits = Math.ceil(modulusLength / 8) * 8; // of whole bytes
      return RSA_BITS.includes(bits) ? undefined : { shown: `${bits}-bit modulus`, detail: "RSA keys must have modulus size 3072 or 4096" };
    }
    default: return { detail: "unknown public key type; supported types are Ed25519, ECDSA, and RSA" };
  }
}

/** The pod's uid is signed with it. */
function proves(key: KeyObject, podUid: string, signature: Uint8Array): boolean {
  const data = Buffer.from(podUid);
  try {
    if (key.asymmetricKeyType === "rsa") return verify("sha256", data, { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_AUTO }, signature);
    return verify(key.asymmetricKeyType === "ed25519" ? null : "sha256", data, key, signature);
  } catch {
    return false; // a malformed signature proves nothing
  }
}
