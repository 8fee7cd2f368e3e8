import { expect, test } from "vitest";
import { protobufCodec } from "../api/codec/protobuf.ts";
import { parseYaml } from "../api/codec/yaml.ts";
import { ANONYMOUS } from "../api/request/user.ts";
import { builtInResources, type ResourceRow } from "../api/schema/resources.ts";
import type { Registry } from "../registry/registry.ts";
import type { RawAnswer } from "./answer.ts";
import { answeredObject } from "./answered-object.ts";
import { discoveryPaths } from "./discovery.ts";
import type { ServerRequest } from "./request.ts";

const paths = discoveryPaths({ rows: () => builtInResources.rows(), rowsOf: ({ group, version }: ResourceRow) => builtInResources.rows().filter((row) => row.group === group && row.version === version), changes: 0 } as unknown as Registry, "127.0.0.1:6443");
const ask = async (method: string, path: string, accept = "") => (await paths({ method, path, query: new URLSearchParams(), header: (name: string) => (name === "accept" ? accept : undefined) } as unknown as ServerRequest, ANONYMOUS)) as RawAnswer | undefined;

test.each(["/api", "/api/v1", "/apis/apps/v1", "/apis/apiregistration.k8s.io"])("%s is read and nothing else", async (path) => {
  expect((await ask("GET", path))?.status).toBe(200);
  for (const method of ["POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"]) await expect(ask(method, path)).rejects.toThrow("the server does not allow this method on the requested resource");
  await expect(ask("GET", path, "text/html")).rejects.toThrow("406: Not Acceptable");
});

test.each([["/apis", 200], ["/apis/apps", 200], ["/apis/none", undefined], ["/api/v2", undefined], ["/apis/apps/v9", undefined], ["/apis//", undefined], ["/apis/apps//v1", undefined]])("%s is answered with %s whatever the method", async (path, status) => {
  for (const method of ["GET", "POST", "HEAD"]) expect((await ask(method, path))?.status).toBe(status);
});

test.each([["/api", "APIVersions"], ["/apis/apps", "APIGroup"], ["/apis/apps/v1", "APIResourceList"], ["/apis", "APIGroupDiscoveryList", "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"]])("what %s says is an object to the audit log: %s", async (path, kind, accept = "application/vnd.kubernetes.protobuf") => {
  const found = (await ask("GET", path, accept))!;
  expect(answeredObject(found)).toMatchObject({ kind });
});

test("all groups at once may be kept by whoever asks whether they have changed", async () => {
  const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
  expect((await ask("GET", "/apis", accept))?.headers).toMatchObject({ "cache-control": "public", vary: "Accept", etag: expect.any(String) });
  const etag = (await ask("GET", "/apis", accept))!.headers["etag"];
  expect(await paths({ method: "GET", path: "/apis", query: new URLSearchParams(), header: (name: string) => ({ accept, "if-none-match": etag })[name] } as unknown as ServerRequest, ANONYMOUS)).toEqual({ type: "raw", status: 304, headers: { etag, vary: "Accept", "cache-control": "public" }, body: "" });
});

test.each([["/api", '\n\x0f\n\0\x12\vAPIVersions'], ["/api/v1", '\n\x13\n\0\x12\x0fAPIResourceList'], ["/apis", '\n\x12\n\x02v1\x12\fAPIGroupList']])("the envelope of %s says of which version the document says to be", async (path, envelope) => {
  const { body } = (await ask("GET", path, "application/vnd.kubernetes.protobuf")) as { body: Uint8Array };
  expect(Buffer.from(body).toString("latin1").slice(4, 4 + envelope.length)).toBe(envelope);
});

test.each(["vnd.kubernetes.protobuf", "yaml"])("all groups at once can be had as %s", async (encoding) => {
  const accept = `application/${encoding};g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList`;
  const { headers, body } = (await ask("GET", "/apis", accept)) as { headers: Record<string, string>; body: Uint8Array | string };
  expect(headers["content-type"]).toBe(accept);
  const { kind, items } = (encoding === "yaml" ? parseYaml(String(body)) : protobufCodec.decode(body as Uint8Array)) as { kind: string; items: { metadata: { name: string } }[] };
  expect([kind, items[1]!.metadata.name]).toEqual(["APIGroupDiscoveryList", "apps"]);
});

test.each(["/api", "/apis", "/apis/apps", "/apis/apps/v1"])("%s is laid out for people, who ask with programs whose output they read", async (path) => {
  const told = async (agent: string): Promise<string> => Buffer.from(((await paths({ method: "GET", path, query: new URLSearchParams(), header: (name: string) => (name === "user-agent" ? agent : undefined) } as unknown as ServerRequest, ANONYMOUS)) as { body: Uint8Array }).body).toString();
  expect([(await told("curl/8.5")).startsWith('{\n  "kind": '), (await told("kubectl/v1.36")).startsWith('{"kind":')]).toEqual([true, true]);
});

test("of one group after the other is told without going through all resources again, until there are others", async () => {
  let looked = 0, changes = 0;
  const rows = () => { looked++; return builtInResources.rows(); };
  const told = discoveryPaths({ rows, rowsOf: () => [], get changes() { return changes; } } as unknown as Registry, "127.0.0.1:6443");
  const groups = async () => { for (const path of ["/apis/apps", "/apis/batch", "/apis"]) await told({ method: "GET", path, query: new URLSearchParams(), header: () => undefined } as unknown as ServerRequest, ANONYMOUS); };
  await groups();
  const once = looked;
  await groups();
  expect(looked).toBe(once);
  changes++;
  await groups();
  expect(looked).toBe(2 * once);
});
