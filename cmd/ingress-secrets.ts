/** Which Secrets and ConfigMaps all nodes may read, because each serves with them: certificates that Ingresses and Gateways of ours name, authorities of BackendTLSPolicies. */
import type { Ingress } from "../core/api/gen/networking.v1.ts";
import { namespaceOf } from "../core/api/meta/object-meta.ts";
import type { Index } from "../core/client/informer.ts";
import type { Informers } from "../core/client/informer-factory.ts";
import { INGRESS_CLASSES, INGRESSES } from "../core/client/resources.ts";
import { authorityNames } from "../core/ingress/backend-tls.ts";
import { planGateways } from "../core/ingress/gateway.ts";
import { gatewaySource } from "../core/ingress/gateway-source.ts";
import { grants } from "../core/ingress/http-route-rules.ts";
import { isOurIngress, tlsSecretNames } from "../core/ingress/ingress-class.ts";

const BY_SECRET: Index<Ingress> = { name: "TLS secret", valuesOf: (ingress) => tlsSecretNames(ingress).map((name) => `${namespaceOf(ingress)}/${name}`) };

interface OfGateways { readonly secrets: ReadonlySet<string>; readonly configmaps: ReadonlySet<string> }

export function ingressSecrets(informers: Informers): (resource: "secrets" | "configmaps", namespace: string, name: string) => boolean {
  const ingresses = informers.of(INGRESSES), classes = informers.of(INGRESS_CLASSES);
  const gateways = gatewaySource(informers);
  let ofGateways: OfGateways | undefined; // until the next change
  gateways.onChange(() => { ofGateways = undefined; });

  function read(): OfGateways {
    const objects = gateways.objects();
    if (!objects) return { secrets: new Set(), configmaps: new Set() };
    const { listeners } = planGateways({
      ...objects, routes: [], grpcRoutes: [], tlsRoutes: [], tcpRoutes: [], tlsPolicies: [], namespaces: new Map(), addressesOf: () => [], portProblem: () => undefined,
      hasSecureIngress: false, serviceOf: () => ({ spec: {} }), certificateProblem: () => undefined, authorityProblem: () => undefined, isGranted: grants(objects.grants),
    });
    return {
      secrets: new Set(listeners.flatMap(({ certificates }) => certificates).map(({ namespace, secret }) => `${namespace}/${secret}`)),
      configmaps: new Set(objects.tlsPolicies.flatMap((policy) => authorityNames(policy).map((name) => `${namespaceOf(policy)}/${name}`))),
    };
  }

  return (resource, namespace, name) => (resource === "secrets" && ingresses.by(BY_SECRET, `${namespace}/${name}`).some((ingress) => isOurIngress(ingress, classes))) || (ofGateways ??= read())[resource].has(`${namespace}/${name}`);
}
