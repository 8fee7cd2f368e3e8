/**
 * Whether a toleration tolerates a taint. Gt and Lt compare whole numbers; that pods may have them is TaintTolerationComparisonOperators' to say.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/api/core/v1/toleration.go
 */
import type { Taint, Toleration } from "../gen/core.v1.ts";
import { isLessInteger } from "./go-integer.ts";

export function tolerates({ key = "", operator, value = "", effect }: Readonly<Toleration>, taint: Readonly<Taint>): boolean {
  if (effect && effect !== taint.effect) return false;
  if (key !== "" && key !== taint.key) return false;
  switch (operator) {
    case "Exists": return true;
    case "Gt": return isLessCanonical(value, taint.value);
    case "Lt": return isLessCanonical(taint.value, value);
    default: return key !== "" && value === (taint.value ?? "");
  }
}

/** As a toleration's own value is checked: without a plus sign and leading zeros. */
export function isCanonicalInteger(text: string): boolean { return /^(0|-?[1-9]\d*)$/.test(text); }

function isLessCanonical(a = "", b = ""): boolean { return isCanonicalInteger(a) && isCanonicalInteger(b) && isLessInteger(a, b); }
