/**
 * Whether a toleration tolerates a taint, and which of many does. Gt and Lt compare whole numbers; that pods may have them is TaintTolerationComparisonOperators' to say.
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

/** Of fewer each is asked. */
const INDEXED_MIN = 16;

type Ranked = { readonly at: number; readonly toleration: Readonly<Toleration> };

/** Those of one pod. Of thousands a taint is held against those alone that speak of its key or of any, and of its effect or of any. */
export class Tolerations {
  readonly #all: readonly Readonly<Toleration>[];
  #index: Map<string, Ranked[]> | undefined;

  constructor(all: readonly Readonly<Toleration>[]) {
    this.#all = all;
  }

  /** The first that tolerates it. */
  of(taint: Readonly<Taint>): Readonly<Toleration> | undefined {
    if (this.#all.length < INDEXED_MIN) return this.#all.find((toleration) => tolerates(toleration, taint));
    const index = (this.#index ??= indexOf(this.#all));
    let first: Ranked | undefined;
    for (const key of taint.key === "" ? [""] : [taint.key, ""])
      for (const effect of [taint.effect, ""]) {
        const found = index.get(`${effect} ${key}`)?.find(({ toleration }) => tolerates(toleration, taint));
        if (found && (!first || found.at < first.at)) first = found;
      }
    return first?.toleration;
  }
}

function indexOf(all: readonly Readonly<Toleration>[]): Map<string, Ranked[]> {
  const index = new Map<string, Ranked[]>();
  for (const [at, toleration] of all.entries()) {
    const id = `${toleration.effect ?? ""} ${toleration.key ?? ""}`;
    const same = index.get(id);
    if (same) same.push({ at, toleration });
    else index.set(id, [{ at, toleration }]);
  }
  return index;
}

/** Of pods that stay as they are: one that waits is held against every node. */
const known = new WeakMap<readonly Readonly<Toleration>[], Tolerations>();

export function tolerationsOf(all: readonly Readonly<Toleration>[] = []): Tolerations {
  const keeps = all.length >= INDEXED_MIN && Object.isFrozen(all);
  const before = keeps ? known.get(all) : undefined;
  if (before) return before;
  const made = new Tolerations(all);
  if (keeps) known.set(all, made);
  return made;
}

/** As a toleration's own value is checked: without a plus sign and leading zeros. */
export function isCanonicalInteger(text: string): boolean { return /^(0|-?[1-9]\d*)$/.test(text); }

function isLessCanonical(a = "", b = ""): boolean { return isCanonicalInteger(a) && isCanonicalInteger(b) && isLessInteger(a, b); }
