/**
 * How endpoints are spoken to with TLS, as BackendTLSPolicies say: which name is asked for, who must have signed its certificate, and what that must be for. Pure.
 *
 * A policy is for Services of its namespace, or for one port of them, which it then has alone; of several for the same the oldest counts. Authorities are ConfigMaps with ca.crt, or
 * those that the machine trusts.
 *
 * API: https://gateway-api.sigs.k8s.io/reference/spec/#backendtlspolicy
 */
import { X509Certificate } from "node:crypto";
import { keyOf, type ObjectKey, objectKey } from "../api/meta/object-meta.ts";
import { condition, type StatusCondition, type Problem } from "./conditions.ts";
import { type BackendTlsPolicy, GATEWAY_CONTROLLER, GATEWAY_GROUP, type PolicyAncestor } from "./gateway-types.ts";

export interface BackendTls {
  /** Namespace and name of the policy. */
  readonly policy: ObjectKey;
  /** The port of the Service it is for, by name; undefined: those that no other policy is for. */
  readonly section: string | undefined;
  readonly serverName: string;
  /** What the certificate must be for, one of them; none: the name that is asked for. */
  readonly names: readonly CertificateName[];
  /** ConfigMaps; "System": whom the machine trusts. None: nobody is trusted, and nothing is sent. */
  readonly authorities: "System" | readonly ObjectKey[];
}

export interface CertificateName { readonly type: "DNS" | "URI"; readonly value: string }

export interface BackendTlsPlan {
  /** For a Service, at most one for each section. */
  of(service: ObjectKey): readonly BackendTls[];
  /** `gateways`: that lead to a Service. */
  statusOf(policy: BackendTlsPolicy, gateways: (service: ObjectKey) => Iterable<ObjectKey>): readonly PlannedAncestor[];
}

export type PlannedAncestor = Omit<PolicyAncestor, "conditions"> & { readonly conditions: readonly StatusCondition[] };

/** Ancestors that a status may have. */
const ANCESTORS_MAX = 16;
const FIELD = "ca.crt";

/** `authorityProblem`: why nobody can be trusted for the sake of this ConfigMap. */
export function planBackendTls(policies: readonly BackendTlsPolicy[], authorityProblem: (namespace: string, name: string) => string | undefined): BackendTlsPlan {
  const byService = new Map<ObjectKey, Map<string, BackendTls>>(), refused = new Set<BackendTlsPolicy>();
  for (const policy of policies.toSorted((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))) {
    if (policy.metadata.deletionTimestamp !== undefined) continue;
    for (const { group, kind, name, sectionName } of policy.spec.targetRefs) {
      if ((group ?? "") !== "" || kind !== "Service") continue;
      const service = objectKey(policy.metadata.namespace ?? "", name), sections = byService.get(service) ?? new Map<string, BackendTls>();
      byService.set(service, sections);
      if (sections.has(sectionName ?? "")) refused.add(policy);
      else sections.set(sectionName ?? "", tlsOf(policy, sectionName, authorityProblem));
    }
  }
  return {
    of: (service) => [...(byService.get(service)?.values() ?? [])],
    statusOf(policy, gateways) {
      const problems = problemsOf(policy, authorityProblem), observedGeneration = policy.metadata.generation ?? 0;
      const accepted = refused.has(policy) ? { reason: "Conflicted", message: "an older policy is for the same" } : problems.accepted;
      const ancestors = new Set(policy.spec.targetRefs.flatMap(({ name }) => [...gateways(objectKey(policy.metadata.namespace ?? "", name))]));
      return [...ancestors].toSorted().slice(0, ANCESTORS_MAX).map((gateway): PlannedAncestor => {
        const slash = gateway.indexOf("/");
        return {
          ancestorRef: { group: GATEWAY_GROUP, kind: "Gateway", namespace: gateway.slice(0, slash), name: gateway.slice(slash + 1) }, controllerName: GATEWAY_CONTROLLER,
          conditions: [
            condition("Accepted", accepted, { reason: "Accepted", message: "Policy is accepted", observedGeneration }),
            condition("ResolvedRefs", problems.resolved, { reason: "ResolvedRefs", message: "All references resolved", observedGeneration }),
          ],
        };
      });
    },
  };
}

/** Names of the ConfigMaps with authorities; all in its namespace. */
export function authorityNames({ spec }: BackendTlsPolicy): string[] {
  return (spec.validation.caCertificateRefs ?? []).flatMap(({ group = "", kind = "ConfigMap", name }) => (group === "" && kind === "ConfigMap" ? [name] : []));
}

/** The certificates in a ConfigMap, PEM; "" if they cannot all be read, or there are none. */
export function authorityOf(data: Readonly<Record<string, string>> = {}): string {
  const pems = (data[FIELD] ?? "").match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    for (const pem of pems) new X509Certificate(pem);
    return pems.join("\n");
  } catch {
    return ""; // anything may be in a ConfigMap
  }
}

/** What is wrong with a ConfigMap of authorities, to be read after its name; undefined: nothing. */
export function authorityProblem(data: Readonly<Record<string, string>> | undefined): string | undefined {
  return authorityOf(data) === "" ? `has no certificate in ${FIELD}` : undefined;
}

function tlsOf(policy: BackendTlsPolicy, section: string | undefined, problem: (namespace: string, name: string) => string | undefined): BackendTls {
  const { hostname, subjectAltNames = [], wellKnownCACertificates } = policy.spec.validation, namespace = policy.metadata.namespace ?? "";
  return {
    policy: keyOf(policy), section, serverName: hostname,
    names: subjectAltNames.map(({ type, hostname: host = "", uri = "" }) => (type === "URI" ? { type, value: uri } : { type: "DNS", value: host })),
    authorities: wellKnownCACertificates === "System" ? "System" : authorityNames(policy).filter((name) => problem(namespace, name) === undefined).map((name) => objectKey(namespace, name)),
  };
}

function problemsOf(policy: BackendTlsPolicy, authorityProblemOf: (namespace: string, name: string) => string | undefined): { readonly accepted: Problem | undefined; readonly resolved: Problem | undefined } {
  const { caCertificateRefs = [], wellKnownCACertificates } = policy.spec.validation, namespace = policy.metadata.namespace ?? "";
  const problems = caCertificateRefs.map(({ group = "", kind = "ConfigMap", name }): Problem | undefined => {
    if (group !== "" || kind !== "ConfigMap") return { reason: "InvalidKind", message: `authorities of kind ${kind} are not supported` };
    const message = authorityProblemOf(namespace, name);
    return message === undefined ? undefined : { reason: "InvalidCACertificateRef", message };
  });
  const other = wellKnownCACertificates !== undefined && wellKnownCACertificates !== "System" ? { reason: "Invalid", message: `well-known authorities ${wellKnownCACertificates} are not supported` } : undefined;
  const none = wellKnownCACertificates === undefined && !problems.includes(undefined) ? { reason: "NoValidCACertificate", message: problems.find((one) => one)?.message ?? "no authority is named" } : undefined;
  return { accepted: other ?? none, resolved: problems.find((one) => one) };
}

function ageOf({ metadata }: BackendTlsPolicy): string { return `${metadata.creationTimestamp ?? ""} ${keyOf({ metadata })}`; }
