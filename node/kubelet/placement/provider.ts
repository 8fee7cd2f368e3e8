/** Whoever gives something out to containers that lies on a NUMA node: plugins' devices, processors, memory. */
import type { Container, Pod } from "../../../core/api/gen/core.v1.ts";
import type { Hint, Hints } from "./hints.ts";

export interface Provider {
  /** Begins a pod's admission. Nothing else of the provider is called until it is over. */
  begin(pod: Pod): PodAdmission;
  release(podUid: string): void;
  /** Forgets all pods but these. */
  retain(podUids: ReadonlySet<string>): void;
}

/** The pod's containers are served in their order, so that what an init container has had may serve those after it. */
export interface PodAdmission {
  hints(container: Container): Hints;
  podHints(): Hints;
  /** Sets aside what the container needs, as the hint says as far as it can. Throws AllocationRefused, or an Error that says why not. */
  allocate(container: Container, hint: Hint): void;
  /** The pod is refused: as before it came. */
  rollBack(): void;
}
