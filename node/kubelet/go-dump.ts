/**
 * How a Go library (spew) prints a struct, names of its types and all: upstream's state files have the FNV-1a of that as their checksum. Whoever takes a node over from a stock
 * kubelet, or gives it back, finds what it left.
 *
 * Source: kubernetes v1.36 pkg/kubelet/checkpointmanager/checksum, pkg/util/hash; k8s.io/utils/dump
 */
import { compareText } from "../../core/api/meta/compare-text.ts";
import { CorruptStateError } from "../os/state-file.ts";

/** Of entries in the order of their keys. */
export function dumpMap<T>(values: Readonly<Record<string, T>>, dump: (value: T) => string, order: (a: string, b: string) => number = compareText): string {
  return `map[${Object.entries(values).toSorted(([a], [b]) => order(a, b)).map(([name, value]) => `${name}:${dump(value)}`).join(" ")}]`;
}

export function dumpList(items: Iterable<string | number>): string { return `[${[...items].join(" ")}]`; }

export function byNumber(a: string, b: string): number { return Number(a) - Number(b); }

/** Of what is dumped as `text`: FNV-1a, 32 bits. */
export function checksumOf(text: string | Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** Throws CorruptStateError when somebody has changed it. Nothing was said of a file whose checksum is 0. */
export function verifyChecksum(checksum: number, text: string): void {
  const actual = checksumOf(text);
  if (checksum !== 0 && checksum !== actual) throw new CorruptStateError(`checkpoint is corrupted: actualCS ${actual}, expectedCS ${checksum}`);
}
