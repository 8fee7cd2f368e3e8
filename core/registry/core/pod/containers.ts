/** All containers of a pod, of whichever kind, with the path of each. Source: kubernetes v1.36 pkg/apis/core/pods/helpers.go */
import { child, index } from "../../../api/meta/field-error.ts";
import type { Container, EphemeralContainer, PodSpec } from "../../../api/gen/core.v1.ts";

export type AnyContainer = Container & Pick<EphemeralContainer, "targetContainerName">;

export interface ContainerAt { readonly container: AnyContainer; readonly path: string; readonly kind: "init" | "main" | "ephemeral" }

/** Init containers, then containers, then ephemeral ones. A list, not a generator: it is asked for a dozen times for each pod that is written. */
export function containersOf(spec: Readonly<PodSpec>, path = "spec"): readonly ContainerAt[] {
  const found: ContainerAt[] = [];
  add(found, spec.initContainers, { path: child(path, "initContainers"), kind: "init" });
  add(found, spec.containers, { path: child(path, "containers"), kind: "main" });
  add(found, spec.ephemeralContainers, { path: child(path, "ephemeralContainers"), kind: "ephemeral" });
  return found;
}

function add(found: ContainerAt[], containers: readonly AnyContainer[] | undefined, { path, kind }: Omit<ContainerAt, "container">): void {
  if (!containers) return;
  for (let i = 0; i < containers.length; i++) found.push({ container: containers[i]!, path: index(path, i), kind });
}

/** An init container that goes on running beside the others. */
export function isSidecar(container: Readonly<Container> | undefined): boolean { return container?.restartPolicy === "Always"; }
