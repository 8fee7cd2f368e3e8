/** The IPv4 routes of a Windows machine, by way of route.exe, which every Windows has. */
import { execFileSync } from "node:child_process";

export interface WindowsRoute {
  /** 10.42.1.0/24 */
  readonly to: string;
  /** Undefined: on the link. */
  readonly via: string | undefined;
  /** The address of the interface. */
  readonly interfaceIp: string;
  readonly metric: number;
}

export interface WindowsRoutes {
  list(): readonly WindowsRoute[];
  add(route: Pick<WindowsRoute, "to"> & { readonly via: string }): void;
  remove(route: Pick<WindowsRoute, "to" | "via">): void;
}

export function systemRoutes(): WindowsRoutes {
  const route = (...args: readonly string[]): string => execFileSync("route.exe", args, { encoding: "utf8", windowsHide: true, stdio: ["ignore", "pipe", "ignore"] });
  return {
    list: () => parseRoutePrint(route("PRINT", "-4")),
    add({ to, via }) {
      const [network, mask] = networkAndMask(to);
      route("ADD", network, "MASK", mask, via);
    },
    remove({ to, via }) {
      const [network, mask] = networkAndMask(to);
      route("DELETE", network, "MASK", mask, ...(via === undefined ? [] : [via]));
    },
  };
}

/**
 * What `route PRINT -4` says. Words are translated ("On-link"), columns are not. Persistent routes, in a table of four columns at the end, are left out: those in use are
 * among the active ones. Pure.
 *
 *           0.0.0.0          0.0.0.0      192.168.1.1     192.168.1.10     25
 *       192.168.1.0    255.255.255.0         On-link      192.168.1.10    281
 */
export function parseRoutePrint(text: string): WindowsRoute[] {
  return text.split(/\r?\n/).flatMap((line) => {
    const [, network, mask, gateway, interfaceIp, metric] = /^\s+(\d+(?:\.\d+){3})\s+(\d+(?:\.\d+){3})\s+(\S+(?: \S+)*?)\s+(\d+(?:\.\d+){3})\s+(\d+)\s*$/.exec(line) ?? [];
    if (network === undefined) return [];
    return [{ to: `${network}/${prefixOf(mask!)}`, via: /^\d+(\.\d+){3}$/.test(gateway!) ? gateway : undefined, interfaceIp: interfaceIp!, metric: Number(metric) }];
  });
}

function prefixOf(mask: string): number {
  return mask.split(".").reduce((sum, part) => sum + Number(part).toString(2).replaceAll("0", "").length, 0);
}

/** "10.42.1.0/24" → ["10.42.1.0", "255.255.255.0"] */
export function networkAndMask(cidr: string): readonly [network: string, mask: string] {
  const [network = "", prefix = "32"] = cidr.split("/");
  const bits = (0xffffffff << (32 - Number(prefix))) >>> 0;
  return [network, prefix === "0" ? "0.0.0.0" : [24, 16, 8, 0].map((shift) => (bits >>> shift) & 0xff).join(".")];
}
