/** A listener of the ingress with one route: to an endpoint that says what a test has it say. */
import * as net from "node:net";
import type { ObjectKey } from "../core/api/meta/object-meta.ts";
import { routeTable } from "../core/ingress/route-table.ts";
import { systemClock as clock } from "../core/lifecycle/clock.ts";
import { systemRandom as random } from "../core/lifecycle/random.ts";
import { fieldReader } from "../core/net/http1-head.ts";
import { httpServer } from "../core/net/http-server.ts";
import { silentLog as log } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { Forwarder } from "../node/ingress/forward.ts";
import { H2Upstreams } from "../node/ingress/h2-upstreams.ts";
import { Http1Front, httpDate } from "../node/ingress/http1-front.ts";
import { Router } from "../node/ingress/router.ts";
import { Upstreams, type UpstreamTls } from "../node/ingress/upstreams.ts";

const POLICY = { policy: "default/p" as ObjectKey, section: undefined, serverName: "", names: [], authorities: "System" } as const;

export interface FrontOptions {
  readonly ports: readonly number[];
  readonly appProtocol?: string | undefined;
  readonly timeoutMs?: number | undefined;
  /** Who is sent a copy of everything, with the header x-copy. */
  readonly mirrorPort?: number | undefined;
  /** How endpoints are spoken to. */
  readonly tls?: UpstreamTls | undefined;
  /** The name every client has asked for with TLS, and hosts that are listeners'. */
  readonly serverName?: string | undefined;
  readonly claimed?: readonly string[] | undefined;
}

/** All hosts but "none" and "moved" are the endpoints'; pages of https://a.test may use "cors". */
export async function ingressFront({ ports, appProtocol, timeoutMs, mirrorPort, tls, serverName, claimed }: FrontOptions): Promise<{ readonly port: number; readonly close: () => Promise<void> }> {
  const upstreams = new Upstreams(clock, () => []), h2Upstreams = new H2Upstreams(clock, upstreams), metrics = metricsRegistry();
  const route = { labels: "one", match: { path: { type: "Prefix", value: "/" } }, fallback: false, source: "", age: "" } as const;
  const mirrors = mirrorPort === undefined ? undefined : [{ backend: { namespace: "default", service: "mirror", port: 80, weight: 1, edits: [{ on: "request", set: [{ name: "x-copy", value: "mirror" }], add: [], remove: [] }] }, share: 1 }] as const;
  const table = routeTable([
    { ...route, host: "", action: { type: "forward", timeoutMs, mirrors, backends: [{ namespace: "default", service: "x", port: 80, weight: 1, tls: tls && [POLICY] }] } },
    { ...route, host: "moved", action: { type: "redirect", redirect: { statusCode: 301 }, edits: [{ on: "response", set: [{ name: "x-why", value: "möved" }, { name: "content-length", value: "9" }], add: [], remove: [] }] } },
    { ...route, host: "cors", action: { type: "forward", cors: { allowOrigins: ["https://a.test"], allowMethods: ["PUT"] }, backends: [{ namespace: "default", service: "x", port: 80, weight: 1 }] } },
    { ...route, host: "none", action: { type: "fail", status: 404 } },
  ], claimed);
  const endpoints = ports.map((port) => ({ address: "127.0.0.1", port }));
  const router = new Router({ table: () => table, names: () => table, resolve: ({ service }) => (service === "mirror" ? { endpoints: [{ address: "127.0.0.1", port: mirrorPort! }], appProtocol: undefined } : { endpoints, appProtocol }), trust: () => tls, load: (endpoint) => upstreams.load(endpoint), random });
  const counted = { requests: metrics.counter("a", ""), seconds: metrics.histogram("b", "", [1]) };
  const forwarder = new Forwarder({ ...counted, router, upstreams, h2Upstreams, clock, log });
  const front = { ...counted, router, upstreams, readFields: fieldReader(), date: httpDate(clock), clock, log };
  const stop = new AbortController();
  const server = httpServer({
    host: "127.0.0.1", port: 0, portFlag: "x", log, clock, widened: true, limits: { drainMs: 100 },
    http1: (socket, seat) => void new Http1Front(socket, seat, { remoteAddress: seat.connection.remoteAddress, secure: false, door: 80, port: 8080, serverName }, front),
    handler: (request, response, { remoteAddress }) => void forwarder.handle(request, response, { remoteAddress, secure: false, door: 80, port: 8080 }),
    upgrade: (request, socket, { head, connection: { remoteAddress } }) => void forwarder.upgrade(request, socket, { head, caller: { remoteAddress, secure: false, door: 80, port: 8080 } }),
  });
  const { promise, resolve } = Promise.withResolvers<void>();
  const life = server.run(stop.signal, resolve);
  await promise;
  return {
    port: server.address()!.port,
    async close() {
      stop.abort();
      await life;
      upstreams.close();
      h2Upstreams.sweep(0);
    },
  };
}

/** What a server answers to these bytes until it ends, or `enough` has come; then this side ends. */
export async function talk(port: number, bytes: string | Buffer, enough: (text: string, socket: net.Socket) => boolean = () => false): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  let text = "";
  const socket = net.connect(port, "127.0.0.1", () => void socket.write(typeof bytes === "string" ? Buffer.from(bytes, "latin1") : bytes));
  const late = setTimeout(() => socket.destroy(), 5_000);
  socket.on("data", (chunk) => {
    text += chunk.toString("latin1");
    if (enough(text, socket)) socket.destroy();
  }).on("error", () => undefined).on("close", () => resolve(text));
  return await promise.finally(() => clearTimeout(late));
}
