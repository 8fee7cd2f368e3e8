/** How a leader is chosen among candidates. Source: kubernetes v1.36 pkg/apis/coordination/validation/validation.go */
import { child, type FieldError, notSupported } from "../../api/meta/field-error.ts";
import { isQualifiedName } from "../core/checks/values.ts";

export const OLDEST_EMULATION = "OldestEmulationVersion";

/** One of the known ones, or somebody's own with a domain before it. */
export function* isStrategy(path: string, strategy: string): Iterable<FieldError> {
  const at = child(path, "strategy"); // upstream names the field twice
  if (strategy.includes("/")) yield* isQualifiedName(at, strategy);
  else if (strategy !== OLDEST_EMULATION) yield notSupported(at, strategy, [OLDEST_EMULATION]);
}
