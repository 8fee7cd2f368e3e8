/** Policies that have bindings, by name, and each as it is compiled. Source: kubernetes v1.36 apiserver/pkg/admission/plugin/policy/generic/{policy_source,plugin}.go */
import { forbidden } from "../../api/meta/status-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import type { Informer } from "../../client/informer.ts";
import type { Pausing } from "../../lifecycle/breather.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { CompiledOnce } from "../expressions/compiled-once.ts";
import type { AdmissionRequest } from "../plugin.ts";

export interface PolicyHook<P, B, C> {
  readonly policy: Readonly<P>;
  readonly bindings: readonly Readonly<B>[];
  compiled(): Promise<C>;
}

type Binding = ApiObject & { readonly spec: { readonly policyName?: string | undefined } };

/** How long a request waits for policies to be known. Source: kubernetes v1.36 apiserver/pkg/admission/handler.go timeToWaitForReady */
const READY_MS = 10_000;
/** Questions, not objects, and policies: they could keep themselves from being mended. Source: kubernetes v1.36 pkg/kubeapiserver/admission/exclusion/resources.go, apiserver/pkg/admission/plugin/policy/generic/plugin.go */
const EXCLUDED: ReadonlySet<string> = new Set([
  "selfsubjectreviews.authentication.k8s.io", "tokenreviews.authentication.k8s.io",
  ...["localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"].map((resource) => `${resource}.authorization.k8s.io`),
  ...["validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"].map((resource) => `${resource}.admissionregistration.k8s.io`),
]);

export class PolicySource<P extends ApiObject, B extends Binding, C> {
  readonly #policies: Informer<P>;
  readonly #bindings: Informer<B>;
  readonly #compiled: CompiledOnce<Readonly<P>, C>;
  #hooks: readonly PolicyHook<P, B, C>[] | undefined; // undefined: something has changed since

  constructor({ policies, bindings, compile, clock }: { readonly policies: Informer<P>; readonly bindings: Informer<B>; compile(policy: Readonly<P>): Pausing<C>; readonly clock: Clock }) {
    this.#policies = policies;
    this.#bindings = bindings;
    this.#compiled = new CompiledOnce(compile, clock);
    policies.onChange(() => { this.#hooks = undefined; });
    bindings.onChange(() => { this.#hooks = undefined; });
  }

  get #synced(): boolean { return this.#policies.synced && this.#bindings.synced; }

  handles(request: AdmissionRequest): boolean {
    return (!this.#synced || this.hooks().length > 0) && !EXCLUDED.has(`${request.resource}.${request.group}`);
  }

  /** Throws 403 when policies are not known in time. */
  async whenReady({ group, resource, name, signal }: AdmissionRequest, clock: Clock): Promise<void> {
    if (this.#synced) return;
    const enough = new AbortController();
    const either = AbortSignal.any([signal, enough.signal]);
    const synced = Promise.all([this.#policies.whenSynced(either), this.#bindings.whenSynced(either)]).catch(() => undefined); // that it ended is told by `#synced`
    await Promise.race([synced, clock.sleep(READY_MS, either)]);
    enough.abort();
    if (!this.#synced) throw forbidden({ group, resource }, name, "not yet ready to handle request");
  }

  hooks(): readonly PolicyHook<P, B, C>[] { return (this.#hooks ??= this.#made()); }

  #made(): PolicyHook<P, B, C>[] {
    const bindings = Map.groupBy([...this.#bindings.list()].sort(byName), ({ spec }) => spec.policyName ?? "");
    return [...this.#policies.list()].sort(byName).flatMap((policy) => {
      const bound = bindings.get(policy.metadata.name);
      return bound ? [{ policy, bindings: bound, compiled: () => this.#compiled.of(policy) }] : [];
    });
  }
}

function byName(a: Readonly<ApiObject>, b: Readonly<ApiObject>): number { return a.metadata.name < b.metadata.name ? -1 : 1; }
