/**
 * An IPAddress for each address a Service has: who has which is seen at a glance, and a ServiceCIDR is kept while its addresses are in use.
 *
 * Addresses are allocated when a Service is written, without these objects; they follow. Those that name no Service, or one without that address, go.
 *
 * Source: kubernetes v1.36 pkg/registry/core/service/ipallocator/{ipallocator,controller/repairip}.go
 */
import type { Service } from "../../api/gen/core.v1.ts";
import type { IPAddress } from "../../api/gen/networking.v1.ts";
import { keyOf, labelsOf, type NewObject, namespaceOf, objectKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists, isNotFound } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { IP_ADDRESSES, SERVICES } from "../../client/resources.ts";
import { formatIp, parseIp } from "../../net/cidr.ts";
import { type Controller, itself, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";

const MANAGED_BY = "ipaddress.kubernetes.io/managed-by";
const FAMILY = "ipaddress.kubernetes.io/ip-family";
const ALLOCATOR = "ipallocator.k8s.io";

const SERVICES_BY_ADDRESS: Index<Service> = { name: "cluster IP", valuesOf: addressesOf };

function addressesOf({ spec }: Readonly<Service>): string[] {
  const all = spec.clusterIPs?.length ? spec.clusterIPs : spec.clusterIP ? [spec.clusterIP] : [];
  return all.flatMap((text) => {
    const ip = parseIp(text); // "None" and "" are none
    return ip ? [formatIp(ip)] : [];
  });
}

/** Keys are those of addresses. */
export function serviceAddressController({ client, informers }: Pick<ControllerDeps, "client" | "informers">): Controller {
  const services = informers.of(SERVICES);
  const addresses = informers.of(IP_ADDRESSES);
  const addressClient = client.resource(IP_ADDRESSES);
  return {
    name: "service-ip-addresses",
    workers: 2,
    watches: [
      mapped(services, ({ object, old }) => [object, ...(old ? [old] : [])].flatMap((service) => addressesOf(service).map((address) => objectKey("", address)))),
      itself(addresses),
    ],
    async reconcile(key, { signal }) {
      const [service] = services.by(SERVICES_BY_ADDRESS, key);
      const known = addresses.get(key);
      if (known && labelsOf(known)[MANAGED_BY] !== ALLOCATOR) return; // somebody else's
      if (known && (!service || !isParent(known, service))) {
        await addressClient.delete(known, { preconditions: { uid: known.metadata.uid } }, { signal }).catch((error: unknown) => {
          if (!isNotFound(error)) throw error;
        });
        await addresses.sawDeleted([known], signal);
      }
      if (!service || (known && isParent(known, service))) return;
      const made = await addressClient.create(addressFor(key, service), { signal }).catch((error: unknown) => {
        if (isAlreadyExists(error)) return undefined; // looked at again when the informer has it
        throw error;
      });
      if (made) await addresses.caughtUp([made], signal);
    },
  };
}

function isParent({ spec }: Readonly<IPAddress>, service: Readonly<Service>): boolean {
  const { parentRef } = spec;
  return parentRef?.resource === "services" && (parentRef.group ?? "") === "" && objectKey(parentRef.namespace ?? "", parentRef.name ?? "") === keyOf(service);
}

function addressFor(address: string, service: Readonly<Service>): NewObject<IPAddress> {
  return {
    apiVersion: "networking.k8s.io/v1", kind: "IPAddress",
    metadata: { name: address, labels: { [FAMILY]: address.includes(":") ? "IPv6" : "IPv4", [MANAGED_BY]: ALLOCATOR } },
    spec: { parentRef: { resource: "services", namespace: namespaceOf(service), name: service.metadata.name } },
  };
}
