import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { serviceUnavailable } from "../../api/meta/status-error.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { apiServer, type ApiServer } from "../../../test/api-server.ts";

let api: ApiServer;
const MAPS = "/api/v1/namespaces/a/configmaps";
const NAMES = ["m0", "m1", "m2", "m3", "m4"];

interface Listed { readonly metadata: { readonly name: string; readonly resourceVersion: string }; readonly data?: Readonly<Record<string, string>> }
const namesOf = (items: readonly Listed[]) => items.map(({ metadata }) => metadata.name);
const create = (name: string, labels: object = {}) => api.ask("POST", MAPS, { body: { metadata: { name, labels } } });

beforeAll(async () => {
  api = await apiServer();
  for (const [i, name] of NAMES.entries()) await create(name, { parity: i % 2 === 0 ? "even" : "odd" });
  await api.ask("POST", "/api/v1/namespaces/b/configmaps", { body: { metadata: { name: "m0" } } });
});
afterAll(() => api[Symbol.asyncDispose]());

test("a list: items without type, of a namespace or of all", async () => {
  const { body } = await api.ask("GET", MAPS);
  expect(body).toMatchObject({ kind: "ConfigMapList", apiVersion: "v1", metadata: { resourceVersion: expect.stringMatching(/^\d+$/) } });
  expect(namesOf(body.items)).toEqual(NAMES);
  expect(Object.keys(body.items[0])).toEqual(["metadata"]);
  expect(namesOf((await api.ask("GET", "/api/v1/configmaps")).body.items)).toEqual([...NAMES, "m0"]);
});

test("pages are of one moment, whatever happens between them", async () => {
  const first = await api.ask("GET", MAPS, { query: { limit: "2" } });
  expect(namesOf(first.body.items)).toEqual(["m0", "m1"]);
  expect(first.body.metadata.remainingItemCount).toBe(3);
  await create("m2a");
  await api.ask("DELETE", `${MAPS}/m2`);
  expect((await api.ask("GET", MAPS, { query: { continue: first.body.metadata.continue, resourceVersion: first.body.metadata.resourceVersion } })).body).toMatchObject({ code: 400, message: "specifying resource version is not allowed when using continue" });
  const second = await api.ask("GET", MAPS, { query: { limit: "2", continue: first.body.metadata.continue } });
  expect([namesOf(second.body.items), second.body.metadata.resourceVersion, second.body.metadata.remainingItemCount]).toEqual([["m2", "m3"], first.body.metadata.resourceVersion, 1]);
  const third = await api.ask("GET", MAPS, { query: { limit: "2", continue: second.body.metadata.continue } });
  expect([namesOf(third.body.items), third.body.metadata.continue, third.body.metadata.remainingItemCount]).toEqual([["m4"], undefined, undefined]);
  const rest = await api.ask("GET", MAPS, { query: { limit: "1", continue: first.body.metadata.continue, resourceVersion: "0" } });
  expect([namesOf(rest.body.items), rest.body.metadata.continue]).toEqual([["m2", "m3", "m4"], undefined]); // who takes what there is gets all of it
  await api.ask("DELETE", `${MAPS}/m2a`);
  await create("m2", { parity: "even" });
});

test("an exact version is that version; a limit without a match means the same; version 0 is all there is", async () => {
  const then = (await api.ask("GET", MAPS)).body.metadata.resourceVersion;
  await create("later");
  const of = async (query: Record<string, string>) => namesOf((await api.ask("GET", MAPS, { query })).body.items);
  expect(await of({ resourceVersion: then, resourceVersionMatch: "Exact" })).toEqual(NAMES);
  expect(await of({ resourceVersion: then, limit: "3" })).toEqual(NAMES.slice(0, 3));
  expect(await of({ resourceVersion: then, resourceVersionMatch: "NotOlderThan" })).toEqual(["later", ...NAMES]);
  expect(await of({ resourceVersion: "0", limit: "3" })).toEqual(["later", ...NAMES]);
  await api.ask("DELETE", `${MAPS}/later`);
});

