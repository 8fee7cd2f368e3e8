import { afterAll, beforeAll, expect, test, vi } from "vitest";
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

test("where few are what is looked for, more are read at once, and a page has no more than it may", async () => {
  for (let i = 0; i < 120; i++) await api.ask("POST", "/api/v1/namespaces/few/configmaps", { body: { metadata: { name: `m${String(i).padStart(3, "0")}`, labels: i % 40 < 3 ? { rare: "yes" } : {} } } });
  const store = api.registry.storeOf("", "configmaps")!, reading = vi.spyOn(store, "listAt");
  const pages: string[][] = [];
  for (let next: string | undefined = ""; next !== undefined; ) {
    const { body }: { readonly body: { readonly items: readonly Listed[]; readonly metadata: { readonly continue?: string } } } = await api.ask("GET", "/api/v1/namespaces/few/configmaps", { query: { labelSelector: "rare", limit: "2", ...(next ? { continue: next } : {}) } });
    pages.push(namesOf(body.items));
    next = body.metadata.continue;
  }
  expect(pages).toEqual([["m000", "m001"], ["m002", "m040"], ["m041", "m042"], ["m080", "m081"], ["m082"]]);
  expect(reading.mock.calls.length).toBeLessThan(25); // of 120 rows
  reading.mockRestore();
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

test("a list of custom resources says that it does not go on; one of built-in ones says nothing of it", async () => {
  const schema = { openAPIV3Schema: { type: "object" } };
  const crd = { metadata: { name: "ends.example.com" }, spec: { group: "example.com", scope: "Cluster", names: { plural: "ends", kind: "End" }, versions: [{ name: "v1", served: true, storage: true, schema }] } };
  await api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd });
  while ((await api.ask("GET", "/apis/example.com/v1/ends")).code !== 200) await systemClock.sleep(5, api.signal);
  const told = async (path: string, query = {}) => (await api.ask("GET", path, { query })).body.metadata.continue;
  expect([await told("/apis/example.com/v1/ends"), await told("/apis/example.com/v1/ends", { pretty: "1" }), await told(MAPS)]).toEqual(["", "", undefined]);
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

test("pages leave out none and show none twice, whatever characters names have", async () => {
  const names = ["z\uff46", "z\u{1f600}", "za", "z\ue000", "z\u{10ffff}", "z\u00e9"]; // of roles any will do
  for (const name of names) await api.ask("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", { body: { metadata: { name }, rules: [] } });
  const inPages = async (limit: string): Promise<string[]> => {
    const found: string[] = [];
    for (let next: string | undefined = ""; next !== undefined; ) {
      const { body }: { readonly body: { readonly items: readonly Listed[]; readonly metadata: { readonly continue?: string } } } = await api.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles", { query: { limit, ...(next ? { continue: next } : {}) } });
      found.push(...namesOf(body.items));
      next = body.metadata.continue;
    }
    return found;
  };
  const inOrder = names.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  for (const limit of ["1", "2", "3", "100"]) expect(await inPages(limit), limit).toEqual(inOrder);
  await api.ask("DELETE", `/apis/rbac.authorization.k8s.io/v1/clusterroles/${encodeURIComponent(names[0]!)}`);
  expect(await inPages("1")).toEqual(inOrder.filter((name) => name !== names[0]));
});
