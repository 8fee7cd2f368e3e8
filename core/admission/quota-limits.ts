/**
 * What may be used only where a quota says how much: the configuration of ResourceQuota.
 *
 *   apiVersion: apiserver.config.k8s.io/v1
 *   kind: ResourceQuotaConfiguration
 *   limitedResources:
 *   - resource: pods
 *     matchScopes: [{scopeName: PriorityClass, operator: In, values: [system-cluster-critical]}]
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/resourcequota/{apis,controller.go}
 */
import type { ResourceQuota, ScopedResourceSelectorRequirement } from "../api/gen/core.v1.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import type { Amounts } from "../api/quota/amounts.ts";
import { type Evaluator, scopesOf } from "../api/quota/evaluators.ts";
import { fieldsOf } from "../api/codec/strict-fields.ts";

type Scope = Readonly<ScopedResourceSelectorRequirement>;

export interface LimitedResource {
  readonly group: string;
  readonly resource: string;
  /** Parts of names in a quota. */
  readonly matchContains: readonly string[];
  readonly matchScopes: readonly Scope[];
}

const KINDS = [
  { kind: "ResourceQuotaConfiguration", apiVersions: ["apiserver.config.k8s.io/v1"] },
  { kind: "Configuration", apiVersions: ["resourcequota.admission.k8s.io/v1beta1", "resourcequota.admission.k8s.io/v1alpha1"] },
] as const;

/** Throws for a configuration that cannot be. */
export function limitedResources(configuration: unknown): readonly LimitedResource[] {
  if (configuration === undefined) return [];
  const fields = fieldsOf(configuration, (configuration as { kind?: unknown } | null)?.kind === KINDS[1].kind ? KINDS[1] : KINDS[0]);
  const limited = fields.objects("limitedResources").map((one): LimitedResource => {
    const found = {
      group: one.text("apiGroup"), resource: one.text("resource"), matchContains: one.strings("matchContains"),
      matchScopes: one.objects("matchScopes").map((scope) => {
        const selector = { scopeName: scope.text("scopeName"), operator: scope.text("operator"), values: [...scope.strings("values")] } as ScopedResourceSelectorRequirement;
        scope.end();
        return selector;
      }),
    };
    one.end();
    if (found.resource === "") throw new Error(`${one.path}.resource: Required value`);
    return found;
  });
  fields.end();
  return limited;
}

interface Covered {
  readonly limited: readonly LimitedResource[];
  readonly group: string;
  readonly resource: string;
  readonly object: Readonly<ApiObject>;
  readonly evaluator: Evaluator;
  readonly usage: Amounts;
  readonly quotas: readonly Readonly<ResourceQuota>[];
  /** Whether a quota that covers the object limits it. */
  isLimited(name: string): boolean;
}

/** What no quota covers, and yet must be: of these names, or in these scopes. */
export function uncovered({ limited, group, resource, object, evaluator, usage, quotas, isLimited }: Covered): { readonly names: string[]; readonly scopes: string } {
  const own = limited.filter((one) => one.group === group && one.resource === resource);
  const wanted = [...usage].filter(([name, quantity]) => quantity.sign > 0 && own.some(({ matchContains }) => matchContains.some((part) => name.includes(part)))).map(([name]) => name);
  const scopes = limited.flatMap(({ matchScopes }) => matchScopes).filter((scope) => evaluator.isInScope(object, scope));
  const covered = new Set(quotas.flatMap((quota) => scopesOf(quota).filter((scope) => evaluator.isInScope(object, scope)).map(({ scopeName }) => scopeName)));
  const open = scopes.filter(({ scopeName }) => !covered.has(scopeName));
  return { names: wanted.filter((name) => !isLimited(name)).toSorted(), scopes: open.length === 0 ? "" : `[${open.map(({ scopeName, operator, values = [] }) => `{${scopeName} ${operator} [${(values ?? []).join(" ")}]}`).join(" ")}]` };
}
