/** A certificate for the kubelet's server from nobody, so that it can listen while it waits for one of the cluster's. No client accepts it. */
import { authority, generateKey, keyPem, selfSign } from "../../core/pki/authority.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import { altNamesOf } from "../../core/pki/alt-names.ts";
import { kubeletSubject } from "../../core/pki/identities.ts";
import { spkiOf } from "../../core/pki/signature.ts";

const DAY_MS = 24 * 3_600_000;

export async function temporaryServing(nodeName: string, random: Random, nowMs: number): Promise<{ readonly keyPem: string; readonly certificatePem: string }> {
  const validity = { notBeforeMs: 0, notAfterMs: nowMs + DAY_MS };
  const caKey = await generateKey(), key = await generateKey();
  const issuer = authority(selfSign("temporary", { ...validity, key: caKey, random }), keyPem(caKey), random);
  return { keyPem: keyPem(key), certificatePem: issuer.issue({ ...validity, subject: kubeletSubject(nodeName), spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf([nodeName]) }) };
}
