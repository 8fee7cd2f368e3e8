/**
 * StatefulSet (apps/v1): numbered pods, each with a name and volumes of its own.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/stateful-set-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/statefulset/strategy.go, pkg/apis/apps/{v1/defaults,v1/conversion,validation/validation}.go
 */
import { child, type FieldError, forbidden, index, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { RollingUpdateStatefulSetStrategy, StatefulSet, StatefulSetSpec } from "../../api/gen/apps.v1.ts";
import type { PodTemplateSpec, Volume } from "../../api/gen/core.v1.ts";
import { dns1123Label } from "../../api/meta/names.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { isDns1123Label, nonNegative } from "../core/checks/values.ts";
import { defaultClaim } from "../core/persistent-volume-claim/defaults.ts";
import { validateClaimSpec } from "../core/persistent-volume-claim/validation.ts";
import { claimWarnings } from "../core/persistent-volume-claim/warnings.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings, validatePodTemplate, validateTemplateMeta } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource, type Resource } from "../generic/resource.ts";
import { countsNonNegative, countsWithin, notDecremented } from "./counts.ts";
import { replicasView } from "./replicas-view.ts";
import { atMost100Percent, countOrPercent, isZero } from "./rollout.ts";
import { matcherOf, matchesTemplate, requiredSelector, runsForEver } from "./selected-template.ts";
import { repeats } from "../../api/meta/linear.ts";

const TEMPLATE = "spec.template";
const CLAIM_POLICIES = ["Retain", "Delete"];
const MUTABLE: readonly (keyof StatefulSetSpec)[] = [
  "replicas", "template", "updateStrategy", "minReadySeconds", "ordinals", "revisionHistoryLimit", "persistentVolumeClaimRetentionPolicy",
];

/** `maxUnavailable`: of an update several pods may be missing at once, where MaxUnavailableStatefulSet is switched on. */
export function statefulSetDefinition({ maxUnavailable }: { readonly maxUnavailable: boolean }): Resource<StatefulSet> {
  return defineResource<StatefulSet>({
    group: "apps", version: "v1", kind: "StatefulSet", plural: "statefulsets",
    validateName: dns1123Label,

    defaults({ spec }) {
      defaultPodTemplate(spec.template);
      for (const claim of spec.volumeClaimTemplates ?? []) {
        claim.apiVersion = "v1";
        claim.kind = "PersistentVolumeClaim";
        defaultClaim(claim);
      }
      spec.podManagementPolicy ||= "OrderedReady";
      const strategy = (spec.updateStrategy ??= {});
      if (!strategy.type) {
        strategy.type = "RollingUpdate";
        strategy.rollingUpdate ??= {};
      }
      if (strategy.type === "RollingUpdate" && strategy.rollingUpdate) {
        strategy.rollingUpdate.partition ??= 0;
        if (maxUnavailable) strategy.rollingUpdate.maxUnavailable ??= 1;
      }
      const retention = (spec.persistentVolumeClaimRetentionPolicy ??= {});
      retention.whenDeleted ||= "Retain";
      retention.whenScaled ||= "Retain";
      spec.replicas ??= 1;
      spec.revisionHistoryLimit ??= 10;
    },

    prepareForCreate(set) {
      if (!maxUnavailable) dropMaxUnavailable(set);
      dropDisabledTemplateFields(set.spec.template);
    },
    prepareForUpdate(next, old) {
      if (!maxUnavailable) dropMaxUnavailable(next, old);
      dropDisabledTemplateFields(next.spec.template, old.spec.template);
    },

    validate: ({ spec }, old) => validateSpec(spec, old?.spec),
    *validateUpdate(next, old) {
      const same = Object.fromEntries(MUTABLE.map((name) => [name, undefined]));
      if (!semanticEqual({ ...next.spec, ...same }, { ...old.spec, ...same }))
        yield forbidden("spec", "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden");
    },
    *warnings({ metadata, spec }, old) {
      if (!old || metadata.generation !== old.metadata.generation) yield* templateWarnings(TEMPLATE, spec.template);
      const claims = "spec.volumeClaimTemplates";
      for (const [i, claim] of (spec.volumeClaimTemplates ?? []).entries()) yield* claimWarnings(old ? child(index(claims, i), "Spec") : index(claims, i), claim.spec);
      if ((spec.revisionHistoryLimit ?? 0) < 0) yield "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
    },

    subresources: {
      status: statusPart<StatefulSet>({
        *validate(next, old) {
          const status = next.status ?? { replicas: 0, availableReplicas: 0 };
          yield* countsNonNegative("status", status, [
            "replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas", "observedGeneration", "collisionCount",
          ]);
          yield* countsWithin("status", status, [
            ...["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"].map((part) => [part, "replicas", "cannot be greater than status.replicas"] as const),
            ["availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"],
          ]);
          yield* notDecremented("status.collisionCount", status.collisionCount, old.status?.collisionCount);
        },
      }),
      scale: replicasView<StatefulSet>(),
    },
  });
}

/** Sets that have it already keep it. */
function dropMaxUnavailable({ spec }: StatefulSet, old?: Readonly<StatefulSet>): void {
  if (old?.spec.updateStrategy?.rollingUpdate?.maxUnavailable === undefined) delete spec.updateStrategy?.rollingUpdate?.maxUnavailable;
}

/** Of an update: what was stored before it was forbidden, and cannot be changed any more, is let pass. */
function* validateSpec(spec: Readonly<StatefulSetSpec>, old: Readonly<StatefulSetSpec> | undefined): Iterable<FieldError> {
  const skipTemplate = old !== undefined && [...specErrors("", old, { isUpdate: true, skipTemplate: false, old })].length > 0;
  yield* specErrors("spec", spec, { isUpdate: old !== undefined, skipTemplate, old });
}

interface SpecRules { readonly isUpdate: boolean; readonly skipTemplate: boolean; readonly old?: Readonly<StatefulSetSpec> | undefined }

function* specErrors(path: string, spec: Readonly<StatefulSetSpec>, { isUpdate, skipTemplate, old }: SpecRules): Iterable<FieldError> {
  const { podManagementPolicy, serviceName, template, selector } = spec;
  const at = (name: string): string => child(path, name);
  if (!podManagementPolicy) yield required(at("podManagementPolicy"));
  else if (podManagementPolicy !== "OrderedReady" && podManagementPolicy !== "Parallel")
    yield invalid(at("podManagementPolicy"), podManagementPolicy, "must be 'OrderedReady' or 'Parallel'");
  yield* validateStrategy(at("updateStrategy"), spec);
  const retention = spec.persistentVolumeClaimRetentionPolicy;
  for (const when of ["whenDeleted", "whenScaled"] as const)
    if (retention && !CLAIM_POLICIES.includes(retention[when] ?? "")) yield notSupported(child(at("persistentVolumeClaimRetentionPolicy"), when), retention[when] ?? "", CLAIM_POLICIES);
  if (!isUpdate)
    for (const [i, claim] of (spec.volumeClaimTemplates ?? []).entries()) yield* validateClaimSpec(child(index(at("volumeClaimTemplates"), i), "spec"), claim.spec ?? {});
  yield* nonNegative(at("replicas"), spec.replicas);
  yield* nonNegative(at("minReadySeconds"), spec.minReadySeconds);
  yield* nonNegative(at("ordinals.start"), spec.ordinals?.start);
  if (!isUpdate && serviceName) yield* isDns1123Label(at("serviceName"), serviceName);
  yield* requiredSelector(at("selector"), selector, "statefulset");

  const matcher = matcherOf(selector);
  if (matcher) yield* validateTemplate(at("template"), templateOfOne(spec, template), { matcher, skipTemplate, old: old?.template });
  else yield invalid(at("selector"), selector, "");
  yield* runsForEver(at("template"), template, "StatefulSet");
}

function* validateTemplate(path: string, template: Readonly<PodTemplateSpec>, { matcher, skipTemplate, old }: {
  readonly matcher: NonNullable<ReturnType<typeof matcherOf>>; readonly skipTemplate: boolean; readonly old: Readonly<PodTemplateSpec> | undefined;
}): Iterable<FieldError> {
  yield* matchesTemplate(path, matcher, template);
  if (!skipTemplate) yield* validatePodTemplate(path, template, old);
  yield* validateTemplateMeta(path, template, old); // once more
}

/** What the pods will be made from: host name and subdomain come from the set, volumes of claims have the claims' names. */
function templateOfOne({ volumeClaimTemplates = [] }: Readonly<StatefulSetSpec>, template: Readonly<PodTemplateSpec>): Readonly<PodTemplateSpec> {
  const { hostname: _, subdomain: __, volumes = [], ...rest } = template.spec ?? { containers: [] };
  const claims: Volume[] = volumeClaimTemplates.map(({ metadata: { name } }) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const names = new Set(claims.map(({ name }) => name)), cameBefore = repeats<string>();
  const unique = claims.filter(({ name }) => !cameBefore(name));
  const all = [...unique, ...volumes.filter(({ name }) => !names.has(name))];
  return { ...template, spec: { ...rest, ...(all.length > 0 ? { volumes: all } : {}) } };
}

function* validateStrategy(path: string, { updateStrategy: strategy = {} }: Readonly<StatefulSetSpec>): Iterable<FieldError> {
  const at = child(path, "rollingUpdate");
  const { type, rollingUpdate } = strategy;
  if (!type) yield required(path);
  else if (type === "OnDelete") {
    if (rollingUpdate) yield invalid(at, { Partition: rollingUpdate.partition ?? 0, MaxUnavailable: rollingUpdate.maxUnavailable ?? null }, "only allowed for updateStrategy 'RollingUpdate'");
  } else if (type === "RollingUpdate") {
    if (rollingUpdate) yield* validateRolling(at, rollingUpdate);
  } else yield invalid(path, { Type: type, RollingUpdate: rollingUpdate ? internalForm("io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy", rollingUpdate) : null }, "must be 'RollingUpdate' or 'OnDelete'");
}

function* validateRolling(path: string, { partition, maxUnavailable }: Readonly<RollingUpdateStatefulSetStrategy>): Iterable<FieldError> {
  yield* nonNegative(child(path, "partition"), partition);
  if (maxUnavailable === undefined) return;
  const at = child(path, "maxUnavailable");
  yield* countOrPercent(at, maxUnavailable);
  if (isZero(maxUnavailable)) yield invalid(at, maxUnavailable, "cannot be 0");
  yield* atMost100Percent(at, maxUnavailable);
}
