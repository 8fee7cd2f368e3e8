/**
 * A verified TLS connection to a webhook: at its URL, or behind its Service.
 *
 * A Service is reached at one of its ready endpoints, on the way the server reaches pods (through the tunnel of their node, if there is one): no
 * kube-proxy need run where the server runs. One that is an alias is reached at what it stands for. The certificate must be for <service>.<namespace>.svc.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/{webhook/client.go,proxy/proxy.go}
 */
import type { Duplex } from "node:stream";
import type { WebhookClientConfig } from "../../api/gen/admissionregistration.v1.ts";
import type { Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import { notFound, serviceUnavailable } from "../../api/meta/status-error.ts";
import type { Informer } from "../../client/informer.ts";
import type { Lookup } from "../../client/lookup.ts";
import type { Random } from "../../lifecycle/random.ts";
import { hostOf } from "../../net/dial-tcp.ts";
import { dialTls, type Verification } from "../../net/dial-tls.ts";
import type { Held, KeptConnections } from "../../net/kept-connections.ts";
import { isSelf, type Self } from "./self.ts";
import { authorizationOf, userFor, type WebhookUsers } from "./users.ts";

export interface WebhookDialer {
  connect(target: { readonly nodeName: string | undefined; readonly host: string; readonly port: number; readonly signal: AbortSignal }): Promise<Duplex>;
}

export interface DialDeps {
  readonly dialer: WebhookDialer;
  readonly services: Lookup<Service>;
  readonly endpointSlices: Informer<EndpointSlice>;
  readonly random: Random;
  /** Absent: each request has a connection of its own. */
  readonly kept?: KeptConnections | undefined;
  /** Who connects to a URL instead: through a proxy. Absent, and undefined: `dialer`. */
  readonly proxyTo?: ((url: URL) => WebhookDialer | undefined) | undefined;
  /** Absent: it does not say who it is. */
  readonly users?: WebhookUsers | undefined;
  /** Absent: what is called as this server is asked as any other. */
  readonly self?: Self | undefined;
}

export interface Address {
  /** https://host[:port]/path, as errors name it. */
  readonly url: string;
  /** For the Host header. */
  readonly host: string;
  readonly path: string;
  readonly authorization: string | undefined;
  /** It is this server that is to be asked: nobody need be connected to. */
  readonly self: Self | undefined;
  /** `fresh`: not one that was used before. */
  connect(signal: AbortSignal, fresh: boolean): Promise<Held>;
}

const HTTPS_PORT = 443;

export function addressOf({ url, service, caBundle }: WebhookClientConfig, deps: DialDeps): Address {
  const ca = caBundle ? Buffer.from(caBundle, "base64").toString() : undefined;
  if (service) {
    const { name, namespace, path = "", port = HTTPS_PORT } = service;
    const serverName = `${name}.${namespace}.svc`;
    const host = `${serverName}:${port}`;
    const full = joined(path);
    const { authorization, client } = shownTo(host, deps);
    return {
      self: selfAt(host, deps), url: `https://${host}${full}`, host, path: full, authorization,
      connect: async (signal, fresh) => held(deps, await endpointOf(deps, { name, namespace, port }, signal), { ca, serverName, client, signal }, fresh),
    };
  }
  const whole = new URL(url ?? ""), { hostname, port, host, pathname } = whole;
  const plain = hostOf(whole);
  const full = joined(pathname);
  const { authorization, client } = shownTo(`${hostname}:${port || HTTPS_PORT}`, deps);
  return {
    self: selfAt(`${hostname}:${port || HTTPS_PORT}`, deps),
    url: `https://${authorityOf(url ?? "")}${full}`, host, path: full, authorization,
    connect: (signal, fresh) => held({ kept: deps.kept, dialer: deps.proxyTo?.(whole) ?? deps.dialer }, { nodeName: undefined, host: plain, port: Number(port || HTTPS_PORT) }, { ca, serverName: plain, client, signal }, fresh),
  };
}

function selfAt(host: string, { self }: DialDeps): Self | undefined { return isSelf(host) ? self : undefined; }

/** What a webhook is shown of who asks. */
function shownTo(host: string, { users }: DialDeps): Pick<Address, "authorization"> & Pick<Verification, "client"> {
  const user = users && userFor(users, host);
  if (!user) return { authorization: undefined, client: undefined };
  const { cert, key } = user;
  return { authorization: authorizationOf(user), client: cert && key ? { cert, key } : undefined };
}

/** A path as the client of upstream's server asks for it, which joins its elements anew: no empty one, and no slash at the end. */
function joined(path: string): string { return `/${path.split("/").filter((element) => element !== "").join("/")}`; }

/** Host and port as they are written: also a port that goes without saying. */
function authorityOf(url: string): string { return /^[^/]*\/\/([^/?#]*)/.exec(url)?.[1] ?? ""; }

export interface Target { readonly nodeName: string | undefined; readonly host: string; readonly port: number }

/** A verified connection to the target: a kept one or a new one. */
export async function held({ dialer, kept }: Pick<DialDeps, "dialer" | "kept">, target: Target, verification: Verification, fresh: boolean): Promise<Held> {
  const make = async (): Promise<Duplex> => dialTls(await dialer.connect({ ...target, signal: verification.signal }), verification);
  if (!kept) return { connection: await make(), reused: false, release: (connection) => void connection.destroy() };
  const { ca, serverName, client, insecure } = verification;
  return await kept.open(JSON.stringify([target.nodeName, target.host, target.port, serverName, ca, client?.cert, insecure]), make, { fresh });
}

const SERVICE_TYPES = ["ClusterIP", "LoadBalancer", "NodePort"];

/** A ready endpoint of a Service's port; what an alias stands for. Throws 404 and 503. */
export async function endpointOf({ services, endpointSlices, random }: DialDeps, { name, namespace, port }: { readonly name: string; readonly namespace: string; readonly port: number }, signal: AbortSignal): Promise<Target> {
  const service = await services.find(namespace, name, signal);
  if (!service) throw notFound({ group: "", resource: "service" }, name); // a lister's word for it
  const { type = "ClusterIP", ports = [], ipFamilies = [], externalName = "" } = service.spec ?? {};
  if (type === "ExternalName") return { nodeName: undefined, host: externalName, port };
  if (!SERVICE_TYPES.includes(type)) throw new Error(`unsupported service type ${JSON.stringify(type)}`);
  const servicePort = ports.find((one) => one.port === port);
  if (!servicePort) throw serviceUnavailable(`no service port ${port} found for service ${JSON.stringify(name)}`);
  const slices = [...endpointSlices.inNamespace(namespace)].filter(({ metadata }) => metadata.labels?.["kubernetes.io/service-name"] === name);
  const candidates = slices.flatMap((slice) => {
    const target = slice.ports?.find((one) => (one.name ?? "") === (servicePort.name ?? ""))?.port;
    return target === undefined ? [] : (slice.endpoints ?? []).filter(({ conditions }) => conditions?.ready !== false).map(({ addresses, nodeName }) => ({
      host: addresses[0]!, port: target, nodeName, preferred: slice.addressType === ipFamilies[0],
    }));
  });
  const first = candidates.filter(({ preferred }) => preferred);
  const pool = first.length > 0 ? first : candidates;
  const chosen = pool[Math.floor(random.next() * pool.length)];
  if (!chosen) throw serviceUnavailable(`no endpoints available for service ${JSON.stringify(name)}`);
  return chosen;
}
