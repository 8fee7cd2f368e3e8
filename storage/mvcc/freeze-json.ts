/**
 * Makes a value what it will be when read back from disk, and unchangeable.
 *
 * Arrays are frozen on demand only: in JavaScriptCore each frozen array takes 128 bytes more, a third of the memory of a pod (objects: nothing).
 *
 * What JSON cannot say is dropped or replaced as JSON.stringify does: undefined members vanish, -0 is 0, lone surrogates become U+FFFD. Nearly always there
 * is nothing to replace: then the very objects that were passed in are frozen and returned, and a row costs no second copy.
 * Integers that a number would round are bigints of 64 bits. What is no JSON at all (dates, functions, infinities) is a bug of the caller and throws.
 */
import type { Value } from "../store.ts";

/**
 * How large parts of values are that were frozen before: a version has most of its parts from the one before, and pods of one template have one spec. Only the members of a value are
 * looked for, and only large ones kept.
 */
const SIZES = new WeakMap<object, number>();
const KEPT_SIZE_MIN = 512;

/** `size`: about the bytes of the value's JSON, to bound memory by. */
export function freezeJson(value: Value, { arrays }: { readonly arrays: boolean }): { readonly value: Value; readonly size: number } {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("store: a value is a JSON object");
  let size = 0;

  function freeze(from: unknown): unknown {
    switch (typeof from) {
      case "string":
        size += from.length + 3;
        return from.isWellFormed() ? from : from.toWellFormed();
      case "number":
        size += 4;
        if (!Number.isFinite(from)) throw new TypeError(`store: no JSON number: ${from}`);
        return from === 0 ? 0 : from;
      case "boolean":
        size += 5;
        return from;
      case "bigint":
        size += 20;
        if (BigInt.asIntN(64, from) !== from) throw new TypeError(`store: no integer of 64 bits: ${from}`);
        return from;
      case "object":
        size += 4;
        return from === null ? null : Array.isArray(from) ? freezeArray(from) : freezeObject(from);
      default:
        throw new TypeError(`store: no JSON value: ${typeof from}`);
    }
  }

  function freezeArray(from: readonly unknown[]): readonly unknown[] {
    let copy: unknown[] | undefined;
    for (let i = 0; i < from.length; i++) {
      const frozen = freeze(from[i] === undefined ? null : from[i]);
      if (!Object.is(frozen, from[i])) copy ??= [...from];
      if (copy) copy[i] = frozen;
    }
    const same = copy ?? from;
    return arrays ? Object.freeze(same) : same;
  }

  function freezeObject(from: object, freezeMember: (member: unknown) => unknown = freeze): object {
    const prototype = Object.getPrototypeOf(from) as object | null;
    if (prototype !== Object.prototype && prototype !== null) throw new TypeError(`store: no JSON object: ${from.constructor?.name}`);
    const keys = Object.keys(from);
    let copy: [string, unknown][] | undefined;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const member = (from as Record<string, unknown>)[key];
      const frozen = member === undefined ? undefined : freezeMember(member);
      const name = key.isWellFormed() ? key : key.toWellFormed();
      size += name.length + 4;
      if (!copy && (frozen === undefined || name !== key || !Object.is(frozen, member)))
        copy = keys.slice(0, i).map((before) => [before, (from as Record<string, unknown>)[before]]);
      if (frozen !== undefined) copy?.push([name, frozen]);
    }
    return Object.freeze(copy ? Object.fromEntries(copy) : from); // fromEntries makes own members, also of __proto__
  }

  function frozenMember(from: unknown): unknown {
    const known = typeof from === "object" && from !== null && !arrays ? SIZES.get(from) : undefined;
    if (known !== undefined) {
      size += known;
      return from;
    }
    const before = size, frozen = freeze(from);
    if (typeof frozen === "object" && frozen !== null && !Array.isArray(frozen) && size - before >= KEPT_SIZE_MIN) SIZES.set(frozen, size - before);
    return frozen;
  }

  const frozen = freezeObject(value, frozenMember) as Value;
  return { value: frozen, size: size + 4 };
}
