/**
 * The cluster's half of the ingress (the nodes' is node/ingress): as long as there is an Ingress or a Gateway of ours, there is a Service kube-system/coracle-ingress whose
 * endpoints are the nodes, and where that is reached is published in the Ingresses' status. It has the ports of all Gateways; one that does not go together with the others has
 * a Service of its own.
 *
 *   Ingresses, IngressClasses, Gateways, Nodes ─▶ Service and EndpointSlices ─▶ whoever gives it addresses (servicelb) ─▶ status.loadBalancer of Ingresses
 *
 * The Service is made once and then its owner's: annotations and the like that users add stay.
 */
import { isDeepStrictEqual } from "node:util";
import type { Service } from "../../api/gen/core.v1.ts";
import type { Ingress } from "../../api/gen/networking.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { ifFound } from "../../api/meta/if-found.ts";
import { keyOf, labelsOf, type NewObject, type ObjectKey, objectKey, splitKey } from "../../api/meta/object-meta.ts";
import { isAlreadyExists } from "../../api/meta/status-error.ts";
import type { Index } from "../../client/informer.ts";
import { isOurNode } from "../../client/our-nodes.ts";
import { INGRESS_SLICE_MANAGER } from "../../client/our-slices.ts";
import { ENDPOINT_SLICES, INGRESS_CLASSES, INGRESSES, NODES, SERVICES } from "../../client/resources.ts";
import { INGRESS_SERVICE, isOurIngress, isRoutedAlike, isSecure } from "../../ingress/ingress-class.ts";
import { ourGateways } from "../../ingress/gateway.ts";
import { doorsOf, isFrontService, ownServiceName, planFronts, type Protocol } from "../../ingress/gateway-fronts.ts";
import type { GatewaySource } from "../../ingress/gateway-source.ts";
import type { Gateway } from "../../ingress/gateway-types.ts";
import { settleEach } from "../../lifecycle/settle-all.ts";
import { type Controller, delayed, mapped } from "../controller.ts";
import type { ControllerDeps } from "../deps.ts";
import type { ReservedPort } from "../servicelb/plan.ts";
import { watchOf } from "./gateway.ts";
import { holdsPorts, nodePortProblem } from "./node-ports.ts";
import { gatewayService, ingressService, ingressSlices, publishedAt, withPorts } from "./plan.ts";

const SERVICE = objectKey(INGRESS_SERVICE.namespace, INGRESS_SERVICE.name);
const FRONTS: Index<Service> = { name: "leads to the ingress", valuesOf: (service) => (isFrontService(service) ? ["yes"] : []) };
/** The key of the Services and their slices; the others are Ingresses'. */
const SHARED = objectKey("", "shared");
/** What is shared depends on all Ingresses: thousands that come together are not all looked at for each of them. */
const GATHER_MS = 100;

export interface IngressControllerOptions extends Pick<ControllerDeps, "client" | "informers"> {
  /** Gateways are reached through the same Service, and some through one of their own. */
  readonly gateways?: GatewaySource | undefined;
  /** Ports of the nodes that are not given away; undefined: nobody gives them away. */
  readonly reserved?: readonly ReservedPort[] | undefined;
}

