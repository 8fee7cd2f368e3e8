/**
 * A short name for a pod template: equal templates, equal hash. Goes into names and labels, so it is spelled with letters that form no words.
 *
 * Of Deployments' and DaemonSets' templates upstream hashes a debug print of Go structs, which cannot be reproduced; no client computes it. What counts is that
 * it is stable. Of a StatefulSet's it hashes what the ControllerRevision holds: there the hash is upstream's.
 */
import { encodeJson, stringify } from "../api/codec/json.ts";

/** FNV-1a, 32 bit, over the template as JSON with sorted keys; `collisionCount` gives a template whose name is taken another one. */
export function templateHash(template: unknown, collisionCount?: number): string {
  return nameHash(canonical(template) + (collisionCount === undefined ? "" : `#${collisionCount}`));
}

/** Of a ControllerRevision's data, its members in the order in which they are written. FNV-1, 32 bit. Source: kubernetes v1.36 pkg/controller/history/controller_history.go HashControllerRevision */
export function patchHash(patch: unknown, collisionCount: number): string {
  return safeEncode(String(fnv32(new TextEncoder().encode(new TextDecoder().decode(encodeJson(patch)).trimEnd() + collisionCount))));
}

/** FNV-1a, 32 bit, for the names of objects that are found again by what they are made of. */
export function nameHash(text: string): string { return safeEncode(String(fnv32a(new TextEncoder().encode(text)))); }

/** Upstream's util/rand.SafeEncodeString. */
function safeEncode(text: string): string {
  return Array.from(text, (character) => SAFE_ALPHABET[character.charCodeAt(0) % SAFE_ALPHABET.length]).join("");
}

const SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

function fnv32(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = (Math.imul(hash, 0x01000193) ^ byte) >>> 0;
  return hash;
}

function fnv32a(bytes: Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash;
}

/** JSON with sorted keys; what is absent, null or an empty list is left out, for these are one and the same to the API. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return stringify(value ?? null);
  const entries = Object.entries(value).filter(([, member]) => member !== undefined && member !== null && !(Array.isArray(member) && member.length === 0));
  return `{${entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, member]) => `${JSON.stringify(key)}:${canonical(member)}`).join(",")}}`;
}
