/** Which pods are an autoscaler's target's. Source: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go (validateAndParseSelector) */
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { type LabelSelector, parseLabelSelector } from "../../api/meta/label-selector.ts";
import { keyOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import type { Informer } from "../../client/informer.ts";
import { messageOf } from "../pod-control.ts";

/** Why they cannot be told from others: as an event, and as the condition ScalingActive. */
export interface Refusal { readonly event: string; readonly told: string; readonly condition: { readonly reason: string; readonly message: string } }

export type Selected = { readonly pods: readonly Readonly<Pod>[] } | { readonly refusal: Refusal };

export class SelectedPods {
  readonly #autoscalers: Informer<HorizontalPodAutoscaler>;
  readonly #pods: Informer<Pod>;
  readonly #selectors = new Map<ObjectKey, LabelSelector>(); // by autoscaler, as its target had it last

  constructor({ autoscalers, pods }: { readonly autoscalers: Informer<HorizontalPodAutoscaler>; readonly pods: Informer<Pod> }) {
    this.#autoscalers = autoscalers;
    this.#pods = pods;
  }

  /** `selector`: as the target's scale has it. */
  of(autoscaler: Readonly<HorizontalPodAutoscaler>, selector: string): Selected {
    if (selector === "") return { refusal: { event: "SelectorRequired", told: "selector is required", condition: { reason: "InvalidSelector", message: "the HPA target's scale is missing a selector" } } };
    let parsed: LabelSelector;
    try {
      parsed = parseLabelSelector(selector);
    } catch (error) {
      return refused("InvalidSelector", `couldn't convert selector into a corresponding internal selector object: ${messageOf(error)}`);
    }
    this.#selectors.set(keyOf(autoscaler), parsed);
    const namespace = namespaceOf(autoscaler);
    const pods = [...this.#pods.inNamespace(namespace)].filter(({ metadata }) => parsed.matches(metadata.labels));
    const owners = [...this.#autoscalers.inNamespace(namespace)].filter((one) => pods.some(({ metadata }) => this.#selectors.get(keyOf(one))?.matches(metadata.labels)));
    if (owners.length <= 1) return { pods };
    return refused("AmbiguousSelector", `pods by selector ${selector} are controlled by multiple HPAs: [${owners.map(keyOf).toSorted().join(" ")}]`);
  }

  forget(autoscaler: ObjectKey): void { this.#selectors.delete(autoscaler); }
}

function refused(reason: string, message: string): Selected { return { refusal: { event: reason, told: message, condition: { reason, message } } }; }
