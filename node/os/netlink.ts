/**
 * The kernel's network configuration: interfaces, addresses, routes, neighbours, forwarding entries. One small synchronous call each; the kernel answers at once.
 *
 *   using net = openNetlink();
 *   const index = net.link("cni0")?.index ?? net.addBridge("cni0", { mtu: 1450, mac });
 *   net.replaceRoute({ to: "10.42.1.0/24", via: "10.42.1.0", device: index, onlink: true, protocol: 171 });
 *
 * What is asked for and there already is no error, nor is removing what is gone. Everything else throws NetlinkError.
 *
 * Linux only. Source: linux include/uapi/linux/{rtnetlink,if_link,if_addr,neighbour,fib_rules}.h
 */
import { isIPv6 } from "node:net";
import { attribute, be16, joined, nested, NLM, readAttributes, readText, readU32, text, u32, u8 } from "./netlink-message.ts";
import { netlinkSocket, NetlinkError, type NetlinkSocket } from "./netlink-socket.ts";

export interface Link { readonly index: number; readonly name: string; readonly mac: string; readonly mtu: number; readonly up: boolean; readonly master: number; readonly kind: string; readonly vxlan: VxlanOptions | undefined }
export interface VxlanOptions { readonly id: number; readonly local: string; readonly port: number; readonly device: number }
export interface Route { readonly to: string; readonly via?: string | undefined; readonly device: number; readonly protocol: number; readonly onlink?: boolean | undefined; /** Below 256; absent: the main one. */ readonly table?: number | undefined }
/** Which table is asked, after all rules with a lower number had no answer. */
export interface Rule { readonly family: 4 | 6; readonly table: number; readonly priority: number }
export interface Neighbour { readonly device: number; readonly ip: string; readonly mac: string }

const RTM = { NEWLINK: 16, DELLINK: 17, GETLINK: 18, SETLINK: 19, NEWADDR: 20, DELADDR: 21, GETADDR: 22, NEWROUTE: 24, DELROUTE: 25, GETROUTE: 26, NEWNEIGH: 28, DELNEIGH: 29, GETNEIGH: 30, NEWRULE: 32 } as const;
const AF = { inet: 2, inet6: 10, bridge: 7 } as const;
const IFLA = { ADDRESS: 1, IFNAME: 3, MTU: 4, MASTER: 10, PROTINFO: 12, LINKINFO: 18 } as const, BRPORT_HAIRPIN = 4, INFO = { KIND: 1, DATA: 2 } as const;
const VXLAN = { ID: 1, LINK: 3, LOCAL: 4, LEARNING: 7, PORT: 15, LOCAL6: 17 } as const;
const IFF_UP = 1, NODAD = 0x02, ONLINK = 4, PERMANENT = 0x80, SELF = 0x02, MAIN = 254, UNIVERSE = 0, LINK_SCOPE = 253, UNICAST = 1;
const TO_TABLE = 1;
const EEXIST = 17, ENODEV = 19, ESRCH = 3, ENOENT = 2, EADDRNOTAVAIL = 99;

export interface Netlink extends Disposable {
  links(): Link[];
  link(name: string): Link | undefined;
  /** Both return the new interface's index. */
  addBridge(name: string, options: { readonly mtu: number; readonly mac: string }): number;
  addVxlan(name: string, options: VxlanOptions & { readonly mtu: number; readonly mac: string }): number;
  setLink(index: number, change: {
    readonly up?: boolean;
    readonly mtu?: number;
    readonly mac?: string;
    /** The bridge it is a port of. */
    readonly master?: number;
    /** Whether that sends frames back to where they came from. */
    readonly hairpin?: boolean;
  }): void;
  removeLink(index: number): void;
  /** "10.42.0.1/24" */
  addresses(index: number): string[];
  addAddress(index: number, address: string): void;
  removeAddress(index: number, address: string): void;
  /** Both families, made under `protocol`, of that table; absent: the main one. */
  routes(protocol: number, table?: number): Route[];
  replaceRoute(route: Route): void;
  removeRoute(route: Route): void;
  addRule(rule: Rule): void;
  /** Nothing, too, where the kernel does not have the family. */
  /** Permanent ones. */
  neighbours(device: number): Neighbour[];
  replaceNeighbour(neighbour: Neighbour): void;
  removeNeighbour(neighbour: Neighbour): void;
  /** Forwarding entries of a VXLAN device: to reach `mac`, send to `ip`. */
  forwardings(device: number): Neighbour[];
  replaceForwarding(forwarding: Neighbour): void;
  removeForwarding(forwarding: Neighbour): void;
}

