/**
 * What a pod asks for and may use, and its quality of service.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/component-helpers/resource/helpers.go, pkg/apis/core/v1/helper/qos/qos.go
 */
import type { Container, EphemeralContainer, Pod, PodQOSClass, ResourceList } from "../../../core/api/gen/core.v1.ts";
import { addQuantity, maxQuantity, parseQuantity, type Quantity } from "../../../core/api/meta/quantity.ts";
import { isSidecar } from "../pod-spec.ts";

export type Quantities = Map<string, Quantity>;

function quantitiesOf(list: ResourceList | undefined): Quantities {
  return new Map(Object.entries(list ?? {}).map(([name, text]) => [name, parseQuantity(text)]));
}

/** Requests, limits standing in where only they are given. */
function containerRequests(container: Container | EphemeralContainer): Quantities {
  return quantitiesOf({ ...container.resources?.limits, ...container.resources?.requests });
}

/** The sum of the app containers and the sidecars, or the largest init container with the sidecars before it, whichever is more; plus overhead. */
export function podRequests(pod: Pod): Quantities {
  return effective(pod, aggregateRequests(pod), pod.spec.resources?.requests, { always: true });
}

/** What is not limited is not limited by the overhead either. */
export function podLimits(pod: Pod): Quantities {
  return effective(pod, aggregate(pod, (container) => quantitiesOf(container.resources?.limits)), pod.spec.resources?.limits, { always: false });
}

/** Whether whatever runs of it has a limit, and so the pod as a whole. Init containers run with the sidecars before them, whose limits are theirs. */
export function isLimited({ spec }: Pod, name: string): boolean {
  const has = (limits: ResourceList | undefined): boolean => limits?.[name] !== undefined && parseQuantity(limits[name]).sign > 0;
  const limited = ({ resources }: Container): boolean => has(resources?.limits);
  const inits = spec.initContainers ?? [], firstSidecar = inits.findIndex((other) => isSidecar(other) && limited(other));
  return has(spec.resources?.limits) || (spec.containers.every(limited) && inits.every((container, i) => limited(container) || (firstSidecar >= 0 && firstSidecar < i)));
}

/** Of its containers, whatever the pod as a whole asks for. */
export function aggregateRequests(pod: Pod): Quantities {
  return aggregate(pod, containerRequests);
}

function effective(pod: Pod, total: Quantities, podLevel: ResourceList | undefined, overhead: { readonly always: boolean }): Quantities {
  for (const [name, quantity] of quantitiesOf(podLevel)) total.set(name, quantity);
  add(total, quantitiesOf(pod.spec.overhead), overhead.always);
  return total;
}

function aggregate(pod: Pod, of: (container: Container) => Quantities): Quantities {
  const total: Quantities = new Map();
  for (const container of pod.spec.containers) add(total, of(container));
  const sidecars: Quantities = new Map();
  const init: Quantities = new Map();
  for (const container of pod.spec.initContainers ?? []) {
    const own = of(container), during: Quantities = new Map();
    if (isSidecar(container)) {
      add(total, own);
      add(sidecars, own);
    }
    for (const [name, quantity] of own) { // of what others ask for the sidecars so far have raised it already
      const beside = sidecars.get(name);
      during.set(name, isSidecar(container) ? beside! : beside ? addQuantity(beside, quantity) : quantity);
    }
    raise(init, during);
  }
  raise(total, init);
  return total;
}

function add(to: Quantities, more: Quantities, always = true): void {
  for (const [name, quantity] of more) {
    const before = to.get(name);
    if (before) to.set(name, addQuantity(before, quantity));
    else if (always) to.set(name, quantity);
  }
}

function raise(to: Quantities, other: Quantities): void {
  for (const [name, quantity] of other) to.set(name, maxQuantity(to.get(name) ?? quantity, quantity));
}

const QOS_RESOURCES = ["cpu", "memory"] as const;

export function qosClass(pod: Pod): PodQOSClass {
  if (pod.status?.qosClass) return pod.status.qosClass;
  const all = pod.spec.resources ? [pod.spec.resources] : [...pod.spec.containers, ...(pod.spec.initContainers ?? [])].map((container) => container.resources);
  let anything = false;
  let guaranteed = true;
  for (const resources of all) {
    for (const name of QOS_RESOURCES) {
      const limit = quantityAbove0(resources?.limits?.[name]);
      const asked = resources?.requests?.[name];
      const request = asked === undefined ? limit : quantityAbove0(asked); // who asks for nothing in so many words is not promised the limit
      if (request ?? limit) anything = true;
      if (!limit || request !== limit) guaranteed = false;
    }
  }
  return !anything ? "BestEffort" : guaranteed ? "Guaranteed" : "Burstable";
}

/** In its exact value, as text that can be compared. */
function quantityAbove0(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const quantity = parseQuantity(text);
  return quantity.sign > 0 ? quantity.scaledValue(-9).toString() : undefined;
}
