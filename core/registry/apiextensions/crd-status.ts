/**
 * What a CustomResourceDefinition's status should be: which of its names it gets, and the conditions that say so. Pure.
 *
 *   names nobody else in the group has are accepted → NamesAccepted → Established, once and for all
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/controller/{status/naming,establish/establishing,nonstructuralschema/nonstructuralschema,apiapproval/apiapproval}_controller.go
 */
import type { CustomResourceDefinition, CustomResourceDefinitionCondition, CustomResourceDefinitionNames, CustomResourceDefinitionStatus } from "../../api/gen/apiextensions.v1.ts";
import { formatFieldErrors, invalid } from "../../api/meta/field-error.ts";
import { goQuote } from "../../api/meta/go-quote.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { caBundleProblem } from "../admissionregistration/webhook-client.ts";
import { approvalCondition } from "./approval.ts";
import { inconvertible } from "./schema.ts";
import { structuralErrors } from "./structural.ts";

type Condition = CustomResourceDefinitionCondition;
type Definition = Readonly<CustomResourceDefinition>;

/** Names that other definitions of the group have. */
export interface TakenNames { readonly resources: ReadonlySet<string>; readonly kinds: ReadonlySet<string> }

export function namesTaken(others: Iterable<Definition>): TakenNames {
  const [resources, kinds] = [new Set<string>(), new Set<string>()];
  for (const { status } of others) {
    const { plural = "", singular = "", shortNames = [], kind = "", listKind = "" } = (status?.acceptedNames ?? {}) as Partial<CustomResourceDefinitionNames>;
    for (const name of [plural, singular, ...shortNames]) resources.add(name);
    for (const name of [kind, listKind]) kinds.add(name);
  }
  return { resources, kinds };
}

/** `taken`: by the others and by this one itself. */
export function planStatus(crd: Definition, taken: TakenNames, nowMs: number): CustomResourceDefinitionStatus {
  const before = statusOf(crd);
  let status = before;
  const { acceptedNames, conflict } = acceptNames(crd.spec.names, before.acceptedNames, taken);
  if (!Bun.deepEquals(trimmed(acceptedNames), trimmed(before.acceptedNames))) status = { ...status, acceptedNames };
  status = withCondition(status, conflict ?? { type: "NamesAccepted", status: "True", reason: "NoConflicts", message: "no conflicts found" }, nowMs);
  if (!findCondition(status, "Established"))
    status = withCondition(status, { type: "Established", status: "False", reason: "NotAccepted", message: "not all names are accepted" }, nowMs);
  if (isTrue(status, "NamesAccepted") && !isTrue(status, "Established"))
    status = withCondition(status, established(crd), nowMs);
  const violations = violationsOf(crd);
  status = violations ? withCondition(status, violations, nowMs) : withoutCondition(status, "NonStructuralSchema");
  const approval = approvalCondition(crd);
  return approval ? withCondition(status, approval, nowMs) : status;
}

/** What nobody could convert is not served: a webhook whose CA bundle cannot be read is waited for. */
function established({ spec: { conversion } }: Definition): Condition {
  const type = "Established";
  if (caBundleProblem(conversion?.webhook?.clientConfig?.caBundle) !== undefined) return { type, status: "False", reason: "InvalidCABundle", message: "The conversion webhook CABundle is invalid" };
  return { type, status: "True", reason: "InitialNamesAccepted", message: "the initial names have been accepted" };
}

export function statusOf({ status }: Definition): CustomResourceDefinitionStatus {
  return status ?? { conditions: [], acceptedNames: { plural: "", kind: "" }, storedVersions: [] };
}

/** Without lists that are empty: they say nothing. */
function trimmed(names: Readonly<Partial<CustomResourceDefinitionNames>> | undefined): object {
  return Object.fromEntries(Object.entries(names ?? {}).filter(([, value]) => value !== undefined && value !== "" && !(Array.isArray(value) && value.length === 0)));
}

