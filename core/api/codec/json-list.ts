/**
 * A list's JSON out of the JSON of its items, byte by byte: what is kept encoded is not encoded again.
 *
 * Items of built-in lists go without kind and apiVersion, which canonical objects have first, so the start of each item is cut off. Lists of custom
 * resources keep them, and have their own keys in alphabetical order.
 */
import { jsonText } from "./json.ts";

export interface ListHead { readonly kind: string; readonly apiVersion: string; readonly metadata: object }

const UTF8 = new TextEncoder();
const NEWLINE = 10, COMMA = 44, BRACE = 123;

/** `itemKind` is the kind of the items, "Pod" for a PodList. */
export function encodeJsonList({ kind, apiVersion, metadata }: ListHead, items: readonly Uint8Array[], itemKind: string): Uint8Array {
  const start = UTF8.encode(`{"kind":${jsonText(itemKind)},"apiVersion":${jsonText(apiVersion)},`);
  return join(`{"kind":${jsonText(kind)},"apiVersion":${jsonText(apiVersion)},"metadata":${jsonText(metadata)},"items":[`, items, "]}\n", start);
}

export function encodeCustomJsonList({ kind, apiVersion, metadata }: ListHead, items: readonly Uint8Array[]): Uint8Array {
  return join(`{"apiVersion":${jsonText(apiVersion)},"items":[`, items, `],"kind":${jsonText(kind)},"metadata":${jsonText(metadata)}}\n`);
}

/** `cut` is taken off each item that starts with it, but for the brace. */
function join(head: string, items: readonly Uint8Array[], tail: string, cut?: Uint8Array): Uint8Array {
  const before = UTF8.encode(head), after = UTF8.encode(tail);
  const cuts = items.map((item) => cut && startsWith(item, cut) ? cut.length - 1 : 0);
  const ends = items.map((item) => item.length - (item.at(-1) === NEWLINE ? 1 : 0));
  const size = items.reduce((sum, _item, i) => sum + ends[i]! - cuts[i]!, before.length + after.length + Math.max(0, items.length - 1));
  const list = new Uint8Array(size);
  list.set(before);
  let at = before.length;
  for (const [i, item] of items.entries()) {
    if (i > 0) list[at++] = COMMA;
    list.set(item.subarray(cuts[i], ends[i]), at);
    if (cuts[i]! > 0) list[at] = BRACE;
    at += ends[i]! - cuts[i]!;
  }
  list.set(after, at);
  return list;
}

function startsWith(bytes: Uint8Array, prefix: Uint8Array): boolean {
  if (bytes.length < prefix.length) return false;
  for (let i = 0; i < prefix.length; i++) if (bytes[i] !== prefix[i]) return false;
  return true;
}
