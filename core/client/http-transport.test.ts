import { once } from "node:events";
import { createServer } from "node:https";
import { expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { http2Fetch } from "../net/http2-fetch.ts";
import { httpTransport } from "./http-transport.ts";
import { clientOver } from "./resource-client.ts";
import { PODS } from "./resources.ts";

const { signal } = new AbortController();

test("paths, queries and bodies are those of the API", async () => {
  const seen: string[] = [];
  using server = Bun.serve({
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      seen.push(`${request.method} ${url.pathname}${url.search} ${request.headers.get("content-type") ?? "-"} ${request.headers.get("authorization")}`);
      if (request.method === "GET") return Response.json({ kind: "PodList", apiVersion: "v1", metadata: { resourceVersion: "7" }, items: [{ metadata: { name: "a" } }] });
      return Response.json({ kind: "Status", apiVersion: "v1", status: "Success" });
    },
  });
  const pods = clientOver(httpTransport({ server: server.url.href, clock: systemClock, credentials: () => ({ token: "t" }) })).resource(PODS);
  const list = await pods.list({ namespace: "default", labelSelector: "app=web" }, { signal });
  expect(list.items[0]).toEqual({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" } });
  expect(Object.isFrozen(list.items[0]?.metadata)).toBe(true);
  expect(await pods.delete({ metadata: { name: "a", namespace: "default" } }, { gracePeriodSeconds: 0 }, { signal })).toBeUndefined();
  await pods.patch({ metadata: { name: "a", namespace: "default" } }, "application/merge-patch+json", {}, { signal, subresource: "status" });
  expect(seen).toEqual([
    "GET /api/v1/namespaces/default/pods?labelSelector=app%3Dweb - Bearer t",
    "DELETE /api/v1/namespaces/default/pods/a application/json Bearer t",
    "PATCH /api/v1/namespaces/default/pods/a/status application/merge-patch+json Bearer t",
  ]);
});

test("a refusal is a StatusError, an unreachable server is ServiceUnavailable, a busy one is asked again", async () => {
  let busy = 1;
  using server = Bun.serve({
    port: 0,
    fetch(request) {
      if (request.url.endsWith("/busy")) return busy-- > 0 ? new Response("", { status: 429, headers: { "retry-after": "1" } }) : Response.json({ kind: "Pod" });
      if (request.url.endsWith("/null")) return new Response("null", { status: 502 });
      if (request.url.endsWith("/text")) return new Response("no such page\n", { status: 404 });
      return Response.json({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", reason: "NotFound", code: 404, message: 'pods "x" not found' }, { status: 404 });
    },
  });
  const transport = httpTransport({ server: server.url.href, clock: systemClock, credentials: () => ({}) });
  const get = (path: string) => transport.call({ method: "GET", path, signal });
  await expect(get("/x")).rejects.toMatchObject({ name: "StatusError", reason: "NotFound", message: 'pods "x" not found' });
  await expect(get("/null")).rejects.toMatchObject({ name: "StatusError", code: 502, message: expect.stringContaining("the server answered 502 to GET") as string });
  await expect(get("/text")).rejects.toMatchObject({ reason: "NotFound", message: "no such page" });
  expect(await get("/busy")).toEqual({ kind: "Pod" });
  await server.stop(true);
  await expect(get("/x")).rejects.toMatchObject({ reason: "ServiceUnavailable" });
});

test("watch events arrive one by one, however the bytes are cut, and an ERROR event is thrown", async () => {
  const text = ['{"type":"ADDED","object":{"metadata":{"name":"ä"}}}\n', '{"type":"ERROR","object":{"kind":"Status","reason":"Expired","code":410,"message":"too old"}}\n'].join("");
  using server = Bun.serve({
    port: 0,
    fetch: () => new Response(new ReadableStream({
      async start(controller) {
        for (const byte of new TextEncoder().encode(text)) { controller.enqueue(new Uint8Array([byte])); await Bun.sleep(0); }
        controller.close();
      },
    })),
  });
  const pods = clientOver(httpTransport({ server: server.url.href, clock: systemClock, credentials: () => ({}) })).resource(PODS);
  const names: string[] = [];
  const reading = (async () => { for await (const { object } of pods.watch({}, { signal })) names.push(object.metadata.name); })();
  await expect(reading).rejects.toMatchObject({ reason: "Expired" });
  expect(names).toEqual(["ä"]);
});

test("aborting ends a watch quietly", async () => {
  using server = Bun.serve({ port: 0, fetch: () => new Response(new ReadableStream({ start: (c) => c.enqueue(new TextEncoder().encode('{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n')) })) });
  const pods = clientOver(httpTransport({ server: server.url.href, clock: systemClock, credentials: () => ({}) })).resource(PODS);
  const stop = new AbortController();
  const names: string[] = [];
  for await (const { object } of pods.watch({}, { signal: stop.signal })) { names.push(object.metadata.name); stop.abort(); }
  expect(names).toEqual(["a"]);
});

test("who asks is told what time it is for the server, of a refusal, too", async () => {
  const dates = ["Thu, 01 Jan 1970 00:10:00 GMT", "Sun, 29 Nov 2026 12:00:00 GMT"], heard: string[] = [];
  using server = Bun.serve({ port: 0, fetch: (request) => Response.json({ kind: "Status" }, { status: request.url.endsWith("/no") ? 404 : 200, headers: { date: dates[heard.length] ?? "" } }) });
  const transport = httpTransport({ server: server.url.href, clock: systemClock, credentials: () => ({}), onDate: (date) => void heard.push(date) });
  await transport.call({ method: "GET", path: "/yes", signal });
  await expect(transport.call({ method: "GET", path: "/no", signal })).rejects.toThrow();
  expect(heard).toEqual(dates);
});

test("whoever the bundle names is trusted, as in Go: the authority, or what another one has signed, be it an authority between or the very certificate", async () => {
  const pki = await testPki(), { key, cert } = servingMaterial(pki), stop = new AbortController();
  const leaf = /^-----BEGIN.*?-----END CERTIFICATE-----\n/s.exec(cert)![0];
  await using server = createServer({ key, cert: leaf }, (_, response) => response.setHeader("content-type", "application/json").end("{}"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  for (const fetch of [undefined, http2Fetch({ clock: systemClock, signal: stop.signal })]) {
    const asked = (ca: string) => httpTransport({ server: `https://127.0.0.1:${port}`, credentials: () => ({ ca }), clock: systemClock, ...(fetch && { fetch }) }).call({ method: "GET", path: "/version", signal: stop.signal }).then(() => true, () => false);
    expect([await asked(pki.authority("server-ca").bundlePem), await asked(leaf), await asked(servingMaterial(await testPki()).cert)]).toEqual([true, true, false]);
  }
  stop.abort();
});