test.each<[query: Record<string, string>, names: string[]]>([
  [{ labelSelector: "parity=odd" }, ["m1", "m3"]],
  [{ labelSelector: "parity in (even,none),parity!=none" }, ["m0", "m2", "m4"]],
  [{ labelSelector: "!parity" }, []],
  [{ labelSelector: "parity" }, NAMES],
  [{ labelSelector: "parity==odd" }, ["m1", "m3"]],
  [{ labelSelector: "none!=a,parity notin (odd)" }, ["m0", "m2", "m4"]],
  [{ labelSelector: "none=" }, []],
  [{ labelSelector: " parity in ( odd , even ) , parity != even " }, ["m1", "m3"]],
  [{ fieldSelector: "metadata.name=m3" }, ["m3"]],
  [{ fieldSelector: "metadata.name==m3" }, ["m3"]],
  [{ fieldSelector: "metadata.name!=m3,metadata.namespace=a", labelSelector: "parity=odd" }, ["m1"]],
])("%j selects %j", async (query, names) => {
  expect(namesOf((await api.ask("GET", MAPS, { query })).body.items)).toEqual(names);
});

test.each<[path: string, query: Record<string, string>, code: number, message: string]>([
  [MAPS, { fieldSelector: "data.a=b" }, 400, '"data.a" is not a known field selector: only "metadata.name", "metadata.namespace"'],
  ["/api/v1/pods", { fieldSelector: "spec.containers=b" }, 400, "field label not supported: spec.containers"],
  ["/api/v1/namespaces/a/pods", { fieldSelector: "status.podIPs=10.0.0.1,spec.hostNetwork=true,spec.foo=1" }, 400, "field label not supported: spec.foo"],
  [MAPS, { labelSelector: "a in b" }, 400, "unable to parse requirement: found 'b' expected: '('"],
  [MAPS, { limit: "many" }, 400, 'strconv.ParseInt: parsing "many": invalid syntax'],
  [MAPS, { timeoutSeconds: "soon" }, 400, 'strconv.ParseInt: parsing "soon": invalid syntax'],
  [MAPS, { limit: "" }, 400, 'strconv.ParseInt: parsing "": invalid syntax'],
  [MAPS, { continue: "!" }, 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"],
  [MAPS, { continue: "!", resourceVersion: "5" }, 400, "invalid continue token: continue key is not valid: illegal base64 data at input byte 0"], // the token is read first
  ["/apis/batch/v1/namespaces/a/jobs", { fieldSelector: "spec.suspend=true" }, 400, 'field label "spec.suspend" not supported for Job'],
  [MAPS, { continue: "abc" }, 400, "invalid continue token: continue key is not valid: invalid character 'i' looking for beginning of value"],
  ...([["5", "json: cannot unmarshal number into Go value of type storage.continueToken"], ['{"rv":"x"}', "json: cannot unmarshal string into Go struct field continueToken.rv of type int64"],
    ['{"v":null,"RV":1.5}', "json: cannot unmarshal number 1.5 into Go struct field continueToken.rv of type int64"], ['{"V":"meta.k8s.io/v1"}', "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"]] as const)
    .map(([text, why]): [string, Record<string, string>, number, string] => [MAPS, { continue: `\n${Buffer.from(text).toString("base64url")}` }, 400, `invalid continue token: continue key is not valid: ${why}`]),
  [MAPS, { limit: "9".repeat(20) }, 400, `strconv.ParseInt: parsing "${"9".repeat(20)}": value out of range`],
  [MAPS, { resourceVersion: "abc" }, 400, 'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'],
  [MAPS, { continue: "zz", resourceVersion: "x" }, 400, "invalid continue token: continue key is not valid: invalid character 'Ï' looking for beginning of value"],
  [MAPS, { limit: "x", timeoutSeconds: "y" }, 400, 'strconv.ParseInt: parsing "y": invalid syntax'],
  [MAPS, { resourceVersion: "x", labelSelector: "!!" }, 400, "unable to parse requirement: found '!', expected: identifier"],
  [MAPS, { resourceVersionMatch: "X", fieldSelector: "a" }, 400, "invalid selector: 'a'; can't understand 'a'"],
  [MAPS, { resourceVersion: "x", fieldSelector: "bogus=1" }, 400, '"bogus" is not a known field selector: only "metadata.name", "metadata.namespace"'],
  [MAPS, { resourceVersionMatch: "Exact" }, 422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided'],
  [MAPS, { resourceVersionMatch: "Roughly", resourceVersion: "1" }, 422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Unsupported value: "Roughly": supported values: "Exact", "NotOlderThan", ""'],
  [MAPS, { sendInitialEvents: "true" }, 422, 'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list'],
  [MAPS, { watch: "true", sendInitialEvents: "true" }, 422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'],
  [MAPS, { resourceVersion: "18446744073709551616" }, 400, 'invalid resource version: resourceVersion: Invalid value: "18446744073709551616": strconv.ParseUint: parsing "18446744073709551616": value out of range'],
  [`${MAPS}/m0`, { resourceVersion: "18446744073709551616" }, 500, 'resourceVersion: Invalid value: "18446744073709551616": strconv.ParseUint: parsing "18446744073709551616": value out of range'],
  [`${MAPS}/m0`, { export: "true" }, 400, "the export parameter, deprecated since v1.14, is no longer supported"],
  [MAPS, { watch: "true", continue: "abc" }, 422, 'ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden when continue is provided'],
  ["/api/v1/watch/namespaces/a/configmaps", { resourceVersion: "abc" }, 500, 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'],
  [MAPS, { resourceVersion: "abc", watch: "true" }, 500, 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'],
  [`${MAPS}/m0`, { resourceVersion: "abc" }, 500, 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax'],
])("%s?%j is refused with %i", async (path, query, code, message) => {
  const told = await api.ask("GET", path, { query });
  expect([told.code, told.body.message.slice(0, message.length)]).toEqual([code, message]);
});

test.each(["continue", "limit", "Exact"])("a page of the future (%s) is waited for as another server may be ahead, then refused until it is tried again", async (how) => {
  const token = Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: 999_999, start: "m1\0" })).toString("base64url");
  const version = { resourceVersion: "999999" };
  const { code, body } = await api.ask("GET", MAPS, { query: how === "continue" ? { limit: "1", continue: token } : how === "limit" ? { limit: "1", ...version } : { resourceVersionMatch: "Exact", ...version } });
  expect([code, body.message, body.details]).toEqual([504, expect.stringMatching(/^Timeout: Too large resource version: 999999, current: \d+$/), { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }], retryAfterSeconds: 1 }]);
});

test("a version that is too large is told as it is, however large", async () => {
  const versions = ["9223372036854775807", "18446744073709551615", "000999999"];
  const told = await Promise.all(versions.map(async (resourceVersion) => (await api.ask("GET", MAPS, { query: { resourceVersion, resourceVersionMatch: "Exact" } })).body.message.split(",")[0]));
  expect(told).toEqual(["9223372036854775807", "18446744073709551615", "999999"].map((version) => `Timeout: Too large resource version: ${version}`));
});

test("a version from the future is waited for, then refused", async () => {
  const { code, body } = await api.ask("GET", `${MAPS}/m0`, { query: { resourceVersion: "1000000" } });
  expect([code, body.reason, body.details.causes]).toEqual([504, "Timeout", [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }]]);
});

test("a watch from the future is told to list again, once that does not come", async () => {
  const [event] = await api.events(MAPS, 1, { query: { resourceVersion: "1000000" } });
  expect([event.type, event.object.code, event.object.reason]).toEqual(["ERROR", 410, "Expired"]);
  expect(event.object.message).toMatch(/^Too large resource version: 1000000, current: \d+$/);
});

test("a streaming list from the future says in its first event that there is no such version", async () => {
  const [event] = await api.events(MAPS, 1, { query: { resourceVersion: "1000000", sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" } });
  expect([event.type, event.object.code, event.object.details.causes]).toEqual(["ERROR", 504, [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }]]);
});

test("a watch of version 0 that wants no initial events begins now", async () => {
  const watched = api.events(MAPS, 1, { query: { resourceVersion: "0", sendInitialEvents: "false", resourceVersionMatch: "NotOlderThan" } });
  await create("after-zero");
  expect((await watched).map(({ type, object }) => [type, object.metadata.name])).toEqual([["ADDED", "after-zero"]]);
  await api.ask("DELETE", `${MAPS}/after-zero`);
});

test("a watch tells what happened after a version, as its selector sees it", async () => {
  const { body } = await api.ask("GET", MAPS);
  const watched = api.events(MAPS, 4, { query: { resourceVersion: body.metadata.resourceVersion, labelSelector: "seen=yes" } });
  await create("w", { seen: "no" });
  const label = (seen: string) => api.ask("PATCH", `${MAPS}/w`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { labels: { seen } } } });
  await label("yes");
  await api.ask("PATCH", `${MAPS}/w`, { headers: { "content-type": "application/merge-patch+json" }, body: { data: { a: "1" } } });
  const left = await label("no");
  await label("yes");
  const events = await watched;
  expect(events.map(({ type, object }) => [type, object.metadata.labels.seen, object.data])).toEqual([["ADDED", "yes", undefined], ["MODIFIED", "yes", { a: "1" }], ["DELETED", "yes", { a: "1" }], ["ADDED", "yes", { a: "1" }]]);
  expect(events[2].object.metadata.resourceVersion).toBe(left.body.metadata.resourceVersion);
  await api.ask("DELETE", `${MAPS}/w`);
});

test("without a version, a watch begins with what there is; a streaming list says when that was all", async () => {
  expect(namesOf((await api.events(MAPS, 5)).map(({ object }) => object))).toEqual(NAMES);
  for (const query of [{ sendInitialEvents: "true", resourceVersionMatch: "NotOlderThan" }, {}, { resourceVersion: "0" }]) {
    const events = await api.events(MAPS, 6, { query: { ...query, allowWatchBookmarks: "true" } });
    expect(events.map(({ type }) => type)).toEqual(["ADDED", "ADDED", "ADDED", "ADDED", "ADDED", "BOOKMARK"]);
    expect(events[5].object).toEqual({ kind: "ConfigMap", apiVersion: "v1", metadata: { resourceVersion: expect.stringMatching(/^\d+$/), annotations: { "k8s.io/initial-events-end": "true" } } });
  }
});

test("a bookmark is an object of its kind, with what each of them must have", async () => {
  for (const [path, kind, rest] of [["/api/v1/pods", "Pod", { spec: { containers: null }, status: {} }], [MAPS, "ConfigMap", {}]] as const) {
    const events = await api.events(path, 1, { query: { allowWatchBookmarks: "1", labelSelector: "nobody=has" } });
    expect(events).toEqual([{ type: "BOOKMARK", object: { kind, apiVersion: "v1", metadata: { resourceVersion: expect.stringMatching(/^\d+$/), annotations: { "k8s.io/initial-events-end": "true" } }, ...rest } }]);
  }
});

test("a watch of less than no time is over before it begins", async () => {
  expect(await api.events(MAPS, 1, { query: { timeoutSeconds: "-5" } })).toEqual([]);
});

test("a watch of what is forgotten says so as its only event", async () => {
  let skewMs = 0;
  await using api = await apiServer({ clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() + skewMs } });
  const make = (name: string) => api.ask("POST", "/api/v1/namespaces/x/secrets", { body: { metadata: { name } } });
  for (let i = 0; i < 1100; i++) await make(`s${i}`);
  const [early] = await api.events("/api/v1/secrets", 1, { query: { resourceVersion: "1" } });
  expect(early).toMatchObject({ type: "ADDED", object: { metadata: { name: "s0" } } });
  skewMs = 80_000;
  await make("late");
  const [event] = await api.events("/api/v1/secrets", 1, { query: { resourceVersion: "1" } });
  expect(event).toMatchObject({ type: "ERROR", object: { kind: "Status", code: 410, reason: "Expired", message: expect.stringMatching(/^too old resource version: 1 \(\d+\)$/) } });
});

