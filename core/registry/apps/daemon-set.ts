/**
 * DaemonSet (apps/v1): one pod of a template on every node that fits.
 *
 * How often the template changed is counted in an annotation, where apps/v1 keeps what used to be spec.templateGeneration.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/daemon-set-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/v1/{defaults,conversion}.go, pkg/apis/apps/validation/validation.go
 */
import type { DaemonSet, DaemonSetStatus, DaemonSetUpdateStrategy } from "../../api/gen/apps.v1.ts";
import { child, type FieldError, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { atMost100Percent, countOrPercent, intOrPercent } from "../core/checks/int-or-percent.ts";
import { immutable, nonNegative } from "../core/checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings, validatePodTemplate } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { isEmptySelector, MISMATCH, parsedSelector, validateCollisions, validateCounts, validateRunsForever } from "./workload.ts";

const TEMPLATE_GENERATION = "deprecated.daemonset.template.generation";
const TEMPLATE = "spec.template";

export const daemonSets = defineResource<DaemonSet>({
  group: "apps", version: "v1", kind: "DaemonSet", plural: "daemonsets",

  defaults({ spec }) {
    defaultPodTemplate((spec.template ??= {}));
    const strategy = (spec.updateStrategy ??= {});
    strategy.type ||= "RollingUpdate";
    if (strategy.type === "RollingUpdate") {
      strategy.rollingUpdate ??= {};
      strategy.rollingUpdate.maxUnavailable ??= 1;
      strategy.rollingUpdate.maxSurge ??= 0;
    }
    spec.revisionHistoryLimit ??= 10;
  },
  prepareForCreate(set) {
    set.status = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
    setTemplateGeneration(set, Math.max(1, templateGeneration(set)));
    dropDisabledTemplateFields(set.spec.template);
  },
  prepareForUpdate(next, old) {
    dropDisabledTemplateFields(next.spec.template, old.spec.template);
    setTemplateGeneration(next, templateGeneration(old) + (semanticEqual(next.spec.template, old.spec.template) ? 0 : 1));
  },

  *validate({ spec }, old) {
    const allowInvalidValues = old !== undefined && validateLabelSelector(old.spec.selector, "").length > 0;
    yield* validateLabelSelector(spec.selector, "spec.selector", { allowInvalidValues });
    const labels = spec.template.metadata?.labels;
    if (parsedSelector(spec.selector)?.matches(labels) === false) yield invalid(child(TEMPLATE, "metadata", "labels"), labels ?? null, MISMATCH);
    if (spec.selector && isEmptySelector(spec.selector)) yield invalid("spec.selector", spec.selector, "empty selector is invalid for daemonset");
    yield* validatePodTemplate(TEMPLATE, spec.template, old?.spec.template);
    yield* validateRunsForever(TEMPLATE, spec.template, "DaemonSet");
    yield* nonNegative("spec.minReadySeconds", spec.minReadySeconds);
    yield* validateUpdateStrategy("spec.updateStrategy", spec.updateStrategy ?? {});
    yield* nonNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit);
  },
  validateUpdate: (next, old) => immutable("spec.selector", next.spec.selector, old.spec.selector),
  *warnings(next, old) { if (!old || templateGeneration(next) !== templateGeneration(old)) yield* templateWarnings(TEMPLATE, next.spec.template); },

  subresources: {
    status: statusPart<DaemonSet>({
      prepare: (next, old) => setTemplateGeneration(next, templateGeneration(old)),
      *validate({ status }, old) {
        if (status) yield* validateStatus("status", status);
        yield* validateCollisions("status.collisionCount", status?.collisionCount, old.status?.collisionCount);
      },
    }),
  },
});

function templateGeneration({ metadata }: Readonly<DaemonSet>): number {
  const text = metadata.annotations?.[TEMPLATE_GENERATION] ?? "";
  return /^-?\d+$/.test(text) ? Number(text) : 0;
}

function setTemplateGeneration(set: DaemonSet, generation: number): void {
  set.metadata.annotations = { ...set.metadata.annotations, [TEMPLATE_GENERATION]: String(generation) };
}

function* validateUpdateStrategy(path: string, { type, rollingUpdate }: Readonly<DaemonSetUpdateStrategy>): Iterable<FieldError> {
  if (type === "OnDelete") return;
  if (type !== "RollingUpdate") {
    const shown = rollingUpdate ? { MaxUnavailable: rollingUpdate.maxUnavailable ?? 0, MaxSurge: rollingUpdate.maxSurge ?? 0 } : null;
    yield notSupported(path, { Type: type ?? "", RollingUpdate: shown }, ["RollingUpdate", "OnDelete"]);
    return;
  }
  const at = child(path, "rollingUpdate");
  if (!rollingUpdate) { yield required(at); return; }
  const { maxUnavailable = 0, maxSurge = 0 } = rollingUpdate;
  const [unavailablePath, surgePath] = [child(at, "maxUnavailable"), child(at, "maxSurge")];
  yield* intOrPercent(unavailablePath, maxUnavailable);
  yield* intOrPercent(surgePath, maxSurge);
  yield* atMost100Percent(unavailablePath, maxUnavailable);
  yield* atMost100Percent(surgePath, maxSurge);
  const [mayMiss, mayExceed] = [countOrPercent(maxUnavailable) !== 0, countOrPercent(maxSurge) !== 0];
  if (mayMiss && mayExceed) yield invalid(surgePath, maxSurge, "may not be set when maxUnavailable is non-zero");
  else if (!mayMiss && !mayExceed) yield required(unavailablePath, "cannot be 0 when maxSurge is 0");
}

function validateStatus(path: string, status: Readonly<DaemonSetStatus>): Iterable<FieldError> {
  const { currentNumberScheduled, numberMisscheduled, desiredNumberScheduled, numberReady, observedGeneration, updatedNumberScheduled, numberAvailable, numberUnavailable, collisionCount } = status;
  return validateCounts(path, {
    currentNumberScheduled, numberMisscheduled, desiredNumberScheduled, numberReady, observedGeneration, updatedNumberScheduled, numberAvailable, numberUnavailable, collisionCount,
  });
}
