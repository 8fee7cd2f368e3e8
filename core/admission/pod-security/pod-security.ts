/**
 * PodSecurity: the Pod Security Standards, as a namespace's labels ask for them (policy.ts).
 *
 *   a pod        is refused if it violates what is enforced; what else it violates is noted for the audit log, or the client warned
 *   a workload   is never refused for its template: the client is warned, before its pods are refused
 *   a namespace  must have labels that can be read; when it enforces more than before, who changes it hears which of its pods would be refused now
 *
 *   evaluate.ts     the standards, as a table      baseline.ts, restricted.ts   its checks
 *   configuration.ts  defaults and exemptions
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/pod-security-admission/admission
 */
import type { Namespace, Pod } from "../../api/gen/core.v1.ts";
import { type FieldError, formatFieldErrors } from "../../api/meta/field-error.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { internalError, invalid } from "../../api/meta/status-error.ts";
import type { Informer } from "../../client/informer.ts";
import type { Lookup } from "../../client/lookup.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Metrics } from "../../observe/metrics.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../plugin.ts";
import { refusal } from "../refuse.ts";
import type { PodSecurityConfiguration } from "./configuration.ts";
import { detailOf, type PodTemplate, violationsOf } from "./evaluate.ts";
import { existingPodsWarnings } from "./existing-pods.ts";
import { podSecurityMetrics } from "./measure.ts";
import { compareLevels, formatLevelVersion, isEquivalent, isFullyPrivileged, LABEL_PREFIX, type LevelVersion, type Mode, MODES, type Policy, policyOf, sameLevelVersion } from "./policy.ts";
import { isSignificantUpdate, TEMPLATE_PATHS, templateOf } from "./templates.ts";

export interface PodSecurityDeps {
  readonly namespaces: Lookup<Namespace>;
  readonly pods: Pick<Informer<Pod>, "inNamespace">;
  readonly configuration: PodSecurityConfiguration;
  readonly clock: Pick<Clock, "uptimeMs">;
  readonly metrics?: Metrics | undefined;
}

type Found = ReturnType<typeof policyOf>;

const PRIVILEGED: LevelVersion = { level: "privileged", version: "latest" };
const IGNORED_POD_SUBRESOURCES: ReadonlySet<string> = new Set(["exec", "attach", "binding", "eviction", "log", "portforward", "proxy", "status"]);

