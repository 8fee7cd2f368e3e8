/**
 * A key of a kind that a pod asks for, and the request that shows a signer that it is held.
 *
 * Source: kubernetes v1.36 pkg/kubelet/podcertificate/podcertificatemanager.go generateKeyAndProof
 */
import { generateKeyPair, type KeyObject } from "node:crypto";
import { promisify } from "node:util";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { NO_ALT_NAMES } from "../../../core/pki/alt-names.ts";
import { keyPem } from "../../../core/pki/authority.ts";
import { encodeCertificateRequest } from "../../../core/pki/certificate-request.ts";

const generate = promisify(generateKeyPair);

/** Generated beside the event loop: an RSA key takes a small machine seconds. */
const KINDS: Readonly<Record<string, () => Promise<{ readonly privateKey: KeyObject }>>> = {
  RSA3072: () => generate("rsa", { modulusLength: 3072 }), RSA4096: () => generate("rsa", { modulusLength: 4096 }),
  ECDSAP256: () => generate("ec", { namedCurve: "P-256" }), ECDSAP384: () => generate("ec", { namedCurve: "P-384" }), ECDSAP521: () => generate("ec", { namedCurve: "P-521" }),
  ED25519: () => generate("ed25519"),
};

export interface PodKey {
  /** PKCS#8, PEM. */
  readonly pem: string;
  /** PKCS#10 with nothing in it but the key, DER in base64. */
  readonly request: string;
}

/** Throws an Error for a kind there is none of. */
export async function podKey(kind: string): Promise<PodKey> {
  const make = KINDS[kind];
  if (!make) throw new Error(`unknown key type ${goQuote(kind)}`);
  const { privateKey } = await make();
  return { pem: keyPem(privateKey), request: Buffer.from(encodeCertificateRequest({ commonName: "", organizations: [] }, NO_ALT_NAMES, privateKey)).toString("base64") };
}
