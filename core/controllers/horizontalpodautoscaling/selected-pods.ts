/** Which pods are an autoscaler's target's. Source: kubernetes v1.36 pkg/controller/podautoscaler/horizontal.go (validateAndParseSelector) */
import type { HorizontalPodAutoscaler } from "../../api/gen/autoscaling.v2.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import { type LabelSelector, parseLabelSelector } from "../../api/meta/label-selector.ts";
import { keyOf, labelsOf, namespaceOf, type ObjectKey } from "../../api/meta/object-meta.ts";
import { placeOf, placesFor } from "../../api/meta/selector-places.ts";
import type { Informer } from "../../client/informer.ts";
import { matchingPods } from "../found-by-label.ts";
import { messageOf } from "../pod-control.ts";

/** Why they cannot be told from others: as an event, and as the condition ScalingActive. */
export interface Refusal { readonly event: string; readonly told: string; readonly condition: { readonly reason: string; readonly message: string } }

export type Selected = { readonly pods: readonly Readonly<Pod>[] } | { readonly refusal: Refusal };

export class SelectedPods {
  readonly #autoscalers: Informer<HorizontalPodAutoscaler>;
  readonly #pods: Informer<Pod>;
  readonly #selectors = new Map<ObjectKey, { readonly selector: LabelSelector; readonly place: string }>(); // by autoscaler, as its target had it last
  readonly #places = new Map<string, Set<ObjectKey>>(); // autoscalers by where their selectors are found

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
    const namespace = namespaceOf(autoscaler);
    this.#remember(keyOf(autoscaler), parsed, namespace);
    const pods = matchingPods(this.#pods, { namespace, selector: parsed });
    const owners = this.#ownersOf(pods, namespace);
    if (owners.length <= 1) return { pods };
    return refused("AmbiguousSelector", `pods by selector ${selector} are controlled by multiple HPAs: [${owners.toSorted().join(" ")}]`);
  }

  forget(autoscaler: ObjectKey): void {
    const place = this.#selectors.get(autoscaler)?.place;
    this.#selectors.delete(autoscaler);
    if (place !== undefined && this.#places.get(place)?.delete(autoscaler) && this.#places.get(place)?.size === 0) this.#places.delete(place);
  }

  #remember(autoscaler: ObjectKey, selector: LabelSelector, namespace: string): void {
    this.forget(autoscaler);
    const place = placeOf(selector, namespace), there = this.#places.get(place);
    this.#selectors.set(autoscaler, { selector, place });
    if (there) there.add(autoscaler);
    else this.#places.set(place, new Set([autoscaler]));
  }

  /** Those whose targets any of the pods is of. */
  #ownersOf(pods: readonly Readonly<Pod>[], namespace: string): ObjectKey[] {
    const places = new Set(pods.flatMap((pod) => placesFor(labelsOf(pod), namespace)));
    const candidates = [...places].flatMap((place) => [...this.#places.get(place) ?? []]);
    return candidates.filter((key) => this.#autoscalers.get(key) !== undefined && pods.some(({ metadata }) => this.#selectors.get(key)!.selector.matches(metadata.labels)));
  }
}

function refused(reason: string, message: string): Selected { return { refusal: { event: reason, told: message, condition: { reason, message } } }; }
