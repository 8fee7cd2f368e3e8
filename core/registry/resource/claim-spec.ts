/**
 * What a claim of devices asks for.
 *
 * Source: kubernetes v1.36 pkg/apis/resource/{v1/defaults,validation/validation}.go
 */
import { child, type FieldError, forbidden, index, invalid, notSupported, required, tooLong } from "../../api/meta/field-error.ts";
import type { DeviceConstraint, DeviceRequest, DeviceSelector, DeviceToleration, ExactDeviceRequest, ResourceClaimSpec } from "../../api/gen/resource.v1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { validateLabelName } from "../../api/meta/label-selector.ts";
import { labelValue } from "../../api/meta/names.ts";
import { compileDeviceSelector, deviceEnvironment, isTooComplex } from "../../cel/device-selector.ts";
import { isDns1123Label, isDns1123Subdomain, problems } from "../core/checks/values.ts";
import type { Pausing } from "../../lifecycle/breather.ts";
import type { WriteContext } from "../generic/resource.ts";
import { keepsFieldsOf } from "../generic/switched-on.ts";
import { fullyQualifiedDeviceName, listOf, opaqueConfiguration } from "./names.ts";

const REQUESTS_MAX = 32;
export const CONFIG_MAX = 32;
const CONSTRAINTS_MAX = 32;
const SELECTORS_MAX = 32;
const ALTERNATIVES_MAX = 8;
const EXPRESSION_BYTES_MAX = 10 * 1024;
export const TAINT_EFFECTS = ["NoExecute", "NoSchedule", "None"];
const REFERENCE = "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
const ADMIN_LABEL = "resource.kubernetes.io/admin-access";

/** The labels of a namespace; one that is not there has none. */
export type NamespaceLabels = (name: string) => Readonly<Record<string, string>>;

type AnyRequest = Omit<ExactDeviceRequest, "adminAccess">;

export function defaultClaimSpec({ devices }: ResourceClaimSpec): void {
  for (const { exactly, firstAvailable } of devices?.requests ?? [])
    for (const request of [...(exactly ? [exactly] : []), ...(firstAvailable ?? [])] as AnyRequest[]) {
      request.allocationMode ||= "ExactCount";
      if (request.allocationMode === "ExactCount") request.count ||= 1;
    }
}

/** Devices that belong to others already may be had where the namespace says so. */
export function* adminAccess({ devices }: Readonly<ResourceClaimSpec>, namespace: string | undefined, labels: NamespaceLabels): Iterable<FieldError> {
  const at = (devices?.requests ?? []).findIndex(({ exactly }) => exactly?.adminAccess === true);
  if (at >= 0) yield* adminNamespace(child(index("spec.devices.requests", at), "adminAccess"), namespace, labels);
}

export function* adminNamespace(path: string, namespace: string | undefined, labels: NamespaceLabels): Iterable<FieldError> {
  if (labels(namespace ?? "")[ADMIN_LABEL] !== "true") yield forbidden(path, `admin access to devices requires the \`${ADMIN_LABEL}: true\` label on the containing namespace`);
}

/** Looks at one expression after another, of which there may be megabytes in a claim: each may take a slice of time. Those that `check` asks for, with the same `context`, and no others: what is refused for its length costs nothing. */
export function* foreseeSelectors(check: Iterable<FieldError>, context: WriteContext): Pausing<void> {
  const asked = new Set<string>(), found = new Map<string, Verdict>();
  foreseen.set(context, (expression) => {
    asked.add(expression);
    return "good";
  });
  for (const _ of check); // what is wrong otherwise is found once more
  foreseen.set(context, (expression) => found.get(expression));
  for (const expression of asked) {
    found.set(expression, verdictOf(expression));
    yield;
  }
}

export function* validateClaimSpec(path: string, { devices }: Readonly<ResourceClaimSpec>, context: WriteContext | undefined): Iterable<FieldError> {
  const at = child(path, "devices");
  const names = requestNames(devices?.requests ?? []);
  yield* listOf(child(at, "requests"), devices?.requests, { max: REQUESTS_MAX, keyOf: ({ name }) => name, check: (where, request) => validateRequest(where, request, context) });
  yield* listOf(child(at, "constraints"), devices?.constraints, { max: CONSTRAINTS_MAX, check: (where, constraint) => validateConstraint(where, constraint, names) });
  yield* listOf(child(at, "config"), devices?.config, {
    max: CONFIG_MAX,
    *check(where, { requests, opaque }) {
      yield* requestReferences(child(where, "requests"), requests, names);
      yield* opaqueConfiguration(where, opaque);
    },
  });
}

/** By name of request, its alternatives. Of two of one name the later one counts. */
export type RequestNames = ReadonlyMap<string, ReadonlySet<string>>;

export function requestNames(requests: readonly DeviceRequest[]): RequestNames {
  return new Map(requests.map(({ name, firstAvailable = [] }) => [name, new Set(firstAvailable.map((alternative) => alternative.name))]));
}

export function requestReferences(path: string, requests: readonly string[] | undefined, names: RequestNames): Iterable<FieldError> {
  return listOf(path, requests, { max: REQUESTS_MAX, keyOf: (name) => name, check: (at, name) => requestReference(at, name, names) });
}

