/**
 * ValidatingAdmissionPolicy: rules of the cluster's own about what may be written, in the language of expressions.
 *
 *   policies and bindings ─▶ policy-source.ts    compiled-policy.ts
 *   request ───────────────▶ match.ts            is it about this
 *                            params.ts           with which parameters
 *                            validate.ts         what it says
 *
 * A binding says what becomes of a no: the request is refused (Deny), the client warned (Warn), the audit log told (Audit).
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/validating/{plugin,dispatcher,policy_decision}.go
 */
import type { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from "../../api/gen/admissionregistration.v1.ts";
import { jsonText } from "../../api/codec/json.ts";
import type { Namespace } from "../../api/gen/core.v1.ts";
import { notFound, type StatusReason, StatusError } from "../../api/meta/status-error.ts";
import type { Authorizer } from "../../authz/authorizer.ts";
import type { Informer } from "../../client/informer.ts";
import type { Lookup } from "../../client/lookup.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { ConditionMeter, PolicyAction, PolicyMeter } from "../admission-metrics.ts";
import type { Speaking } from "../expressions/bindings.ts";
import { Decisions } from "../expressions/decisions.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../plugin.ts";
import { refusal } from "../refuse.ts";
import { kindOf, resourceOf } from "../webhook/match.ts";
import type { ObjectVersions } from "../webhook/object-versions.ts";
import { reviewOf } from "../webhook/review.ts";
import { compileValidating, type CompiledValidatingPolicy } from "./compiled-policy.ts";
import { type Matched, matchOf } from "./match.ts";
import { type ParamDeps, paramsOf } from "./params.ts";
import { matchPolicy } from "./policy-match.ts";
import { type PolicyHook, PolicySource } from "./policy-source.ts";
import { type Annotation, type Verdict, verdictOf } from "./validate.ts";

export interface PolicyDeps extends ParamDeps {
  readonly namespaces: Lookup<Namespace>;
  readonly versions: ObjectVersions;
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly conditionMeter?: ConditionMeter | undefined;
}

export interface ValidatingPolicyDeps extends PolicyDeps {
  readonly policies: Informer<ValidatingAdmissionPolicy>;
  readonly bindings: Informer<ValidatingAdmissionPolicyBinding>;
  readonly meter?: PolicyMeter | undefined;
}

type Policy = Readonly<ValidatingAdmissionPolicy>;
type Binding = Readonly<ValidatingAdmissionPolicyBinding>;
type Hook = PolicyHook<ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, CompiledValidatingPolicy>;

/** Source: validating/dispatcher.go maxAuditAnnotationValueLength */
const ANNOTATION_BYTES_MAX = 10 * 1024;
const FAILURE_ANNOTATION = "validation.policy.admission.k8s.io/validation_failure";
const CODES: Readonly<Record<string, number>> = { Forbidden: 403, Unauthorized: 401, RequestEntityTooLarge: 413 };

interface Denial { readonly message: string; readonly reason: string }

export function validatingPolicies(deps: ValidatingPolicyDeps): AdmissionPlugin {
  const source = new PolicySource({ policies: deps.policies, bindings: deps.bindings, compile: compileValidating, clock: deps.clock });
  return {
    name: "ValidatingAdmissionPolicy",
    handles: (request) => source.handles(request),
    async validate(request) {
      await source.whenReady(request, deps.clock);
      const round = new Round(request, deps);
      for (const hook of source.hooks()) await round.ask(hook);
      round.close();
    },
  };
}

/** One request, before all policies. */
class Round {
  readonly #request: AdmissionRequest;
  readonly #deps: ValidatingPolicyDeps;
  readonly #decisions: Decisions;
  #denial: Denial | undefined; // the first

  constructor(request: AdmissionRequest, deps: ValidatingPolicyDeps) {
    this.#request = request;
    this.#deps = deps;
    this.#decisions = new Decisions(deps.authorizer);
  }

  async ask({ policy, bindings, compiled }: Hook): Promise<void> {
    const matched = await this.#unless(policy, undefined, () => matchPolicy(policy.spec, this.#request, this.#deps));
    if (!matched) return;
    const annotations = new Map<string, Set<string>>();
    for (const binding of bindings) await this.#askBound(compiled, { policy, binding, matched, annotations });
    for (const [key, values] of annotations) this.#request.annotate(`${policy.metadata.name}/${key}`, [...values].join(", "));
  }

  /** Throws the refusal. */
  close(): void {
    if (!this.#denial) return;
    const { message, reason } = this.#denial;
    const { status } = refusal(this.#request, message);
    throw new StatusError({ ...status, reason: (reason || "Invalid") as StatusReason, code: CODES[reason] ?? 422, details: { ...status.details, causes: [{ message }] } });
  }

  async #askBound(compiled: Hook["compiled"], asked: Asked): Promise<void> {
    const { policy, binding, matched, annotations } = asked;
    const params = await this.#unless(policy, binding, async () => {
      const { matchResources, paramRef } = binding.spec;
      if (matchResources && !(await matchOf(matchResources, this.#request, this.#deps))) return [];
      return await paramsOf(policy.spec.paramKind, paramRef, this.#request, this.#deps);
    });
    if (!params || params.length === 0) return;
    const review = await this.#unless(policy, binding, () => this.#reviewOf(matched));
    if (!review) return;
    const namespace = await namespaceOf(this.#request, this.#deps.namespaces);
    const expressions = await compiled();
    for (const param of params) {
      const speaking: Speaking = { review, request: this.#request, namespace, params: param, decisions: this.#decisions };
      const startMs = this.#deps.clock.uptimeMs();
      const verdict = await this.#decisions.settled(() => verdictOf(expressions, speaking));
      const tookSeconds = (this.#deps.clock.uptimeMs() - startMs) / 1000;
      if (verdict.conditions) this.#deps.conditionMeter?.asked({ name: policy.metadata.name, kind: "policy", type: "validate" }, this.#request.operation, verdict.conditions, tookSeconds);
      const seconds = tookSeconds / Math.max(1, verdict.decisions.length);
      this.#note(verdict, { policy, binding, annotations, seconds });
    }
  }

  async #reviewOf(matched: Matched): Promise<Speaking["review"]> {
    try {
      return await shownReview(this.#request, matched, this.#deps.versions);
    } catch (error) {
      throw new Error(`failed to convert object version: ${(error as Error).message}`, { cause: error });
    }
  }

  /** What cannot be told counts by the failurePolicy. */
  async #unless<T>(policy: Policy, binding: Binding | undefined, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (this.#request.signal.aborted) throw error;
      if (policy.spec.failurePolicy !== "Ignore") this.#deny(policy, binding, `failed to configure ${binding ? "binding" : "policy"}: ${(error as Error).message}`);
      return undefined;
    }
  }

  #deny(policy: Policy, binding: Binding | undefined, message: string, reason = ""): void {
    this.#denial ??= { message: `ValidatingAdmissionPolicy '${policy.metadata.name}'${binding ? ` with binding '${binding.metadata.name}'` : ""} denied request: ${message}`, reason };
  }

  #note({ decisions, annotations: told }: Verdict, { policy, binding, annotations, seconds }: Omit<Asked, "matched"> & { readonly seconds: number }): void {
    const [policyName, bindingName] = [policy.metadata.name, binding.metadata.name];
    const count = (action: PolicyAction, text: string): void => this.#deps.meter?.checked(policyName, bindingName, action, text, seconds);
    const validationActions = binding.spec.validationActions ?? [];
    for (const [expressionIndex, decision] of decisions.entries()) {
      if (!decision.denied) {
        if (decision.ignored !== undefined) count("allow", decision.ignored);
        continue;
      }
      const { message, reason } = decision;
      for (const action of validationActions) {
        count(action.toLowerCase() as PolicyAction, message);
        if (action === "Deny") this.#deny(policy, binding, message, reason);
        else if (action === "Warn") this.#request.warn(`Validation failed for ValidatingAdmissionPolicy '${policyName}' with binding '${bindingName}': ${message}`);
        else if (action === "Audit") this.#request.annotate(FAILURE_ANNOTATION, jsonText([{ message, policy: policyName, binding: bindingName, expressionIndex, validationActions }]));
      }
    }
    for (const annotation of told) {
      if ("error" in annotation) count("deny", annotation.error);
      this.#noteAnnotation(annotation, policy, binding, annotations);
    }
  }

  #noteAnnotation(annotation: Annotation, policy: Policy, binding: Binding, annotations: Map<string, Set<string>>): void {
    if ("error" in annotation) {
      this.#deny(policy, binding, annotation.error);
      return;
    }
    const values = annotations.get(annotation.key) ?? new Set();
    annotations.set(annotation.key, values.add(Buffer.from(annotation.value).subarray(0, ANNOTATION_BYTES_MAX).toString()));
  }
}

interface Asked { readonly policy: Policy; readonly binding: Binding; readonly matched: Matched; readonly annotations: Map<string, Set<string>> }

/** Null for what is of the whole cluster. Throws 404. */
export async function namespaceOf({ group, version, kind, namespace, signal }: AdmissionRequest, namespaces: Lookup<Namespace>): Promise<Readonly<Namespace> | null> {
  if (namespace === "" || (group === "" && version === "v1" && kind === "Namespace")) return null;
  const found = await namespaces.find("", namespace, signal);
  if (!found) throw notFound({ group: "", resource: "namespaces" }, namespace);
  return found;
}

/** The request as a policy is told of it, in the version it speaks of. */
export async function shownReview(request: AdmissionRequest, { resource, kind }: Matched, versions: ObjectVersions): Promise<NonNullable<ReturnType<typeof reviewOf>["request"]>> {
  const show = async (object: AdmissionRequest["oldObject"]) => object && (await versions.shown(object, resource, request.signal));
  const shown = { object: await show(request.object), oldObject: await show(request.oldObject) };
  return reviewOf(request, { resource, kind }, { uid: "", requestKind: kindOf(request, resourceOf(request), versions), shown }).request!;
}
