/**
 * Every certificate a cluster of ours is made of: who it speaks for, who signs it, what it may be used for.
 *
 * There are three authorities, because what they may say differs:
 *   server-ca          names servers: the API server and the kubelets. It is what pods and kubeconfigs trust (kube-root-ca.crt).
 *   client-ca          names callers. Its certificates decide who is system:masters, so no serving key may ever come from it.
 *   request-header-ca  names front proxies, which may claim to be any user: the smallest circle, hence its own root.
 *
 * Source: https://kubernetes.io/docs/setup/best-practices/certificates/ ; file names as k3s has them.
 */
import { type AltNames, altNamesOf, NO_ALT_NAMES } from "./alt-names.ts";
import type { Subject } from "./subject.ts";
import type { Usage } from "./x509.ts";

export const AUTHORITY_NAMES = ["server-ca", "client-ca", "request-header-ca"] as const;
export type AuthorityName = (typeof AUTHORITY_NAMES)[number];

/** A certificate we issue to a key of our own. */
export interface LeafSpec {
  /** Also the files' name, with .crt and .key. */
  readonly name: string;
  readonly authority: AuthorityName;
  readonly subject: Subject;
  readonly usages: readonly Usage[];
  readonly altNames: AltNames;
}

const CLIENT: readonly Usage[] = ["digital signature", "client auth"];
const SERVER: readonly Usage[] = ["digital signature", "server auth"];

function client(name: string, commonName: string, organizations: readonly string[] = []): LeafSpec {
  return { name, authority: "client-ca", subject: { commonName, organizations }, usages: CLIENT, altNames: NO_ALT_NAMES };
}

export const ADMIN = client("client-admin", "system:admin", ["system:masters"]);
const CONTROLLER_MANAGER = client("client-controller", "system:kube-controller-manager");
const SCHEDULER = client("client-scheduler", "system:kube-scheduler");
const KUBE_PROXY = client("client-kube-proxy", "system:kube-proxy");
/** How the API server calls kubelets. */
const KUBELET_CLIENT = client("client-kube-apiserver", "kube-apiserver-kubelet-client", ["system:masters"]);
/** How the API server calls aggregated API servers on behalf of its callers. */
export const FRONT_PROXY: LeafSpec = { ...client("client-auth-proxy", "system:auth-proxy"), authority: "request-header-ca" };

export interface ServingNames {
  readonly nodeName: string;
  /** The node's addresses. */
  readonly nodeIps: readonly string[];
  /** The machine's on other networks: who has found the server there still does when another network has the default route. */
  readonly otherIps?: readonly string[];
  /** The kubernetes Service's cluster IPs: the first of each service range. */
  readonly serviceIps: readonly string[];
  readonly clusterDomain: string;
  /** Further names and addresses, from --tls-san. */
  readonly extra: readonly string[];
}

const LOOPBACK: readonly string[] = ["localhost", "127.0.0.1", "::1"];

/** What clients call the API server. */
function apiServerHosts({ nodeName, nodeIps, otherIps = [], serviceIps, clusterDomain, extra }: ServingNames): string[] {
  return [...new Set([
    "kubernetes", "kubernetes.default", "kubernetes.default.svc", `kubernetes.default.svc.${clusterDomain}`, ...LOOPBACK,
    nodeName, ...nodeIps, ...otherIps, ...serviceIps, ...extra,
  ])];
}

/** Of these what no other machine is called. `hasNode`: this one is a node of the cluster, and not one that an agent beside the server makes it. */
export function serversAlone(names: ServingNames, { hasNode }: { readonly hasNode: boolean }): string[] {
  const shared = new Set([...LOOPBACK, ...(hasNode ? [] : [names.nodeName, ...names.nodeIps, ...(names.otherIps ?? [])])]);
  return apiServerHosts(names).filter((host) => !shared.has(host));
}

export const SERVING_NAME = "serving-kube-apiserver";

function apiServerServing(names: ServingNames): LeafSpec {
  return {
    name: SERVING_NAME, authority: "server-ca", subject: { commonName: "kube-apiserver", organizations: [] }, usages: SERVER,
    altNames: altNamesOf(apiServerHosts(names)),
  };
}

export function kubeletSubject(nodeName: string): Subject { return { commonName: `system:node:${nodeName}`, organizations: ["system:nodes"] }; }

/** How the API server finds a kubelet to be the node it should be. */
function kubeletServing(nodeName: string, addresses: readonly string[]): LeafSpec {
  return { name: "serving-kubelet", authority: "server-ca", subject: kubeletSubject(nodeName), usages: SERVER, altNames: altNamesOf([nodeName, ...addresses]) };
}

/** All leaves a server keeps under its own directory, those of its own node's kubelet included. */
export function serverLeaves(names: ServingNames): LeafSpec[] {
  return [apiServerServing(names), ADMIN, CONTROLLER_MANAGER, SCHEDULER, KUBE_PROXY, KUBELET_CLIENT, FRONT_PROXY, kubeletServing(names.nodeName, names.nodeIps)];
}
