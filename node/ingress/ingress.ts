/**
 * The ingress of this node: HTTP and HTTPS from outside, to pods, as Ingresses and Gateways say.
 *
 *   client ─▶ Service kube-system/coracle-ingress, ports 80, 443 and those of Gateways ─▶ this node's listeners ─▶ route (core/ingress) ─▶ endpoint
 *
 * Each node serves what arrives at it, with what it knows: also while no server can be reached. As long as there is nothing of ours to serve, nothing listens. Which
 * Ingresses are ours, and what makes requests arrive here, is core/controllers/ingress.
 *
 * API: https://kubernetes.io/docs/concepts/services-networking/ingress/
 */
import { keyOf, labelsOf, type ObjectKey, objectKey, splitKey } from "../../core/api/meta/object-meta.ts";
import type { Client } from "../../core/client/client.ts";
import type { Informers } from "../../core/client/informer-factory.ts";
import { CONFIG_MAPS, ENDPOINT_SLICES, INGRESS_CLASSES, INGRESSES, NAMESPACES, SERVICES } from "../../core/client/resources.ts";
import { serviceRanges } from "../../core/client/service-ranges.ts";
import { authorityOf } from "../../core/ingress/backend-tls.ts";
import { planGateways } from "../../core/ingress/gateway.ts";
import { doorsOf, isFrontService, ownServiceName } from "../../core/ingress/gateway-fronts.ts";
import { gatewaySource } from "../../core/ingress/gateway-source.ts";
import { grants } from "../../core/ingress/http-route-rules.ts";
import { HTTP_PORT, HTTPS_PORT, INGRESS_SERVICE, isOurIngress, isRoutedAlike, isSecure } from "../../core/ingress/ingress-class.ts";
import { ingressCertificates } from "../../core/ingress/ingress-routes.ts";
import { type Route, routeTable } from "../../core/ingress/route-table.ts";
import { breather } from "../../core/lifecycle/breather.ts";
import type { Clock } from "../../core/lifecycle/clock.ts";
import type { Random } from "../../core/lifecycle/random.ts";
import type { Runnable } from "../../core/lifecycle/run-all.ts";
import type { Cidr } from "../../core/net/cidr.ts";
import { fieldReader } from "../../core/net/http1-head.ts";
import type { TlsMaterial } from "../../core/net/tls.ts";
import type { Log } from "../../core/observe/log.ts";
import type { Metrics } from "../../core/observe/metrics.ts";
import { allRoutes } from "./all-routes.ts";
import { Certificates } from "./certificates.ts";
import { withheldRanges } from "./dial-endpoint.ts";
import { type DoorWorld, type OpenDoor, openDoors } from "./doors.ts";
import { Forwarder } from "./forward.ts";
import { H2Upstreams } from "./h2-upstreams.ts";
import { type Http1FrontDeps, httpDate } from "./http1-front.ts";
import { Listeners } from "./listeners.ts";
import { ReadObjects } from "./read-objects.ts";
import { endpointResolver } from "./resolver.ts";
import { Router } from "./router.ts";
import { Upstreams, upstreamTls } from "./upstreams.ts";

export interface NodeIngressOptions {
  readonly client: Client;
  readonly informers: Informers;
  /** Of this machine, as they are now, and the cluster's ranges: nothing that an alias may stand for. */
  readonly ownAddresses: () => readonly string[];
  readonly clusterCidrs: readonly string[];
  /** Until the ServiceCIDRs have been heard of. */
  readonly serviceCidrs: readonly string[];
  /** Where to listen. */
  readonly addresses: readonly string[];
  readonly ports?: { readonly http: number; readonly https: number } | undefined;
  /** What clients are shown that ask for a name nobody has a certificate for: anything. */
  readonly fallbackCertificate: () => Promise<TlsMaterial>;
  readonly clock: Clock;
  readonly random: Random;
  readonly metrics: Metrics;
  readonly log: Log;
}

const NOTHING = routeTable([]);
const NO_FRONTS: DoorWorld["fronts"] = { shared: new Map([[80, "HTTP"], [443, "HTTPS"]]), own: new Map() };
const GATHER_MS = 50;
/** How often idle connections are looked after, and listeners that failed are tried again. */
const TICK_MS = 5_000;
/** The longest a timer can be. */
const NEVER_MS = 2_147_483_647;
const SECONDS = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

