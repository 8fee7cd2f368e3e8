/** /openapi and / over HTTP's headers: which form, which hash, which paths. What the documents say is tested beside them. */
import { beforeAll, expect, test } from "vitest";
import { memoryRegistry } from "../../test/memory-registry.ts";
import { ANONYMOUS } from "../api/request/user.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { CustomKind } from "../registry/apiextensions/custom/custom-kind.ts";
import type { Registry } from "../registry/registry.ts";
import type { RawAnswer } from "./answer.ts";
import type { PathHandler } from "./scope.ts";
import { indexPaths } from "./index-paths.ts";
import { openApiPaths } from "./openapi.ts";
import type { ServerRequest } from "./request.ts";

let openApi: PathHandler;
let index: PathHandler;
beforeAll(async () => {
  const registry = await memoryRegistry();
  openApi = openApiPaths({ registry, clock: { ...systemClock, nowMs: () => Date.UTC(2026, 10, 20) }, version: "v1.36.0", descriptions: () => Promise.resolve({}) });
  index = indexPaths({ registry, checks: [{ name: "ping", endpoints: ["livez"], check: () => undefined }] });
});

const ask = async (handler: PathHandler, url: string, headers: Record<string, string> = {}) => {
  const { pathname, searchParams } = new URL(url, "https://localhost");
  const answer = (await handler({ method: "GET", path: pathname, query: searchParams, header: (name: string) => headers[name] } as ServerRequest, ANONYMOUS)) as RawAnswer | undefined;
  return answer && { ...answer, text: Buffer.from(answer.body as Uint8Array | string).toString() };
};

const PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

test.each<[accept: string | undefined, status: number, contentType: string | undefined]>([
  [undefined, 200, "application/json"], ["*/*", 200, "application/json"], ["application/*;q=0.5,text/html", 200, "application/json"],
  ["application/com.github.proto-openapi.spec.v2@v1.0+protobuf", 200, PROTOBUF], [PROTOBUF, 200, PROTOBUF], [`${PROTOBUF},application/json;q=0.1`, 200, PROTOBUF],
  ["text/html", 406, undefined],
])("v2 for who accepts %s: %i, %s", async (accept, status, contentType) => {
  const answer = await ask(openApi, "/openapi/v2", accept === undefined ? {} : { accept });
  expect([answer?.status, answer?.headers["content-type"]]).toEqual([status, contentType]);
});

test("v3 is an index of documents, each at a URL with its hash, which may be kept for a year; without the hash it may not, and another hash leads there", async () => {
  const index = await ask(openApi, "/openapi/v3");
  expect(index!.headers["content-type"]).toBe("text/plain; charset=utf-8");
  const { paths } = JSON.parse(index!.text) as { paths: Record<string, { serverRelativeURL: string }> };
  const { serverRelativeURL } = paths["apis/apps/v1"]!;
  expect(serverRelativeURL).toMatch(/^\/openapi\/v3\/apis\/apps\/v1\?hash=[0-9A-F]{128}$/);
  const kept = await ask(openApi, serverRelativeURL);
  expect(kept!.headers).toMatchObject({ "cache-control": "public, immutable", expires: "Sat, 20 Nov 2027 00:00:00 GMT", "last-modified": "Fri, 20 Nov 2026 00:00:00 GMT", etag: `"${serverRelativeURL.split("=")[1]}"` });
  expect(Object.keys((JSON.parse(kept!.text) as { paths: object }).paths)).toContain("/apis/apps/v1/namespaces/{namespace}/deployments");
  expect((await ask(openApi, "/openapi/v3/apis/apps/v1"))!.headers).not.toHaveProperty("expires");
  expect(await ask(openApi, "/openapi/v3/apis/apps/v1?hash=OLD")).toMatchObject({ status: 301, headers: { location: serverRelativeURL } });
  const etag = kept!.headers["etag"]!;
  for (const known of [etag, `"x", W/${etag}`, "*"]) expect(await ask(openApi, serverRelativeURL, { "if-none-match": known })).toMatchObject({ status: 304, text: "", headers: expect.not.objectContaining({ "content-type": expect.anything() }) });
  expect((await ask(openApi, serverRelativeURL, { "if-none-match": "*" }))!.headers).not.toHaveProperty("last-modified");
  expect((await ask(openApi, "/openapi/v2"))!.headers["last-modified"]).toBe("Fri, 20 Nov 2026 00:00:00 GMT");
  expect(await ask(openApi, serverRelativeURL, { "if-none-match": '"x"' })).toMatchObject({ status: 200 });
  expect((await ask(openApi, serverRelativeURL, { "accept-encoding": "gzip" }))!.headers["content-encoding"]).toBe("gzip");
  expect((await ask(openApi, serverRelativeURL, { "accept-encoding": "gzip;q=0" }))!.headers["content-encoding"]).toBeUndefined();
  const PROTOBUF_V3 = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf";
  for (const accept of ["application/com.github.proto-openapi.spec.v3@v1.0+protobuf", PROTOBUF_V3]) expect(await ask(openApi, serverRelativeURL, { accept })).toMatchObject({ status: 200, headers: { "content-type": PROTOBUF_V3, etag: kept!.headers["etag"] } });
  expect(await ask(openApi, serverRelativeURL, { accept: "text/html" })).toMatchObject({ status: 406 });
  for (const path of ["/openapi/v3/apis/example.com/v1", "/openapi/v3/"]) expect(await ask(openApi, path)).toMatchObject({ status: 404, headers: {}, text: "" });
});

