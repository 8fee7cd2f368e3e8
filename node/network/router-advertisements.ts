/**
 * A machine that forwards is a router to its kernel, which hears no other routers then, and drops the routes it had from them, except where `accept_ra` is 2. Who had its IPv6 routes from
 * them before keeps them, on each way out that it has: its network cards, and whatever else has an address by an advertisement (a bridge, a VLAN). Never from pods and containers, which
 * could say that they are the way out.
 *
 * A machine that forwarded before it was a node heard none unless it was told to, and others may be behind its cards: only where its default route is, it is.
 *
 * Programs that hear routers themselves (systemd-networkd, NetworkManager, dhcpcd) set 0, and it stays.
 *
 * Source: linux Documentation/networking/ip-sysctl.rst (accept_ra), net/ipv6/route.c (rt6_purge_dflt_routers)
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { SysctlKeeper } from "../os/sysctl.ts";
import { isVirtual } from "./node-ip.ts";

const HEARD_UNLESS_FORWARDING = "1", HEARD = "2";
const PERMANENT = 0x80; // linux/if_addr.h: what a router has told of ends some time

/** `cards`: interfaces of devices; `addresses6`: /proc/net/if_inet6. Pure. */
export function waysOut({ cards, addresses6 }: { readonly cards: readonly string[]; readonly addresses6: string }): readonly string[] {
  const told = addresses6.split("\n").flatMap((line) => {
    const [, , , scope, flags, interfaceName] = line.trim().split(/\s+/);
    return interfaceName !== undefined && scope === "00" && (Number(`0x${flags}`) & PERMANENT) === 0 ? [interfaceName] : [];
  });
  return [...new Set([...cards, ...told])].filter((name) => !isVirtual(name));
}

/** Before the machine forwards, and again for interfaces that have come since. */
export function keepHearingRouters(sysctl: Pick<SysctlKeeper, "get" | "set">, interfaceNames: readonly string[]): void {
  for (const name of interfaceNames) {
    const setting = `net/ipv6/conf/${name}/accept_ra`;
    if (sysctl.get(setting) === HEARD_UNLESS_FORWARDING) sysctl.set(setting, HEARD);
  }
}

export function presentWaysOut(): readonly string[] {
  const all = "/sys/class/net", addresses = "/proc/net/if_inet6";
  return waysOut({
    cards: existsSync(all) ? readdirSync(all).filter((name) => existsSync(join(all, name, "device"))) : [],
    addresses6: existsSync(addresses) ? readFileSync(addresses, "utf8") : "",
  });
}
