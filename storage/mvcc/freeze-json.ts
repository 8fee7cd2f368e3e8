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
import { UsualNames } from "./usual-names.ts";

/**
 * How large parts of values are that were frozen before: a version has most of its parts from the one before, and pods of one template have one spec. Only the members of a value are
 * looked for, and only large ones kept.
 */
const SIZES = new WeakMap<object, { readonly size: number; readonly memory: number }>();
const KEPT_SIZE_MIN = 512;

export interface FrozenJson {
  readonly value: Value;
  /** About the bytes of its JSON. */
  readonly size: number;
  /** About the bytes of memory that it takes, with what is kept for each row: mostly some three times its JSON, and thirty times where that is all brackets or names that nothing else has. */
  readonly memory: number;
}

export function freezeJson(value: Value, { arrays }: { readonly arrays: boolean }): FrozenJson {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new TypeError("store: a value is a JSON object");
  let size = 0, memory = ROW_MEMORY, newNames = 0;

  function freeze(from: unknown): unknown {
    switch (typeof from) {
      case "string":
        size += from.length + 3;
        memory += textMemory(from);
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
        memory += BIGINT_MEMORY;
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
    memory += OBJECT_MEMORY + ELEMENT_MEMORY * from.length;
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
    memory += OBJECT_MEMORY;
    let copy: [string, unknown][] | undefined;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i]!;
      const member = (from as Record<string, unknown>)[key];
      const frozen = member === undefined ? undefined : freezeMember(member);
      const name = key.isWellFormed() ? key : key.toWellFormed();
      size += name.length + 4;
      memory += memberMemory(name, keys.length);
      if (!copy && (frozen === undefined || name !== key || !Object.is(frozen, member)))
        copy = keys.slice(0, i).map((before) => [before, (from as Record<string, unknown>)[before]]);
      if (frozen !== undefined) copy?.push([name, frozen]);
    }
    return Object.freeze(copy ? Object.fromEntries(copy) : from); // fromEntries makes own members, also of __proto__
  }

  function memberMemory(name: string, members: number): number {
    const isLarge = members > MEMBERS_SHARED_MAX;
    if (usual.has(name)) return isLarge ? MEMBER_MEMORY.table : MEMBER_MEMORY.shared;
    if (newNames++ < USUAL_OF_ONE_MAX) usual.add(name);
    return name.length + (isLarge ? MEMBER_MEMORY.newTable : MEMBER_MEMORY.newShared);
  }

  function frozenMember(from: unknown): unknown {
    const known = typeof from === "object" && from !== null && !arrays ? SIZES.get(from) : undefined;
    if (known !== undefined) {
      size += known.size;
      memory += known.memory;
      return from;
    }
    const before = { size, memory }, frozen = freeze(from);
    if (typeof frozen === "object" && frozen !== null && !Array.isArray(frozen) && size - before.size >= KEPT_SIZE_MIN) SIZES.set(frozen, { size: size - before.size, memory: memory - before.memory });
    return frozen;
  }

  const frozen = freezeObject(value, frozenMember) as Value;
  return { value: frozen, size: size + 4, memory };
}

// What things take in JavaScriptCore (Bun 1.4), measured with a million of each.
const ROW_MEMORY = 1200; // the row, its places in the store and in the watch cache, and what finds it there
const OBJECT_MEMORY = 72;
const ELEMENT_MEMORY = 16;
const BIGINT_MEMORY = 40;
const TEXT_MEMORY = 80;
/** An object of so many members has a table of its own for them; of fewer, those who have the same share one. */
const MEMBERS_SHARED_MAX = 64;
const MEMBER_MEMORY = { shared: 16, table: 64, newShared: 256, newTable: 128 };

const usual = new UsualNames();
/** Of one value so many become usual: a pod has some 300 of its kind, and somebody's keys, however many, do not push those out. */
const USUAL_OF_ONE_MAX = 512;

/** Of shorter ones it is the same whichever characters they have. */
const WIDE_LENGTH_MIN = 16;
/** Each of its characters is two bytes, and three in JSON, which is kept beside it. */
const WIDE_MEMORY = 5;

function textMemory(text: string): number {
  if (text.length < 2) return 0; // of each there is one
  return TEXT_MEMORY + text.length * (text.length >= WIDE_LENGTH_MIN && /[^\0-\xff]/.test(text) ? WIDE_MEMORY : 1);
}
