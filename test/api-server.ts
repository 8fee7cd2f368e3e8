/**
 * The API over a store in memory, for tests: the real chain, registry and resources. Everybody may do everything, and admission lets all pass unless the test says otherwise.
 *
 *   const api = await apiServer();
 *   await api.client.resource(CONFIG_MAPS).create(…);
 *   await api.ask("POST", "/api/v1/namespaces/a/configmaps", { body: { metadata: { name: "a" } } })   → { code, body, warnings, headers }
 */
import type { AdmissionRequest } from "../core/admission/plugin.ts";
import type { Auditor } from "../core/server/audit/auditor.ts";
import type { UserInfo } from "../core/api/request/user.ts";
import type { CustomResourceDefinition } from "../core/api/gen/apiextensions.v1.ts";
import { builtInResources } from "../core/api/schema/resources.ts";
import type { Client } from "../core/client/client.ts";
import { clientOver } from "../core/client/resource-client.ts";
import { IP_ADDRESSES } from "../core/client/resources.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { type Random, systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { type Metrics, metricsRegistry } from "../core/observe/metrics.ts";
import { crdController } from "../core/registry/apiextensions/crd-controller.ts";
import type { RemoteConversion } from "../core/registry/apiextensions/custom/custom-kind.ts";
import { ruleMeter } from "../core/registry/apiextensions/rules/rule-meter.ts";
import { allocationMeter } from "../core/registry/core/service/allocator/allocation-metrics.ts";
import { convert } from "../core/registry/conversions.ts";
import { registryDefinitions } from "../core/registry/definitions.ts";
import { refuseLargeObject } from "../core/registry/generic/request-size.ts";
import { WatchCache } from "../core/registry/generic/watch-cache.ts";
import { Registry } from "../core/registry/registry.ts";
import type { Answer } from "../core/server/answer.ts";
import { readCbor } from "../core/api/codec/cbor/items.ts";
import { cborValue } from "../core/api/codec/cbor/values.ts";
import { encodeJson } from "../core/api/codec/json.ts";
import { CBOR_SEQUENCE } from "../core/api/codec/negotiate.ts";
import { assemble, type Piece } from "../core/api/codec/pieces.ts";
import { statusOf } from "../core/api/meta/status-error.ts";
import { apiHandler } from "../core/server/handler.ts";
import type { Handler, ServerDeps } from "../core/server/scope.ts";
import { inProcessTransport } from "../core/server/in-process.ts";
import type { ServerRequest } from "../core/server/request.ts";
import { EventBytes } from "../core/server/event-bytes.ts";
import { type Encoded, encodeList, encodeObject, watchEncoder } from "../core/server/respond.ts";
import { type SpecialDeps, specialHandlers } from "../core/server/special/special.ts";
import { VERBS } from "../core/server/verbs/all.ts";
import { memoryStore } from "../storage/memory.ts";
import type { Store } from "../storage/store.ts";

export interface Asked {
  readonly query?: Readonly<Record<string, string | readonly string[]>>;
  /** Text and bytes as they are; anything else as JSON. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly user?: UserInfo;
}

export interface Told {
  readonly code: number;
  /** Parsed, if it is JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into it as it likes
  readonly body: any;
  readonly warnings: readonly string[];
  readonly contentType: string;
}

export interface ApiServer extends AsyncDisposable {
  readonly client: Client;
  readonly handler: Handler;
  readonly registry: Registry;
  readonly cache: WatchCache;
  readonly metrics: Metrics;
  readonly signal: AbortSignal;
  /** As over HTTP: bytes in, bytes out. */
  ask(method: string, path: string, asked?: Asked): Promise<Told>;
  /** The events of a watch, as sent, until `count` of them have come. */
  // biome-ignore lint/suspicious/noExplicitAny: a test looks into it as it likes
  events(path: string, count: number, asked?: Asked): Promise<any[]>;
}

const ADMIN: UserInfo = { name: "admin", groups: ["system:masters"] };