export function openNetlink(): Netlink { return netlinkOver(netlinkSocket()); }

export function netlinkOver(socket: NetlinkSocket): Netlink {
  function ask(type: number, flags: number, ...parts: readonly Uint8Array[]): void { socket.request(type, NLM.REQUEST | NLM.ACK | flags, joined(parts)); }
  function dump(type: number, ...parts: readonly Uint8Array[]): Uint8Array[] { return socket.dump(type, joined(parts)); }
  function unless(errnos: readonly number[], work: () => void): void {
    try {
      work();
    } catch (error) {
      if (!(error instanceof NetlinkError) || !errnos.includes(error.errno)) throw error;
    }
  }

  const links = (): Link[] => dump(RTM.GETLINK, linkHeader(0)).map(readLink);
  const link = (name: string): Link | undefined => links().find((one) => one.name === name);
  const create = (name: string, mtu: number, mac: string, info: Uint8Array): number => {
    ask(RTM.NEWLINK, NLM.CREATE | NLM.EXCL, linkHeader(0), attribute(IFLA.IFNAME, text(name)), attribute(IFLA.MTU, u32(mtu)), attribute(IFLA.ADDRESS, macBytes(mac)), info);
    return link(name)!.index;
  };
  const setLink: Netlink["setLink"] = (index, { up, mtu, mac, master, hairpin }) => {
    ask(
      RTM.NEWLINK, 0, linkHeader(index, up), ...(mtu === undefined ? [] : [attribute(IFLA.MTU, u32(mtu))]),
      ...(mac === undefined ? [] : [attribute(IFLA.ADDRESS, macBytes(mac))]), ...(master === undefined ? [] : [attribute(IFLA.MASTER, u32(master))]),
    );
    if (hairpin !== undefined) ask(RTM.SETLINK, 0, linkHeader(index, undefined, AF.bridge), nested(IFLA.PROTINFO, attribute(BRPORT_HAIRPIN, u8(hairpin ? 1 : 0))));
  };
  const neighbourMessage = (family: number, flags: number, { device, ip, mac }: Neighbour): Uint8Array[] =>
    [neighbourHeader(family, device, flags), attribute(1, addressBytes(ip)), attribute(2, macBytes(mac))];
  const neighboursOf = (family: number, device: number): Neighbour[] => dump(RTM.GETNEIGH, neighbourHeader(family, device, 0)).flatMap((payload) => {
    const view = new DataView(payload.buffer, payload.byteOffset);
    if (payload[0] !== family || view.getInt32(4, true) !== device || (view.getUint16(8, true) & PERMANENT) === 0) return [];
    const attributes = readAttributes(payload.slice(12));
    const ip = attributes.get(1), mac = attributes.get(2);
    return ip && mac ? [{ device, ip: addressText(ip), mac: macText(mac) }] : [];
  });
  const familyOf = (ip: string): number => (isIPv6(ip) ? AF.inet6 : AF.inet);

  return {
    links,
    link,
    addBridge(name, { mtu, mac }) {
      const index = create(name, 1500, mac, nested(IFLA.LINKINFO, attribute(INFO.KIND, text("bridge"))));
      setLink(index, { mtu }); // a bridge whose MTU was changed once no longer follows its ports'
      return index;
    },
    addVxlan: (name, { mtu, mac, id, local, port, device }) => create(name, mtu, mac, nested(IFLA.LINKINFO, attribute(INFO.KIND, text("vxlan")), nested(INFO.DATA,
      attribute(VXLAN.ID, u32(id)), attribute(isIPv6(local) ? VXLAN.LOCAL6 : VXLAN.LOCAL, addressBytes(local)), attribute(VXLAN.LEARNING, u8(0)), attribute(VXLAN.PORT, be16(port)),
      ...(device === 0 ? [] : [attribute(VXLAN.LINK, u32(device))])))),
    setLink,
    removeLink: (index) => unless([ENODEV], () => ask(RTM.DELLINK, 0, linkHeader(index))),
    addresses: (index) => dump(RTM.GETADDR, new Uint8Array(8)).flatMap((payload) => {
      if (readU32(payload.slice(4, 8)) !== index) return [];
      const attributes = readAttributes(payload.slice(8));
      const ip = attributes.get(2) ?? attributes.get(1);
      return ip ? [`${addressText(ip)}/${payload[1]}`] : [];
    }),
    addAddress: (index, address) => unless([EEXIST], () => ask(RTM.NEWADDR, NLM.CREATE | NLM.EXCL, ...addressMessage(index, address))),
    removeAddress: (index, address) => unless([EADDRNOTAVAIL, ENODEV], () => ask(RTM.DELADDR, 0, ...addressMessage(index, address))),
    routes: (protocol, wanted = MAIN) => dump(RTM.GETROUTE, new Uint8Array(12)).flatMap((payload) => {
      const attributes = readAttributes(payload.slice(12));
      const to = attributes.get(1), device = readU32(attributes.get(4)), via = attributes.get(5);
      const table = readU32(attributes.get(15)) ?? payload[4];
      if (payload[5] !== protocol || table !== wanted || !to || device === undefined) return [];
      return [{ to: `${addressText(to)}/${payload[1]}`, via: via && addressText(via), device, protocol, onlink: ((readU32(payload.slice(8, 12)) ?? 0) & ONLINK) !== 0 }];
    }),
    replaceRoute: (route) => ask(RTM.NEWROUTE, NLM.CREATE | NLM.REPLACE, ...routeMessage(route)),
    removeRoute: (route) => unless([ESRCH], () => ask(RTM.DELROUTE, 0, ...routeMessage(route))),
    addRule: (rule) => unless([EEXIST], () => ask(RTM.NEWRULE, NLM.CREATE | NLM.EXCL, ...ruleMessage(rule))),
    neighbours: (device) => [...neighboursOf(AF.inet, device), ...neighboursOf(AF.inet6, device)],
    replaceNeighbour: (one) => ask(RTM.NEWNEIGH, NLM.CREATE | NLM.REPLACE, ...neighbourMessage(familyOf(one.ip), 0, one)),
    removeNeighbour: (one) => unless([ENOENT], () => ask(RTM.DELNEIGH, 0, ...neighbourMessage(familyOf(one.ip), 0, one))),
    forwardings: (device) => neighboursOf(AF.bridge, device),
    replaceForwarding: (one) => ask(RTM.NEWNEIGH, NLM.CREATE | NLM.REPLACE, ...neighbourMessage(AF.bridge, SELF, one)),
    removeForwarding: (one) => unless([ENOENT], () => ask(RTM.DELNEIGH, 0, ...neighbourMessage(AF.bridge, SELF, one))),
    [Symbol.dispose]: () => socket.close(),
  };
}

