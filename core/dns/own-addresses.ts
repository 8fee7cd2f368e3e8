/**
 * Addresses outside at which questions come to us: those of Services that lead to where we listen. Whoever asks there asks us, and what we forward would come back.
 *
 * A machine's own address is none as such: a gateway has a name server of its own there, which its resolv.conf names.
 */
import type { Service } from "../api/gen/core.v1.ts";
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import { namespaceOf, objectKey } from "../api/meta/object-meta.ts";
import type { Informer } from "../client/informer.ts";
import { formatIp, parseStoredIp } from "../net/cidr.ts";
import { SERVICE_NAME_LABEL, SLICES_BY_ADDRESS } from "./zone.ts";

/** Where resolvers ask, if nobody says otherwise. */
const ASKED_AT = 53;

export interface OwnAddressesOptions {
  readonly services: Pick<Informer<Service>, "get">;
  readonly slices: Pick<Informer<EndpointSlice>, "by">;
  /** Addresses on which we listen. */
  readonly listen: readonly string[];
}

export function ownAddresses({ services, slices, listen }: OwnAddressesOptions): string[] {
  const leading = new Set(listen.flatMap((address) => slices.by(SLICES_BY_ADDRESS, address).flatMap((slice) => {
    const name = slice.metadata.labels?.[SERVICE_NAME_LABEL];
    return name === undefined ? [] : [objectKey(namespaceOf(slice), name)];
  })));
  const found = [...leading].flatMap((key) => services.get(key) ?? []).filter(({ spec }) => spec.ports?.some(({ port }) => port === ASKED_AT));
  return found.flatMap(({ spec, status }) => [...(spec.clusterIPs ?? []), ...(spec.externalIPs ?? []), ...(status?.loadBalancer?.ingress ?? []).flatMap(({ ip }) => ip ?? [])])
    .flatMap((text) => { const ip = parseStoredIp(text); return ip ? [formatIp(ip)] : []; });
}
