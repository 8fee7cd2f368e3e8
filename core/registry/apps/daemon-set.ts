/**
 * DaemonSet (apps/v1): a pod on every node that fits.
 *
 * How often the template has changed is kept in an annotation, where apps/v1 has put what was a field once.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/daemon-set-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/daemonset/strategy.go, pkg/apis/apps/{v1/defaults,v1/conversion,validation/validation}.go
 */
import { child, type FieldError, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet } from "../../api/gen/apps.v1.ts";
import { validateLabelSelector } from "../../api/meta/label-selector.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { immutable, nonNegative } from "../core/checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings, validatePodTemplate } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { countsNonNegative, notDecremented } from "./counts.ts";
import { type NumberAnnotation, numberIn, setNumber } from "./number-annotation.ts";
import { atMost100Percent, countOrPercent, isZero } from "./rollout.ts";
import { isEmptySelector, matcherOf, runsForEver } from "./selected-template.ts";

const TEMPLATE_GENERATION: NumberAnnotation = { kind: "DaemonSet", name: "deprecated.daemonset.template.generation" };
const TEMPLATE = "spec.template";

export const daemonSets = defineResource<DaemonSet>({
  group: "apps", version: "v1", kind: "DaemonSet", plural: "daemonsets",

  defaults(set) {
    setNumber(set, TEMPLATE_GENERATION, templateGeneration(set)); // by whoever makes the set, and so theirs
    const { spec } = set;
    defaultPodTemplate(spec.template);
    const strategy = (spec.updateStrategy ??= {});
    strategy.type ||= "RollingUpdate";
    if (strategy.type === "RollingUpdate") {
      const rolling = (strategy.rollingUpdate ??= {});
      rolling.maxUnavailable ??= 1;
      rolling.maxSurge ??= 0;
    } else if (strategy.rollingUpdate) { // of no use, and shown as the server holds it: with a number for each
      strategy.rollingUpdate.maxUnavailable ??= 0;
      strategy.rollingUpdate.maxSurge ??= 0;
    }
    spec.revisionHistoryLimit ??= 10;
  },

  prepareForCreate(set) {
    const generation = templateGeneration(set);
    setNumber(set, TEMPLATE_GENERATION, generation < 1n ? 1n : generation);
    dropDisabledTemplateFields(set.spec.template);
  },
  prepareForUpdate(next, old) {
    dropDisabledTemplateFields(next.spec.template, old.spec.template);
    setNumber(next, TEMPLATE_GENERATION, templateGeneration(old) + (semanticEqual(next.spec.template, old.spec.template) ? 0n : 1n));
  },

  *validate({ spec }, old) {
    if (old) yield* immutable("spec.selector", spec.selector, old.spec.selector); // the first to be told
    yield* validateSpec("spec", spec, old?.spec);
  },
  *warnings(next, old) {
    if (!old || templateGeneration(next) !== templateGeneration(old)) yield* templateWarnings(TEMPLATE, next.spec.template);
  },

  subresources: {
    status: statusPart<DaemonSet>({
      prepare(next, old) { setNumber(next, TEMPLATE_GENERATION, templateGeneration(old)); },
      *validate({ status }, old) {
        yield* countsNonNegative("status", status ?? {}, [
          "currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration", "updatedNumberScheduled", "numberAvailable",
          "numberUnavailable", "collisionCount",
        ]);
        yield* notDecremented("status.collisionCount", status?.collisionCount, old.status?.collisionCount);
      },
    }),
  },
});

function templateGeneration(set: Readonly<DaemonSet>): bigint { return numberIn(set, TEMPLATE_GENERATION) ?? 0n; }

function* validateSpec(path: string, spec: Readonly<DaemonSetSpec>, old?: Readonly<DaemonSetSpec>): Iterable<FieldError> {
  const { template, selector } = spec;
  const allowInvalidValues = old !== undefined && validateLabelSelector(old.selector, "").length > 0;
  yield* validateLabelSelector(selector, child(path, "selector"), { allowInvalidValues });
  const labels = template.metadata?.labels;
  if (matcherOf(selector)?.matches(labels) === false) yield invalid(child(path, "template", "metadata", "labels"), labels ?? null, "`selector` does not match template `labels`");
  if (selector && isEmptySelector(selector)) yield invalid(child(path, "selector"), selector, "empty selector is invalid for daemonset");
  yield* validatePodTemplate(child(path, "template"), template, old?.template);
  yield* runsForEver(child(path, "template"), template, "DaemonSet");
  yield* nonNegative(child(path, "minReadySeconds"), spec.minReadySeconds);
  yield* validateStrategy(child(path, "updateStrategy"), spec.updateStrategy ?? {});
  yield* nonNegative(child(path, "revisionHistoryLimit"), spec.revisionHistoryLimit);
}

function* validateStrategy(path: string, { type, rollingUpdate }: Readonly<DaemonSetUpdateStrategy>): Iterable<FieldError> {
  if (type === "OnDelete") return;
  if (type !== "RollingUpdate") yield notSupported(path, { Type: type ?? "", RollingUpdate: rollingUpdate ? internalForm("io.k8s.api.apps.v1.RollingUpdateDaemonSet", rollingUpdate) : null }, ["RollingUpdate", "OnDelete"]);
  else if (!rollingUpdate) yield required(child(path, "rollingUpdate"));
  else yield* validateRolling(child(path, "rollingUpdate"), rollingUpdate);
}

function* validateRolling(path: string, { maxUnavailable = 0, maxSurge = 0 }: Readonly<RollingUpdateDaemonSet>): Iterable<FieldError> {
  const [unavailable, surge] = [child(path, "maxUnavailable"), child(path, "maxSurge")];
  yield* countOrPercent(unavailable, maxUnavailable);
  yield* countOrPercent(surge, maxSurge);
  yield* atMost100Percent(unavailable, maxUnavailable);
  yield* atMost100Percent(surge, maxSurge);
  const [hasUnavailable, hasSurge] = [!isZero(maxUnavailable), !isZero(maxSurge)];
  if (hasUnavailable && hasSurge) yield invalid(surge, maxSurge, "may not be set when maxUnavailable is non-zero");
  else if (!hasUnavailable && !hasSurge) yield required(unavailable, "cannot be 0 when maxSurge is 0");
}