function linkHeader(index: number, up?: boolean, family = 0): Uint8Array {
  const bytes = new Uint8Array(16);
  bytes[0] = family;
  const view = new DataView(bytes.buffer);
  view.setInt32(4, index, true);
  if (up !== undefined) {
    view.setUint32(8, up ? IFF_UP : 0, true);
    view.setUint32(12, IFF_UP, true);
  }
  return bytes;
}

function neighbourHeader(family: number, device: number, flags: number): Uint8Array {
  const bytes = new Uint8Array(12);
  const view = new DataView(bytes.buffer);
  bytes[0] = family;
  view.setInt32(4, device, true);
  view.setUint16(8, PERMANENT, true);
  bytes[10] = flags;
  return bytes;
}

function addressMessage(index: number, address: string): Uint8Array[] {
  const { ip, prefix } = split(address);
  const v6 = isIPv6(ip);
  const header = new Uint8Array(8);
  header.set([v6 ? AF.inet6 : AF.inet, prefix]);
  new DataView(header.buffer).setUint32(4, index, true);
  // without an uplink a bridge never finishes looking for duplicates of an IPv6 address
  return [header, attribute(2, addressBytes(ip)), attribute(1, addressBytes(ip)), ...(v6 ? [attribute(8, u32(NODAD))] : [])];
}

