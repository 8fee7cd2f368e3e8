/**
 * MutatingAdmissionPolicy: changes of the cluster's own to what is written, as configurations that are applied or as JSON patches.
 *
 * Policies are asked by name, each sees what those before it have done. Those with reinvocationPolicy IfNeeded see the object again when somebody
 * after them has changed it.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/{mutating/dispatcher.go,generic/policy_dispatcher.go}
 */
import type { MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding } from "../../api/gen/admissionregistration.v1.ts";
import type { Namespace } from "../../api/gen/core.v1.ts";
import { copyOf } from "../../api/meta/copy.ts";
import { formatGvk, formatGvr, gvkOf } from "../../api/meta/gvk.ts";
import { internalError, serviceUnavailable, type StatusReason, StatusError } from "../../api/meta/status-error.ts";
import { Activation, BudgetSpent } from "../../cel/admission/activation.ts";
import { RUNTIME_COST_BUDGET } from "../../cel/kubernetes.ts";
import type { Value } from "../../cel/value/value.ts";
import type { Informer } from "../../client/informer.ts";
import { bindingsOf, conditionBindingsOf, type Speaking } from "../expressions/bindings.ts";
import { askConditions } from "../expressions/conditions.ts";
import { Decisions } from "../expressions/decisions.ts";
import type { MutationMeter } from "../admission-metrics.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../plugin.ts";
import { ofKind } from "../patched-kind.ts";
import { refusal, sameValue } from "../refuse.ts";
import type { Reinvocation } from "../reinvocation.ts";
import { replaceIn, Rounds } from "../rounds.ts";
import { resourceOf } from "../webhook/match.ts";
import { compileMutating, type CompiledMutatingPolicy, type CompiledMutation } from "./compiled-policy.ts";
import { type Matched, matchOf } from "./match.ts";
import { type Param, paramsOf } from "./params.ts";
import { matchPolicy } from "./policy-match.ts";
import { patched } from "./patch.ts";
import { type PolicyHook, PolicySource } from "./policy-source.ts";
import { namespaceOf, type PolicyDeps, shownReview } from "./validating.ts";

export interface MutatingPolicyDeps extends PolicyDeps {
  readonly policies: Informer<MutatingAdmissionPolicy>;
  readonly bindings: Informer<MutatingAdmissionPolicyBinding>;
  readonly mutationMeter?: MutationMeter | undefined;
}

type Policy = Readonly<MutatingAdmissionPolicy>;
type Binding = Readonly<MutatingAdmissionPolicyBinding>;
type Hook = PolicyHook<MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, CompiledMutatingPolicy>;

interface Invocation { readonly policy: Policy; readonly binding: Binding; readonly matched: Matched; readonly param: Param; readonly compiled: CompiledMutatingPolicy }

export function mutatingPolicies(deps: MutatingPolicyDeps): AdmissionPlugin {
  const source = new PolicySource({ policies: deps.policies, bindings: deps.bindings, compile: compileMutating, clock: deps.clock });
  const key = {};
  return {
    name: "MutatingAdmissionPolicy",
    handles: (request) => source.handles(request),
    async admit(request, reinvocation) {
      await source.whenReady(request, deps.clock);
      const round = new Round(request, deps);
      for (const hook of source.hooks()) await round.collect(hook);
      await round.run(reinvocation, reinvocation.note(key, () => new Rounds()));
      round.close();
    },
  };
}

/** Schemas of a kind are looked for among those of its own group: a Scale of apps is not among those of autoscaling, options of a connection are nowhere. */
function isDocumented({ group }: Matched["kind"], request: AdmissionRequest): boolean {
  return request.subresource === "" || (request.operation !== "CONNECT" && group === request.group);
}

/** One request, before all policies. */
class Round {
  readonly #request: AdmissionRequest;
  readonly #deps: MutatingPolicyDeps;
  readonly #decisions: Decisions;
  readonly #invocations: Invocation[] = [];
  readonly #problems: { readonly message: string; readonly reason: string }[] = [];

  constructor(request: AdmissionRequest, deps: MutatingPolicyDeps) {
    this.#request = request;
    this.#deps = deps;
    this.#decisions = new Decisions(deps.authorizer);
  }

