/**
 * What requests of nodes have to do with revocation (core/pki/revocation.ts): a revoked machine gets no certificate, under whatever name it asks, and a
 * certificate that is issued for a revoked node's name to another machine is noted, so that it counts.
 */
import type { CertificateSigningRequest, CertificateSigningRequestCondition } from "../../api/gen/certificates.v1.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import { REVOKED_NODES } from "../../client/cluster-objects.ts";
import { CONFIG_MAPS } from "../../client/resources.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { certificateHash } from "../../pki/join-token.ts";
import { readCertificatePems } from "../../pki/pem.ts";
import { formatRevocation, readRevocation, withCertificate } from "../../pki/revocation.ts";
import { parseCertificate } from "../../pki/x509.ts";
import type { ControllerDeps } from "../deps.ts";
import { machineOfRequest, nodeNameOf } from "./node-name.ts";

type Csr = Readonly<CertificateSigningRequest>;

export interface Revocations {
  readonly reads: { whenSynced(signal: AbortSignal): Promise<void> };
  /** Undefined: the machine is not revoked, or does not say which it is. */
  denial(csr: Csr): CertificateSigningRequestCondition | undefined;
  /** To be called before the certificate (PEM) is given away. */
  note(csr: Csr, certificatePem: string, signal: AbortSignal): Promise<void>;
}

export function revocations({ client, informers, clock }: Pick<ControllerDeps, "client" | "informers" | "clock">): Revocations {
  const configMaps = informers.of(CONFIG_MAPS);
  const key = objectKey(REVOKED_NODES.metadata.namespace, REVOKED_NODES.metadata.name);
  return {
    reads: configMaps,
    denial(csr) {
      const machine = machineOfRequest(csr);
      const [name] = Object.entries(configMaps.get(key)?.data ?? {}).find(([, text]) => machine !== undefined && readRevocation(text)?.machines.includes(machine)) ?? [];
      if (name === undefined) return undefined;
      return { type: "Denied", status: "True", reason: "NodeRevoked", message: `this machine was revoked when it was node ${name}: to let it in again, on the server: coracle node allow ${name}` };
    },
    async note(csr, certificatePem, signal) {
      const name = nodeNameOf(csr);
      if (configMaps.get(key)?.data?.[name] === undefined) return;
      const current = await client.resource(CONFIG_MAPS).get(REVOKED_NODES, { signal });
      const entry = readRevocation(current.data?.[name]);
      if (!entry) return;
      const der = readCertificatePems(certificatePem)[0]!;
      const next = withCertificate(entry, { fingerprint: certificateHash(der), until: timestamp(parseCertificate(der).notAfterMs), now: timestamp(clock.nowMs()) });
      await client.resource(CONFIG_MAPS).update({ ...current, data: { ...current.data, [name]: formatRevocation(next) } }, { signal });
    },
  };
}
