/** The webhooks of one kind of configuration, in the order they are asked: configurations by name, those of one as they stand in it. */
import type { MutatingWebhook, ValidatingWebhook } from "../../api/gen/admissionregistration.v1.ts";
import { type LabelSelector, labelSelector } from "../../api/meta/label-selector.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { AdmissionScope, BOOLEAN, type Expression } from "../../cel/admission/expressions.ts";
import type { Informer } from "../../client/informer.ts";
import { each, type Pausing } from "../../lifecycle/breather.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { CompiledOnce } from "../expressions/compiled-once.ts";

/** One that only validates has no reinvocationPolicy. */
export type Webhook = MutatingWebhook | (ValidatingWebhook & { readonly reinvocationPolicy?: undefined });

export interface Hook {
  /** Stays the same while its configuration changes around it. Source: kubernetes v1.36 apiserver/pkg/admission/configuration/mutating_webhook_manager.go */
  readonly uid: string;
  readonly webhook: Webhook;
  readonly namespaceSelector: LabelSelector;
  readonly objectSelector: LabelSelector;
  /** Its matchConditions. */
  conditions(): Promise<readonly Expression[]>;
}

export interface HookSource {
  readonly synced: boolean;
  whenSynced(signal: AbortSignal): Promise<void>;
  hooks(): readonly Hook[];
}

export function hookSource<T extends ApiObject & { webhooks?: Webhook[] | undefined }>(informer: Informer<T>, clock: Clock): HookSource {
  const conditions = new CompiledOnce(conditionsOf, clock);
  let known: readonly Hook[] | undefined; // undefined: a configuration has changed since
  informer.onChange(() => { known = undefined; });
  return {
    get synced() { return informer.synced; },
    whenSynced: (signal) => informer.whenSynced(signal),
    hooks: () => (known ??= [...informer.list()].sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1)).flatMap((configuration) => hooksOf(configuration, conditions))),
  };
}

function hooksOf({ metadata: { name: configuration }, webhooks = [] }: Readonly<ApiObject & { webhooks?: Webhook[] | undefined }>, conditions: CompiledOnce<Webhook, readonly Expression[]>): Hook[] {
  const seen = new Map<string, number>();
  return webhooks.map((webhook) => {
    const n = seen.get(webhook.name) ?? 0;
    seen.set(webhook.name, n + 1);
    return { uid: `${configuration}/${webhook.name}/${n}`, webhook, namespaceSelector: labelSelector(webhook.namespaceSelector), objectSelector: labelSelector(webhook.objectSelector), conditions: () => conditions.of(webhook) };
  });
}

function* conditionsOf({ matchConditions = [] }: Webhook): Pausing<readonly Expression[]> {
  const scope = new AdmissionScope();
  return yield* each(matchConditions, ({ expression = "" }) => scope.compile(expression, BOOLEAN));
}
