/**
 * Whose a node's name is. A machine that joins under a token gets a certificate for the name it asks for, unless that name is another machine's:
 *
 *   the Node says which machine it is   only that machine gets it again; who replaces a machine deletes its Node first
 *   the Node does not say               nobody gets it as long as it is Ready
 *   there is no Node yet                the machine that asked first has a while to register it
 *
 * Pure.
 */
import type { CertificateSigningRequest } from "../../api/gen/certificates.v1.ts";
import type { Node } from "../../api/gen/core.v1.ts";
import { isConditionTrue } from "../../api/meta/conditions.ts";
import { parseTime } from "../../api/meta/time.ts";
import type { Index } from "../../client/informer.ts";
import { MACHINE_ANNOTATION, machineOf } from "../../pki/machine-key.ts";
import { isApproved, KUBELET_CLIENT, NODE_PREFIX, requestOf } from "./requests.ts";

type Csr = Readonly<CertificateSigningRequest>;

/** From a certificate to a registered Node takes seconds; cloned machines are switched on together. One that is approved later than now was by a clock that was wrong. */
const JOINING_MS = 120_000;

export const NAME_TAKEN = "NodeNameTaken";

/** Requests for a kubelet's client certificate, by the node it is for: among the hundreds of a cluster that starts, reading all for each would take minutes. */
export const BY_NODE_NAME: Index<CertificateSigningRequest> = { name: "node name", valuesOf: (csr) => (csr.spec.signerName === KUBELET_CLIENT ? [nodeNameOf(csr)] : []) };

/** Why the request's node name is not to be had, for who started the machine; undefined: it is. `others`: all other requests for that name, at least. */
export function nodeNameProblem(csr: Csr, { node, others, nowMs }: { readonly node: Readonly<Node> | undefined; readonly others: Iterable<Csr>; readonly nowMs: number }): string | undefined {
  const name = nodeNameOf(csr);
  const machine = machineOfRequest(csr);
  const another = "give this one another name with --node-name or, if it replaces the other,";
  const advice = `${another} delete that first: kubectl delete node ${name}`;
  if (node) {
    const owner = node.metadata.annotations?.[MACHINE_ANNOTATION];
    if (owner !== undefined) return owner === machine ? undefined : `node ${name} is another machine: ${advice}`;
    return isConditionTrue(node.status?.conditions, "Ready") ? `node ${name} is another machine, and alive: ${advice}` : undefined;
  }
  for (const other of others) {
    if (other.metadata.uid === csr.metadata.uid || other.spec.signerName !== csr.spec.signerName || !isApproved(other) || nodeNameOf(other) !== name || machineOfRequest(other) === machine) continue;
    const approvedMs = parseTime(other.status?.conditions?.find(({ type }) => type === "Approved")?.lastUpdateTime ?? other.metadata.creationTimestamp);
    if (approvedMs !== undefined && Math.abs(nowMs - approvedMs) < JOINING_MS) return `another machine is just joining as node ${name}: ${another} wait for ${JOINING_MS / 60_000} minutes`; // its Node may have been deleted already
  }
  return undefined;
}

/** The Node is there still, and says that it is the machine that asks. */
export function isOwnNode(csr: Csr, node: Readonly<Node> | undefined): boolean {
  const owner = node?.metadata.annotations?.[MACHINE_ANNOTATION];
  return owner !== undefined && owner === machineOfRequest(csr);
}

/** For requests of the kubelet's signers. */
export function nodeNameOf(csr: Csr): string { return requestOf(csr).subject.commonName.slice(NODE_PREFIX.length); }

/** By its annotations; undefined: it does not say, or not the truth. */
export function machineOfRequest({ metadata, spec }: Csr): string | undefined {
  return machineOf(metadata.annotations, Buffer.from(spec.request, "base64").toString());
}
