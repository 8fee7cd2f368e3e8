/**
 * An IPAddress for each address that a service has, so that everybody sees who has which, and a ServiceCIDR is kept while its addresses are in use.
 *
 *   addresses are allocated → the service is checked → an IPAddress each → the service is written → those it no longer has go
 *
 * Should the process die in between, one is left without a service, or a service without one: core/controllers/servicecidr/ipaddresses.ts repairs that.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/ipallocator/ipallocator.go
 */
import type { Service } from "../../../../api/gen/core.v1.ts";
import type { IPAddress } from "../../../../api/gen/networking.v1.ts";
import { keyOf, objectKey } from "../../../../api/meta/object-meta.ts";
import { internalError, isAlreadyExists } from "../../../../api/meta/status-error.ts";
import { timestamp } from "../../../../lifecycle/clock.ts";
import type { Allocation, WriteContext } from "../../../generic/resource.ts";
import type { ResourceStore } from "../../../generic/store.ts";
import { formatAddress, parseAddress } from "../../checks/ip.ts";

/** Of IPAddresses: who has made them. */
const MANAGED_BY = "ipaddress.kubernetes.io/managed-by";
const ADDRESS_FAMILY = "ipaddress.kubernetes.io/ip-family";
const ALLOCATOR = "ipallocator.k8s.io";

export type AddressStore = Pick<ResourceStore, "create" | "delete" | "select">;

/** As IPAddresses are named. */
export function addressesOf({ spec }: Readonly<Service>): string[] {
  if (spec.type === "ExternalName") return [];
  const all = spec.clusterIPs?.length ? spec.clusterIPs : spec.clusterIP ? [spec.clusterIP] : [];
  return all.flatMap((text) => {
    const address = parseAddress(text); // "None" and "" are none
    return address ? [formatAddress(address)] : [];
  });
}

function addressFor(name: string, { metadata }: Readonly<Service>): Pick<IPAddress, "apiVersion" | "kind" | "metadata" | "spec"> {
  return {
    apiVersion: "networking.k8s.io/v1", kind: "IPAddress",
    metadata: { name, labels: { [ADDRESS_FAMILY]: name.includes(":") ? "IPv6" : "IPv4", [MANAGED_BY]: ALLOCATOR } } as unknown as IPAddress["metadata"],
    spec: { parentRef: { resource: "services", namespace: metadata.namespace ?? "", name: metadata.name } },
  };
}

function isParent({ spec: { parentRef } }: Readonly<IPAddress>, service: Readonly<Service>): boolean {
  return parentRef?.resource === "services" && (parentRef.group ?? "") === "" && objectKey(parentRef.namespace ?? "", parentRef.name ?? "") === keyOf(service);
}

/** `allocation`, with the objects of what `next` has got and `old` had. */
export function withAddressObjects(allocation: Allocation, { next, old, store, context }: {
  readonly next: Readonly<Service>; readonly old: Readonly<Service> | undefined; readonly store: AddressStore; readonly context: WriteContext;
}): Allocation {
  const had = old ? addressesOf(old) : [];
  const made: string[] = [];
  return {
    async prepare() {
      for (const name of addressesOf(next)) {
        if (had.includes(name)) continue;
        await make(store, name, next, context);
        made.push(name);
      }
      await allocation.prepare?.();
    },
    async commit() {
      await allocation.commit();
      const kept = addressesOf(next);
      await releaseAddresses(store, had.filter((name) => !kept.includes(name)), old ?? next, context);
    },
    async rollback() {
      await releaseAddresses(store, made.splice(0), next, context);
      await allocation.rollback();
    },
  };
}

async function make(store: AddressStore, name: string, service: Readonly<Service>, context: WriteContext): Promise<void> {
  const object = addressFor(name, service);
  object.metadata.managedFields = [{ manager: "kube-apiserver", operation: "Update", apiVersion: object.apiVersion, time: timestamp(context.nowMs), fieldsType: "FieldsV1", fieldsV1: FIELDS }];
  try {
    await store.create(object as never, { context, signal: NEVER });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
    throw internalError(new Error(`failed to allocate IP ${name}: provided IP is already allocated`)); // since it was looked for
  }
}

/** The service is what counts, and is written: what cannot be deleted now is cleaned up later, and what is not its own stays. */
export async function releaseAddresses(store: AddressStore, names: readonly string[], service: Readonly<Service>, context: WriteContext): Promise<void> {
  for (const name of names) {
    const [known] = store.select({ namespace: "", name });
    if (!known || !isParent(known.object as unknown as IPAddress, service)) continue;
    await store.delete("", name, { preconditions: { uid: known.object.metadata.uid } }, { context, signal: NEVER }).catch(() => undefined);
  }
}

/** Whoever asked for the service may have gone: what was begun is finished. */
const NEVER = new AbortController().signal;

const FIELDS = Object.freeze({
  "f:metadata": { "f:labels": { ".": {}, [`f:${ADDRESS_FAMILY}`]: {}, [`f:${MANAGED_BY}`]: {} } },
  "f:spec": { "f:parentRef": { ".": {}, "f:name": {}, "f:namespace": {}, "f:resource": {} } },
});
