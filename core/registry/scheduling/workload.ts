/**
 * Workload and PodGroup (scheduling.k8s.io/v1alpha2): which pods are scheduled together, and how. A Workload has templates of groups, a PodGroup is one of them at work; pods name it in
 * spec.schedulingGroup. Alpha: there where GenericWorkload is switched on. What is in their specs does not change.
 *
 * Source: kubernetes v1.36 pkg/registry/scheduling/{workload,podgroup}/strategy.go, pkg/apis/scheduling/{validation/validation.go,v1alpha2/zz_generated.validations.go}
 */
import type { PodGroup, PodGroupSpec, PodGroupTemplate, TypedLocalObjectReference, Workload } from "../../api/gen/scheduling.v1alpha2.ts";
import { child, duplicate, FIELD_IMMUTABLE, type FieldError, forbidden, index, invalid, required, tooMany } from "../../api/meta/field-error.ts";
import { longName, pathSegmentName, shortName } from "../../api/meta/names.ts";
import { validateCommonConditions } from "../core/checks/conditions.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { problems } from "../core/checks/values.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource, type Resource } from "../generic/resource.ts";
import { GATED, named, validatePolicy, validateShared } from "./group-spec.ts";

const GROUP = { group: "scheduling.k8s.io", version: "v1alpha2" };
const TEMPLATES_MAX = 8;
const CLAIMS_MAX = 4;

type Gates = ReadonlySet<string>;
type Gated = { [field in keyof typeof GATED]?: unknown };

/** `gates`: those that are switched on. */
export function workloadDefinition(gates: Gates): Resource<Workload> {
  return defineResource<Workload>({
    ...GROUP, kind: "Workload", plural: "workloads", generation: false,
    prepareForCreate: ({ spec }) => dropFromTemplates(gates, spec.podGroupTemplates, []),
    prepareForUpdate: (next, old) => dropFromTemplates(gates, next.spec.podGroupTemplates, old.spec.podGroupTemplates),
    *validate({ spec }, old) {
      if (old) return; // nothing of it changes
      if (spec.controllerRef) yield* validateController("spec.controllerRef", spec.controllerRef);
      const templates = spec.podGroupTemplates ?? []; // null, where none were sent
      yield* validateCount(templates);
      if (templates.length === 0 || templates.length > TEMPLATES_MAX) return;
      yield* uniqueNames("spec.podGroupTemplates", templates.map(asShown));
      for (const [i, template] of templates.entries()) yield* validateTemplate(index("spec.podGroupTemplates", i), template);
    },
    *validateUpdate({ spec }, { spec: old }) {
      yield* unchanged("spec.controllerRef", spec.controllerRef, old.controllerRef);
      if (semanticEqual(spec.podGroupTemplates, old.podGroupTemplates)) return;
      yield invalid("spec.podGroupTemplates", null, FIELD_IMMUTABLE);
      yield* validateCount(spec.podGroupTemplates ?? []);
    },
  });
}

function* validateCount(templates: readonly PodGroupTemplate[]): Iterable<FieldError> {
  if (templates.length > TEMPLATES_MAX) yield tooMany("spec.podGroupTemplates", templates.length, TEMPLATES_MAX);
  if (templates.length === 0) yield required("spec.podGroupTemplates");
}

function* validateController(path: string, { apiGroup, kind, name }: Readonly<TypedLocalObjectReference>): Iterable<FieldError> {
  if (apiGroup) yield* problems(child(path, "apiGroup"), apiGroup, longName(apiGroup));
  yield* named(child(path, "kind"), kind, pathSegmentName);
  yield* named(child(path, "name"), name, pathSegmentName);
}

function* validateTemplate(path: string, template: Readonly<PodGroupTemplate>): Iterable<FieldError> {
  yield* named(child(path, "name"), template.name, shortName);
  yield* validatePolicy(child(path, "schedulingPolicy"), template.schedulingPolicy);
  yield* validateShared(path, template);
}

