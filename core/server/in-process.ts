/**
 * A Transport for callers in the server's own process: the same chain, without a socket and without encoding. Objects come straight
 * out of the watch cache, frozen and shared.
 */
import type { Readable } from "node:stream";
import type { Self } from "../admission/webhook/self.ts";
import { assemble } from "../api/codec/pieces.ts";
import { encodeJson, parseJson, stringify } from "../api/codec/json.ts";
import { genericResponse } from "../api/meta/generic-response.ts";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { type Status, StatusError, statusOf } from "../api/meta/status-error.ts";
import type { UserInfo } from "../api/request/user.ts";
import type { ApiRequest, ApiWatchEvent, Transport } from "../client/transport.ts";
import { type Answer, isSlowly, isStream, type ListAnswer, type RawAnswer } from "./answer.ts";
import { requestInfo } from "./request-info.ts";
import type { ServerRequest } from "./request.ts";
import type { Handler } from "./scope.ts";

/** `userAgent` becomes the manager in managedFields. */
export function inProcessTransport(handler: Handler, caller: { readonly user: UserInfo; readonly userAgent: string }): Transport {
  return {
    async call(request) {
      const answer = await handler(serverRequest(request, caller));
      const value = answer.type === "raw" ? await rawValue(answer, request) : objectOf(answer);
      request.answered?.("status" in answer ? answer.status : 200);
      return value;
    },

    async *watch(request) {
      const answer = await handler(serverRequest(request, caller));
      if (answer.type === "raw" && answer.status === 200 && isStream(answer.body)) {
        yield* eventsIn(answer.body);
        return;
      }
      if (answer.type !== "watch") {
        if (answer.type === "raw") await rawValue(answer, request);
        objectOf(answer);
        throw new Error(`not a watch: ${request.path}`);
      }
      for await (const batch of answer.batches) {
        for (const item of batch) {
          if (item.type === "ERROR") throw item.error instanceof StatusError ? item.error : new StatusError(statusOf(item.error));
          yield item.type === "BOOKMARK" ? bookmark(item, answer.served) : { type: item.type, object: answer.served.fromStorage(item.entry.object) };
        }
      }
    },
  };
}

/** For what is asked in this server's own name over HTTP elsewhere: bytes in, bytes out. */
export function inProcessSelf(handler: Handler, user: UserInfo): Self {
  return async ({ path, query, headers, body, signal }) => {
    const named = new Map(headers);
    const answer = await handler({
      method: "POST", path, query: new URLSearchParams(query), header: (name) => named.get(name), headers: () => headers, webSocketProtocols: [], remoteAddress: "127.0.0.1", user, signal,
      body: () => Promise.resolve({ type: "bytes", contentType: named.get("content-type") ?? "", bytes: Buffer.from(body) }),
    });
    if (answer.type === "raw") return { status: answer.status, contentType: answer.headers["content-type"], body: Buffer.from(await textIn(answer)) };
    if (answer.type === "object") return { status: answer.status, contentType: "application/json", body: encodeJson(answer.object) };
    throw new Error(`a ${answer.type} is no answer to a POST`);
  };
}

/** The events of a watch that another server answers. */
async function* eventsIn(body: Readable): AsyncIterable<ApiWatchEvent> {
  let rest = "";
  for await (const chunk of body.setEncoding("utf8") as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    if (rest.length > STREAM_BYTES_MAX) throw new Error(`an event of more than ${STREAM_BYTES_MAX} bytes cannot be had in process`);
    for (const line of lines) {
      if (line.trim() === "") continue;
      const { type, object } = JSON.parse(line) as { readonly type: ApiWatchEvent["type"] | "ERROR"; readonly object: Readonly<ApiObject> };
      if (type === "ERROR") throw new StatusError(object as unknown as Status);
      yield { type, object };
    }
  }
}

function bookmark({ resourceVersion, initialEventsEnd }: { readonly resourceVersion: string; readonly initialEventsEnd?: boolean }, { row, apiVersion }: ListAnswer["served"]): ApiWatchEvent {
  return { type: "BOOKMARK", object: bookmarkObject(apiVersion, row.kind, resourceVersion, initialEventsEnd) };
}

/** Carries nothing but a resourceVersion, and the mark that ends initial events. */
export function bookmarkObject(apiVersion: string, kind: string, resourceVersion: string, initialEventsEnd = false): ApiObject {
  const annotations = initialEventsEnd ? { annotations: { "k8s.io/initial-events-end": "true" } } : {};
  return { kind, apiVersion, metadata: { resourceVersion, ...annotations } } as unknown as ApiObject;
}

function objectOf(answer: Answer): unknown {
  switch (answer.type) {
    case "object": {
      const { object } = answer;
      if (answer.status >= 400) throw new StatusError(object as unknown as Status);
      return object;
    }
    case "list":
      return listObject(answer);
    case "raw":
    case "watch":
    case "upgrade":
      throw new Error(`a ${answer.type} cannot be had as an object`);
  }
}

/** What a node, a pod or another API server answers need not be a Status: above 400 it becomes one. */
async function rawValue({ status, headers, body }: RawAnswer, { method, path }: ApiRequest): Promise<unknown> {
  const text = await textIn({ body });
  if (status >= 400 && headers["content-type"]?.startsWith("application/json")) throw new StatusError(JSON.parse(text) as Status);
  if (status >= 400) {
    const info = requestInfo(method, path, new URLSearchParams());
    throw genericResponse(status, text, info.isResource ? { verb: method, resource: info, name: info.name } : undefined);
  }
  return headers["content-type"]?.startsWith("application/json") ? JSON.parse(text) : text;
}

async function textIn({ body }: Pick<RawAnswer, "body">): Promise<string> {
  if (isSlowly(body)) return Buffer.from(assemble([...body.pieces])).toString();
  return typeof body === "string" ? body : body instanceof Uint8Array ? Buffer.from(body).toString() : await textOf(body);
}

/** Who wants more reads it over HTTP. */
const STREAM_BYTES_MAX = 16 * 1024 * 1024;

async function textOf(body: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > STREAM_BYTES_MAX) throw new Error(`an answer of more than ${STREAM_BYTES_MAX} bytes cannot be had in process`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

export function listObject({ served, entries, metadata }: ListAnswer): { kind: string; apiVersion: string; metadata: object; items: readonly Readonly<ApiObject>[] } {
  return { kind: served.row.listKind ?? `${served.row.kind}List`, apiVersion: served.apiVersion, metadata, items: entries.map(({ object }) => served.fromStorage(object)) };
}

function serverRequest(request: ApiRequest, { user, userAgent }: { readonly user: UserInfo; readonly userAgent: string }): ServerRequest {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) if (value !== undefined) query.set(name, value);
  return {
    method: request.method,
    path: request.path,
    query,
    header: (name) => (name === "user-agent" ? userAgent : name === "accept" ? "application/json" : undefined),
    headers: () => [],
    webSocketProtocols: [],
    remoteAddress: "127.0.0.1",
    user,
    body: () => Promise.resolve({ type: "value", contentType: request.contentType ?? "application/json", value: request.method === "PATCH" ? asJson(request.body) : request.body }),
    signal: request.signal,
  };
}

/** A patch says something by what it leaves out: what is undefined is left out. */
function asJson(value: unknown): unknown {
  return value === undefined ? undefined : parseJson(stringify(value)).value;
}
