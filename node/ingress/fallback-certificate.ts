/** What clients are shown that ask for a host nobody has a certificate for: one that no client believes, made at the start. */
import type { Random } from "../../core/lifecycle/random.ts";
import type { TlsMaterial } from "../../core/net/tls.ts";
import { altNamesOf } from "../../core/pki/alt-names.ts";
import { authority, generateKey, keyPem, selfSign } from "../../core/pki/authority.ts";
import { spkiOf } from "../../core/pki/signature.ts";
import { validityFor } from "../../core/pki/validity.ts";

const NAME = "ingress.coracle.invalid";
const VALID_MS = 10 * 365 * 24 * 3_600_000;

/** `releasedMs`: a moment that is certainly past; the clock may not be set yet. */
export async function fallbackCertificate(random: Random, now: { readonly nowMs: number; readonly releasedMs: number }): Promise<TlsMaterial> {
  const validity = validityFor(VALID_MS, now);
  const caKey = await generateKey(), key = await generateKey();
  const issuer = authority(selfSign("coracle ingress", { ...validity, key: caKey, random }), keyPem(caKey), random);
  const cert = issuer.issue({ ...validity, subject: { commonName: NAME, organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf([NAME]) });
  return { key: keyPem(key), cert, clientCas: [] };
}
