/**
 * LimitRanger: what a namespace's LimitRanges say a container, a pod or a claim may ask for, and gets if it asks for nothing.
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/limitranger/admission.go
 */
import type { Container, LimitRange, LimitRangeItem, PersistentVolumeClaim, Pod } from "../api/gen/core.v1.ts";
import { aggregate } from "../api/meta/aggregate.ts";
import { compareQuantity, parseQuantity, type Quantity, quotient } from "../api/meta/quantity.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import { listAll } from "../client/lookup.ts";
import { containerResources, podResources, type Resources, resourcesOf } from "./pod-resources.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { isResource, refusal } from "./refuse.ts";

const ANNOTATION = "kubernetes.io/limit-ranger";

export function limitRanger({ limitRanges, client }: { readonly limitRanges: Informer<LimitRange>; readonly client: ResourceClient<LimitRange> }): AdmissionPlugin {
  async function rangesFor({ namespace, oldObject, signal }: AdmissionRequest): Promise<readonly Readonly<LimitRange>[]> {
    if (oldObject?.metadata.deletionTimestamp != null) return [];
    return await listAll(limitRanges, client, { namespace, signal });
  }

  return {
    name: "LimitRanger",
    handles(request) {
      const { operation } = request;
      if (operation === "UPDATE") return isResource(request, "pods", "resize") || isResource(request, "persistentvolumeclaims");
      return operation === "CREATE" && (isResource(request, "pods") || isResource(request, "persistentvolumeclaims"));
    },
    async admit(request) {
      if (request.resource !== "pods") return;
      for (const range of await rangesFor(request)) setDefaults(request.object as Pod, range);
    },
    async validate(request) {
      for (const { spec } of await rangesFor(request)) {
        const errors = (spec?.limits ?? []).flatMap((limit) => (request.resource === "pods" ? podProblems(request.object as Pod, limit) : claimProblems(request.object as PersistentVolumeClaim, limit)));
        if (errors.length > 0) throw refusal(request, aggregate(errors));
      }
    },
  };
}

/** Fills in requests and limits, and says in an annotation what it did. */
function setDefaults(pod: Pod, { spec }: Readonly<LimitRange>): void {
  const limits: Record<string, string> = {};
  const requests: Record<string, string> = {};
  for (const item of spec?.limits ?? []) {
    if (item.type !== "Container") continue;
    Object.assign(requests, item.defaultRequest);
    Object.assign(limits, item.default);
  }
  const notes: string[] = [];
  const fill = (container: Container, title: string): void => {
    const setRequests = Object.keys(requests).filter((name) => container.resources?.requests?.[name] === undefined).sort();
    const setLimits = Object.keys(limits).filter((name) => container.resources?.limits?.[name] === undefined).sort();
    if (setRequests.length + setLimits.length === 0) return;
    const resources = { ...container.resources };
    if (setLimits.length > 0) resources.limits = { ...limits, ...resources.limits };
    if (setRequests.length > 0) resources.requests = { ...requests, ...resources.requests };
    container.resources = resources;
    if (setRequests.length > 0) notes.push(`${setRequests.join(", ")} request for ${title} ${container.name}`);
    if (setLimits.length > 0) notes.push(`${setLimits.join(", ")} limit for ${title} ${container.name}`);
  };
  for (const container of pod.spec.containers ?? []) fill(container, "container");
  for (const container of pod.spec.initContainers ?? []) fill(container, "init container");
  if (notes.length > 0) pod.metadata.annotations = { ...pod.metadata.annotations, [ANNOTATION]: `LimitRanger plugin set: ${notes.join("; ")}` };
}

function podProblems(pod: Readonly<Pod>, limit: LimitRangeItem): string[] {
  if (limit.type === "Container") {
    const containers = [...(pod.spec.containers ?? []), ...(pod.spec.initContainers ?? [])];
    return containers.flatMap((container) => problems(limit, containerResources(container, "requests"), containerResources(container, "limits")));
  }
  return limit.type === "Pod" ? problems(limit, podResources(pod, "requests"), podResources(pod, "limits")) : [];
}

function claimProblems({ spec }: Readonly<PersistentVolumeClaim>, limit: LimitRangeItem): string[] {
  if (limit.type !== "PersistentVolumeClaim") return [];
  const requests = resourcesOf(spec?.resources?.requests);
  const max = Object.entries(limit.max ?? {}).flatMap(([name, text]) => {
    const bound = parseQuantity(String(text));
    const request = requests.get(name);
    if (!request) return [`maximum ${name} usage per ${limit.type} is ${bound}.  No request is specified`];
    return compareQuantity(request, bound) > 0 ? [`maximum ${name} usage per ${limit.type} is ${bound}, but request is ${request}`] : [];
  });
  return [...minProblems(limit, requests, new Map()), ...max];
}

function problems(limit: LimitRangeItem, requests: Resources, limits: Resources): string[] {
  return [...minProblems(limit, requests, limits), ...maxProblems(limit, requests, limits), ...ratioProblems(limit, requests, limits)];
}

function minProblems({ type, min = {} }: LimitRangeItem, requests: Resources, limits: Resources): string[] {
  return Object.entries(min).flatMap(([name, text]) => {
    const bound = parseQuantity(String(text));
    const told = `minimum ${name} usage per ${type} is ${bound}`;
    const request = requests.get(name);
    const limit = limits.get(name);
    if (!request) return [`${told}.  No request is specified`];
    if (compareQuantity(request, bound) < 0) return [`${told}, but request is ${request}`];
    return limit && compareQuantity(limit, bound) < 0 ? [`${told}, but limit is ${limit}`] : [];
  });
}

function maxProblems({ type, max = {} }: LimitRangeItem, requests: Resources, limits: Resources): string[] {
  return Object.entries(max).flatMap(([name, text]) => {
    const bound = parseQuantity(String(text));
    const told = `maximum ${name} usage per ${type} is ${bound}`;
    const request = requests.get(name);
    const limit = limits.get(name);
    if (!limit) return [`${told}.  No limit is specified`];
    if (compareQuantity(limit, bound) > 0) return [`${told}, but limit is ${limit}`];
    return request && compareQuantity(request, bound) > 0 ? [`${told}, but request is ${request}`] : [];
  });
}

function ratioProblems({ type, maxLimitRequestRatio = {} }: LimitRangeItem, requests: Resources, limits: Resources): string[] {
  const isSet = (quantity: Quantity | undefined): quantity is Quantity => quantity !== undefined && !quantity.isZero;
  return Object.entries(maxLimitRequestRatio).flatMap(([name, text]) => {
    const bound = parseQuantity(String(text));
    const told = `${name} max limit to request ratio per ${type} is ${bound}`;
    const request = requests.get(name);
    const limit = limits.get(name);
    if (!isSet(request)) return [`${told}, but no request is specified or request is 0`];
    if (!isSet(limit)) return [`${told}, but no limit is specified or limit is 0`];
    const ratio = quotient(limit, request);
    return ratio * 1000 > bound.milliNumber() ? [`${told}, but provided ratio is ${ratio.toFixed(6)}`] : [];
  });
}
