/** How long admission takes: all of it, each plug-in, each webhook. Source: kubernetes v1.36 apiserver/pkg/admission/metrics/metrics.go */
import type { Clock } from "../lifecycle/clock.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { ConditionsOutcome } from "./expressions/conditions.ts";
import type { AdmissionRequest, Operation } from "./plugin.ts";

const BUCKETS = [0.005, 0.025, 0.1, 0.5, 1, 2.5];
const WEBHOOK_BUCKETS = [...BUCKETS, 10, 25];

export type AdmissionStep = "admit" | "validate";

/** One was asked, and took so long. */
export type Took = (operation: Operation, rejected: boolean, seconds: number) => void;

export interface AdmissionMeter {
  nowMs(): number;
  /** Of a step as a whole, or, with a name, of a plug-in. */
  series(step: AdmissionStep, name: string | undefined): Took;
}

export function admissionMeter(metrics: Metrics, clock: Clock): AdmissionMeter {
  const whole = metrics.histogram("apiserver_admission_step_admission_duration_seconds", "[STABLE] Admission sub-step latency histogram in seconds, broken out for each operation and API resource and step type (validate or admit).", BUCKETS);
  const each = metrics.histogram(
    "apiserver_admission_controller_admission_duration_seconds",
    "[STABLE] Admission controller latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
    BUCKETS,
  );
  return {
    nowMs: () => clock.uptimeMs(),
    series(type, name) {
      const known = { true: new Map<Operation, { observe(value: number): void }>(), false: new Map<Operation, { observe(value: number): void }>() };
      return (operation, rejected, seconds) => {
        const found = known[rejected ? "true" : "false"];
        let one = found.get(operation);
        if (!one) found.set(operation, (one = (name === undefined ? whole : each).with({ ...(name === undefined ? {} : { name }), operation, rejected: String(rejected), type })));
        one.observe(seconds);
      };
    },
  };
}

/** `code` of HTTP, as the webhook answered or would have. `error`: why it rejected; undefined: it did not. */
export interface WebhookOutcome {
  readonly code: number;
  readonly rejected: boolean;
  readonly error?: "no_error" | "calling_webhook_error" | "apiserver_internal_error" | undefined;
}

export type WebhookType = "admit" | "validating";

/** Whose conditions. A webhook that validates is told in two ways: upstream names it so where it is passed over. */
export interface ConditionsOf { readonly name: string; readonly kind: "webhook" | "policy"; readonly type: WebhookType | "validate" }

export interface ConditionMeter {
  asked(of: ConditionsOf, operation: Operation, outcome: ConditionsOutcome, seconds: number): void;
}

const CONDITION_BUCKETS = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

/** Conditions that simply hold are not timed, and policies that are passed over not counted. Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/{matchconditions/matcher,generic/webhook}.go */
export function conditionMeter(metrics: Metrics): ConditionMeter {
  const split = "identified by name of resource containing the match condition and broken out for each kind containing matchConditions (webhook or policy), operation and admission type (validate or admit).";
  const errors = metrics.counter("apiserver_admission_match_condition_evaluation_errors_total", `[ALPHA] Admission match condition evaluation errors count, ${split}`);
  const exclusions = metrics.counter("apiserver_admission_match_condition_exclusions_total", `[ALPHA] Admission match condition evaluation exclusions count, ${split}`);
  const duration = metrics.histogram(
    "apiserver_admission_match_condition_evaluation_seconds",
    "[ALPHA] Admission match condition evaluation time in seconds, identified by name and broken out for each kind containing matchConditions (webhook or policy), operation and type (validate or admit).",
    CONDITION_BUCKETS,
  );
  return {
    asked({ name, kind, type }, operation, { hold, error, failures }, seconds) {
      const labels = { kind, name, operation, type };
      if (failures > 0) errors.inc(labels, failures);
      if (hold) return;
      duration.observe(seconds, labels);
      if (kind === "webhook" && error === undefined) exclusions.inc({ ...labels, type: type === "admit" ? "admit" : "validate" });
    },
  };
}

export interface WebhookMeter {
  called(name: string, type: WebhookType, request: AdmissionRequest, outcome: WebhookOutcome, durationMs: number): void;
  /** It could not be asked, and that does not matter. */
  failedOpen(name: string, type: WebhookType): void;
}