test("an object is shown as a Table or as its metadata, if that is asked for", async () => {
  const table = await api.ask("GET", `${MAPS}/m0`, { headers: { accept: "application/json;as=Table;g=meta.k8s.io;v=v1,application/json" } });
  expect(table.body).toMatchObject({ kind: "Table", apiVersion: "meta.k8s.io/v1", columnDefinitions: [{ name: "Name" }, { name: "Data" }, { name: "Age" }], rows: [{ cells: ["m0", 0, expect.any(String)], object: { kind: "PartialObjectMetadata", metadata: { name: "m0" } } }] });
  const metadata = await api.ask("GET", MAPS, { headers: { accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" } });
  expect(metadata.body).toMatchObject({ kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", items: [{ kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: { name: "m0" } }, {}, {}, {}, {}] });
  const [event] = await api.events(MAPS, 1, { query: { fieldSelector: "metadata.name=m0" }, headers: { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" } });
  expect(event).toMatchObject({ type: "ADDED", object: { kind: "Table", columnDefinitions: [{ name: "Name" }, {}, {}], rows: [{ cells: ["m0", 0, expect.any(String)] }] } });
});

test("watchers of one resource that asked for different things each get their own, at the same moment", async () => {
  const { body } = await api.ask("GET", MAPS);
  const watched = (accept: string) => api.events(MAPS, 2, { query: { resourceVersion: body.metadata.resourceVersion }, headers: { accept } });
  const both = [watched("application/json"), watched("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"), watched("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1beta1"), watched("application/json")];
  await create("together");
  await api.ask("DELETE", `${MAPS}/together`);
  const shown = (await Promise.all(both)).map((events) => events.map(({ type, object }) => `${type} ${object.apiVersion} ${object.kind}`));
  const metadata = (version: string) => ["ADDED", "DELETED"].map((type) => `${type} meta.k8s.io/${version} PartialObjectMetadata`);
  expect(shown).toEqual([["ADDED v1 ConfigMap", "DELETED v1 ConfigMap"], metadata("v1"), metadata("v1beta1"), ["ADDED v1 ConfigMap", "DELETED v1 ConfigMap"]]);
});

test("a list of custom resources says that it does not go on; one of built-in ones says nothing of it", async () => {
  const schema = { openAPIV3Schema: { type: "object" } };
  const crd = { metadata: { name: "ends.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "ends", kind: "End" }, versions: [{ name: "v1", served: true, storage: true, schema }] } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd });
  while ((await api.ask("GET", "/apis/example.com/v1/ends")).code !== 200) await systemClock.sleep(5, api.signal);
  const told = async (path: string, query = {}) => (await api.ask("GET", path, { query })).body.metadata.continue;
  expect([await told("/apis/example.com/v1/ends"), await told("/apis/example.com/v1/ends", { pretty: "1" }), await told(MAPS)]).toEqual(["", "", undefined]);
});

test("custom resources: no version is none for an update, each decoder has its words, and their Scale is written as they are", async () => {
  const spec = { type: "object", properties: { replicas: { type: "integer" } } };
  const version = { name: "v1", served: true, storage: true, subresources: { scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" } }, schema: { openAPIV3Schema: { type: "object", properties: { spec } } } };
  const cogs = "/apis/example.com/v1/cogs", cog = { apiVersion: "example.com/v1", kind: "Cog", metadata: { name: "c" }, spec: { replicas: 1 } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: { metadata: { name: "cogs.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "cogs", kind: "Cog" }, versions: [version] } } });
  while ((await api.ask("GET", cogs)).code !== 200) await systemClock.sleep(5, api.signal);
  await api.ask("POST", cogs, { body: cog });
  for (const resourceVersion of ["0", null])
    expect((await api.ask("PATCH", `${cogs}/c`, { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { resourceVersion } } })).body.message).toBe('cogs.example.com "c" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update');
  const said = async (fieldValidation: string, body: object): Promise<string> => (await api.ask("POST", cogs, { query: { fieldValidation }, body })).body.message;
  expect(await said("Strict", { ...cog, apiVersion: "example.com/v2" })).toBe('Cog in version "v2" cannot be handled as a Cog: strict decoding error: unknown field "spec"');
  expect([await said("Ignore", {}), await said("Warn", {})]).toEqual([`Cog in version "v1" cannot be handled as a Cog: Object 'Kind' is missing in '{}'`, "the object provided is unrecognized (must be of type Cog): Object 'Kind' is missing in '{}' ({})"]);
  expect((await api.ask("GET", `${cogs}/c/scale`, { headers: { accept: "application/vnd.kubernetes.protobuf,application/json" } })).contentType).toBe("application/json");
});

test("a watch of nothing is no request, whoever asks", async () => {
  const answer = await api.handler({ method: "GET", path: "/api/v1/watch", query: new URLSearchParams(), header: () => undefined, headers: () => [], wire: { rawQuery: "a=<" }, signal: api.signal } as never);
  expect(answer).toMatchObject({ type: "raw", status: 500, body: 'Internal Server Error: "/api/v1/watch?a=&lt;": failed to create RequestInfo: unable to determine kind and namespace from url, /api/v1/watch?a=&lt;\n' });
});

test("a Table of nothing has no rows, and of a kind without columns of its own not even an empty list of them", async () => {
  for (const accept of ["application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1beta1"]) {
    const rowsOf = async (path: string, query = {}): Promise<unknown> => (await api.ask("GET", path, { headers: { accept }, query })).body.rows;
    expect([await rowsOf("/api/v1/limitranges"), await rowsOf("/api/v1/limitranges", { includeObject: "None" }), await rowsOf("/api/v1/podtemplates"), await rowsOf("/api/v1/podtemplates", { includeObject: "None" })]).toEqual([null, null, [], []]);
  }
});

test("a review has no Table; nobody speaks Klingon", async () => {
  const table = { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" };
  const review = await api.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", { headers: table, body: { spec: { nonResourceAttributes: { path: "/", verb: "get" } } } });
  expect([review.code, review.body.reason]).toEqual([406, "NotAcceptable"]);
  const crd = { metadata: { name: "tables.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "tables", kind: "Table" }, versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } }] } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd });
  const status = (accept: string) => api.ask("GET", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tables.example.com/status", { headers: { accept } });
  expect([(await status(table.accept)).code, (await status(`${table.accept},application/json`)).body.kind]).toEqual([406, "CustomResourceDefinition"]);
  const klingon = await api.ask("GET", `${MAPS}/m0`, { headers: { accept: "application/klingon" } });
  expect([klingon.code, klingon.body.message]).toEqual([406, "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"]);
  expect((await api.ask("GET", MAPS, { headers: { accept: "text/html" } })).body.message).toBe("406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch");
  expect((await api.ask("GET", `${MAPS}/none`, { headers: { accept: "application/klingon" } })).code).toBe(406);
});

test("a watch in what nothing is written in is refused as any answer is, and in what has no stream with what has", async () => {
  const told = async (accept: string) => (await api.ask("GET", MAPS, { query: { watch: "1" }, headers: { accept } })).body as { readonly message?: string };
  expect((await told("application/json;as=Table;g=meta.k8s.io;v=v2")).message).toBe("only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf");
  expect(String(await told("application/yaml"))).toContain("application/json;stream=watch");
});

test("metadata of nothing is null, as Go writes a list that was never made", async () => {
  for (const headers of [{ accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1" }, { accept: "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1;pretty=1" }])
    expect((await api.ask("GET", "/api/v1/namespaces/none/configmaps", { headers })).body.items).toBeNull();
});

test("metadata of a list is not asked for of one object, nor the other way round; what went wrong is told as JSON then", async () => {
  const as = (kind: string, type = "application/json") => ({ headers: { accept: `${type};as=${kind};g=meta.k8s.io;v=v1` } });
  const told = await Promise.all([api.ask("GET", `${MAPS}/m0`, as("PartialObjectMetadataList")), api.ask("GET", MAPS, as("PartialObjectMetadata"))]);
  expect(told.map(({ code, body }) => [code, body.message])).toEqual([
    [406, "you requested PartialObjectMetadataList, but the requested object is not a list (*core.ConfigMap)"], [406, "you requested PartialObjectMetadata, but the requested object is a list (*core.ConfigMapList)"],
  ]);
  const missing = await api.ask("GET", `${MAPS}/none`, as("PartialObjectMetadata", "application/yaml"));
  expect([missing.code, missing.contentType, missing.body.reason]).toEqual([404, "application/json", "NotFound"]);
});

test("one resource under two groups: events", async () => {
  const made = await api.ask("POST", "/apis/events.k8s.io/v1/namespaces/a/events", {
    body: { metadata: { name: "e" }, eventTime: "2026-01-01T00:00:00.000000Z", action: "Do", reason: "Because", type: "Normal", reportingController: "example.com/c", reportingInstance: "c-1", regarding: { kind: "Pod", name: "p", namespace: "a" }, note: "text" },
  });
  expect([made.code, made.body.note, made.body.regarding.name]).toEqual([201, "text", "p"]);
  const core = await api.ask("GET", "/api/v1/namespaces/a/events/e");
  expect(core.body).toMatchObject({ kind: "Event", apiVersion: "v1", message: "text", involvedObject: { name: "p" }, reportingComponent: "example.com/c" });
  expect(namesOf((await api.ask("GET", "/apis/events.k8s.io/v1/namespaces/a/events", { query: { fieldSelector: "regarding.name=p" } })).body.items)).toEqual(["e"]);
});

test.each([
  ["POST", `${MAPS}/m0`, 405, "the server does not allow this method on the requested resource"],
  ["PUT", MAPS, 405, "the server does not allow this method on the requested resource"],
  ["POST", "/api/v1/watch/configmaps", 405, "the server does not allow this method on the requested resource"],
  ["HEAD", `${MAPS}/m0`, 405, "the server does not allow this method on the requested resource"],
  ["OPTIONS", MAPS, 405, "the server does not allow this method on the requested resource"],
  ["POST", "/api/v1/configmaps", 405, "the server does not allow this method on the requested resource"],
  ["GET", "/api/v1/configmaps/m0", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/nodes", 404, "the server could not find the requested resource"],
  ["GET", `${MAPS}/m0/nothing`, 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a//configmaps", 404, "the server could not find the requested resource"],
  ["POST", "/api//v1/namespaces/a/configmaps", 404, "the server could not find the requested resource"],
  ["DELETE", `${MAPS}/m0%2Fm1`, 404, "the server could not find the requested resource"],
  ["GET", `${MAPS}/m0/nothing/more`, 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/status/more", 404, "the server could not find the requested resource"],
  ["POST", "/api/v1/namespaces/a/pods/p/binding/more", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/bindings/b", 404, "the server could not find the requested resource"],
  ["POST", "/apis/authentication.k8s.io/v1/tokenreviews/t", 404, "the server could not find the requested resource"],
  ["POST", "/api/v1/namespaces/a/componentstatuses", 404, "the server could not find the requested resource"],
  ["GET", "/api/v1/namespaces/a/componentstatuses/c", 404, "the server could not find the requested resource"],
  ["POST", "/apis/authentication.k8s.io/v1/namespaces/a/tokenreviews", 404, "the server could not find the requested resource"],
  ["POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews/s/status", 404, "the server could not find the requested resource"],
  ["HEAD", `${MAPS}/m0/nothing`, 404, "the server could not find the requested resource"],
  ["GET", "/apis/authentication.k8s.io/v1/tokenreviews", 405, "the server does not allow this method on the requested resource"],
  ["GET", "/api/v1/componentstatuses/c", 404, 'componentstatus "c" not found'],
  ["GET", "/api/v1/nothings", 404, "the server could not find the requested resource"],
])("%s %s is %i", async (method, path, code, message) => {
  const told = await api.ask(method, path, { body: {} });
  expect([told.code, told.body.message]).toEqual([code, message]);
});

test("what can be listed alone is not watched", async () => {
  expect((await api.ask("GET", "/api/v1/componentstatuses", { query: { watch: "1" } })).body).toMatchObject({ code: 405, message: 'watch is not supported on resources of kind "componentstatuses"' });
});

test.each([
  "/nothing", "/apis/example.com", "/apis/extensions/v1beta1/ingresses", "/apis/storagemigration.k8s.io/v1beta1/storageversionmigrations", "/apis/internal.apiserver.k8s.io/v1alpha1/storageversions", "//api/v1/pods", "//apis/apps/v1/deployments",
])("nobody serves %s: as Go's HTTP library says it", async (path) => {
  expect(await api.ask("GET", path)).toMatchObject({ code: 404, contentType: "text/plain; charset=utf-8", body: "404 page not found\n" });
});

test.each([["GET", ".", "may not be '.'"], ["DELETE", "%2e%2e", "may not be '..'"], ["GET", "a%25b", "may not contain '%'"]])("%s of a pod %s: no name is like that", async (method, name, problem) => {
  expect((await api.ask(method, `/api/v1/namespaces/a/pods/${name}`)).body).toMatchObject({ code: 400, reason: "BadRequest", message: `Name parameter invalid: "${decodeURIComponent(name)}": ${problem}` });
});

test.each(["/api/v2", "/api/v1/nothings", "/apis/apps/v2/deployments", "/apis/batch/v1beta1/cronjobs", "/apis/policy/v1beta1/podsecuritypolicies", "/openid/v1/jwks/x", "/.well-known/openid-configuration/x"])("%s is below what is built in: its router says that it is not there", async (path) => {
  expect((await api.ask("GET", path)).body).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "the server could not find the requested resource", reason: "NotFound", details: {}, code: 404 });
});

test("a client that will not wait is told so in time", async () => {
  const told = async (timeout: string) => {
    const { code, body, contentType } = await api.ask("GET", `${MAPS}/m0`, { query: { resourceVersion: "1000000", timeout } });
    return [code, code === 504 ? `${contentType}: ${body}` : body.message];
  };
  expect(await told("20ms")).toEqual([504, 'text/plain; charset=utf-8: {"metadata":{},"status":"Failure","message":"Timeout: request did not complete within the allotted timeout","reason":"Timeout","details":{},"code":504}\n']);
  expect(await told("soon")).toEqual([400, 'invalid timeout specified in the request URL - time: invalid duration "soon"']);
});

test("one object by its name has no pages: it is as it is now, whatever version and limit are named", async () => {
  const then = (await api.ask("GET", MAPS)).body.metadata.resourceVersion;
  await create("named");
  const of = async (path: string, query: Record<string, string>) => namesOf((await api.ask("GET", path, { query: { fieldSelector: "metadata.name=named", resourceVersion: then, ...query } })).body.items);
  expect(await of(MAPS, { limit: "3" })).toEqual(["named"]);
  expect(await of("/api/v1/configmaps", { limit: "3", fieldSelector: "metadata.name=named,metadata.namespace=a" })).toEqual(["named"]);
  expect([await of("/api/v1/configmaps", { limit: "3" }), await of(MAPS, { resourceVersionMatch: "Exact" })]).toEqual([[], []]);
  await api.ask("DELETE", `${MAPS}/named`);
});

test("a watch ends after the time that was set for all, at the earliest", async () => {
  await using own = await apiServer({ times: { watchMsMin: 50 } });
  expect(await own.events(MAPS, 1, { query: { watch: "true" } })).toEqual([]);
});

test("a watch that takes bookmarks has its last one shortly before its end", async () => {
  const fast = 20;
  await using api = await apiServer({ clock: { ...systemClock, uptimeMs: () => systemClock.uptimeMs() * fast, after: (ms, ring) => systemClock.after(ms / fast, ring) } });
  const { body } = await api.ask("GET", MAPS);
  const startMs = systemClock.uptimeMs();
  const [bookmark] = await api.events(MAPS, 1, { query: { resourceVersion: body.metadata.resourceVersion, allowWatchBookmarks: "true", timeoutSeconds: "10" } });
  expect([bookmark.type, systemClock.uptimeMs() - startMs >= 8_000 / fast - 1]).toEqual(["BOOKMARK", true]);
});

test("who takes an object as it is known gets it, also when the store cannot be asked", async () => {
  await using own = await apiServer();
  const { body } = await own.ask("POST", MAPS, { body: { metadata: { name: "known" } } });
  vi.spyOn(own.cache, "fresh").mockRejectedValue(serviceUnavailable("the store is not available"));
  const codes = ["0", body.metadata.resourceVersion, ""].map(async (resourceVersion) => (await own.ask("GET", `${MAPS}/known`, { query: { resourceVersion } })).code);
  expect(await Promise.all(codes)).toEqual([200, 200, 503]);
});

test.each([["application/json"], ["application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"], ["application/json;as=Table;v=v1;g=meta.k8s.io"]])("how long the events of a watch are is measured, as they are sent: %s", async (accept) => {
  await using own = await apiServer();
  for (const name of ["a", "b"]) await own.ask("POST", MAPS, { body: { metadata: { name } } });
  const events = await own.events(MAPS, 3, { headers: { accept }, query: { allowWatchBookmarks: "1" } });
  const told = Object.fromEntries(own.metrics.render().split("\n").filter((line) => /^apiserver_watch_events_sizes_(sum|count)\{group="",resource="configmaps",version="v1"\}/.test(line)).map((line) => [line.replace(/\{.*/, ""), Number(line.split(" ")[1])]));
  expect(told).toEqual({ apiserver_watch_events_sizes_count: 3, apiserver_watch_events_sizes_sum: events.reduce((sum, event) => sum + Buffer.byteLength(`${JSON.stringify(event).replace(/[<>]/g, "\\u003c")}\n`), 0) });
});

test("an age in a watch of Tables is that of its event: what is made an hour after the watch began is new", async () => {
  let hours = 0;
  await using own = await apiServer({ clock: { ...systemClock, nowMs: () => systemClock.nowMs() + hours * 3_600_000 } });
  await own.ask("POST", MAPS, { body: { metadata: { name: "old" } } });
  const events = own.events(MAPS, 3, { headers: { accept: "application/json;as=Table;v=v1;g=meta.k8s.io" } });
  await expect.poll(() => own.metrics.render()).toContain('apiserver_watch_events_sizes_count{group="",resource="configmaps",version="v1"} 1\n');
  hours = 1;
  await own.ask("POST", MAPS, { body: { metadata: { name: "new" } } });
  await own.ask("PATCH", `${MAPS}/old`, { body: { data: { a: "1" } }, headers: { "content-type": "application/merge-patch+json" } });
  const ages = (await events as { object: { rows: { cells: string[] }[] } }[]).map(({ object }) => object.rows[0]!.cells.at(-1));
  expect(ages).toEqual([expect.stringMatching(/^\ds$/), expect.stringMatching(/^\ds$/), "60m"]);
});