function ruleMessage({ family, table, priority }: Rule): Uint8Array[] {
  const header = new Uint8Array(12);
  header.set([family === 6 ? AF.inet6 : AF.inet, 0, 0, 0, table, 0, 0, TO_TABLE]);
  return [header, attribute(6, u32(priority))];
}

function routeMessage({ to, via, device, protocol, onlink = false, table = MAIN }: Route): Uint8Array[] {
  const { ip, prefix } = split(to);
  const header = new Uint8Array(12);
  header.set([isIPv6(ip) ? AF.inet6 : AF.inet, prefix, 0, 0, table, protocol, via === undefined ? LINK_SCOPE : UNIVERSE, UNICAST]);
  new DataView(header.buffer).setUint32(8, onlink ? ONLINK : 0, true);
  return [header, attribute(1, addressBytes(ip)), attribute(4, u32(device)), ...(via === undefined ? [] : [attribute(5, addressBytes(via))])];
}

function readLink(payload: Uint8Array): Link {
  const view = new DataView(payload.buffer, payload.byteOffset);
  const attributes = readAttributes(payload.slice(16));
  const info = readAttributes(attributes.get(IFLA.LINKINFO) ?? new Uint8Array(0));
  const kind = readText(info.get(INFO.KIND));
  const data = readAttributes(info.get(INFO.DATA) ?? new Uint8Array(0));
  const local = data.get(VXLAN.LOCAL) ?? data.get(VXLAN.LOCAL6), port = data.get(VXLAN.PORT);
  return {
    index: view.getInt32(4, true), name: readText(attributes.get(IFLA.IFNAME)), mac: macText(attributes.get(IFLA.ADDRESS) ?? new Uint8Array(0)), mtu: readU32(attributes.get(IFLA.MTU)) ?? 0,
    up: (view.getUint32(8, true) & IFF_UP) !== 0, master: readU32(attributes.get(IFLA.MASTER)) ?? 0, kind,
    vxlan: kind === "vxlan" ? { id: readU32(data.get(VXLAN.ID)) ?? 0, local: local ? addressText(local) : "", port: port ? (port[0]! << 8) | port[1]! : 0, device: readU32(data.get(VXLAN.LINK)) ?? 0 } : undefined,
  };
}

function split(text: string): { readonly ip: string; readonly prefix: number } {
  const [ip = "", prefix = ""] = text.split("/");
  return { ip, prefix: Number(prefix) };
}

function macBytes(mac: string): Uint8Array { return Uint8Array.from(mac.split(":").map((part) => Number.parseInt(part, 16))); }
function macText(bytes: Uint8Array): string { return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join(":"); }

function addressBytes(ip: string): Uint8Array {
  if (!isIPv6(ip)) return Uint8Array.from(ip.split(".").map(Number));
  const [head = "", tail] = ip.split("::");
  const groups = (half: string): string[] => (half === "" ? [] : half.split(":"));
  const front = groups(head), back = groups(tail ?? "");
  const all = [...front, ...Array<string>(8 - front.length - back.length).fill("0"), ...back];
  return Uint8Array.from(all.flatMap((group) => { const value = Number.parseInt(group, 16); return [value >> 8, value & 0xff]; }));
}

/** IPv6 as `new URL` writes it, which is the canonical form. */
function addressText(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, i) => ((bytes[2 * i]! << 8) | bytes[2 * i + 1]!).toString(16));
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
