/**
 * Deployment (apps/v1): pods of one template, replaced bit by bit when it changes.
 *
 * API:    https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/deployment-v1/
 * Source: kubernetes v1.36 pkg/registry/apps/deployment/strategy.go, pkg/apis/apps/{v1/defaults,validation/validation}.go
 */
import { child, type FieldError, forbidden, invalid, notSupported, required } from "../../api/meta/field-error.ts";
import type { Deployment, DeploymentSpec, DeploymentStatus, DeploymentStrategy, RollingUpdateDeployment } from "../../api/gen/apps.v1.ts";
import { internalForm } from "../../api/schema/internal-form.ts";
import { semanticEqual } from "../core/checks/equal.ts";
import { immutable, nonNegative, NOT_NEGATIVE } from "../core/checks/values.ts";
import { defaultPodTemplate, dropDisabledTemplateFields, templateWarnings } from "../core/pod/template.ts";
import { statusPart } from "../core/status-part.ts";
import { defineResource } from "../generic/resource.ts";
import { countsNonNegative, countsWithin, notDecremented } from "./counts.ts";
import { type NumberAnnotation, numberIn, setNumber } from "./number-annotation.ts";
import { replicasView } from "./replicas-view.ts";
import { atMost100Percent, countOrPercent, isZero } from "./rollout.ts";
import { podNameWarnings, replicatedTemplate, requiredSelector } from "./selected-template.ts";

const TEMPLATE = "spec.template";
/** Which revision is wanted again. */
const ROLLBACK_TO: NumberAnnotation = { kind: "Deployment", name: "deprecated.deployment.rollback.to", because: (text) => `failed to parse annotation[deprecated.deployment.rollback.to]=${text} as int64: ` };

export const deployments = defineResource<Deployment>({
  group: "apps", version: "v1", kind: "Deployment", plural: "deployments",

  defaults(deployment) {
    setNumber(deployment, ROLLBACK_TO, rollbackTo(deployment));
    const { spec } = deployment;
    defaultPodTemplate(spec.template);
    spec.replicas ??= 1;
    const strategy = (spec.strategy ??= {});
    strategy.type ||= "RollingUpdate";
    if (strategy.type === "RollingUpdate") {
      const rolling = (strategy.rollingUpdate ??= {});
      rolling.maxUnavailable ??= "25%";
      rolling.maxSurge ??= "25%";
    }
    spec.revisionHistoryLimit ??= 10;
    spec.progressDeadlineSeconds ??= 600;
  },

  prepareForCreate({ spec }) { dropDisabledTemplateFields(spec.template); },
  prepareForUpdate(next, old) { dropDisabledTemplateFields(next.spec.template, old.spec.template); },
  /** Annotations too: they are copied to the ReplicaSets. */
  generation: (next, old) => !semanticEqual(next.spec, old.spec) || !semanticEqual(next.metadata.annotations ?? {}, old.metadata.annotations ?? {}),

  validate: (deployment, old) => validateSpec("spec", deployment, old?.spec),
  validateUpdate: (next, old) => immutable("spec.selector", next.spec.selector, old.spec.selector),
  *warnings({ metadata, spec }, old) {
    if (!old) yield* podNameWarnings(metadata.name);
    if (!old || metadata.generation !== old.metadata.generation) yield* templateWarnings(TEMPLATE, spec.template);
  },

  subresources: {
    status: statusPart<Deployment>({
      prepare(next, old) {
        if (old.metadata.labels) next.metadata.labels = old.metadata.labels;
        else delete next.metadata.labels;
        setNumber(next, ROLLBACK_TO, rollbackTo(old));
      },
      *validate(next, old) {
        yield* validateStatus("status", next.status ?? {});
        yield* notDecremented("status.collisionCount", next.status?.collisionCount, old.status?.collisionCount);
      },
    }),
    scale: replicasView<Deployment>(),
  },
});

/** An empty text says nothing. */
function rollbackTo(deployment: Readonly<Deployment>): bigint | undefined {
  return deployment.metadata.annotations?.[ROLLBACK_TO.name] === "" ? undefined : numberIn(deployment, ROLLBACK_TO);
}

function* validateSpec(path: string, deployment: Readonly<Deployment>, old?: Readonly<DeploymentSpec>): Iterable<FieldError> {
  const { spec } = deployment;
  const { selector, template, minReadySeconds = 0, progressDeadlineSeconds } = spec;
  yield* nonNegative(child(path, "replicas"), spec.replicas);
  yield* requiredSelector(child(path, "selector"), selector, "deployment");
  yield* replicatedTemplate(child(path, "template"), child(path, "selector"), { selector, template, old: old?.template });
  yield* validateStrategy(child(path, "strategy"), spec.strategy ?? {});
  yield* nonNegative(child(path, "minReadySeconds"), minReadySeconds);
  yield* nonNegative(child(path, "revisionHistoryLimit"), spec.revisionHistoryLimit);
  const revision = rollbackTo(deployment) ?? 0n;
  if (revision < 0n) yield invalid(child(path, "rollback", "version"), revision, NOT_NEGATIVE);
  if (progressDeadlineSeconds === undefined) return;
  yield* nonNegative(child(path, "progressDeadlineSeconds"), progressDeadlineSeconds);
  if (progressDeadlineSeconds <= minReadySeconds) yield invalid(child(path, "progressDeadlineSeconds"), progressDeadlineSeconds, "must be greater than minReadySeconds");
}

function* validateStrategy(path: string, strategy: Readonly<DeploymentStrategy>): Iterable<FieldError> {
  const { type, rollingUpdate } = strategy;
  const at = child(path, "rollingUpdate");
  if (type === "Recreate") {
    if (rollingUpdate) yield forbidden(at, "may not be specified when strategy `type` is 'Recreate'");
  } else if (type === "RollingUpdate") {
    if (rollingUpdate) yield* validateRolling(at, rollingUpdate);
    else yield required(at, "this should be defaulted and never be nil");
  } else yield notSupported(path, { Type: type ?? "", RollingUpdate: rollingUpdate ? internalForm("io.k8s.api.apps.v1.RollingUpdateDeployment", rollingUpdate) : null }, ["Recreate", "RollingUpdate"]);
}

function* validateRolling(path: string, { maxUnavailable = 0, maxSurge = 0 }: Readonly<RollingUpdateDeployment>): Iterable<FieldError> {
  yield* countOrPercent(child(path, "maxUnavailable"), maxUnavailable);
  yield* countOrPercent(child(path, "maxSurge"), maxSurge);
  if (isZero(maxUnavailable) && isZero(maxSurge)) yield invalid(child(path, "maxUnavailable"), maxUnavailable, "may not be 0 when `maxSurge` is 0");
  yield* atMost100Percent(child(path, "maxUnavailable"), maxUnavailable);
}

function* validateStatus(path: string, status: Readonly<DeploymentStatus>): Iterable<FieldError> {
  yield* countsNonNegative(path, status, [
    "observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas", "terminatingReplicas", "collisionCount",
  ]);
  yield* countsWithin(path, status, [
    ["updatedReplicas", "replicas", "cannot be greater than status.replicas"],
    ["readyReplicas", "replicas", "cannot be greater than status.replicas"],
    ["availableReplicas", "replicas", "cannot be greater than status.replicas"],
    ["availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"],
  ]);
}
