/** Which Secrets all nodes may read, because each serves HTTPS with them: those that Ingresses and Gateways of ours name. */
import type { Ingress } from "../core/api/gen/networking.v1.ts";
import { namespaceOf } from "../core/api/meta/object-meta.ts";
import type { Index } from "../core/client/informer.ts";
import type { Informers } from "../core/client/informer-factory.ts";
import { INGRESS_CLASSES, INGRESSES } from "../core/client/resources.ts";
import { planGateways } from "../core/ingress/gateway.ts";
import { gatewaySource } from "../core/ingress/gateway-source.ts";
import { grants } from "../core/ingress/http-route-rules.ts";
import { isOurIngress, tlsSecretNames } from "../core/ingress/ingress-class.ts";

const BY_SECRET: Index<Ingress> = { name: "TLS secret", valuesOf: (ingress) => tlsSecretNames(ingress).map((name) => `${namespaceOf(ingress)}/${name}`) };

export function ingressSecrets(informers: Informers): (namespace: string, secret: string) => boolean {
  const ingresses = informers.of(INGRESSES), classes = informers.of(INGRESS_CLASSES);
  const gateways = gatewaySource(informers);
  let ofGateways: ReadonlySet<string> | undefined; // until the next change
  gateways.onChange(() => { ofGateways = undefined; });

  function read(): ReadonlySet<string> {
    const objects = gateways.objects();
    if (!objects) return new Set();
    const { listeners } = planGateways({ ...objects, routes: [], grpcRoutes: [], tlsRoutes: [], namespaces: new Map(), addressesOf: () => [], portProblem: () => undefined, hasSecureIngress: false, serviceExists: () => true, certificateProblem: () => undefined, isGranted: grants(objects.grants) });
    return new Set(listeners.flatMap(({ certificates }) => certificates).map(({ namespace, secret }) => `${namespace}/${secret}`));
  }

  return (namespace, secret) => ingresses.by(BY_SECRET, `${namespace}/${secret}`).some((ingress) => isOurIngress(ingress, classes)) || (ofGateways ??= read()).has(`${namespace}/${secret}`);
}
