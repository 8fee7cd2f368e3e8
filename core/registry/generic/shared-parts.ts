/**
 * Equal parts of objects, held once: pods of one template differ in little more than their names, and who owns which of their fields is the same for all of them.
 *
 * Only what was stored lately is looked at: pods that are alike are made one after another. Those of one template mostly have the very same spec: it is known again by its text, before
 * it is brought into its canonical form and checked; or by its outline, where it differs in texts alone that are each one's own.
 */
import { ByText, textOf } from "../../api/codec/by-text.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { deepFreeze } from "./cached.ts";
import { keepText } from "./object-bytes.ts";
import type { OwnTexts } from "./resource.ts";

/** Parts known at a time, twice: when so many are new, those that have not been met since go. */
const PARTS_MAX = 400;
/** Whole specs known at a time, and outlines, and how long their texts may be. */
const SPECS_MAX = 64, SPEC_TEXT_MAX = 16_384;
/** Longer ones (scripts, certificates) are compared in their parts. */
const TEXT_MAX = 2_048;
/** Still longer ones (schemas) are left as they are: to look into them means to write them once more at each depth. */
const OPENED_MAX = 32_768;
/** A spec's members, their items, and what is in those: a container's resources. */
const DEPTH_MAX = 4;

type Part = Readonly<Record<string, unknown>> | readonly unknown[];

/** What `remember` wants to know of a spec, as it was sent and defaulted: its JSON, and that of its outline. Undefined: it is too long. */
interface SpecTexts { readonly whole: string | undefined; readonly outline: string | undefined }

export class SharedParts {
  #lately = new Map<string, Part>();
  #before = new Map<string, Part>();
  /** Of frozen parts that have been looked for: what they are one with. */
  readonly #met = new WeakMap<Part, Part>();
  readonly #specs = new ByText<object>(SPECS_MAX);
  readonly #outlines = new ByText<object>(SPECS_MAX);
  readonly #own: OwnTexts | undefined;

  constructor(own?: OwnTexts) { this.#own = own; }

  /** `texts`: what `remember` is told once it is stored; `spec`: what an equal one was stored as, or would be. */
  recognize(spec: unknown): { readonly texts: SpecTexts; readonly spec: object | undefined } {
    if (!isPart(spec)) return { texts: { whole: undefined, outline: undefined }, spec: undefined };
    const { outline, texts: own } = this.#own?.apart(spec) ?? { outline: spec, texts: [] };
    const text = textOf(outline, SPEC_TEXT_MAX);
    if (own.length === 0 || text === undefined) return { texts: { whole: text, outline: undefined }, spec: text === undefined ? undefined : this.#specs.get(text) };
    const ownText = textOf(own, SPEC_TEXT_MAX);
    const texts = { whole: ownText && text + ownText, outline: text };
    const known = texts.whole === undefined ? undefined : this.#specs.get(texts.whole);
    if (known) return { texts, spec: known };
    const like = this.#outlines.get(text);
    return { texts, spec: like && deepFreeze(this.#own!.together(like, own)) };
  }

  remember({ whole, outline }: SpecTexts, spec: object): void {
    if (whole !== undefined) this.#specs.put(whole, spec);
    if (outline !== undefined) this.#outlines.put(outline, spec);
  }

  /**
   * `object`, or an equal one of which labels, owners, and parts of spec and managedFields are those of objects that were passed before. `before`: what it replaces,
   * whose parts are shared already; where nothing but the status changes, nothing is looked at. `recognized`: a spec that is shared already.
   */
  share<T extends Pick<ApiObject, "metadata">>(object: T, before?: Readonly<Pick<ApiObject, "metadata">>, recognized?: object): T {
    const { spec } = object as { readonly spec?: unknown };
    const { managedFields } = object.metadata;
    const specBefore = (before as { readonly spec?: unknown } | undefined)?.spec;
    const shared = isPart(spec) && spec !== specBefore && spec !== recognized ? this.#within(spec, DEPTH_MAX, isPart(specBefore) ? specBefore : undefined) : spec;
    const known = before?.metadata.managedFields;
    const entries = managedFields?.map((entry) => {
      if (known?.some(({ fieldsV1 }) => fieldsV1 === entry.fieldsV1)) return entry;
      const fieldsV1 = isPart(entry.fieldsV1) ? this.#whole(entry.fieldsV1, 2) : entry.fieldsV1;
      return fieldsV1 === entry.fieldsV1 ? entry : { ...entry, fieldsV1 };
    });
    const named = this.#alike(object.metadata, before?.metadata);
    const owned = entries?.some((entry, i) => entry !== managedFields![i]) ? { ...named, managedFields: entries } : named;
    if (shared === spec && owned === object.metadata) return object;
    return { ...object, metadata: owned, ...(shared !== spec && { spec: shared }) };
  }

  /** The same of what a store has; what is no object of the API (it may be sealed) stays as it is. */
  shareStored<T extends object>(value: T): T { return isPart((value as { readonly metadata?: unknown }).metadata) ? this.share(value as T & ApiObject) : value; }

  /** What pods of one owner have in common. */
  #alike(metadata: ApiObject["metadata"], before: Readonly<ApiObject["metadata"]> | undefined): ApiObject["metadata"] {
    let copy: ApiObject["metadata"] | undefined;
    for (const name of ["labels", "ownerReferences"] as const) {
      const member = metadata[name];
      if (!isPart(member) || member === before?.[name]) continue;
      const part = this.#whole(member, 0);
      if (part !== member) (copy ??= { ...metadata })[name] = part as never;
    }
    return copy ?? metadata;
  }

  /** Members that are those of `before` stay as they are. */
  #within<T extends Part>(whole: T, depth: number, before?: Part): T {
    let copy: Record<string, unknown> | undefined;
    for (const key in whole) {
      const member = (whole as Record<string, unknown>)[key];
      if (!isPart(member) || key === "__proto__" || member === (before as Record<string, unknown> | undefined)?.[key]) continue; // __proto__ would be set, not put
      const part = this.#part(member, depth - 1);
      if (part === member) continue;
      copy ??= (Array.isArray(whole) ? [...whole] : { ...whole }) as Record<string, unknown>;
      copy[key] = part;
    }
    return (copy as T | undefined) ?? whole;
  }

  /** A part that stands by itself in an object's bytes: when those are made it need not be written again. */
  #whole(part: Part, depth: number): Part {
    const met = this.#met.get(part);
    if (met) return met;
    const text = textOf(part), known = this.#part(part, depth, text);
    if (!Object.isFrozen(known)) return known;
    if (text !== undefined) keepText(known, text);
    if (Object.isFrozen(part)) this.#met.set(part, known);
    return known;
  }

  #part(part: Part, depth: number, text: string | undefined = textOf(part)): Part {
    if (text === undefined || text.length > OPENED_MAX) return part;
    if (text.length > TEXT_MAX) return depth > 0 ? this.#within(part, depth) : part;
    const known = this.#lately.get(text) ?? this.#before.get(text) ?? deepFreeze(depth > 0 ? this.#within(part, depth) : part);
    if (this.#lately.size >= PARTS_MAX) {
      this.#before = this.#lately;
      this.#lately = new Map();
    }
    this.#lately.set(text, known);
    return known;
  }
}

function isPart(value: unknown): value is Part { return typeof value === "object" && value !== null; }
