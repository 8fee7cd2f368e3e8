/** All containers of a pod, of whichever kind, with the path of each. Source: kubernetes v1.36 pkg/apis/core/pods/helpers.go */
import { child, index } from "../../../api/meta/field-error.ts";
import type { Container, EphemeralContainer, PodSpec } from "../../../api/gen/core.v1.ts";

export type AnyContainer = Container & Pick<EphemeralContainer, "targetContainerName">;

export interface ContainerAt { readonly container: AnyContainer; readonly path: string; readonly kind: "init" | "main" | "ephemeral" }

/** Init containers, then containers, then ephemeral ones. */
export function* containersOf(spec: Readonly<PodSpec>, path = "spec"): Iterable<ContainerAt> {
  for (const [i, container] of (spec.initContainers ?? []).entries()) yield { container, path: index(child(path, "initContainers"), i), kind: "init" };
  for (const [i, container] of (spec.containers ?? []).entries()) yield { container, path: index(child(path, "containers"), i), kind: "main" };
  for (const [i, container] of (spec.ephemeralContainers ?? []).entries()) yield { container, path: index(child(path, "ephemeralContainers"), i), kind: "ephemeral" };
}

/** An init container that goes on running beside the others. */
export function isSidecar(container: Readonly<Container> | undefined): boolean { return container?.restartPolicy === "Always"; }