test("a request that is told late of what was served does not bring it back: what was made for others since is kept", async () => {
  let upMs = 0, loads = 0;
  const registry = await memoryRegistry();
  const paths = openApiPaths({ registry, clock: { ...systemClock, uptimeMs: () => (upMs += 50) }, version: "v1.36.0", descriptions: () => { loads++; return Promise.resolve({}); } });
  for (let i = 0; i < 10; i++) define(registry, `box${i}`);
  const late = ask(paths, "/openapi/v3");
  for (let i = 1; i < 10; i++) registry.removeCustom("ops.io", `box${i}es`);
  const place = "/openapi/v3/apis/ops.io/v1";
  const first = await ask(paths, place);
  await late;
  expect(first!.text).not.toBe("");
  expect([(await ask(paths, place))!.text, loads]).toEqual([first!.text, 1]);
});

function define(registry: Registry, singular: string): void {
  const names = { plural: `${singular}es`, singular, kind: singular, listKind: `${singular}List` };
  registry.setCustom(new CustomKind({
    crd: { metadata: { name: `${names.plural}.ops.io` }, spec: { group: "ops.io", scope: "Namespaced", names, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }] } } as never, remote: undefined,
  }), names);
}

test.each<[range: string, status: number, told: string | undefined, body: (whole: string) => string]>([
  ["bytes=0-9", 206, "bytes 0-9/SIZE", (whole) => whole.slice(0, 10)], ["bytes=-7", 206, "bytes -7/SIZE", (whole) => whole.slice(-7)], ["bytes=5-", 206, "bytes 5-/SIZE", (whole) => whole.slice(5)], ["bytes=2-99999999", 206, "bytes 2-/SIZE", (whole) => whole.slice(2)],
  ["bytes=0-0, 5-6, ", 206, undefined, (whole) => `--B\r\nContent-Range: bytes 0-0/SIZE\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${whole[0]}\r\n--B\r\nContent-Range: bytes 5-6/SIZE\r\nContent-Type: text/plain; charset=utf-8\r\n\r\n${whole.slice(5, 7)}\r\n--B--\r\n`],
  ["bytes=0-99999999,1-2", 200, undefined, (whole) => whole], ["bytes=", 200, undefined, (whole) => whole], ["bytes=99999999-, 1-1", 206, "bytes 1-1/SIZE", (whole) => whole[1]!],
  ["bytes=99999999-", 416, "bytes */SIZE", () => "invalid range: failed to overlap\n"], ["bytes=3-1", 416, undefined, () => "invalid range\n"], ["bytes=-", 416, undefined, () => "invalid range\n"], ["bytes=--1", 416, undefined, () => "invalid range\n"], ["junk", 416, undefined, () => "invalid range\n"],
])("a part of the index of documents: %s", async (range, status, told, body) => {
  const whole = (await ask(openApi, "/openapi/v3"))!.text, size = String(whole.length);
  const answer = (await ask(openApi, "/openapi/v3", { range }))!;
  const mark = /boundary=([0-9a-f]{60})$/.exec(answer.headers["content-type"]!)?.[1] ?? "B";
  expect([answer.status, answer.text.replaceAll(mark, "B")]).toEqual([status, body(whole).replaceAll("SIZE", size)]);
  const last = whole.length - 1;
  expect(answer.headers["content-range"]).toBe(told?.replace("5-/", `5-${last}/`).replace("2-/", `2-${last}/`).replace(" -7/", ` ${last - 6}-${last}/`).replace("SIZE", size));
  expect([answer.headers["accept-ranges"], answer.headers["last-modified"] === undefined]).toEqual(status === 416 ? [undefined, true] : ["bytes", false]);
});

test("a part of a document, whatever its client would have unpacked; of another document than is wanted, all of it", async () => {
  const { etag = "", ...others } = (await ask(openApi, "/openapi/v2"))!.headers;
  expect(others["accept-ranges"]).toBe("bytes");
  const range = "bytes=0-9";
  expect(await ask(openApi, "/openapi/v2", { range, "accept-encoding": "gzip", "if-range": etag })).toMatchObject({ status: 206, text: '{"swagger"', headers: { etag, "content-type": "application/json" } });
  for (const other of [`W/${etag}`, '"x"', "Sat, 01 Jan 2000 00:00:00 GMT"]) expect((await ask(openApi, "/openapi/v2", { range, "if-range": other }))!.status).toBe(200);
  expect((await ask(openApi, "/openapi/v2", { range, "if-none-match": etag }))!.status).toBe(304);
  expect((await ask(openApi, "/openapi/v2", { range: "bytes=9999999999-" }))!.headers).toMatchObject({ vary: "Accept-Encoding, Accept", "cache-control": "no-cache, private", "x-content-type-options": "nosniff" });
});

test("/ tells which paths there are", async () => {
  const answer = await ask(index, "/");
  const { paths } = JSON.parse(answer!.text) as { paths: string[] };
  expect(answer!.headers["content-type"]).toBe("application/json");
  expect(paths).toEqual([...paths].sort());
  expect(paths).toEqual(expect.arrayContaining(["/api/v1", "/apis", "/apis/apps", "/apis/apps/v1", "/healthz/ping", "/livez/ping", "/metrics", "/openapi/v3", "/version"]));
  expect(paths).not.toContain("/readyz/ping");
  expect(await ask(index, "/other")).toBeUndefined();
});