/** `request`, or `request/alternative`. */
export function* requestReference(path: string, name: string, names: RequestNames): Iterable<FieldError> {
  const [request = "", alternative, ...more] = name.split("/"), alternatives = names.get(request);
  if (more.length > 0) { yield invalid(path, name, REFERENCE); return; }
  for (const segment of name.split("/")) yield* isDns1123Label(path, segment);
  if (!alternatives || (alternative !== undefined && !alternatives.has(alternative))) yield invalid(path, name, REFERENCE);
}

function* validateRequest(path: string, { name, exactly, firstAvailable }: DeviceRequest, context: WriteContext | undefined): Iterable<FieldError> {
  yield* isDns1123Label(child(path, "name"), name);
  const either = "exactly one of `exactly` or `firstAvailable` is required";
  const hasAlternatives = (firstAvailable ?? []).length > 0;
  if (!exactly && !hasAlternatives) yield required(path, either);
  else if (exactly && hasAlternatives) yield invalid(path, undefined, `${either}, but multiple fields are set`);
  else if (exactly) yield* validateExactly(child(path, "exactly"), exactly, context);
  else
    yield* listOf(child(path, "firstAvailable"), firstAvailable, {
      max: ALTERNATIVES_MAX, keyOf: (alternative) => alternative.name,
      *check(at, alternative) {
        yield* isDns1123Label(child(at, "name"), alternative.name);
        yield* validateExactly(at, alternative, context);
      },
    });
}

function* validateExactly(path: string, { deviceClassName, selectors, allocationMode = "", count = 0, tolerations = [] }: AnyRequest, context: WriteContext | undefined): Iterable<FieldError> {
  if (!deviceClassName) yield required(child(path, "deviceClassName"));
  else yield* isDns1123Subdomain(child(path, "deviceClassName"), deviceClassName);
  yield* validateSelectors(child(path, "selectors"), selectors, context);
  if (allocationMode === "All") {
    if (count !== 0) yield invalid(child(path, "count"), count, "must not be specified when allocationMode is 'All'");
  } else if (allocationMode === "ExactCount") {
    if (count <= 0) yield invalid(child(path, "count"), count, "must be greater than zero");
  } else yield notSupported(child(path, "allocationMode"), allocationMode, ["All", "ExactCount"]);
  for (const [i, toleration] of tolerations.entries()) yield* validateToleration(index(child(path, "tolerations"), i), toleration);
}

/** What becomes of an expression. */
type Verdict = "good" | "too long" | "too complex" | { readonly problem: string };

/** By who writes. */
const foreseen = new WeakMap<WriteContext, (expression: string) => Verdict | undefined>();

function verdictOf(expression: string): Verdict {
  if (byteLength(expression) > EXPRESSION_BYTES_MAX) return "too long";
  const compiled = compileDeviceSelector(expression, deviceEnvironment(keepsFieldsOf("DRAListTypeAttributes")));
  return "problem" in compiled ? compiled : isTooComplex(compiled) ? "too complex" : "good";
}

export function validateSelectors(path: string, selectors: readonly DeviceSelector[] | undefined, context: WriteContext | undefined): Iterable<FieldError> {
  return listOf(path, selectors, {
    max: SELECTORS_MAX,
    *check(at, { cel }) {
      if (!cel) { yield required(child(at, "cel")); return; }
      const { expression = "" } = cel, where = child(at, "cel", "expression");
      const verdict = (context && foreseen.get(context)?.(expression)) ?? verdictOf(expression);
      if (verdict === "too long") yield tooLong(where, EXPRESSION_BYTES_MAX);
      else if (verdict === "too complex") yield forbidden(where, "too complex, exceeds cost limit");
      else if (verdict !== "good") yield invalid(where, expression, verdict.problem);
    },
  });
}

function* validateConstraint(path: string, { requests, matchAttribute, distinctAttribute }: DeviceConstraint, names: RequestNames): Iterable<FieldError> {
  yield* requestReferences(child(path, "requests"), requests, names);
  if (matchAttribute !== undefined) yield* fullyQualifiedDeviceName(child(path, "matchAttribute"), matchAttribute);
  else if (distinctAttribute !== undefined) yield* fullyQualifiedDeviceName(child(path, "distinctAttribute"), distinctAttribute);
  else yield required(path, `exactly one of "matchAttribute" or "distinctAttribute" is required, but multiple fields are set`);
}

function* validateToleration(path: string, toleration: DeviceToleration): Iterable<FieldError> {
  const { key = "", value = "" } = toleration;
  const operator: string = toleration.operator ?? "";
  const effect: string = toleration.effect ?? "";
  if (key !== "") yield* validateLabelName(key, child(path, "key"));
  if (operator === "Exists") {
    if (value !== "") yield invalid(child(path, "value"), value, "must be empty for operator `Exists`");
  } else if (operator === "Equal") yield* problems(child(path, "value"), value, labelValue(value));
  else if (operator === "") yield required(child(path, "operator"));
  else yield notSupported(child(path, "operator"), operator, ["Equal", "Exists"]);
  if (effect !== "" && !TAINT_EFFECTS.includes(effect)) yield notSupported(child(path, "effect"), effect, TAINT_EFFECTS);
}
