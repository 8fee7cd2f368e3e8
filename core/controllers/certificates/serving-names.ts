/**
 * Which names a node's serving certificate may have. A node writes its addresses itself, and pods and other nodes believe of the authority that signs here what it says of the API server: whoever
 * has a node's key must not become that, or another node, by calling itself so.
 *
 *   its own       the Node's name and addresses
 *   nobody's      what the API servers are called, names of Services (webhooks and servers behind the API server, for which this authority may be believed, too), names of other Nodes,
 *                 addresses of other Nodes of the control plane, anything with a star
 *
 * Pure.
 */
import type { Node } from "../../api/gen/core.v1.ts";
import { labelsOf } from "../../api/meta/object-meta.ts";
import { formatIp, parseIp } from "../../net/cidr.ts";
import type { AltNames } from "../../pki/alt-names.ts";

/** Which no node may give itself. */
const ROLE_LABEL = "node-role.kubernetes.io/control-plane";
/** name.namespace.svc, and the same in a domain. A node may be called "svc" itself. */
const SERVICE = /^[^.]+\.[^.]+\.svc(\.|$)/;
const HOST = /^[a-z0-9]([-a-z0-9._]*[a-z0-9])?$/;

export interface OthersNames {
  /** All there are; the asking one may be among them. */
  readonly nodes: Iterable<Readonly<Node>>;
  /** What API servers are called, by name and address. */
  readonly servers: readonly string[];
}

/** The first name that is not the node's to have; undefined: all are. */
export function foreignName({ dnsNames, ipAddresses }: Pick<AltNames, "dnsNames" | "ipAddresses">, node: Readonly<Node>, { nodes, servers }: OthersNames): string | undefined {
  const own = new Set([node.metadata.name, ...addressesOf(node)].map(known));
  const others = new Set(servers.map(known));
  for (const other of nodes) {
    if (other.metadata.name === node.metadata.name) continue;
    others.add(known(other.metadata.name));
    if (labelsOf(other)[ROLE_LABEL] !== undefined) for (const address of addressesOf(other)) others.add(known(address));
  }
  return [...dnsNames, ...ipAddresses].find((name) => !own.has(known(name)) || others.has(known(name)) || SERVICE.test(known(name)) || !isPlain(name));
}

function addressesOf({ status }: Readonly<Node>): string[] { return (status?.addresses ?? []).map(({ address }) => address); }

/** As who verifies a certificate compares names. */
function known(name: string): string {
  const ip = parseIp(name);
  return ip ? formatIp(ip) : name.toLowerCase();
}

function isPlain(name: string): boolean { return parseIp(name) !== undefined || HOST.test(name.toLowerCase()); }
