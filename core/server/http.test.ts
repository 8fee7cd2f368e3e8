/** The front over a real connection. */
import { createServer, type IncomingMessage, request as ask } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { Cached } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";
import type { Answer, WatchItem } from "./answer.ts";
import { httpFront } from "./http.ts";

const ending: (() => void)[] = [];
afterEach(() => { for (const end of ending.splice(0)) end(); });

async function serve(answer: Answer): Promise<IncomingMessage> {
  const stopping = new AbortController();
  const front = httpFront({ handler: () => Promise.resolve(answer), clock: systemClock, log: silentLog, stopping: () => stopping.signal, describe: undefined });
  const server = createServer((request, response) => front.request(request, response, { protocol: "http/1.1", remoteAddress: "127.0.0.1", peerCertificate: undefined }));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  ending.push(() => { server.closeAllConnections(); server.close(); });
  return await new Promise((resolve, reject) => { ask({ port: (server.address() as AddressInfo).port, path: "/api/v1/configmaps?watch=1" }, resolve).on("error", reject).end(); });
}

const served = { row: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps" }, apiVersion: "v1", custom: undefined, fromStorage: (object: unknown) => object } as unknown as ServedResource;

test("a watcher that reads slowly gets all there is, and what is not read yet is not encoded yet", async () => {
  const each = "x".repeat(500_000), count = 60;
  let sent = 0;
  async function* batches(): AsyncIterable<readonly WatchItem[]> {
    for (; sent < count; sent++) yield [{ type: "ADDED", entry: new Cached(`${sent}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${sent}`, annotations: { each } } } as unknown as ApiObject, sent) }];
  }
  const response = await serve({ type: "watch", served, batches: batches() });
  await systemClock.sleep(500, new AbortController().signal);
  expect(sent).toBeLessThan(count / 2);
  let text = "";
  for await (const chunk of response.setEncoding("utf8") as AsyncIterable<string>) text += chunk;
  const names = text.trim().split("\n").map((line) => (JSON.parse(line) as { object: ApiObject }).object.metadata.name);
  expect(names).toEqual(Array.from({ length: count }, (_, i) => `c-${i}`));
});