  async collect({ policy, bindings, compiled }: Hook): Promise<void> {
    const { paramKind } = policy.spec;
    const matched = await this.#unless(policy, undefined, () => matchPolicy(policy.spec, this.#request, this.#deps));
    if (!matched) return;
    for (const binding of bindings) {
      const params = await this.#unless(policy, binding, async () => {
        const { matchResources, paramRef } = binding.spec;
        if (matchResources && !(await matchOf(matchResources, this.#request, this.#deps))) return [];
        return await paramsOf(paramKind, paramRef, this.#request, this.#deps);
      });
      if (!params || params.length === 0 || !(await this.#unless(policy, undefined, () => this.#canBeShown(matched)))) continue;
      for (const param of params) this.#invocations.push({ policy, binding, matched, param, compiled: await compiled() });
    }
  }

  /** Throws what keeps the objects from being converted. */
  async #canBeShown(matched: Matched): Promise<true> {
    if (formatGvr(matched.resource) !== formatGvr(resourceOf(this.#request))) await shownReview(this.#request, matched, this.#deps.versions);
    return true;
  }

  async run(reinvocation: Reinvocation, rounds: Rounds): Promise<void> {
    if (this.#invocations.length === 0) return;
    const request = this.#request;
    if (reinvocation.isSecond && rounds.isChanged(request.object)) rounds.askAgain();
    const namespace = await namespaceOf(request, this.#deps.namespaces);
    let isMutated = false; // also by what came to nothing
    for (const invocation of this.#invocations) {
      const { policy, binding, param } = invocation;
      if (!(await this.#isWanted(invocation))) continue;
      const id = [policy.metadata.name, binding.metadata.name, param?.metadata.namespace ?? "", param?.metadata.name ?? ""].join("/");
      if (reinvocation.isSecond && !rounds.isToBeAsked(id)) continue;
      const before = copyOf(request.object);
      for (const mutation of invocation.compiled.mutations) if (await this.#mutate(mutation, invocation, namespace)) isMutated = true;
      if (!sameValue(before, request.object)) {
        rounds.askAgain();
        reinvocation.ask();
      }
      if (policy.spec.reinvocationPolicy === "IfNeeded") rounds.asked(id);
    }
    if (isMutated) { // whoever wants to sees the outcome of all, its own among it
      rounds.askAgain();
      reinvocation.ask();
    }
    rounds.left(request.object);
  }

  /** Throws the refusal. */
  close(): void {
    const [first] = this.#problems;
    if (!first) return;
    const { status } = refusal(this.#request, "admission request denied by policy");
    throw new StatusError({ ...status, message: first.message, reason: (first.reason || "Forbidden") as StatusReason, details: { ...status.details, causes: this.#problems.map(({ message }) => ({ message })) } });
  }

  #refuse(policy: Policy, binding: Binding | undefined, message: string, reason: string): void {
    if (policy.spec.failurePolicy === "Ignore") return;
    const who = binding ? `policy '${policy.metadata.name}' with binding '${binding.metadata.name}'` : `policy ${JSON.stringify(policy.metadata.name)}`;
    this.#problems.push({ message: `${who} denied request: ${message}`, reason });
  }

  async #unless<T>(policy: Policy, binding: Binding | undefined, work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (this.#request.signal.aborted) throw error;
      this.#refuse(policy, binding, `failed to configure ${binding ? "binding" : "policy"}: ${(error as Error).message}`, "");
      return undefined;
    }
  }

  async #speaking({ matched, param }: Invocation, namespace: Readonly<Namespace> | null): Promise<Speaking> {
    return { review: await shownReview(this.#request, matched, this.#deps.versions), request: this.#request, namespace, params: param, decisions: this.#decisions };
  }

  async #isWanted(invocation: Invocation): Promise<boolean> {
    const { compiled, policy, binding } = invocation;
    if (compiled.conditions.length === 0) return true;
    const bindings = conditionBindingsOf(await this.#speaking(invocation, null));
    const { clock, conditionMeter } = this.#deps;
    const startMs = clock.uptimeMs();
    const outcome = await this.#decisions.settled(() => askConditions({ ...compiled, expressions: compiled.conditions }, bindings));
    conditionMeter?.asked({ name: policy.metadata.name, kind: "policy", type: "validate" }, this.#request.operation, outcome, (clock.uptimeMs() - startMs) / 1000); // upstream says "validate" here, too
    if (outcome.error !== undefined) this.#refuse(policy, binding, outcome.error, "Invalid");
    return outcome.hold;
  }

  /** Whether it could be done. */
  async #mutate(mutation: CompiledMutation, invocation: Invocation, namespace: Readonly<Namespace> | null): Promise<boolean> {
    const request = this.#request;
    if (!request.object) return false;
    const { clock, mutationMeter } = this.#deps;
    const startMs = clock.uptimeMs();
    const count = (problem?: string): void => mutationMeter?.mutated(invocation.policy.metadata.name, invocation.binding.metadata.name, problem, (clock.uptimeMs() - startMs) / 1000);
    try {
      const { versions } = this.#deps;
      const { matched: { resource, kind } } = invocation;
      const schema = versions.schemaOf(resource, request.subresource);
      if (!schema) throw serviceUnavailable(`Resource kind ${formatGvk(kind)} not found. There can be a delay between when CustomResourceDefinitions are created and when they are available.`);
      const value = await this.#evaluated(mutation, invocation, namespace);
      const shown = await versions.shown(request.object, resource, request.signal);
      const next = ofKind(gvkOf(shown), patched(shown, value, isDocumented(kind, request) ? schema : undefined), (why) => internalError(new Error(`failed to convert object: ${why}`)));
      replaceIn(request.object, await this.#restored(next, resource));
      count();
      return true;
    } catch (error) {
      count((error as Error).message);
      if (error instanceof StatusError || request.signal.aborted) throw error;
      this.#refuse(invocation.policy, invocation.binding, (error as Error).message, "Invalid");
      return false;
    }
  }

  async #restored(value: Parameters<MutatingPolicyDeps["versions"]["restored"]>[0], from: Matched["resource"]): ReturnType<MutatingPolicyDeps["versions"]["restored"]> {
    try {
      return await this.#deps.versions.restored(copyOf(value), from, resourceOf(this.#request), this.#request.signal);
    } catch (error) {
      throw error instanceof StatusError ? error : internalError(error);
    }
  }

  async #evaluated({ expression }: CompiledMutation, invocation: Invocation, namespace: Readonly<Namespace> | null): Promise<Value> {
    if (expression.error !== undefined) throw new Error(expression.error);
    const activation = new Activation(bindingsOf(await this.#speaking(invocation, namespace)), invocation.compiled.variables);
    try {
      const { value, error } = await this.#decisions.settled(() => activation.evaluate(expression, RUNTIME_COST_BUDGET));
      if (value === undefined) throw new Error(error);
      return value;
    } catch (error) {
      if (error instanceof BudgetSpent) throw new Error(error.message, { cause: error });
      throw error;
    }
  }
}
