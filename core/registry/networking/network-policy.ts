/**
 * NetworkPolicy (networking.k8s.io/v1): who may talk to some pods, and to whom they may.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/policy-resources/network-policy-v1/
 * Source: kubernetes v1.36 pkg/registry/networking/networkpolicy/strategy.go, pkg/apis/networking/{v1/defaults,validation/validation}.go
 */
import type { IPBlock, NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec } from "../../api/gen/networking.v1.ts";
import { child, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { portName, portNumber } from "../../api/meta/names.ts";
import { bitsOf, cidrWarnings, legacyCidr, parseRange, type Range } from "../core/checks/ip.ts";
import { oneOfOptional, problems } from "../core/checks/values.ts";
import { defineResource } from "../generic/resource.ts";

const POLICY_TYPES = ["Ingress", "Egress"];

export const networkPolicies = defineResource<NetworkPolicy>({
  group: "networking.k8s.io", version: "v1", kind: "NetworkPolicy", plural: "networkpolicies", tellsEmpty: true,
  defaults({ spec }) {
    for (const { ports } of [...(spec.ingress ?? []), ...(spec.egress ?? [])]) for (const port of ports ?? []) port.protocol ??= "TCP";
    if (!spec.policyTypes?.length) spec.policyTypes = spec.egress?.length ? ["Ingress", "Egress"] : ["Ingress"];
  },
  validate: ({ spec }, old) => validateSpec("spec", spec, old?.spec),
  *warnings({ spec }) {
    for (const [path, { ipBlock }] of peersOf("spec", spec)) {
      if (!ipBlock) continue;
      yield* cidrWarnings(child(path, "ipBlock", "cidr"), ipBlock.cidr);
      for (const [i, except] of (ipBlock.except ?? []).entries()) yield* cidrWarnings(index(child(path, "ipBlock", "except"), i), except);
    }
  },
});

/** What an update may keep although it is wrong. */
interface Kept { readonly allowInvalidValues: boolean; readonly ranges: ReadonlySet<string> }

function* validateSpec(path: string, spec: Readonly<NetworkPolicySpec>, old: Readonly<NetworkPolicySpec> | undefined): Iterable<FieldError> {
  const kept: Kept = {
    allowInvalidValues: old !== undefined && validateLabelSelector(old.podSelector, "").length > 0,
    ranges: new Set(old ? [...peersOf("", old)].flatMap(([, { ipBlock }]) => (ipBlock ? [ipBlock.cidr, ...(ipBlock.except ?? [])] : [])) : []),
  };
  yield* validateLabelSelector(spec.podSelector, child(path, "podSelector"), kept);
  for (const [i, { ports, from }] of (spec.ingress ?? []).entries()) yield* validateRule(index(child(path, "ingress"), i), { ports, peers: from, field: "from" }, kept);
  for (const [i, { ports, to }] of (spec.egress ?? []).entries()) yield* validateRule(index(child(path, "egress"), i), { ports, peers: to, field: "to" }, kept);
  const types = spec.policyTypes ?? [];
  if (types.length > POLICY_TYPES.length) { yield invalid(child(path, "policyTypes"), types, "may not specify more than two policyTypes"); return; }
  for (const [i, type] of types.entries()) if (!POLICY_TYPES.includes(type)) yield notSupported(index(child(path, "policyTypes"), i), type, POLICY_TYPES);
}

function* peersOf(path: string, { ingress, egress }: Readonly<NetworkPolicySpec>): Iterable<readonly [path: string, peer: NetworkPolicyPeer]> {
  for (const [i, { from }] of (ingress ?? []).entries()) for (const [j, peer] of (from ?? []).entries()) yield [index(child(index(child(path, "ingress"), i), "from"), j), peer];
  for (const [i, { to }] of (egress ?? []).entries()) for (const [j, peer] of (to ?? []).entries()) yield [index(child(index(child(path, "egress"), i), "to"), j), peer];
}

interface Rule { readonly ports: NetworkPolicyPort[] | undefined; readonly peers: NetworkPolicyPeer[] | undefined; readonly field: "from" | "to" }

function* validateRule(path: string, { ports, peers, field }: Rule, kept: Kept): Iterable<FieldError> {
  for (const [i, port] of (ports ?? []).entries()) yield* validatePort(index(child(path, "ports"), i), port);
  for (const [i, peer] of (peers ?? []).entries()) yield* validatePeer(index(child(path, field), i), peer, kept);
}

function* validatePort(path: string, { protocol, port, endPort }: NetworkPolicyPort): Iterable<FieldError> {
  const [portPath, endPath] = [child(path, "port"), child(path, "endPort")];
  yield* oneOfOptional(child(path, "protocol"), protocol, ["TCP", "UDP", "SCTP"]);
  if (port === undefined) {
    if (endPort !== undefined) yield invalid(endPath, endPort, "may not be specified when `port` is not specified");
  } else if (typeof port === "number") {
    yield* problems(portPath, port, portNumber(port));
    if (endPort === undefined) return;
    if (endPort < port) yield invalid(endPath, port, "must be greater than or equal to `port`");
    yield* problems(endPath, endPort, portNumber(endPort));
  } else {
    if (endPort !== undefined) yield invalid(endPath, endPort, "may not be specified when `port` is non-numeric");
    yield* problems(portPath, port, portName(port));
  }
}

function* validatePeer(path: string, { podSelector, namespaceSelector, ipBlock }: NetworkPolicyPeer, kept: Kept): Iterable<FieldError> {
  yield* validateLabelSelector(podSelector, child(path, "podSelector"), kept);
  yield* validateLabelSelector(namespaceSelector, child(path, "namespaceSelector"), kept);
  if (ipBlock) yield* validateBlock(child(path, "ipBlock"), ipBlock, kept.ranges);
  if (!podSelector && !namespaceSelector && !ipBlock) yield required(path, "must specify a peer");
  else if (ipBlock && (podSelector || namespaceSelector)) yield forbidden(path, "may not specify both ipBlock and another peer");
}

function* validateBlock(path: string, { cidr, except = [] }: IPBlock, known: ReadonlySet<string>): Iterable<FieldError> {
  const cidrPath = child(path, "cidr");
  if (!cidr) { yield required(cidrPath); return; }
  yield* legacyCidr(cidrPath, cidr, known);
  const range = parseRange(cidr);
  if (!range) return;
  for (const [i, text] of (except ?? []).entries()) {
    const at = index(child(path, "except"), i);
    yield* legacyCidr(at, text, known);
    const inner = parseRange(text);
    if (inner && (writtenPrefix(cidr) >= writtenPrefix(text) || !beginsWithin(inner, range))) yield invalid(at, text, "must be a strict subset of `cidr`");
  }
}

/** The number as it stands: of IPv4 written as IPv6 it counts from there, for upstream too. */
function writtenPrefix(range: string): number { return Number(range.slice(range.lastIndexOf("/") + 1)); }

/** Whether one begins within the other. */
function beginsWithin(inner: Range, outer: Range): boolean {
  if (inner.address.family !== outer.address.family) return false;
  const hostBits = BigInt(bitsOf(outer.address.family) - outer.prefix);
  return inner.base >> hostBits === outer.base >> hostBits;
}
