/**
 * StatefulSet (apps/v1): pods that keep their name, their volumes and their turn.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/stateful-set-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/statefulset/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go
 */
import type { StatefulSet, StatefulSetSpec, StatefulSetStatus, StatefulSetUpdateStrategy } from "../../api/gen/apps.v1.ts";
import type { PodTemplateSpec } from "../../api/gen/core.v1.ts";
import { child, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { dns1123Label } from "../../api/meta/names.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { atMost100Percent, countOrPercent, intOrPercent } from "../core/checks/int-or-percent.ts";
import { isDns1123Label, nonNegative } from "../core/checks/values.ts";
import { defaultClaim } from "../core/persistent-volume-claim/defaults.ts";
import { validateClaimSpec } from "../core/persistent-volume-claim/validation.ts";
import { claimWarnings } from "../core/persistent-volume-claim/warnings.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings, validatePodTemplate } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { parsedSelector, replicasView, validateAtMost, validateCollisions, validateCounts, validateRunsForever, validateSelected, validateSelector } from "./workload.ts";

/** What an update may change. */
const MUTABLE = ["replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy"] as const;
const FIXED = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";

export const statefulSets = defineResource<StatefulSet>({
  group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets",
  validateName: dns1123Label,

  defaults({ spec }) {
    defaultPodTemplate((spec.template ??= {}));
    spec.podManagementPolicy ||= "OrderedReady";
    const strategy = (spec.updateStrategy ??= {});
    if (!strategy.type) {
      strategy.type = "RollingUpdate";
      strategy.rollingUpdate ??= {};
    }
    if (strategy.type === "RollingUpdate" && strategy.rollingUpdate) strategy.rollingUpdate.partition ??= 0;
    const retention = (spec.persistentVolumeClaimRetentionPolicy ??= {});
    retention.whenDeleted ||= "Retain";
    retention.whenScaled ||= "Retain";
    spec.replicas ??= 1;
    spec.revisionHistoryLimit ??= 10;
    for (const claim of spec.volumeClaimTemplates ?? []) {
      claim.apiVersion ||= "v1";
      claim.kind ||= "PersistentVolumeClaim";
      defaultClaim(claim);
    }
  },
  prepareForCreate(set) {
    set.status = { replicas: 0, availableReplicas: 0 };
    dropMaxUnavailable(set.spec, undefined);
    dropDisabledTemplateFields(set.spec.template);
  },
  prepareForUpdate(next, old) {
    dropMaxUnavailable(next.spec, old.spec);
    dropDisabledTemplateFields(next.spec.template, old.spec.template);
  },

  validate: ({ spec }, old) => validateSpec("spec", spec, old?.spec),
  *validateUpdate(next, old) {
    const rest: Partial<StatefulSetSpec> = { ...next.spec };
    const before: Partial<StatefulSetSpec> = { ...old.spec };
    for (const field of MUTABLE) { delete rest[field]; delete before[field]; }
    if (!semanticEqual(rest, before)) yield forbidden("spec", FIXED);
  },
  *warnings(next, old) {
    if (next.metadata.generation !== old?.metadata.generation) yield* templateWarnings("spec.template", next.spec.template);
    for (const [i, claim] of (next.spec.volumeClaimTemplates ?? []).entries()) {
      const at = index("spec.volumeClaimTemplates", i);
      yield* claimWarnings(old ? child(at, "Spec") : at, claim.spec);
    }
    if ((next.spec.revisionHistoryLimit ?? 0) < 0) yield "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
  },

  subresources: {
    status: statusPart<StatefulSet>({
      *validate({ status }, old) {
        if (status) yield* validateStatus("status", status);
        yield* validateCollisions("status.collisionCount", status?.collisionCount, old.status?.collisionCount);
      },
    }),
    scale: replicasView<StatefulSet>(),
  },
});

/** How many may be missing at a time is behind a gate that is off. */
function dropMaxUnavailable(spec: StatefulSetSpec, old: Readonly<StatefulSetSpec> | undefined): void {
  if (spec.updateStrategy?.rollingUpdate && old?.updateStrategy?.rollingUpdate?.maxUnavailable === undefined) delete spec.updateStrategy.rollingUpdate.maxUnavailable;
}

function* validateSpec(path: string, spec: Readonly<StatefulSetSpec>, old: Readonly<StatefulSetSpec> | undefined): Iterable<FieldError> {
  const { podManagementPolicy, persistentVolumeClaimRetentionPolicy: retention, volumeClaimTemplates = [] } = spec;
  if (!podManagementPolicy) yield required(child(path, "podManagementPolicy"));
  else if (podManagementPolicy !== "OrderedReady" && podManagementPolicy !== "Parallel")
    yield invalid(child(path, "podManagementPolicy"), podManagementPolicy, "must be 'OrderedReady' or 'Parallel'");
  yield* validateUpdateStrategy(child(path, "updateStrategy"), spec.updateStrategy ?? {});
  for (const when of ["whenDeleted", "whenScaled"] as const) {
    const policy = retention?.[when] ?? "";
    if (retention && policy !== "Retain" && policy !== "Delete") yield notSupported(child(path, "persistentVolumeClaimRetentionPolicy", when), policy, ["Retain", "Delete"]);
  }
  if (!old) for (const [i, claim] of volumeClaimTemplates.entries()) yield* validateClaimSpec(child(index(child(path, "volumeClaimTemplates"), i), "spec"), claim.spec ?? {});
  yield* nonNegative(child(path, "replicas"), spec.replicas);
  yield* nonNegative(child(path, "minReadySeconds"), spec.minReadySeconds);
  yield* nonNegative(child(path, "ordinals.start"), spec.ordinals?.start);
  if (!old && spec.serviceName) yield* isDns1123Label(child(path, "serviceName"), spec.serviceName);
  yield* validateTemplate(path, spec, old);
}

function* validateTemplate(path: string, spec: Readonly<StatefulSetSpec>, old: Readonly<StatefulSetSpec> | undefined): Iterable<FieldError> {
  const { selector } = spec;
  const [selectorPath, templatePath] = [child(path, "selector"), child(path, "template")];
  yield* validateSelector(selectorPath, selector, "statefulset");
  const parsed = parsedSelector(selector);
  if (!parsed) yield invalid(selectorPath, selector, "");
  else {
    yield* validateSelected(templatePath, spec.template, selector, parsed);
    const template = withClaims(spec);
    const before = old && withClaims(old);
    const wasInvalid = before !== undefined && !validatePodTemplate("", before, before)[Symbol.iterator]().next().done;
    if (!wasInvalid) yield* validatePodTemplate(templatePath, template, before);
  }
  yield* validateRunsForever(templatePath, spec.template, "StatefulSet");
}

/** The template with what every pod is given on top: its host name, its volumes. */
function withClaims({ template, volumeClaimTemplates = [] }: Readonly<StatefulSetSpec>): Readonly<PodTemplateSpec> {
  const { spec } = template;
  if (!spec || (!spec.subdomain && !spec.hostname && volumeClaimTemplates.length === 0)) return template;
  const { hostname: _, subdomain: __, ...rest } = spec;
  if (volumeClaimTemplates.length === 0) return { ...template, spec: rest };
  const names = [...new Set(volumeClaimTemplates.map(({ metadata }) => metadata.name))];
  const claims = names.map((name) => ({ name, persistentVolumeClaim: { claimName: name } }));
  return { ...template, spec: { ...rest, volumes: [...claims, ...(spec.volumes ?? []).filter(({ name }) => !names.includes(name))] } };
}

function* validateUpdateStrategy(path: string, { type, rollingUpdate }: Readonly<StatefulSetUpdateStrategy>): Iterable<FieldError> {
  if (!type) { yield required(path); return; }
  const shown = rollingUpdate ? { Partition: rollingUpdate.partition ?? 0, MaxUnavailable: rollingUpdate.maxUnavailable ?? null } : null;
  if (type === "OnDelete") {
    if (rollingUpdate) yield invalid(child(path, "rollingUpdate"), shown, "only allowed for updateStrategy 'RollingUpdate'");
  } else if (type !== "RollingUpdate") yield invalid(path, { Type: type, RollingUpdate: shown }, "must be 'RollingUpdate' or 'OnDelete'");
  else if (rollingUpdate) {
    const at = child(path, "rollingUpdate");
    yield* nonNegative(child(at, "partition"), rollingUpdate.partition);
    const { maxUnavailable } = rollingUpdate;
    if (maxUnavailable === undefined) return;
    const unavailablePath = child(at, "maxUnavailable");
    yield* intOrPercent(unavailablePath, maxUnavailable);
    if (countOrPercent(maxUnavailable) === 0) yield invalid(unavailablePath, maxUnavailable, "cannot be 0");
    yield* atMost100Percent(unavailablePath, maxUnavailable);
  }
}

function* validateStatus(path: string, status: Readonly<StatefulSetStatus>): Iterable<FieldError> {
  const { replicas = 0, readyReplicas = 0, currentReplicas = 0, updatedReplicas = 0, availableReplicas = 0, observedGeneration, collisionCount } = status;
  yield* validateCounts(path, { replicas, readyReplicas, currentReplicas, updatedReplicas, availableReplicas, observedGeneration, collisionCount });
  yield* validateAtMost(path, { readyReplicas, currentReplicas, updatedReplicas, availableReplicas }, replicas, "cannot be greater than status.replicas");
  yield* validateAtMost(path, { availableReplicas }, readyReplicas, "cannot be greater than status.readyReplicas");
}
