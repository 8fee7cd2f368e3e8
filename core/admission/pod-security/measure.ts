/** Metrics of PodSecurity. Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/metrics/metrics.go */
import type { Labels, Metrics } from "../../observe/metrics.ts";
import type { AdmissionRequest } from "../plugin.ts";
import type { LevelVersion, Mode } from "./policy.ts";

/** Newer versions than ours are counted as one. */
const OUR_MINOR = 36;

export interface PodSecurityMetrics {
  evaluation(decision: "allow" | "deny", policy: LevelVersion, mode: Mode, request: AdmissionRequest): void;
  exemption(request: AdmissionRequest): void;
  /** Fatal: the request was refused, or not looked at. */
  error(fatal: boolean, request: AdmissionRequest): void;
}

export function podSecurityMetrics(metrics: Metrics | undefined): PodSecurityMetrics {
  const evaluations = metrics?.counter("pod_security_evaluations_total", "[ALPHA] Number of policy evaluations that occurred, not counting ignored or exempt requests.");
  const exemptions = metrics?.counter("pod_security_exemptions_total", "[ALPHA] Number of exempt requests, not counting ignored or out of scope requests.");
  const errors = metrics?.counter("pod_security_errors_total", "[ALPHA] Number of errors preventing normal evaluation. Non-fatal errors may result in the latest restricted profile being used for evaluation.");
  for (const request_operation of ["create", "update"]) { // shown before there were any
    evaluations?.with({ decision: "allow", policy_level: "privileged", policy_version: "latest", mode: "enforce", request_operation, resource: "pod", subresource: "" });
    for (const resource of ["pod", "controller"]) exemptions?.with({ request_operation, resource, subresource: "" });
  }
  return {
    evaluation(decision, { level, version }, mode, request) {
      const told = version === "latest" || level === "privileged" ? "latest" : version <= OUR_MINOR ? `v1.${version}` : "future";
      evaluations?.inc({ decision, policy_level: level, policy_version: told, mode, ...labelsOf(request) });
    },
    exemption: (request) => exemptions?.inc(labelsOf(request)),
    error: (fatal, request) => errors?.inc({ fatal: String(fatal), ...labelsOf(request) }),
  };
}

function labelsOf({ operation, group, resource, subresource }: AdmissionRequest): Labels {
  const what = group === "" && resource === "pods" ? "pod" : group === "" && resource === "namespaces" ? "namespace" : "controller";
  return { request_operation: operation.toLowerCase(), resource: what, subresource };
}
