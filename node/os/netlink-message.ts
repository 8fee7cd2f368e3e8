/**
 * rtnetlink messages as bytes: headers, and attributes that nest. Numbers in the machine's order, which on all we run on is little-endian.
 *
 * Source: linux include/uapi/linux/{netlink,rtnetlink}.h
 */
export interface NetlinkMessage { readonly type: number; readonly flags: number; readonly sequence: number; readonly payload: Uint8Array }

export const NLM = { REQUEST: 1, ACK: 4, DUMP: 0x300, REPLACE: 0x100, EXCL: 0x200, CREATE: 0x400, APPEND: 0x800 } as const;
export const NLMSG = { ERROR: 2, DONE: 3 } as const;
const HEADER_BYTES = 16, NESTED = 0x8000, TYPE_MASK = 0x3fff;

export function writeMessage({ type, flags, sequence, payload }: NetlinkMessage): Uint8Array {
  const bytes = new Uint8Array(HEADER_BYTES + payload.length);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, bytes.length, true);
  view.setUint16(4, type, true);
  view.setUint16(6, flags, true);
  view.setUint32(8, sequence, true);
  bytes.set(payload, HEADER_BYTES);
  return bytes;
}

/** The messages in one datagram; what is cut off is left out. */
export function readMessages(bytes: Uint8Array): NetlinkMessage[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const messages: NetlinkMessage[] = [];
  for (let at = 0; at + HEADER_BYTES <= bytes.length; ) {
    const length = view.getUint32(at, true);
    if (length < HEADER_BYTES || at + length > bytes.length) break;
    messages.push({ type: view.getUint16(at + 4, true), flags: view.getUint16(at + 6, true), sequence: view.getUint32(at + 8, true), payload: bytes.slice(at + HEADER_BYTES, at + length) });
    at += align(length);
  }
  return messages;
}

export function attribute(type: number, ...parts: readonly Uint8Array[]): Uint8Array {
  const length = 4 + parts.reduce((sum, part) => sum + part.length, 0);
  const bytes = new Uint8Array(align(length));
  const view = new DataView(bytes.buffer);
  view.setUint16(0, length, true);
  view.setUint16(2, type, true);
  let at = 4;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

export function nested(type: number, ...attributes: readonly Uint8Array[]): Uint8Array { return attribute(type | NESTED, ...attributes); }

/** By type; of an attribute that is there twice, the last. */
export function readAttributes(bytes: Uint8Array): ReadonlyMap<number, Uint8Array> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const found = new Map<number, Uint8Array>();
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = view.getUint16(at, true);
    if (length < 4 || at + length > bytes.length) break;
    found.set(view.getUint16(at + 2, true) & TYPE_MASK, bytes.slice(at + 4, at + length));
    at += align(length);
  }
  return found;
}

/** The value of the first attribute of a type, or of one within it, and so on: a view, nothing is copied. */
export function findAttribute(bytes: Uint8Array, ...[type, ...within]: readonly [number, ...number[]]): Uint8Array | undefined {
  for (let at = 0; at + 4 <= bytes.length; ) {
    const length = bytes[at]! | (bytes[at + 1]! << 8);
    if (length < 4 || at + length > bytes.length) return undefined;
    if (((bytes[at + 2]! | (bytes[at + 3]! << 8)) & TYPE_MASK) === type) {
      const value = bytes.subarray(at + 4, at + length), [next, ...rest] = within;
      return next === undefined ? value : findAttribute(value, next, ...rest);
    }
    at += align(length);
  }
  return undefined;
}

export function u8(value: number): Uint8Array { return Uint8Array.of(value); }
export function u32(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}
/** In network order, as ports are. */
export function be16(value: number): Uint8Array { return Uint8Array.of(value >> 8, value & 0xff); }
/** Ends in a zero byte, as the kernel wants names. */
export function text(value: string): Uint8Array { return new TextEncoder().encode(`${value}\0`); }
export function readU32(bytes: Uint8Array | undefined): number | undefined {
  return bytes === undefined || bytes.length < 4 ? undefined : new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
}
export function readText(bytes: Uint8Array | undefined): string { return bytes === undefined ? "" : new TextDecoder().decode(bytes).replace(/\0.*$/s, ""); }

function align(length: number): number { return (length + 3) & ~3; }

export function joined(parts: readonly Uint8Array[]): Uint8Array { return Uint8Array.from(Buffer.concat(parts)); }
