/**
 * Deployment (apps/v1): ReplicaSets, one for each version of a template, and how to go from one to the next.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/deployment-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/deployment/strategy.go, pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation/validation.go
 */
import type { Deployment, DeploymentStatus, DeploymentStrategy } from "../../api/gen/apps.v1.ts";
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { atMost100Percent, countOrPercent, intOrPercent } from "../core/checks/int-or-percent.ts";
import { immutable, nonNegative } from "../core/checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, podNameWarnings, templateWarnings } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { replicasView, validateAtMost, validateCollisions, validateCounts, validateReplicas } from "./workload.ts";

const REPLICAS = 1;
const PERCENT = "25%";
const REVISIONS_KEPT = 10;
const PROGRESS_SECONDS = 600;

export const deployments = defineResource<Deployment>({
  group: "apps", version: "v1", kind: "Deployment", plural: "deployments",
  generation: (next, old) => !semanticEqual(next.spec, old.spec) || !semanticEqual(next.metadata.annotations ?? {}, old.metadata.annotations ?? {}),

  defaults({ spec }) {
    defaultPodTemplate((spec.template ??= {}));
    spec.replicas ??= REPLICAS;
    const strategy = (spec.strategy ??= {});
    strategy.type ||= "RollingUpdate";
    if (strategy.type === "RollingUpdate") {
      strategy.rollingUpdate ??= {};
      strategy.rollingUpdate.maxUnavailable ??= PERCENT;
      strategy.rollingUpdate.maxSurge ??= PERCENT;
    }
    spec.revisionHistoryLimit ??= REVISIONS_KEPT;
    spec.progressDeadlineSeconds ??= PROGRESS_SECONDS;
  },
  prepareForCreate(deployment) {
    deployment.status = {};
    dropDisabledTemplateFields(deployment.spec.template);
  },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.spec.template, old.spec.template); },

  *validate({ spec }, old) {
    yield* nonNegative("spec.replicas", spec.replicas);
    yield* validateReplicas("spec", { selector: spec.selector, template: spec.template, old: old?.spec.template });
    yield* validateStrategy("spec.strategy", spec.strategy ?? {});
    yield* nonNegative("spec.minReadySeconds", spec.minReadySeconds);
    yield* nonNegative("spec.revisionHistoryLimit", spec.revisionHistoryLimit);
    const deadline = spec.progressDeadlineSeconds;
    if (deadline === undefined) return;
    yield* nonNegative("spec.progressDeadlineSeconds", deadline);
    if (deadline <= (spec.minReadySeconds ?? 0)) yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
  },
  validateUpdate: (next, old) => immutable("spec.selector", next.spec.selector, old.spec.selector),
  *warnings(next, old) {
    if (!old) yield* podNameWarnings(next.metadata.name);
    if (next.metadata.generation !== old?.metadata.generation) yield* templateWarnings("spec.template", next.spec.template);
  },

  subresources: {
    status: statusPart<Deployment>({
      prepare(next, old) {
        if (old.metadata.labels) next.metadata.labels = old.metadata.labels;
        else delete next.metadata.labels;
      },
      *validate({ status }, old) {
        yield* validateStatus("status", status ?? {});
        yield* validateCollisions("status.collisionCount", status?.collisionCount, old.status?.collisionCount);
      },
    }),
    scale: replicasView<Deployment>(),
  },
});

function* validateStrategy(path: string, { type, rollingUpdate }: Readonly<DeploymentStrategy>): Iterable<FieldError> {
  const updatePath = child(path, "rollingUpdate");
  if (type === "Recreate") {
    if (rollingUpdate) yield forbidden(updatePath, "may not be specified when strategy `type` is 'Recreate'");
  } else if (type === "RollingUpdate") {
    if (!rollingUpdate) yield required(updatePath, "this should be defaulted and never be nil");
    else yield* validateRollingUpdate(updatePath, rollingUpdate);
  } else {
    const shown = rollingUpdate ? { MaxUnavailable: rollingUpdate.maxUnavailable ?? 0, MaxSurge: rollingUpdate.maxSurge ?? 0 } : null;
    yield notSupported(path, { Type: type ?? "", RollingUpdate: shown }, ["Recreate", "RollingUpdate"]);
  }
}

function* validateRollingUpdate(path: string, { maxUnavailable = 0, maxSurge = 0 }: NonNullable<DeploymentStrategy["rollingUpdate"]>): Iterable<FieldError> {
  const unavailablePath = child(path, "maxUnavailable");
  yield* intOrPercent(unavailablePath, maxUnavailable);
  yield* intOrPercent(child(path, "maxSurge"), maxSurge);
  if (countOrPercent(maxUnavailable) === 0 && countOrPercent(maxSurge) === 0) yield invalid(unavailablePath, maxUnavailable, "may not be 0 when `maxSurge` is 0");
  yield* atMost100Percent(unavailablePath, maxUnavailable);
}

function* validateStatus(path: string, status: Readonly<DeploymentStatus>): Iterable<FieldError> {
  const { observedGeneration, replicas = 0, updatedReplicas = 0, readyReplicas = 0, availableReplicas = 0, unavailableReplicas, terminatingReplicas, collisionCount } = status;
  yield* validateCounts(path, { observedGeneration, replicas, updatedReplicas, readyReplicas, availableReplicas, unavailableReplicas, terminatingReplicas, collisionCount });
  yield* validateAtMost(path, { updatedReplicas, readyReplicas, availableReplicas }, replicas, "cannot be greater than status.replicas");
  yield* validateAtMost(path, { availableReplicas }, readyReplicas, "cannot be greater than readyReplicas");
}