export function ingressController({ client, informers, gateways, reserved }: IngressControllerOptions): Controller {
  const ingresses = informers.of(INGRESSES), classes = informers.of(INGRESS_CLASSES), services = informers.of(SERVICES), slices = informers.of(ENDPOINT_SLICES), nodes = informers.of(NODES);
  const serviceClient = client.resource(SERVICES), sliceClient = client.resource(ENDPOINT_SLICES), ingressClient = client.resource(INGRESSES);

  const ours = (): Readonly<Ingress>[] => [...ingresses.list()].filter((one) => isOurIngress(one, classes));

  function gatewaysOfOurs(): Gateway[] {
    const objects = gateways?.objects();
    return objects ? ourGateways(objects.classes, objects.gateways) : [];
  }

  async function ensureServices(signal: AbortSignal): Promise<void> {
    const all = gatewaysOfOurs(), { shared, own } = planFronts(all, { portProblem: nodePortProblem(services, reserved), hasSecureIngress: ours().some(isSecure) });
    const wanted = new Map(all.flatMap((gateway) => (own.has(keyOf(gateway)) ? [[objectKey(gateway.metadata.namespace ?? "", ownServiceName(keyOf(gateway))), gateway]] : [])));
    const removed = services.by(FRONTS, "yes").filter((one) => keyOf(one) !== SERVICE && !wanted.has(keyOf(one))).map((one) => () => remove(one, signal));
    const isWanted = ours().length > 0 || all.length > 0;
    const sharedOne = async (): Promise<void> => {
      const service = services.get(SERVICE);
      if (isWanted) await ensureService(service, ingressService, new Map([...shared].filter(([port]) => port !== 80 && port !== 443)), signal);
      else if (service) await remove(service, signal);
    };
    const ownOnes = [...wanted].map(([key, gateway]) => () => ensureService(services.get(key), () => gatewayService(gateway), own.get(keyOf(gateway))!, signal));
    await settleEach([...removed, sharedOne, ...ownOnes], 1, (step) => step()); // one that is refused, as in a namespace without room for it, is nobody else's trouble
  }

  async function ensureService(found: Readonly<Service> | undefined, make: () => NewObject<Service>, wanted: ReadonlyMap<number, Protocol>, signal: AbortSignal): Promise<void> {
    const taken = new Set(services.by(FRONTS, "yes").filter((one) => one !== found).flatMap((one) => doorsOf(one, undefined).map(({ target }) => target)));
    if (!found) {
      const made = make(), ports = withPorts(made as Pick<Service, "spec">, wanted, taken);
      return services.caughtUp([await serviceClient.create({ ...made, spec: { ...made.spec, ...(ports && { ports }) } } as NewObject<Service>, { signal })], signal);
    }
    if (found.metadata.deletionTimestamp !== undefined) return;
    const ports = withPorts(found, wanted, taken);
    const service = ports?.length ? await serviceClient.update({ ...found, spec: { ...found.spec, ports } }, { signal }) : found;
    if (service !== found) await services.caughtUp([service], signal);
    for (const slice of ingressSlices(service, [...nodes.list()])) await ensureSlice(slice, signal);
  }

  async function remove(service: Readonly<Service>, signal: AbortSignal): Promise<void> {
    if (service.metadata.deletionTimestamp !== undefined) return;
    await ifFound(serviceClient.delete(service, { preconditions: { uid: service.metadata.uid } }, { signal }));
    return services.sawDeleted([service], signal);
  }

  async function ensureSlice(slice: NewObject<EndpointSlice>, signal: AbortSignal): Promise<void> {
    const found = slices.get(objectKey(slice.metadata.namespace ?? "", slice.metadata.name ?? ""));
    const content = (one: NewObject<EndpointSlice> | Readonly<EndpointSlice>): unknown => JSON.parse(JSON.stringify([one.endpoints ?? [], one.ports, one.metadata.ownerReferences]));
    if (!found) {
      const made = await sliceClient.create(slice, { signal }).catch((error: unknown) => { if (!isAlreadyExists(error)) throw error; });
      if (made) await slices.caughtUp([made], signal);
    } else if (!isDeepStrictEqual(content(found), content(slice))) {
      await slices.caughtUp([await sliceClient.update({ ...slice, metadata: { ...found.metadata, ...slice.metadata } } as EndpointSlice, { signal })], signal);
    }
  }

  async function publish(ingress: Readonly<Ingress>, signal: AbortSignal): Promise<void> {
    const at = publishedAt(services.get(SERVICE)?.status);
    if (isDeepStrictEqual(JSON.parse(JSON.stringify(ingress.status?.loadBalancer?.ingress ?? [])), at)) return;
    const next = { ...ingress, status: { loadBalancer: at.length > 0 ? { ingress: at } : {} } };
    await ingresses.caughtUp([await ingressClient.updateStatus(next, { signal })], signal);
  }

  const everything = (): ObjectKey[] => [SHARED, ...ours().map(keyOf)];

  return {
    name: "ingress",
    workers: 1,
    starts: [SHARED],
    watches: [
      mapped(ingresses, ({ object, deleted }) => (deleted ? [] : [keyOf(object)])),
      delayed(mapped(ingresses, ({ object, old, deleted }) => (deleted || old === undefined || !isRoutedAlike(object, old) ? [SHARED] : [])), GATHER_MS),
      mapped(classes, everything),
      ...(gateways ? [watchOf(gateways, SHARED)] : []),
      mapped(services, ({ object, old }) => (keyOf(object) === SERVICE ? everything() : isFrontService(object) || (gateways && holdsPorts(object, old)) ? [SHARED] : [])),
      mapped(slices, ({ object }) => (labelsOf(object)["endpointslice.kubernetes.io/managed-by"] === INGRESS_SLICE_MANAGER ? [SHARED] : [])),
      mapped(nodes, ({ object, old, deleted }) => (deleted || old === undefined || !isDeepStrictEqual([
        ready(object.status), object.status?.addresses, object.metadata.deletionTimestamp, isOurNode(object),
      ], [ready(old.status), old.status?.addresses, old.metadata.deletionTimestamp, isOurNode(old)]) ? [SHARED] : [])),
    ],
    async reconcile(key, { signal }) {
      if (key === SHARED) return ensureServices(signal);
      const ingress = splitKey(key).namespace === "" ? undefined : ingresses.get(key);
      if (ingress && isOurIngress(ingress, classes)) await publish(ingress, signal);
    },
  };
}

/** Where nodes have no ingress (any more): its Services go, which kept the ports of the nodes from whose ingress is to have them, and Ingresses are told to be at no address: nobody is there. */
export function noIngressController({ client, informers }: Pick<IngressControllerOptions, "client" | "informers">): Controller {
  const ingresses = informers.of(INGRESSES), classes = informers.of(INGRESS_CLASSES), services = informers.of(SERVICES);
  return {
    name: "ingress", workers: 1, starts: [SHARED], watches: [], reads: [ingresses, classes, services],
    async reconcile(_key, { signal }) {
      const removals = services.by(FRONTS, "yes").filter(({ metadata }) => metadata.deletionTimestamp === undefined)
        .map((service) => (): Promise<unknown> => ifFound(client.resource(SERVICES).delete(service, { preconditions: { uid: service.metadata.uid } }, { signal })));
      const withdrawals = [...ingresses.list()].filter((one) => one.status?.loadBalancer?.ingress?.length && isOurIngress(one, classes))
        .map((ingress) => (): Promise<unknown> => ifFound(client.resource(INGRESSES).updateStatus({ ...ingress, status: { loadBalancer: {} } }, { signal })));
      await settleEach([...removals, ...withdrawals], 1, (step) => step());
    },
  };
}

function ready(status: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] | undefined } | undefined): string | undefined {
  return status?.conditions?.find(({ type }) => type === "Ready")?.status;
}