export function nodeIngress(options: NodeIngressOptions): Runnable {
  const { client, informers, addresses, ports = { http: HTTP_PORT, https: HTTPS_PORT }, clock, random, log } = options;
  const ingresses = informers.of(INGRESSES), classes = informers.of(INGRESS_CLASSES), services = informers.of(SERVICES), slices = informers.of(ENDPOINT_SLICES);
  const resolver = endpointResolver(services, slices);
  const ranges = serviceRanges(informers, options.serviceCidrs);
  const withheld = (): readonly Cidr[] => withheldRanges([...options.clusterCidrs, ...ranges.list(), ...options.ownAddresses()]);
  const upstreams = new Upstreams(clock, withheld), h2Upstreams = new H2Upstreams(clock, upstreams);
  const certificates = new Certificates({ client, clock, random, log });
  const authorities = new ReadObjects({ client, clock, random, log }, CONFIG_MAPS, ({ data }) => authorityOf(data));
  const gateways = gatewaySource(informers), routesOf = allRoutes(breather(clock));
  let open: readonly OpenDoor[] = [];
  let wake: () => void = () => {};
  const router = new Router({
    table: ({ door }) => open.find(({ target }) => target === door)?.table ?? NOTHING, names: ({ door }) => open.find(({ target }) => target === door)?.names ?? NOTHING, resolve: (backend) => resolver.resolve(backend),
    trust: (tls) => upstreamTls(tls, (key) => authorities.get(key)), load: (endpoint) => upstreams.load(endpoint), random,
  });
  const served = {
    requests: options.metrics.counter("coracle_ingress_requests_total", "Requests the ingress of this node has answered, by status code and method"),
    seconds: options.metrics.histogram("coracle_ingress_request_duration_seconds", "How long they took", SECONDS),
  };
  const forwarder = new Forwarder({ ...served, router, upstreams, h2Upstreams, clock, log });
  const front: Http1FrontDeps = { ...served, router, upstreams, readFields: fieldReader(), date: httpDate(clock), clock, log };

  function planned(hasSecureIngress: boolean): Pick<DoorWorld, "listeners" | "fronts" | "doors"> {
    const objects = gateways.objects();
    if (!objects) return { listeners: [], fronts: NO_FRONTS, doors: [] };
    const spaces = new Map([...informers.of(NAMESPACES).list()].map((one) => [one.metadata.name, labelsOf(one)]));
    const ofGateways = objects.gateways.map(keyOf).flatMap((key) => doorsOf(services.get(objectKey(splitKey(key).namespace, ownServiceName(key))), key));
    const doors = [...doorsOf(services.get(objectKey(INGRESS_SERVICE.namespace, INGRESS_SERVICE.name)), undefined), ...ofGateways], given = new Set(doors.map(({ port }) => port));
    const { listeners, fronts } = planGateways({
      ...objects, namespaces: spaces, addressesOf: () => [], portProblem: (port) => (given.has(port) ? undefined : `no Service leads to port ${port}`), hasSecureIngress,
      serviceOf: (namespace, name) => services.get(objectKey(namespace, name)), certificateProblem: () => undefined, authorityProblem: () => undefined,
      isGranted: grants(objects.grants),
    });
    return { listeners, fronts, doors };
  }

  async function compile(): Promise<void> {
    const ours = [...ingresses.list()].filter((one) => isOurIngress(one, classes)), ofIngresses = await routesOf(ours);
    const { listeners, ...doors } = planned(ours.some(isSecure));
    authorities.use(new Set(listeners.flatMap(({ routes }) => routes.flatMap(authoritiesOf))));
    open = openDoors({ ...doors, listeners, ingressRoutes: ofIngresses, ingressCertificates: ours.flatMap(ingressCertificates) })
      .map((door) => ({ ...door, target: door.target === HTTP_PORT ? ports.http : door.target === HTTPS_PORT ? ports.https : door.target }));
    certificates.use(open);
  }

  async function keep(signal: AbortSignal): Promise<void> {
    await Promise.all([ingresses, classes, services, slices].map((one) => one.whenSynced(signal)));
    const listeners = new Listeners({ addresses, material: options.fallbackCertificate, certificates, forwarder, front, clock, log });
    while (!signal.aborted) {
      const changed = new AbortController();
      wake = () => changed.abort(); // also by what comes while the listeners are opened
      const beganMs = clock.uptimeMs();
      await compile();
      await listeners.use(open);
      const tookMs = clock.uptimeMs() - beganMs;
      await clock.sleep(open.length > 0 ? TICK_MS : NEVER_MS, AbortSignal.any([signal, changed.signal]));
      h2Upstreams.sweep();
      if (!signal.aborted) await clock.sleep(Math.max(GATHER_MS, tookMs), signal); // while thousands come, half of the time is others'
    }
    await listeners.close();
    upstreams.close();
    h2Upstreams.sweep(0);
    await Promise.all([certificates.close(), authorities.close()]);
  }

  return {
    name: "ingress",
    async run(signal, ready) {
      const unwatch = [
        ingresses.onChange(({ object, old, deleted }) => { if (deleted || old === undefined || !isRoutedAlike(object, old)) wake(); }), classes.onChange(() => wake()), gateways.onChange(() => wake()),
        services.onChange(({ object, old, deleted }) => { if (gateways.objects() && (deleted || old === undefined || object.spec.type !== old.spec.type || isFrontService(object))) wake(); }), // routes say whether there are Services that they can lead to
      ];
      ready();
      await keep(signal);
      for (const end of unwatch) end();
      resolver.close();
    },
  };
}

/** ConfigMaps of those whom its backends' certificates must be from. */
function authoritiesOf({ action }: Route): ObjectKey[] {
  if (action.type !== "forward") return [];
  return [...action.backends, ...(action.mirrors ?? []).map(({ backend }) => backend)].flatMap(({ tls = [] }) => tls.flatMap(({ authorities }) => (authorities === "System" ? [] : authorities)));
}
