/** A Deployment as it is being worked on. */
import type { Deployment, DeploymentStatus, ReplicaSet } from "../../api/gen/apps.v1.ts";
import type { ControllerDeps } from "../deps.ts";
import { REVISION } from "./revision.ts";

/** Annotations and status may be ahead of the stored ones: they are written together, at the end of a step. */
export type Draft = Deployment & { status: DeploymentStatus };
export type Set = Readonly<ReplicaSet>;
export type Recorder = ReturnType<ControllerDeps["events"]["from"]>;

export function setRevision(draft: Draft, revision: string | undefined): void {
  if (revision !== undefined) draft.metadata.annotations = { ...draft.metadata.annotations, [REVISION]: revision };
}
