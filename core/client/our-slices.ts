/**
 * The EndpointSlices of the cluster's own Services that select no pods, because nodes answer for them: names, and what comes in from outside. Who makes a slice stands in
 * its label endpointslice.kubernetes.io/managed-by.
 */
import type { EndpointSlice } from "../api/gen/discovery.v1.ts";
import { labelsOf } from "../api/meta/object-meta.ts";

export const DNS_SLICE_MANAGER = "coracle-dns", INGRESS_SLICE_MANAGER = "coracle-ingress";

export function isOurSlice(slice: Readonly<EndpointSlice>): boolean {
  const manager = labelsOf(slice)["endpointslice.kubernetes.io/managed-by"];
  return manager === DNS_SLICE_MANAGER || manager === INGRESS_SLICE_MANAGER;
}
