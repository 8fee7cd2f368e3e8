/** `--overlay=none`: the way to other nodes is somebody else's business. What an overlay of before has made here goes, so that it is not in the way. */
import type { Netlink } from "../os/netlink.ts";
import { noOverlay, type Overlay } from "./overlay.ts";
import { removeTunnel } from "./vxlan.ts";

export function withoutOverlay({ netlink: open }: { readonly netlink: () => Netlink }): Overlay {
  return {
    ...noOverlay,
    async sync() {
      using netlink = open();
      removeTunnel(netlink);
    },
  };
}
