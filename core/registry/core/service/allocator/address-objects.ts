/**
 * An IPAddress for each address that a service has, so that everybody sees who has which, and a ServiceCIDR is kept while its addresses are in use.
 *
 *   addresses are allocated → an IPAddress each → the service is checked and written → those it no longer has go
 *
 * They are made and deleted as anybody would, through the API and in the API server's own name: plug-ins are asked, and who refuses an IPAddress refuses the service.
 * Should the process die in between, one is left without a service, or a service without one: core/controllers/servicecidr/ipaddresses.ts repairs that.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/{ipallocator/ipallocator.go,storage/alloc.go}
 */
import type { Service } from "../../../../api/gen/core.v1.ts";
import type { IPAddress } from "../../../../api/gen/networking.v1.ts";
import { invalid } from "../../../../api/meta/field-error.ts";
import { keyOf, type NewObject, objectKey } from "../../../../api/meta/object-meta.ts";
import { invalid as invalidObject, isAlreadyExists, type StatusError } from "../../../../api/meta/status-error.ts";
import type { Allocation } from "../../../generic/resource.ts";
import { formatAddress, parseAddress } from "../../checks/ip.ts";

/** Of IPAddresses: who has made them. */
const MANAGED_BY = "ipaddress.kubernetes.io/managed-by";
const ADDRESS_FAMILY = "ipaddress.kubernetes.io/ip-family";
const ALLOCATOR = "ipallocator.k8s.io";

/** IPAddresses as the API server's own client has them. */
export interface AddressClient {
  create(object: NewObject<IPAddress>, call: { readonly signal: AbortSignal }): Promise<unknown>;
  delete(object: { readonly metadata: { readonly name: string } }, query: object, call: { readonly signal: AbortSignal }): Promise<unknown>;
}

export interface AddressObjects {
  readonly client: AddressClient;
  find(name: string): Readonly<IPAddress> | undefined;
}

/** As IPAddresses are named. */
export function addressesOf({ spec }: Readonly<Service>): string[] {
  if (spec.type === "ExternalName") return [];
  const all = spec.clusterIPs?.length ? spec.clusterIPs : spec.clusterIP ? [spec.clusterIP] : [];
  return all.flatMap((text) => {
    const address = parseAddress(text); // "None" and "" are none
    return address ? [formatAddress(address)] : [];
  });
}

function addressFor(name: string, { metadata }: Readonly<Service>): NewObject<IPAddress> {
  return {
    apiVersion: "networking.k8s.io/v1", kind: "IPAddress",
    metadata: { name, labels: { [ADDRESS_FAMILY]: name.includes(":") ? "IPv6" : "IPv4", [MANAGED_BY]: ALLOCATOR } },
    spec: { parentRef: { resource: "services", namespace: metadata.namespace ?? "", name: metadata.name ?? "" } },
  };
}

function isParent({ spec: { parentRef } }: Readonly<IPAddress>, service: Readonly<Service>): boolean {
  return parentRef?.resource === "services" && (parentRef.group ?? "") === "" && objectKey(parentRef.namespace ?? "", parentRef.name ?? "") === keyOf(service);
}

/** `allocation`, with the objects of what it has taken and of what `old` had. `named`: the addresses that were asked for. Throws 422 for what is refused; then nothing is kept. */
export async function withAddressObjects(allocation: Allocation & { readonly addresses: readonly string[] }, { next, old, named, objects }: {
  readonly next: Readonly<Service>; readonly old: Readonly<Service> | undefined; readonly named: readonly string[]; readonly objects: AddressObjects;
}): Promise<Allocation> {
  const had = old ? addressesOf(old) : [];
  const made: string[] = [];
  const rollback = async (): Promise<void> => {
    await releaseAddresses(objects, made.splice(0), next);
    await allocation.rollback();
  };
  try {
    for (const [i, name] of addressesOf(next).entries()) {
      if (!allocation.addresses.includes(name)) continue; // one that an update may not change to is for validation to tell
      await objects.client.create(addressFor(name, next), { signal: NEVER }).catch((error: unknown) => { throw refused(next, error as Error, { named, i }); });
      made.push(name);
    }
  } catch (error) {
    await rollback();
    throw error;
  }
  return {
    rollback,
    async commit() {
      await allocation.commit();
      const kept = addressesOf(next);
      await releaseAddresses(objects, had.filter((name) => !kept.includes(name)), old ?? next);
    },
  };
}

function refused({ metadata, spec }: Readonly<Service>, error: Error, { named, i }: { readonly named: readonly string[]; readonly i: number }): StatusError {
  const asked = (spec.clusterIPs ?? []).map((_, at) => named[at] ?? "");
  const why = isAlreadyExists(error) ? "provided IP is already allocated" : error.message; // since it was looked for
  return invalidObject({ group: "", kind: "Service" }, metadata.name ?? "", [invalid("spec.clusterIPs", asked, `failed to allocate IP${asked[i] ? ` ${asked[i]}` : ""}: ${why}`)]);
}

/** The service is what counts, and is written: what cannot be deleted now is cleaned up later, and what is not its own stays. */
export async function releaseAddresses({ client, find }: AddressObjects, names: readonly string[], service: Readonly<Service>): Promise<void> {
  for (const name of names) {
    const known = find(name);
    if (known && isParent(known, service)) await client.delete(known, {}, { signal: NEVER }).catch(() => undefined);
  }
}

/** Whoever asked for the service may have gone: what was begun is finished. */
const NEVER = new AbortController().signal;
