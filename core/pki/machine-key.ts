/**
 * Which machine asks for a node's certificate. Each machine has a key of its own, made at its first start; with every request for a
 * certificate under a token it shows the public half, and signs the request with the private one. So the server can tell a machine that comes
 * back from another one that calls itself the same, and nobody can borrow an identity by reading requests.
 *
 *   CertificateSigningRequest  coracle.local/machine-key        SubjectPublicKeyInfo, base64
 *                              coracle.local/machine-signature  over the request, base64
 *   Node                       coracle.local/machine            SHA-256 of that public key, hex
 */
import { createHash, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { spkiOf } from "./signature.ts";

export const MACHINE_ANNOTATION = "coracle.local/machine";
const KEY_ANNOTATION = "coracle.local/machine-key";
const SIGNATURE_ANNOTATION = "coracle.local/machine-signature";
/** So that the key signs nothing that could mean something elsewhere. */
const PURPOSE = "coracle machine\n";

/** What a Node says of the machine it is. */
export function machineName(key: KeyObject): string { return fingerprint(spkiOf(key)); }

/** For a request (PEM) of the machine that holds `key`. */
export function machineAnnotations(requestPem: string, key: KeyObject): Record<string, string> {
  return { [KEY_ANNOTATION]: Buffer.from(spkiOf(key)).toString("base64"), [SIGNATURE_ANNOTATION]: sign("sha256", Buffer.from(PURPOSE + requestPem), key).toString("base64") };
}

/** The machine that made the request; undefined: it does not say, or not the truth. */
export function machineOf(annotations: Readonly<Record<string, string>> | undefined, requestPem: string): string | undefined {
  const spki = Buffer.from(annotations?.[KEY_ANNOTATION] ?? "", "base64");
  const signature = Buffer.from(annotations?.[SIGNATURE_ANNOTATION] ?? "", "base64");
  if (spki.length === 0) return undefined;
  try {
    return verify("sha256", Buffer.from(PURPOSE + requestPem), createPublicKey({ key: spki, format: "der", type: "spki" }), signature) ? fingerprint(spki) : undefined;
  } catch {
    return undefined; // no key at all
  }
}

function fingerprint(spki: Uint8Array): string { return createHash("sha256").update(spki).digest("hex"); }
