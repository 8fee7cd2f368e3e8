/**
 * A certificate with its key, kept in two files: <name>.key, then <name>.crt. The key is written first, so that after a power cut
 * between the two they do not match, which is noticed here and healed by issuing again.
 */
import { createPrivateKey, type KeyObject } from "node:crypto";
import { join } from "node:path";
import type { Clock } from "../lifecycle/clock.ts";
import { fileText } from "../lifecycle/file-text.ts";
import { coversAltNames } from "./alt-names.ts";
import { Asn1Error } from "./asn1.ts";
import { type Authority, generateKey, keyPem } from "./authority.ts";
import { writeDurably } from "./durable-file.ts";
import type { LeafSpec } from "./identities.ts";
import { readCertificatePems } from "./pem.ts";
import { spkiOf } from "./signature.ts";
import { encodeSubject } from "./subject.ts";
import { LEAF_LIFETIME_MS, needsRenewal, validityFor } from "./validity.ts";
import { type Certificate, parseCertificate, sameBytes } from "./x509.ts";
import { chainProblem } from "./verify-chain.ts";

export interface Leaf {
  readonly certificate: Certificate;
  readonly certificatePem: string;
  readonly keyPem: string;
}

export interface LeafContext {
  readonly dir: string;
  readonly authority: Authority;
  readonly clock: Clock;
  readonly releasedMs: number;
}

const LACKS_NAME = "lacks a name";

/** The pair on disk if it will do, else a new one. `renewed` says why, when there was one before. */
export async function ensureLeaf(spec: LeafSpec, context: LeafContext): Promise<{ readonly leaf: Leaf; readonly issued: boolean; readonly reason: string }> {
  const found = await readLeaf(context.dir, spec.name);
  const reason = found ? leafProblem(found.certificate, spec, context) : "absent";
  if (found && reason === undefined) return { leaf: found, issued: false, reason: "" };
  // Whoever has been told the key, as in the line of `--print-join-command`, knows the server by it after an address or a name was added, too.
  const key = found && reason === LACKS_NAME ? createPrivateKey(found.keyPem) : await generateKey();
  return { leaf: await issueLeaf(spec, key, context), issued: true, reason: reason ?? "" };
}

/** Undefined when there is none that is whole. */
export async function readLeaf(dir: string, name: string): Promise<Leaf | undefined> {
  const privateKeyPem = await fileText(join(dir, `${name}.key`));
  const certificatePem = await fileText(join(dir, `${name}.crt`));
  return privateKeyPem === undefined || certificatePem === undefined ? undefined : parseLeaf(certificatePem, privateKeyPem);
}

/** Undefined when one of them is damaged, or they do not belong together. */
export function parseLeaf(certificatePem: string, privateKeyPem: string): Leaf | undefined {
  try {
    const [der] = readCertificatePems(certificatePem);
    if (!der) return undefined;
    const certificate = parseCertificate(der);
    return sameBytes(spkiOf(createPrivateKey(privateKeyPem)), certificate.spki) ? { certificate, certificatePem, keyPem: privateKeyPem } : undefined;
  } catch (error) {
    if (error instanceof Asn1Error || (error as NodeJS.ErrnoException).code?.startsWith("ERR_")) return undefined; // damaged: issued anew
    throw error;
  }
}

/** Why the certificate no longer serves its purpose. */
function leafProblem(certificate: Certificate, spec: LeafSpec, { authority, clock }: Pick<LeafContext, "authority" | "clock">): string | undefined {
  const nowMs = clock.nowMs();
  // A leaf that lasts as long as its CA cannot be made to last longer, whatever the clock says: it would be made anew, and written, at each look.
  if (needsRenewal(certificate, nowMs) && certificate.notAfterMs < authority.certificate.notAfterMs) return "expires soon or is not valid yet";
  if (!sameBytes(certificate.subjectRaw, encodeSubject(spec.subject))) return "speaks for another subject";
  if (!coversAltNames(certificate.altNames, spec.altNames)) return LACKS_NAME;
  // Only the issuer is asked for here: the CA's own dates are the operator's to watch.
  const chain = chainProblem(certificate, { roots: authority.bundle, usage: spec.usages.includes("server auth") ? "server auth" : "client auth", nowMs: Math.min(nowMs, certificate.notAfterMs, authority.certificate.notAfterMs) });
  return chain === undefined ? undefined : "is not of this authority";
}

async function issueLeaf(spec: LeafSpec, key: KeyObject, { dir, authority, clock, releasedMs }: LeafContext): Promise<Leaf> {
  const validity = validityFor(LEAF_LIFETIME_MS, { nowMs: clock.nowMs(), releasedMs });
  const certificatePem = authority.issue({ ...spec, ...validity, spki: spkiOf(key) });
  const leaf = { certificate: parseCertificate(readCertificatePems(certificatePem)[0]!), certificatePem, keyPem: keyPem(key) };
  await writeDurably(join(dir, `${spec.name}.key`), leaf.keyPem);
  await writeDurably(join(dir, `${spec.name}.crt`), leaf.certificatePem, { mode: 0o644 });
  return leaf;
}
