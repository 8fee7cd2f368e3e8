/** DefaultIngressClass: an Ingress that names no class gets the default one. Source: kubernetes v1.36 plugin/pkg/admission/network/defaultingressclass */
import type { Ingress, IngressClass } from "../api/gen/networking.v1.ts";
import type { ResourceClient } from "../client/client.ts";
import type { Informer } from "../client/informer.ts";
import { listAll } from "../client/lookup.ts";
import { newestMarked } from "./default-class.ts";
import type { AdmissionPlugin } from "./plugin.ts";
import { isResource } from "./refuse.ts";

export function defaultIngressClass({ ingressClasses, client }: { readonly ingressClasses: Informer<IngressClass>; readonly client: ResourceClient<IngressClass> }): AdmissionPlugin {
  return {
    name: "DefaultIngressClass",
    handles: (request) => request.operation === "CREATE" && isResource(request, "ingresses.networking.k8s.io"),
    async admit({ object, signal }) {
      const ingress = object as Ingress;
      if (ingress.spec?.ingressClassName != null || ingress.metadata.annotations?.["kubernetes.io/ingress.class"] !== undefined) return;
      const found = newestMarked(await listAll(ingressClasses, client, { signal }), ["ingressclass.kubernetes.io/is-default-class"]);
      if (found) ingress.spec = { ...ingress.spec, ingressClassName: found.metadata.name };
    },
  };
}
