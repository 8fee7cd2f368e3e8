/**
 * Removes all that the pod network has left on this machine: interfaces, routes, packet filter tables, CNI configuration, address records; and puts the kernel's
 * settings back. For uninstalling, once the pods are gone. Goes on after a failure, and throws all of them at the end.
 */
import { rmSync } from "node:fs";
import { join } from "node:path";
import { settleAll } from "../../core/lifecycle/settle-all.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Nft } from "../os/exec-nft.ts";
import type { Netlink } from "../os/netlink.ts";
import { sysctlKeeper } from "../os/sysctl.ts";
import { bandwidthText } from "./bandwidth.ts";
import { removeBridge } from "./bridge.ts";
import { CNI_FILE } from "./cni-config.ts";
import { disallowForwarding } from "./forward.ts";
import { HOST_PORT_TABLE } from "./host-ports.ts";
import { MASQUERADE_TABLE } from "./masquerade.ts";
import { networkPaths } from "./network.ts";
import { removeServiceRoutes } from "./service-routes.ts";
import { removeTunnel } from "./vxlan.ts";

export interface RemoveNetworkOptions {
  readonly cniConfDir: string;
  readonly stateDir: string;
  readonly nft: Nft;
  readonly netlink: () => Netlink;
  readonly log: Log;
}

export async function removeNetwork({ cniConfDir, stateDir, nft, netlink: open, log }: RemoveNetworkOptions, signal: AbortSignal): Promise<void> {
  const paths = networkPaths(stateDir);
  async function links(): Promise<void> {
    using netlink = open();
    removeTunnel(netlink);
    removeBridge(netlink);
    removeServiceRoutes(netlink);
  }
  async function files(): Promise<void> {
    rmSync(join(cniConfDir, CNI_FILE), { force: true });
    sysctlKeeper({ recordFile: paths.sysctls, log }).restore();
    rmSync(stateDir, { recursive: true, force: true });
  }
  const table = (family: "ip" | "ip6", name: string): Promise<void> => nft.apply(`add table ${family} ${name}\ndelete table ${family} ${name}\n`, { signal });
  await settleAll([
    links(), files(), disallowForwarding(nft, signal),
    nft.apply(bandwidthText([]), { signal }).catch(() => undefined), // a kernel that cannot filter on bridges has no such table
    ...(["ip", "ip6"] as const).flatMap((family) => [MASQUERADE_TABLE, HOST_PORT_TABLE].map((name) => table(family, name))),
  ]);
}
