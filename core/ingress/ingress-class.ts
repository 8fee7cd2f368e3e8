/** Which Ingresses are ours to serve: those of a class whose controller we are. */
import type { Ingress, IngressClass } from "../api/gen/networking.v1.ts";
import { annotationsOf, objectKey } from "../api/meta/object-meta.ts";
import type { Informer } from "../client/informer.ts";

const INGRESS_CONTROLLER = "coracle.io/ingress-controller";
/** From before there were classes. */
const CLASS_ANNOTATION = "kubernetes.io/ingress.class";

/** The Service through which requests reach the nodes, and the ports their ingress listens on. */
export const INGRESS_SERVICE = { namespace: "kube-system", name: "coracle-ingress" } as const;
export const HTTP_PORT = 10_080, HTTPS_PORT = 10_443;

export function isOurIngress(ingress: Readonly<Ingress>, classes: Pick<Informer<IngressClass>, "get">): boolean {
  const name = ingress.spec.ingressClassName ?? annotationsOf(ingress)[CLASS_ANNOTATION];
  return name !== undefined && ingress.metadata.deletionTimestamp === undefined && classes.get(objectKey("", name))?.spec.controller === INGRESS_CONTROLLER;
}

/** What it asks for is what it asked for: all that has changed is its status, or who wrote it. */
export function isRoutedAlike({ metadata: now }: Readonly<Ingress>, { metadata: before }: Readonly<Ingress>): boolean {
  return now.generation === before.generation && now.deletionTimestamp === before.deletionTimestamp && Bun.deepEquals(now.annotations ?? {}, before.annotations ?? {});
}

export function isSecure({ spec }: Readonly<Ingress>): boolean { return (spec.tls ?? []).length > 0; }

/** Names of the Secrets with its certificates; all in its namespace. */
export function tlsSecretNames({ spec }: Readonly<Ingress>): string[] {
  return [...new Set((spec.tls ?? []).flatMap(({ secretName }) => (secretName ? [secretName] : [])))];
}
