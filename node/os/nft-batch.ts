/**
 * Elements of nftables sets, put into the kernel without the nft program: one transaction, whole or not at all. For what changes often and little; everything else, and
 * whatever the kernel refuses here, is nft's.
 *
 * Source: linux include/uapi/linux/netfilter/{nfnetlink,nf_tables}.h; libnftnl include/udata.h (comments)
 */
import { attribute, joined, nested, NLM, text, u8, writeMessage } from "./netlink-message.ts";

/** `value`: absent in a set; bytes, or where a packet goes, in a map. */
export interface SetElement {
  readonly set: string;
  readonly key: Uint8Array;
  readonly value?: Uint8Array | { readonly verdict: "goto" | "drop"; readonly chain?: string | undefined } | undefined;
  readonly comment?: string | undefined;
}
export interface ElementBatch { readonly family: "ip" | "ip6"; readonly table: string; readonly remove: readonly SetElement[]; readonly add: readonly SetElement[] }

export const NETLINK_NETFILTER = 12;
export const SUBSYSTEM = 10;
const BATCH_BEGIN = 0x10, BATCH_END = 0x11, NEWSETELEM = 12, DELSETELEM = 14;
const LIST = { TABLE: 1, SET: 2, ELEMENTS: 3 } as const, ELEMENT = { KEY: 1, DATA: 2, USERDATA: 6 } as const, DATA = { VALUE: 1, VERDICT: 2 } as const, VERDICT = { CODE: 1, CHAIN: 2 } as const;
const CODES = { goto: -4, drop: 0 } as const;
const FAMILIES = { ip: 2, ip6: 10 } as const;

/** All of it as one piece for the socket; only the last change is acknowledged, an error is told of any. */
export function writeBatch({ family, table, remove, add }: ElementBatch, sequence: number): Uint8Array {
  const change = (operation: number, flags: number, { set, ...element }: SetElement): Uint8Array => writeMessage({
    type: (SUBSYSTEM << 8) | operation, flags: NLM.REQUEST | flags, sequence,
    payload: joined([header(FAMILIES[family], 0), attribute(LIST.TABLE, text(table)), attribute(LIST.SET, text(set)), nested(LIST.ELEMENTS, nested(1, ...partsOf(element)))]),
  });
  const changes = [...remove.map(({ set, key }) => [DELSETELEM, 0, { set, key }] as const), ...add.map((element) => [NEWSETELEM, NLM.CREATE, element] as const)];
  const edge = (type: number): Uint8Array => writeMessage({ type, flags: NLM.REQUEST, sequence, payload: header(0, SUBSYSTEM) });
  return joined([edge(BATCH_BEGIN), ...changes.map(([operation, flags, element], i) => change(operation, flags | (i === changes.length - 1 ? NLM.ACK : 0), element)), edge(BATCH_END)]);
}

function partsOf({ key, value, comment }: Omit<SetElement, "set">): Uint8Array[] {
  const parts = [nested(ELEMENT.KEY, attribute(DATA.VALUE, key))];
  if (value instanceof Uint8Array) parts.push(nested(ELEMENT.DATA, attribute(DATA.VALUE, value)));
  else if (value) parts.push(nested(ELEMENT.DATA, nested(DATA.VERDICT, attribute(VERDICT.CODE, be32(CODES[value.verdict])), ...(value.chain === undefined ? [] : [attribute(VERDICT.CHAIN, text(value.chain))]))));
  if (comment !== undefined) {
    const words = text(comment);
    parts.push(attribute(ELEMENT.USERDATA, u8(0), u8(words.length), words));
  }
  return parts;
}

function header(family: number, resource: number): Uint8Array { return Uint8Array.of(family, 0, resource >> 8, resource & 0xff); }
function be32(value: number): Uint8Array { return Uint8Array.of((value >> 24) & 0xff, (value >> 16) & 0xff, (value >> 8) & 0xff, value & 0xff); }
