/**
 * Tolerations of several sources as one list, without those that others include.
 *
 * They are found by what they are for, not compared each with each: of a pod's eight thousand, which nobody has counted yet, that would take a quarter of a minute.
 *
 * Source: kubernetes v1.36 pkg/util/tolerations
 */
import type { Toleration } from "../api/gen/core.v1.ts";

/** Of two that include each other the later one is kept; of two that are the same, the first. */
export function mergeTolerations(first: readonly Toleration[], second: readonly Toleration[]): Toleration[] {
  const all = [...first, ...second], later = new Known(), kept = new Known(), merged: Toleration[] = [];
  const isIncluded = all.map(() => false);
  for (const [i, toleration] of [...all.entries()].reverse()) {
    isIncluded[i] = later.includesAsAnother(toleration);
    later.add(toleration);
  }
  for (const [i, toleration] of all.entries()) {
    if (isIncluded[i] || kept.has(toleration) || kept.includesAsAnother(toleration)) continue;
    kept.add(toleration);
    merged.push({ ...toleration });
  }
  return merged;
}

/** Whether `whole` tolerates all that `part` does. */
export function isTolerated(whole: Toleration, part: Toleration): boolean {
  const known = new Known();
  known.add(whole);
  return known.has(part) || known.includesAsAnother(part);
}

interface Lasting { readonly id: string; readonly seconds: number }

class Known {
  readonly #ids = new Set<string>();
  /** By what they are for: the one that lasts longest, then the one that does among those that are not the same as that. */
  readonly #longest = new Map<string, readonly [first: Lasting, second: Lasting | undefined]>();

  add(toleration: Toleration): void {
    const id = idOf(toleration), purpose = purposeOf(toleration);
    this.#ids.add(id);
    if (purpose === undefined) return;
    const [first, second] = this.#longest.get(purpose) ?? [];
    const own: Lasting = { id, seconds: toleration.effect === "NoExecute" ? Number(toleration.tolerationSeconds ?? Infinity) : Infinity };
    if (first?.id === id) return;
    if (first === undefined || own.seconds > first.seconds) this.#longest.set(purpose, [own, first]);
    else if (second === undefined || own.seconds > second.seconds) this.#longest.set(purpose, [first, own]);
  }

  has(toleration: Toleration): boolean { return this.#ids.has(idOf(toleration)); }

  /** Whether one that is not the same tolerates all that it does. */
  includesAsAnother(part: Toleration): boolean {
    const id = idOf(part), seconds = Number(part.tolerationSeconds ?? Infinity);
    return [...purposesFor(part)].some((purpose) => {
      const [first, second] = this.#longest.get(purpose) ?? [];
      const longest = first?.id === id ? second : first;
      return longest !== undefined && longest.seconds >= seconds;
    });
  }
}

function idOf({ key, operator, value, effect, tolerationSeconds }: Toleration): string { return JSON.stringify([key ?? "", operator ?? "", value ?? "", effect ?? "", String(tolerationSeconds ?? "")]); }

/** Undefined: it includes none but the same. */
function purposeOf({ key, operator, value, effect }: Toleration): string | undefined {
  if (operator === "Exists") return JSON.stringify([key ?? "", effect ?? ""]);
  return (operator ?? "Equal") === "Equal" ? JSON.stringify([key ?? "", effect ?? "", value ?? ""]) : undefined;
}

/** Of those that may include it. */
function* purposesFor({ key, operator, value, effect }: Toleration): Iterable<string> {
  for (const each of new Set(["", effect ?? ""])) {
    for (const whose of new Set(["", key ?? ""])) yield JSON.stringify([whose, each]);
    if (operator === "Equal") yield JSON.stringify([key ?? "", each, value ?? ""]);
  }
}
