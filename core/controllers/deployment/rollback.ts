/** `kubectl rollout undo` as it was before apps/v1: asked for with an annotation. Source: kubernetes v1.36 pkg/controller/deployment/rollback.go */
import type { Deployment } from "../../api/gen/apps.v1.ts";
import { annotationsOf } from "../../api/meta/object-meta.ts";
import { DEPLOYMENTS } from "../../client/resources.ts";
import type { ControllerDeps } from "../deps.ts";
import type { Draft, Recorder, Set } from "./draft.ts";
import { HASH_LABEL, sameTemplate } from "./plan.ts";
import { lastRevision, maxRevision, ROLLBACK_TO, revisionOfSet, rollbackAnnotations } from "./revision.ts";

/** Takes the template of the revision that the annotation names, 0 for the one before, and the annotation away. False when it is no number. */
export async function rollback({ client, informers, recorder }: Pick<ControllerDeps, "client" | "informers"> & { readonly recorder: Recorder }, draft: Draft, { current, old }: { readonly current: Set | undefined; readonly old: readonly Set[] }, signal: AbortSignal): Promise<boolean> {
  const text = annotationsOf(draft)[ROLLBACK_TO] ?? "";
  if (!/^-?\d+$/.test(text)) return false;
  const owned = current === undefined ? old : [...old, current];
  const revision = BigInt(text) || (current === undefined ? maxRevision(old) : lastRevision(owned)); // the template of now may have no set yet
  const target = revision === 0n ? undefined : owned.find((set) => revisionOfSet(set) === revision);
  const { [ROLLBACK_TO]: _, ...kept } = annotationsOf(draft);
  let next: Deployment = { ...draft, metadata: { ...draft.metadata, annotations: kept } };
  if (target === undefined) {
    const message = revision === 0n ? "Unable to find last revision." : "Unable to find the revision to rollback to.";
    recorder.event(draft, "Warning", "DeploymentRollbackRevisionNotFound", message);
  } else if (sameTemplate(target.spec.template, draft.spec.template)) {
    recorder.event(draft, "Warning", "DeploymentRollbackTemplateUnchanged", `The rollback revision contains the same template as current deployment "${draft.metadata.name}"`);
  } else {
    const { [HASH_LABEL]: _hash, ...labels } = target.spec.template?.metadata?.labels ?? {};
    const template = { ...target.spec.template, metadata: { ...target.spec.template?.metadata, labels } };
    next = { ...next, metadata: { ...next.metadata, annotations: rollbackAnnotations(draft, target) }, spec: { ...next.spec, template } };
    recorder.event(draft, "Normal", "DeploymentRollback", `Rolled back deployment "${draft.metadata.name}" to revision ${revision}`);
  }
  const written = await client.resource(DEPLOYMENTS).update(next, { signal });
  await informers.of(DEPLOYMENTS).caughtUp([written], signal);
  draft.metadata = { ...written.metadata, annotations: { ...annotationsOf(written) } };
  draft.spec = written.spec;
  return true;
}