function acceptNames(wanted: CustomResourceDefinitionNames, had: Partial<CustomResourceDefinitionNames>, { resources, kinds }: TakenNames) {
  const acceptedNames: CustomResourceDefinitionNames = { plural: "", kind: "", ...had, categories: wanted.categories };
  let conflict: Condition | undefined;
  const check = (name: "plural" | "singular" | "kind" | "listKind", used: ReadonlySet<string>): void => {
    const asked = wanted[name] ?? "";
    if (asked !== (had[name] ?? "") && used.has(asked)) conflict = refused(name, inUse(asked));
    else acceptedNames[name] = asked;
  };
  check("plural", resources);
  check("singular", resources);
  const kept = new Set(had.shortNames);
  const conflicts = (wanted.shortNames ?? []).filter((name) => !kept.has(name) && resources.has(name)).map(inUse);
  if (conflicts.length > 0) conflict = refused("shortNames", conflicts.length > 1 ? `[${[...new Set(conflicts)].join(", ")}]` : conflicts[0]!);
  else acceptedNames.shortNames = wanted.shortNames;
  check("kind", kinds);
  check("listKind", kinds);
  return { acceptedNames, conflict };
}

function inUse(name: string): string { return `${goQuote(name)} is already in use`; }

function refused(name: string, message: string): Condition {
  return { type: "NamesAccepted", status: "False", reason: `${name[0]!.toUpperCase()}${name.slice(1)}Conflict`, message };
}

/** What was found of a spec. It is asked for each time a status is planned, and specs are not changed in place. */
const known = new WeakMap<Definition["spec"], { readonly violations: Condition | undefined }>();

/** What keeps the schemas from being structural; undefined for nothing. */
function violationsOf({ spec }: Definition): Condition | undefined {
  let found = known.get(spec);
  if (!found) known.set(spec, (found = { violations: findViolations(spec) }));
  return found.violations;
}

function findViolations(spec: Definition["spec"]): Condition | undefined {
  const type = "NonStructuralSchema";
  const errors = spec.preserveUnknownFields ? [invalid("spec.preserveUnknownFields", true, "must be false")] : [];
  for (const [i, { name, schema }] of spec.versions.entries()) {
    if (!schema?.openAPIV3Schema) continue;
    const unreadable = inconvertible(schema.openAPIV3Schema);
    if (unreadable !== undefined) return { type, status: "Unknown", reason: "StructuralError", message: `failed to check validation schema for version ${name}: ${unreadable}` };
    errors.push(...structuralErrors(`spec.versions[${i}].schema.openAPIV3Schema`, schema.openAPIV3Schema));
  }
  return errors.length === 0 ? undefined : { type, status: "True", reason: "Violations", message: formatFieldErrors(errors) };
}

export function findCondition(status: Readonly<CustomResourceDefinitionStatus> | undefined, type: string): Readonly<Condition> | undefined {
  return (status?.conditions ?? []).find((condition) => condition.type === type);
}

export function isTrue(status: Readonly<CustomResourceDefinitionStatus> | undefined, type: string): boolean { return findCondition(status, type)?.status === "True"; }

/** The same status if it says so already. */
export function withCondition(status: CustomResourceDefinitionStatus, condition: Condition, nowMs: number): CustomResourceDefinitionStatus {
  const before = findCondition(status, condition.type);
  if (before && before.status === condition.status && before.reason === condition.reason && before.message === condition.message) return status;
  const lastTransitionTime = before?.status === condition.status && before.lastTransitionTime ? before.lastTransitionTime : timestamp(nowMs);
  const next: Condition = { ...before, ...condition, lastTransitionTime };
  const conditions = status.conditions ?? [];
  return { ...status, conditions: before ? conditions.map((one) => (one === before ? next : one)) : [...conditions, next] };
}

function withoutCondition(status: CustomResourceDefinitionStatus, type: string): CustomResourceDefinitionStatus {
  return findCondition(status, type) ? { ...status, conditions: status.conditions.filter((condition) => condition.type !== type) } : status;
}
