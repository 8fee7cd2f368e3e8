/** Sizes of claims that are no whole number of bytes. Source: kubernetes v1.36 pkg/api/persistentvolumeclaim/util.go */
import { child, key } from "../../../api/meta/field-error.ts";
import type { PersistentVolumeClaimSpec } from "../../../api/gen/core.v1.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";
import { parseQuantity } from "../../../api/meta/quantity.ts";

export function* claimWarnings(path: string, spec: Readonly<PersistentVolumeClaimSpec> | undefined): Iterable<string> {
  for (const field of ["requests", "limits"] as const) {
    const value = spec?.resources?.[field]?.["storage"];
    if (value !== undefined && !parseQuantity(value).isWhole)
      yield `${key(child(path, "resources", field), "storage")}: fractional byte value ${goQuote(value)} is invalid, must be an integer`;
  }
}
