/** Requests and limits of containers and pods. Source: kubernetes v1.36 pkg/apis/core/validation/validation.go validateResourceRequirements, validatePodResources */
import { child, duplicate, type FieldError, forbidden, index, invalid, key, notFound, required } from "../../../../api/meta/field-error.ts";
import type { ContainerResizePolicy, PodSpec, ResourceClaim, ResourceRequirements } from "../../../../api/gen/core.v1.ts";
import { compareQuantities, compareQuantity, parseQuantity } from "../../../../api/meta/quantity.ts";
import {
  containerResourceName, isDivisibleHugePage, isHugePage, isOvercommitAllowed, podResourceName, resourceQuantity,
} from "../../checks/resources.ts";
import { isDns1123Label, oneOf } from "../../checks/values.ts";
import { containerLimits, containerRequests } from "../aggregate.ts";
import type { PodRules } from "../rules.ts";

type NameCheck = (path: string, name: string) => Iterable<FieldError>;

export function* validateContainerResources(path: string, requirements: ResourceRequirements, claimNames: ReadonlySet<string>, rules: PodRules): Iterable<FieldError> {
  yield* validateRequirements(path, requirements, { claimNames, rules, checkName: containerResourceName });
}

/** What the sandbox costs: limits of a kind. */
export function* validateOverhead(path: string, overhead: Record<string, string>, rules: PodRules): Iterable<FieldError> {
  yield* validateRequirements(path, { limits: overhead }, { claimNames: new Set(), rules, checkName: containerResourceName });
}

interface Context { readonly claimNames: ReadonlySet<string>; readonly rules: PodRules; readonly checkName: NameCheck }

function* validateRequirements(path: string, { limits = {}, requests = {}, claims = [] }: ResourceRequirements, { claimNames, rules, checkName }: Context): Iterable<FieldError> {
  const limitsPath = child(path, "limits");
  const requestsPath = child(path, "requests");
  for (const [name, value] of Object.entries(limits)) yield* validateAmount(key(limitsPath, name), name, value, rules, checkName);
  for (const [name, value] of Object.entries(requests)) {
    const at = key(requestsPath, name);
    yield* checkName(at, name);
    yield* resourceQuantity(at, name, value);
    const limit = limits[name];
    if (limit === undefined) {
      if (!isOvercommitAllowed(name)) yield required(limitsPath, "Limit must be set for non overcommitable resources");
    } else if (!isOvercommitAllowed(name) && compareQuantities(value, limit) !== 0) yield invalid(requestsPath, value, `must be equal to ${name} limit of ${limit}`);
    else if (compareQuantities(value, limit) > 0) yield invalid(requestsPath, value, `must be less than or equal to ${name} limit of ${limit}`);
    yield* hugePageAmount(at, name, value, rules);
  }
  const names = [...Object.keys(limits), ...Object.keys(requests)];
  if (names.some(isHugePage) && !names.includes("cpu") && !names.includes("memory")) yield forbidden(path, "HugePages require cpu or memory");
  yield* validateClaims(child(path, "claims"), claims, claimNames);
}

function* validateAmount(path: string, name: string, value: string, rules: PodRules, checkName: NameCheck): Iterable<FieldError> {
  yield* checkName(path, name);
  yield* resourceQuantity(path, name, value);
  yield* hugePageAmount(path, name, value, rules);
}

function* hugePageAmount(path: string, name: string, value: string, { allowIndivisibleHugePages }: PodRules): Iterable<FieldError> {
  if (isHugePage(name) && !allowIndivisibleHugePages && !isDivisibleHugePage(name, value)) yield invalid(path, value, `${value} is not positive integer multiple of ${name}`);
}

/** Each error names those there are: far more than people write. */
const CLAIMS_SHOWN_MAX = 100;

function* validateClaims(path: string, claims: readonly ResourceClaim[], claimNames: ReadonlySet<string>): Iterable<FieldError> {
  const seen = new Set<string>();
  const requestsOf = new Map<string, number>();
  let known: string | undefined;
  for (const [i, { name, request }] of claims.entries()) {
    const at = index(path, i);
    if (!name) { yield required(at); continue; }
    if (seen.has(name)) yield duplicate(at, name);
    else {
      if (request) yield* isDns1123Label(child(at, "request"), request);
      const own = request ? `${name}/${request}` : name;
      if (seen.has(own)) yield duplicate(at, own);
      else if (request) requestsOf.set(name, (requestsOf.get(name) ?? 0) + 1);
      else for (let count = requestsOf.get(name) ?? 0; count > 0; count--) yield duplicate(at, name);
      seen.add(own);
    }
    if (claimNames.has(name)) continue;
    known ??= claimNames.size === 0 ? " which is empty" : `: ${[...claimNames].sort().slice(0, CLAIMS_SHOWN_MAX).join(", ")}`;
    yield { ...notFound(at, name), detail: `must be one of the names in pod.spec.resourceClaims${known}` };
  }
}

export function* validateResizePolicy(path: string, policies: readonly ContainerResizePolicy[], podRestartPolicy: string | undefined): Iterable<FieldError> {
  const seen = new Set<string>();
  for (const [i, { resourceName, restartPolicy }] of policies.entries()) {
    if (seen.has(resourceName)) yield duplicate(index(path, i), resourceName);
    seen.add(resourceName);
    yield* oneOf(path, resourceName, ["cpu", "memory"]);
    yield* oneOf(path, restartPolicy, ["NotRequired", "RestartContainer"]);
    if (podRestartPolicy === "Never" && restartPolicy !== "NotRequired") yield invalid(path, restartPolicy, "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
  }
}

/** Resources of the pod as a whole: enough for its containers. */
export function* validatePodResources(path: string, spec: Readonly<PodSpec>, rules: PodRules): Iterable<FieldError> {
  const { resources } = spec;
  if (!resources) return;
  const at = child(path, "resources");
  if (spec.os?.name === "windows") { yield forbidden(at, "may not be set for a windows pod"); return; }
  if (resources.claims) yield forbidden(child(at, "claims"), "claims may not be set for Resources at pod-level");
  yield* validateRequirements(at, resources, { claimNames: new Set((spec.resourceClaims ?? []).map(({ name }) => name).filter(Boolean)), rules, checkName: podResourceName });

  for (const [name, amount] of containerRequests(spec).entries()) {
    const own = resources.requests?.[name];
    if (own !== undefined && compareQuantity(amount, parseQuantity(own)) > 0)
      yield invalid(key(child(at, "requests"), name), own, `must be greater than or equal to aggregate container requests of ${amount}`);
  }
  for (const [name, amount] of containerLimits(spec).entries()) {
    const own = resources.limits?.[name];
    if (isHugePage(name) && own !== undefined && compareQuantity(amount, parseQuantity(own)) > 0)
      yield invalid(key(child(at, "limits"), name), own, `must be greater than or equal to aggregate container limits of ${amount}`);
  }
  for (const [i, container] of (spec.containers ?? []).entries()) {
    for (const [name, limit] of Object.entries(container.resources?.limits ?? {})) {
      const own = resources.limits?.[name];
      if (own !== undefined && compareQuantities(limit, own) > 0)
        yield invalid(child(key(index(child(at, "containers"), i), name), "limits"), limit, `must be less than or equal to pod limits of ${own}`);
    }
  }
}
