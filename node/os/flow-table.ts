/**
 * The kernel's table of flows (conntrack), asked and changed over netlink: no program is started, however many flows are deleted.
 *
 *   const flows = flowTable(() => netlinkSocket(NETLINK_NETFILTER));
 *   for (const told of flows.list(4)) stale.push(...told.map(readFlow).filter(isStale));
 *   for (const flow of stale) flows.delete(flow);
 *
 * Source: linux include/uapi/linux/netfilter/nfnetlink_conntrack.h, net/netfilter/nf_conntrack_netlink.c (a deletion names the first direction; with the id, this flow and no
 * later one of the same addresses)
 */
import { attribute, findAttribute, joined, nested, NLM, u32, u8 } from "./netlink-message.ts";
import { NetlinkError, type NetlinkSocket } from "./netlink-socket.ts";

/** Where a UDP flow's first packet went, and who answers; addresses as bytes. `handle`: what the kernel wants to hear to delete it. */
export interface TrackedFlow { readonly originalIp: Uint8Array; readonly originalPort: number; readonly replyIp: Uint8Array; readonly replyPort: number; readonly handle: Uint8Array }

export interface FlowTable {
  /** All UDP flows of a family, in parts, each as the kernel tells it: `readFlow` makes something of it. Nothing else before it has come to its end, or was left. */
  list(family: 4 | 6): Iterable<readonly Uint8Array[]>;
  /** That it is gone already is no failure. */
  delete(flow: Pick<TrackedFlow, "handle">): void;
}

const SUBSYSTEM = 1, GET = 1, DELETE = 2, UDP = 17, ENOENT = 2, HEADER_BYTES = 4;
const FAMILIES: Readonly<Record<4 | 6, number>> = { 4: 2, 6: 10 };
const CTA = { ORIGINAL: 1, REPLY: 2, ID: 12, ZONE: 18, FILTER: 25 } as const, TUPLE = { IP: 1, PROTO: 2 } as const, PROTO = { NUMBER: 1, SOURCE: 2, DESTINATION: 3 } as const;
const FILTER = { ORIGINAL: 1, REPLY: 2, BY_PROTOCOL: 1 << 3 } as const;
/** Kernels before 5.8 do not know it, and tell of all flows. */
const ONLY_UDP = joined([nested(CTA.ORIGINAL, nested(TUPLE.PROTO, attribute(PROTO.NUMBER, u8(UDP)))), nested(CTA.FILTER, attribute(FILTER.ORIGINAL, u32(FILTER.BY_PROTOCOL)), attribute(FILTER.REPLY, u32(0)))]);
/** Within CTA_TUPLE_IP, by family. */
const ADDRESS: Readonly<Record<number, { readonly source: number; readonly destination: number }>> = { 2: { source: 1, destination: 2 }, 10: { source: 3, destination: 4 } };

export function flowTable(open: () => NetlinkSocket): FlowTable {
  let socket: NetlinkSocket | undefined;
  return {
    *list(family) {
      const asked = (socket ??= open());
      let isWhole = false;
      try {
        yield* asked.dumpInParts((SUBSYSTEM << 8) | GET, joined([Uint8Array.of(FAMILIES[family], 0, 0, 0), ONLY_UDP]));
        isWhole = true;
      } finally {
        if (!isWhole) { // it answers nothing else now
          asked.close();
          socket = undefined;
        }
      }
    },
    delete({ handle }) {
      try {
        (socket ??= open()).request((SUBSYSTEM << 8) | DELETE, NLM.REQUEST | NLM.ACK, handle);
      } catch (error) {
        if (!(error instanceof NetlinkError && error.errno === ENOENT)) throw error;
      }
    },
  };
}

/** undefined: it is none of UDP, or does not go to a port that `isFront` holds for one. Pure. */
export function readFlow(message: Uint8Array, isFront: (port: number) => boolean): TrackedFlow | undefined {
  const address = ADDRESS[message[0] ?? 0], attributes = message.subarray(HEADER_BYTES);
  const original = findAttribute(attributes, CTA.ORIGINAL), reply = findAttribute(attributes, CTA.REPLY);
  if (!address || !original || !reply || findAttribute(original, TUPLE.PROTO, PROTO.NUMBER)?.[0] !== UDP) return undefined;
  const originalPort = portOf(findAttribute(original, TUPLE.PROTO, PROTO.DESTINATION));
  if (!isFront(originalPort)) return undefined;
  const originalIp = findAttribute(original, TUPLE.IP, address.destination), replyIp = findAttribute(reply, TUPLE.IP, address.source);
  if (!originalIp || !replyIp) return undefined;
  const named = [CTA.ZONE, CTA.ID].flatMap((type) => {
    const value = findAttribute(attributes, type);
    return value ? [attribute(type, value)] : [];
  });
  return { originalIp, originalPort, replyIp, replyPort: portOf(findAttribute(reply, TUPLE.PROTO, PROTO.SOURCE)), handle: joined([message.subarray(0, HEADER_BYTES), nested(CTA.ORIGINAL, original), ...named]) };
}

function portOf(bytes: Uint8Array | undefined): number { return bytes && bytes.length >= 2 ? (bytes[0]! << 8) | bytes[1]! : 0; }