export function podSecurity({ namespaces, pods, configuration: { defaults, exemptions }, clock, metrics }: PodSecurityDeps): AdmissionPlugin {
  const measure = podSecurityMetrics(metrics);
  const annotate = (request: AdmissionRequest, key: string, value: string): void => request.annotate(`${LABEL_PREFIX}${key}`, value);

  function exempt(request: AdmissionRequest, reason: "namespace" | "user" | "runtimeClass"): "exempt" {
    measure.exemption(request);
    annotate(request, "exempt", reason);
    return "exempt";
  }

  function checkNamespace(request: AdmissionRequest): void {
    const next = request.object as Namespace;
    const name = request.name || next.metadata.name;
    const { policy, problems } = policyOf(next.metadata.labels, defaults);
    const isExempt = exemptions.namespaces.includes(name);
    const warnIfExempt = (): void => {
      const warning = isExempt ? ignoredWarning(next, policy, defaults) : undefined;
      if (warning !== undefined) request.warn(warning);
    };
    if (request.operation === "CREATE") {
      if (problems.length > 0) throw invalid({ group: "", kind: "Namespace" }, name, problems);
      return warnIfExempt();
    }
    const old = policyOf((request.oldObject as Readonly<Namespace>).metadata.labels, defaults);
    if (problems.length > 0 && !sameProblems(problems, old.problems)) throw invalid({ group: "", kind: "Namespace" }, name, problems);
    const [enforce, before] = [policy.enforce, old.policy.enforce];
    if (sameLevelVersion(enforce, before) || enforce.level === "privileged" || (enforce.version === before.version && compareLevels(enforce.level, before.level) < 1)) return;
    if (isExempt) return warnIfExempt();
    const existing = [...pods.inNamespace(name)].filter(({ spec }) => !exemptions.runtimeClasses.includes(spec.runtimeClassName ?? ""));
    for (const warning of existingPodsWarnings(existing, { namespace: name, enforce, clock })) request.warn(warning);
  }

  /** The policy to hold it to, if it is to be held to one. */
  async function policyFor(request: AdmissionRequest, modes: readonly Mode[]): Promise<"exempt" | "privileged" | Found> {
    if (exemptions.namespaces.includes(request.namespace)) return exempt(request, "namespace");
    if (exemptions.usernames.includes(request.user.name)) return exempt(request, "user");
    const namespace = await namespaces.find("", request.namespace, request.signal);
    if (!namespace) throw internalError(`failed to lookup namespace ${goQuote(request.namespace)}`);
    const found = policyOf(namespace.metadata.labels, defaults);
    return found.problems.length === 0 && modes.every((mode) => found.policy[mode].level === "privileged") ? "privileged" : found;
  }

  async function checkPod(request: AdmissionRequest): Promise<void> {
    if (IGNORED_POD_SUBRESOURCES.has(request.subresource)) return;
    let found: Awaited<ReturnType<typeof policyFor>>;
    try {
      found = await policyFor(request, MODES);
    } catch (error) {
      measure.error(true, request);
      throw error;
    }
    if (found === "exempt") return;
    if (found === "privileged") {
      measure.evaluation("allow", PRIVILEGED, "enforce", request);
      return annotate(request, "enforce-policy", formatLevelVersion(PRIVILEGED));
    }
    const pod = request.object as Pod;
    if (request.operation === "UPDATE" && !isSignificantUpdate(pod, request.oldObject as Readonly<Pod>)) return;
    evaluate(request, found, pod, true);
  }

  async function checkWorkload(request: AdmissionRequest): Promise<void> {
    if (request.subresource !== "") return;
    try {
      const found = await policyFor(request, ["audit", "warn"]);
      const template = templateOf(request);
      if (typeof found !== "string" && template) evaluate(request, found, template, false);
    } catch (error) {
      measure.error(true, request);
      annotate(request, "error", (error as Error).message); // its pods are checked again, when they are made
    }
  }

  function evaluate(request: AdmissionRequest, { policy, problems }: Found, template: PodTemplate, enforced: boolean): void {
    if (exemptions.runtimeClasses.includes(template.spec.runtimeClassName ?? "")) return void exempt(request, "runtimeClass");
    if (problems.length > 0) {
      annotate(request, "error", `Failed to parse policy: ${formatFieldErrors(problems)}`);
      measure.error(false, request);
    }
    const known = new Map<string, string>();
    const detail = (wanted: LevelVersion): string => {
      const key = formatLevelVersion(wanted);
      if (!known.has(key)) known.set(key, detailOf(violationsOf(wanted, template)));
      return known.get(key)!;
    };
    const { enforce, audit, warn } = policy;
    if (enforced) {
      annotate(request, "enforce-policy", formatLevelVersion(enforce));
      measure.evaluation(detail(enforce) === "" ? "allow" : "deny", enforce, "enforce", request);
    }
    if (detail(audit) !== "") {
      annotate(request, "audit-violations", `would violate PodSecurity ${goQuote(formatLevelVersion(audit))}: ${detail(audit)}`);
      measure.evaluation("deny", audit, "audit", request);
    }
    if (enforced && detail(enforce) !== "") throw refusal(request, `violates PodSecurity ${goQuote(formatLevelVersion(enforce))}: ${detail(enforce)}`);
    if (detail(warn) === "") return;
    request.warn(`would violate PodSecurity ${goQuote(formatLevelVersion(warn))}: ${detail(warn)}`);
    measure.evaluation("deny", warn, "warn", request);
  }

  return {
    name: "PodSecurity",
    handles: ({ operation, group, resource }) =>
      (operation === "CREATE" || operation === "UPDATE") && ((group === "" && (resource === "pods" || resource === "namespaces")) || TEMPLATE_PATHS[`${group}/${resource}`] !== undefined),
    async validate(request) {
      if (request.resource === "pods") await checkPod(request);
      else if (request.resource !== "namespaces") await checkWorkload(request);
      else if (request.subresource === "") checkNamespace(request);
    },
  };
}

function sameProblems(a: readonly FieldError[], b: readonly FieldError[]): boolean { return JSON.stringify(a) === JSON.stringify(b); }

/** For a namespace that is exempt, and yet has labels that ask for something. */
function ignoredWarning({ metadata: { name, labels = {} } }: Namespace, policy: Policy, defaults: Policy): string | undefined {
  if (isFullyPrivileged(policy) || isEquivalent(policy, defaults)) return undefined;
  const told = MODES
    .filter((mode) => policy[mode].level !== "privileged" && [mode, `${mode}-version`].some((label) => labels[`${LABEL_PREFIX}${label}`] !== undefined))
    .map((mode) => `${mode}=${formatLevelVersion(policy[mode])}`);
  return `namespace ${goQuote(name)} is exempt from Pod Security, and the policy (${told.join(", ")}) will be ignored`;
}