/** `gates`: those that are switched on. */
export function podGroupDefinition(gates: Gates): Resource<PodGroup> {
  return defineResource<PodGroup>({
    ...GROUP, kind: "PodGroup", plural: "podgroups", generation: false,
    prepareForCreate(group) {
      group.status = {};
      dropGated(gates, group.spec as Gated, undefined);
    },
    /** The default comes back with each read. */
    onceStored: (group) => (group.spec.disruptionMode ? group : { ...group, spec: { ...group.spec, disruptionMode: "Pod" } }),
    prepareForUpdate: (next, old) => dropGated(gates, next.spec as Gated, old.spec as Gated),
    *validate({ spec }, old) {
      if (old) return; // nothing of it changes
      if (spec.podGroupTemplateRef) yield* validateReference("spec.podGroupTemplateRef", spec.podGroupTemplateRef);
      yield* validatePolicy("spec.schedulingPolicy", spec.schedulingPolicy);
      yield* validateShared("spec", spec);
    },
    *validateUpdate({ spec }, { spec: old }) {
      for (const field of ["podGroupTemplateRef", "schedulingPolicy"] as const) yield* unchanged(child("spec", field), spec[field], old[field]);
      for (const [field, gate] of Object.entries(GATED) as [keyof Gated, string][]) yield* unchangedGated(child("spec", field), spec[field], old[field], field === "resourceClaims" || gates.has(gate));
    },
    subresources: { status: statusPart<PodGroup>({
      keepsMetadata: true,
      prepare(next, old) { if (!gates.has(GATED.resourceClaims) && !old.spec.resourceClaims?.length) delete next.status?.resourceClaimStatuses; },
      validate: validateStatus,
    }) },
  });
}

function* validateReference(path: string, { workload }: NonNullable<PodGroupSpec["podGroupTemplateRef"]>): Iterable<FieldError> {
  if (!workload) { yield invalid(path, "", "must specify one of: `workload`"); return; }
  yield* named(child(path, "workload", "workloadName"), workload.workloadName, longName);
  yield* named(child(path, "workload", "podGroupTemplateName"), workload.podGroupTemplateName, shortName);
}

function* unchanged(path: string, next: unknown, old: unknown): Iterable<FieldError> {
  if (!semanticEqual(next, old)) yield invalid(path, null, FIELD_IMMUTABLE);
}

/** What is there though its gate is off is of a server that had it on: it may be taken out, not changed. */
function* unchangedGated(path: string, next: unknown, old: unknown, isOn: boolean): Iterable<FieldError> {
  if (isOn) yield* unchanged(path, next, old);
  else if (next !== undefined && !semanticEqual(next, old)) yield forbidden(path, "");
}

function* validateStatus({ spec, status = {} }: Readonly<PodGroup>, old: Readonly<PodGroup>): Iterable<FieldError> {
  yield* validateCommonConditions("status.conditions", status.conditions);
  const path = "status.resourceClaimStatuses", { resourceClaimStatuses: statuses = [] } = status;
  const names = new Set((spec.resourceClaims ?? []).map(({ name }) => name));
  for (const [i, { name }] of statuses.entries()) if (!names.has(name)) yield invalid(child(index(path, i), "name"), name, "must match the name of an entry in `spec.resourceClaims`");
  if (semanticEqual(statuses, old.status?.resourceClaimStatuses)) return;
  if (statuses.length > CLAIMS_MAX) { yield tooMany(path, statuses.length, CLAIMS_MAX); return; }
  yield* uniqueNames(path, statuses);
  for (const [i, { name, resourceClaimName: claim }] of statuses.entries()) {
    const before = old.status?.resourceClaimStatuses?.find((one) => one.name === name)?.resourceClaimName;
    if (claim !== undefined && claim !== before) yield* problems(child(index(path, i), "resourceClaimName"), claim, longName(claim));
  }
}

/** As JSON has it: the constraints are there though there are none. */
function asShown({ name, schedulingPolicy, schedulingConstraints, ...rest }: Readonly<PodGroupTemplate>) { return { name, schedulingPolicy, schedulingConstraints: schedulingConstraints ?? null, ...rest }; }

/** Each of them that has a name of one before it. */
function* uniqueNames(path: string, all: readonly { readonly name: string }[]): Iterable<FieldError> {
  for (const [i, one] of all.entries()) if (all.findIndex(({ name }) => name === one.name) < i) yield duplicate(index(path, i), one);
}

function dropFromTemplates(gates: Gates, templates: PodGroupTemplate[] | undefined, old: readonly PodGroupTemplate[] | undefined): void {
  for (const [i, template] of (templates ?? []).entries()) dropGated(gates, template as Gated, old?.[i] as Gated | undefined);
}

/** Mutates `spec`. */
function dropGated(gates: Gates, spec: Gated, old: Readonly<Gated> | undefined): void {
  for (const [field, gate] of Object.entries(GATED) as [keyof Gated, string][]) if (!gates.has(gate) && old?.[field] === undefined) delete spec[field];
}
