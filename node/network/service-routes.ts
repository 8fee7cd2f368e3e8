/**
 * Routes to the addresses of Services, for programs of this machine and pods on its network: a packet to such an address is translated on its way out, but without a route
 * it never sets out. Mostly the default route serves. On a machine that has none, since it is on no other network, these do: they stand in a table that is asked last.
 */
import { parseCidr } from "../../core/net/cidr.ts";
import type { Netlink } from "../os/netlink.ts";
import { ROUTE_PROTOCOL } from "./vxlan.ts";

/** The kernel's own rules end at 32767. */
const RULE = { table: ROUTE_PROTOCOL, priority: 40_000 + ROUTE_PROTOCOL } as const;

/** `device`: the pods' bridge, whose address such packets have until they are translated. */
export function ensureServiceRoutes(netlink: Pick<Netlink, "addRule" | "replaceRoute" | "removeRoute" | "routes">, { serviceCidrs, device }: { readonly serviceCidrs: readonly string[]; readonly device: number }): void {
  for (const route of netlink.routes(ROUTE_PROTOCOL, RULE.table)) if (!serviceCidrs.includes(route.to)) netlink.removeRoute({ ...route, table: RULE.table }); // of a range that is gone
  for (const to of serviceCidrs) {
    const family = parseCidr(to)?.family;
    if (family === undefined) continue;
    netlink.addRule({ family, ...RULE });
    netlink.replaceRoute({ to, device, protocol: ROUTE_PROTOCOL, table: RULE.table });
  }
}
