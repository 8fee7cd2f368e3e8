/** How the parts of the kubelet tell users what happened to their pods. */
import type { ObjectReference } from "../../core/api/gen/core.v1.ts";

export interface KubeletEvents {
  /** Never throws and never waits: an event that cannot be written is lost. */
  record(about: ObjectReference, type: "Normal" | "Warning", reason: string, message: string): void;
}