/** More than that says that a webhook makes up codes. */
const CODE_MAX = 600;

export function webhookMeter(metrics: Metrics): WebhookMeter {
  const duration = metrics.histogram(
    "apiserver_admission_webhook_admission_duration_seconds",
    "[STABLE] Admission webhook latency histogram in seconds, identified by name and broken out for each operation and API resource and type (validate or admit).",
    WEBHOOK_BUCKETS,
  );
  const rejections = metrics.counter(
    "apiserver_admission_webhook_rejection_count",
    "[ALPHA] Admission webhook rejection count, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify an error type (calling_webhook_error or apiserver_internal_error if an error occurred; no_error otherwise) and optionally a non-zero rejection code if the webhook rejects the request with an HTTP status code (honored by the apiserver when the code is greater or equal to 400). Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
  );
  const requests = metrics.counter(
    "apiserver_admission_webhook_request_total",
    "[ALPHA] Admission webhook request total, identified by name and broken out for each admission type (validating or admit) and operation. Additional labels specify whether the request was rejected or not and an HTTP status code. Codes greater than 600 are truncated to 600, to keep the metrics cardinality bounded.",
  );
  const open = metrics.counter("apiserver_admission_webhook_fail_open_count", "[ALPHA] Admission webhook fail open count, identified by name and broken out for each admission type (validating or admit).");
  return {
    called(name, type, { operation }, { code: given, rejected, error }, durationMs) {
      const code = String(Math.min(given, CODE_MAX));
      duration.observe(durationMs / 1000, { name, operation, rejected: String(rejected), type });
      requests.inc({ code, name, operation, rejected: String(rejected), type });
      if (error) rejections.inc({ error_type: error, name, operation, rejection_code: code, type });
    },
    failedOpen: (name, type) => open.inc({ name, type }),
  };
}

export type PolicyAction = "allow" | "deny" | "audit" | "warn";

/** `message`: what a validation said that did not hold, or could not be told. */
export interface PolicyMeter { checked(policy: string, binding: string, action: PolicyAction, message: string, seconds: number): void }

const POLICY_BUCKETS = [0.0000005, 0.001, 0.01, 0.1, 1];

/** Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/validating/{metrics/metrics,errors}.go */
export function policyMeter(metrics: Metrics): PolicyMeter {
  const total = metrics.counter("apiserver_validating_admission_policy_check_total", "[BETA] Validation admission policy check total, labeled by policy and further identified by binding and enforcement action taken.");
  const duration = metrics.histogram(
    "apiserver_validating_admission_policy_check_duration_seconds",
    "[BETA] Validation admission latency for individual validation expressions in seconds, labeled by policy and further including binding and enforcement action taken.",
    POLICY_BUCKETS,
  );
  return {
    checked(policy, policy_binding, enforcement_action, message, seconds) {
      const labels = { enforcement_action, error_type: errorTypeOf(message), policy, policy_binding };
      total.inc(labels);
      duration.observe(seconds, labels);
    },
  };
}

/** `problem`: why a mutation could not be made; undefined: it could. */
export interface MutationMeter { mutated(policy: string, binding: string, problem: string | undefined, seconds: number): void }

/** Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/mutating/{metrics/metrics,errors}.go */
export function mutationMeter(metrics: Metrics): MutationMeter {
  const total = metrics.counter("apiserver_mutating_admission_policy_check_total", "[ALPHA] Mutation admission policy check total, labeled by policy and further identified by binding.");
  const duration = metrics.histogram("apiserver_mutating_admission_policy_check_duration_seconds", "[ALPHA] Mutation admission latency for individual mutation expressions in seconds, labeled by policy and binding.", POLICY_BUCKETS);
  return {
    mutated(policy, policy_binding, problem, seconds) {
      const labels = { error_type: problem === undefined ? "no_error" : errorTypeOf(problem), policy, policy_binding };
      total.inc(labels);
      duration.observe(seconds, labels);
    },
  };
}

function errorTypeOf(message: string): string {
  return message.startsWith("compilation") ? "compile_error" : message.startsWith("validation failed due to running out of cost budget") ? "out_of_budget" : "invalid_error";
}
