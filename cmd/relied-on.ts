/**
 * Whom this machine cannot be without, at addresses that the cluster does not know: a server its datastore; an agent the servers it was told of, maybe by the address of a load balancer. No Service is to
 * have them here.
 */
import type { Settings } from "./config/flags.ts";

export interface Address { readonly host: string; readonly port: number }

/** --datastore-endpoint's where they say none. */
const ETCD_PORT = 2379;
/** https's. */
const SERVER_PORT = 443;

/** Names, too, as they are written. */
export function reliedOn({ datastoreEndpoint, server }: Pick<Settings, "datastoreEndpoint" | "server">): Address[] {
  return [...etcdAddresses(datastoreEndpoint), ...addressesIn(server, SERVER_PORT)];
}

export function etcdAddresses(endpoints: string | undefined): Address[] { return addressesIn(endpoints, ETCD_PORT); }

function addressesIn(urls = "", standard: number): Address[] {
  return urls.split(",").flatMap((text) => {
    const [, inBrackets, plain, port = standard] = /^\s*https?:\/\/(?:\[([^\]]*)\]|([^:/]*))(?::(\d+))?\/?\s*$/.exec(text) ?? [];
    const host = inBrackets ?? plain;
    return host === undefined ? [] : [{ host, port: Number(port) }];
  });
}
