/** The endpoints of backends, computed when they are first asked for and kept until the Service or one of its EndpointSlices changes: a request must not cost what a Service has of them. */
import type { Service } from "../../core/api/gen/core.v1.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import { keyOf, labelsOf, namespaceOf, type ObjectKey, objectKey } from "../../core/api/meta/object-meta.ts";
import type { Index, Informer } from "../../core/client/informer.ts";
import { aliasOf, endpointsOf, type Resolved } from "../../core/ingress/endpoints.ts";
import type { Backend } from "../../core/ingress/route-table.ts";

const BY_SERVICE: Index<EndpointSlice> = { name: "service behind an ingress", valuesOf: (slice) => serviceOf(slice) ?? [] };

export interface Resolver {
  /** Undefined: there is no such Service, or it has no such port. */
  resolve(backend: Pick<Backend, "namespace" | "service" | "port" | "mayBeAlias">): Resolved | undefined;
  /** Ends the watch for changes. */
  close(): void;
}

export function endpointResolver(services: Informer<Service>, slices: Informer<EndpointSlice>): Resolver {
  const known = new Map<ObjectKey, Map<string | number, Resolved | undefined>>();
  const unwatch = [
    services.onChange(({ object }) => void known.delete(keyOf(object))),
    slices.onChange(({ object, old }) => { for (const slice of old ? [object, old] : [object]) for (const key of serviceOf(slice) ?? []) known.delete(key); }),
  ];

  function look(key: ObjectKey, port: string | number): Resolved | undefined {
    const found = services.get(key);
    return found && (found.spec.type === "ExternalName" ? aliasOf(found, port) : endpointsOf(found, port, slices.by(BY_SERVICE, key)));
  }

  return {
    resolve({ namespace, service, port, mayBeAlias }) {
      const key = objectKey(namespace, service);
      let ports = known.get(key);
      if (!ports) known.set(key, (ports = new Map()));
      if (!ports.has(port)) ports.set(port, look(key, port));
      const found = ports.get(port);
      return found?.endpoints[0]?.isAlias && !mayBeAlias ? undefined : found;
    },
    close: () => { for (const end of unwatch) end(); },
  };
}

function serviceOf(slice: Readonly<EndpointSlice>): ObjectKey[] | undefined {
  const name = labelsOf(slice)["kubernetes.io/service-name"];
  return name === undefined ? undefined : [objectKey(namespaceOf(slice), name)];
}