export async function apiServer({ admit, validate, audit, clock = systemClock, random = systemRandom, remoteConversion = () => undefined, special = {}, times = {}, store: given, authorizer, tracer, impersonate, cbor = false }: { /** CBOR is read and written. */ readonly cbor?: boolean; readonly tracer?: ServerDeps["tracer"]; readonly impersonate?: ServerDeps["impersonate"]; readonly store?: Store; readonly authorizer?: ServerDeps["authorizer"]; readonly times?: Pick<ServerDeps, "requestMs" | "watchMsMin">;  readonly admit?: (request: AdmissionRequest) => void | Promise<void>; readonly validate?: (request: AdmissionRequest) => void | Promise<void>; readonly audit?: Auditor; readonly clock?: Clock; readonly random?: Random; readonly remoteConversion?: (crd: Readonly<CustomResourceDefinition>) => RemoteConversion | undefined; readonly special?: Partial<SpecialDeps> } = {}): Promise<ApiServer> {
  const stop = new AbortController();
  const { signal } = stop;
  const store = given ?? (await memoryStore({ refuseLarge: refuseLargeObject }));
  const cache = new WatchCache(store, clock);
  const shared = new EventBytes();
  const metrics = metricsRegistry();
  let running: Promise<void> | undefined;
  await new Promise<void>((ready) => (running = cache.run(signal, ready, silentLog)));
  const own = clientOver(inProcessTransport((request) => handler(request), { user: { name: "system:apiserver", groups: ["system:authenticated", "system:masters"] }, userAgent: "kube-apiserver" }));
  const registry: Registry = new Registry(builtInResources.rows(), registryDefinitions({ serviceCidrs: ["10.43.0.0/16"], nodePortRange: "30000-32767", storeOf: (group, plural) => registry.storeOf(group, plural), random, allocations: allocationMeter(metrics, clock), ipAddresses: own.resource(IP_ADDRESSES) }), {
    store, cache, clock, random, convert, ruleMeter: ruleMeter(metrics, clock),
  });
  const definitions = crdController({ registry, remoteConversion, clock, random, log: silentLog });
  let serving: Promise<void> | undefined;
  await new Promise<void>((ready) => (serving = definitions.run(signal, ready)));
  const handler: Handler = apiHandler({
    registry, cache, clock, random, log: silentLog, metrics, paths: [], ...times,
    authenticator: { authenticate: () => Promise.resolve(undefined) },
    authorizer: authorizer ?? { authorize: () => ({ decision: "allow", reason: "" }), rulesFor: () => Promise.resolve({ resourceRules: [], pathRules: [], incomplete: false }) },
    impersonate: impersonate ?? (({ user }) => Promise.resolve({ user, constraint: "" })),
    ...(audit && { audit }), ...(tracer && { tracer }),
    admission: { admit: (request) => Promise.resolve(admit?.(request)), validate: (request) => Promise.resolve(validate?.(request)) },
    special: specialHandlers({ tokens: undefined as never, tokenReviews: undefined as never, review: ({ object }) => Promise.resolve(object), connections: () => undefined, ...special }),
  }, VERBS);

  const request = (method: string, path: string, { query = {}, body, headers = {}, user = ADMIN }: Asked): ServerRequest => ({
    method, path, user, signal,
    query: new URLSearchParams(Object.entries(query).flatMap(([name, value]): [string, string][] => (typeof value === "string" ? [[name, value]] : value.map((one) => [name, one])))),
    header: (name) => headers[name] ?? (name === "user-agent" ? "test/1" : undefined),
    headers: () => Object.entries(headers),
    webSocketProtocols: [],
    remoteAddress: "127.0.0.1",
    cbor,
    body: () => Promise.resolve({
      type: "bytes", contentType: headers["content-type"] ?? "application/json",
      bytes: body instanceof Uint8Array ? Buffer.from(body) : Buffer.from(body === undefined ? "" : typeof body === "string" ? body : JSON.stringify(body)),
    }),
  });

  return {
    client: clientOver(inProcessTransport(handler, { user: ADMIN, userAgent: "test/1" })),
    handler,
    registry,
    cache,
    metrics,
    signal,
    async ask(method, path, asked = {}) {
      const asking = request(method, path, asked);
      return told(asking, await handler(asking), clock.nowMs());
    },
    async events(path, count, asked = {}) {
      const asking = request("GET", path, { ...asked, query: { watch: "1", ...asked.query } });
      const answer = await handler(asking);
      if (answer.type !== "watch") throw new Error(JSON.stringify((await told(asking, answer, clock.nowMs())).body));
      const events: unknown[] = [];
      const { contentType, encode } = watchEncoder(answer, { request: asking, nowMs: () => clock.nowMs(), describe: undefined, events: shared });
      for await (const batch of answer.batches) {
        if (contentType === CBOR_SEQUENCE) events.push(...batch.map((item) => cborValue(readCbor(assemble(encode([item]) as Piece[])))));
        if (contentType === CBOR_SEQUENCE && events.length < count) continue;
        if (contentType === CBOR_SEQUENCE) break;
        const chunk = encode(batch);
        events.push(...(chunk instanceof Uint8Array ? Buffer.from(chunk) : assemble(chunk)).toString().trim().split("\n").map((line) => JSON.parse(line) as unknown));
        if (events.length >= count) break;
      }
      return events;
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await serving;
      await running;
    },
  };
}

async function told(request: ServerRequest, answer: Answer, nowMs: number): Promise<Told> {
  if (answer.type === "raw" && typeof answer.body === "string") return { code: answer.status, contentType: answer.headers["content-type"] ?? "", warnings: answer.warnings ?? [], body: answer.body };
  if (answer.type !== "object" && answer.type !== "list") throw new Error(`a ${answer.type} is not for ask()`);
  const how = { request, nowMs: () => nowMs, describe: undefined };
  const { status, contentType, body } = await encoded(async () => (answer.type === "list" ? await encodeList(answer, how, () => undefined) : encodeObject(answer, how)));
  const bytes = assemble(body);
  return { code: status, contentType, warnings: answer.warnings ?? [], body: contentType.startsWith("application/json") ? JSON.parse(bytes.toString()) as unknown : bytes };
}

/** What cannot be encoded as it was asked for is told as JSON: core/server/http.ts. */
async function encoded(encode: () => Promise<Encoded>): Promise<Encoded> {
  try {
    return await encode();
  } catch (error) {
    const status = statusOf(error);
    return { status: status.code ?? 500, contentType: "application/json", body: [encodeJson(status)] };
  }
}
