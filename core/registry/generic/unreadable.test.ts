import { expect, onTestFinished, test } from "vitest";
import { apiServer } from "../../../test/api-server.ts";
import { aesGcm } from "../../../storage/encryption/ciphers.ts";
import { encryptedStore, providersOf } from "../../../storage/encryption/encryption.ts";
import { identity, KeyAwayError } from "../../../storage/encryption/provider.ts";
import { memoryStore } from "../../../storage/memory.ts";
import { StoreError } from "../../../storage/store.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import { keepFieldsOf } from "./switched-on.ts";
import { mendingUnreadable, UNSAFE_DELETION } from "./unreadable.ts";
import { WatchCache } from "./watch-cache.ts";

const DAMAGED = { $encrypted: "k8s:enc:aesgcm:v1:key1:AAAA" };
const keyOf = (namespace: string, name: string): string => `/registry/core/secrets/${namespace}/${name}`;
const rules = [{ resources: ["secrets"], providers: [aesGcm({ name: "key1", secret: Buffer.alloc(32, 1) }), identity] }];

async function stores() {
  const beneath = await memoryStore();
  return { beneath, store: encryptedStore(beneath, (key) => providersOf(rules, key)) };
}

const secret = (namespace: string, name: string) => ({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace, uid: name, creationTimestamp: "2026-01-01T00:00:00Z" }, type: "Opaque" });

test("a row that cannot be read costs what it stands in, and a delete that says so mends it: of one that was there at the start, and of one that was damaged later", async () => {
  const { beneath, store } = await stores();
  await store.put(keyOf("a", "whole"), secret("a", "whole"), 0);
  await store.put(keyOf("b", "other"), secret("b", "other"), 0);
  await beneath.put(keyOf("a", "damaged"), DAMAGED, 0);
  const allowed = new Set<string>();
  const asked: string[] = [];
  await using api = await apiServer({ store, admit: ({ operation, name }) => void asked.push(`${operation} ${name}`), authorizer: { authorize: ({ verb }) => (verb === "unsafe-delete-ignore-read-errors" && !allowed.has(verb) ? { decision: "no-opinion", reason: "" } : { decision: "allow", reason: "" }), rulesFor: () => Promise.reject(new Error("nobody asks")) } });
  const SECRETS = (namespace: string): string => `/api/v1/namespaces/${namespace}/secrets`;
  const told = (key: string): object => ({ code: 500, reason: "InternalError", message: expect.stringMatching(`^Internal error occurred: unable to transform key "${key}": the value cannot be decrypted`) });
  const codes = async (namespace: string): Promise<(number | string)[]> => await Promise.all([
    ["GET", "/api/v1/secrets"], ["GET", SECRETS(namespace)], ["GET", `${SECRETS(namespace)}/damaged`], ["DELETE", `${SECRETS(namespace)}/damaged`], ["GET", "/api/v1/configmaps"],
  ].map(async ([method, path]) => (await api.ask(method!, path!)).code));

  expect((await api.ask("GET", SECRETS("a"))).body).toMatchObject(told(keyOf("a", "damaged")));
  expect((await api.ask("GET", "/api/v1/secrets", { query: { labelSelector: "a=b" } })).body).toMatchObject(told(keyOf("a", "damaged")));
  expect((await api.ask("GET", `${SECRETS("a")}/damaged`)).body).toMatchObject(told(keyOf("a", "damaged")));
  expect(await codes("a")).toEqual([500, 500, 500, 500, 200]);
  expect(api.registry.storeOf("", "secrets")!.cache.counts.unreadable).toBe(1);
  expect((await api.ask("GET", `${SECRETS("a")}/whole`)).body.metadata.name).toBe("whole");
  expect((await api.ask("GET", SECRETS("b"))).body.items).toHaveLength(1);
  expect((await api.ask("POST", SECRETS("a"), { body: secret("a", "new") })).code).toBe(201);

  const ignore = { query: { ignoreStoreReadErrorWithClusterBreakingPotential: "true" } };
  expect((await api.ask("DELETE", `${SECRETS("a")}/damaged`, ignore)).code).toBe(403);
  allowed.add("unsafe-delete-ignore-read-errors");
  expect((await api.ask("DELETE", `${SECRETS("a")}/damaged`, { body: { ignoreStoreReadErrorWithClusterBreakingPotential: true, dryRun: ["All"] } })).code).toBe(200);
  expect(await codes("a")).toEqual([500, 500, 500, 500, 200]);
  asked.splice(0);
  expect((await api.ask("DELETE", `${SECRETS("a")}/damaged`, ignore)).body).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details: { name: "damaged", kind: "secrets" } });
  expect(asked).toEqual([]);
  expect(await codes("a")).toEqual([200, 200, 404, 404, 200]);
  expect((await beneath.get(keyOf("a", "damaged")))).toBeUndefined();

  const { revision } = (await beneath.get(keyOf("b", "other")))!;
  const watched = api.events("/api/v1/secrets", 2, { query: { resourceVersion: String(beneath.revision) } });
  const damagedAt = await beneath.put(keyOf("b", "other"), DAMAGED, revision);
  await api.cache.fresh(api.signal);
  expect(api.registry.storeOf("", "secrets")!.cache.counts.unreadable).toBe(2);
  expect((await api.ask("GET", `${SECRETS("b")}/other`)).body).toMatchObject(told(keyOf("b", "other")));
  expect((await api.ask("PUT", `${SECRETS("b")}/other`, { body: secret("b", "other") })).code).toBe(500);
  await store.put(keyOf("b", "next"), secret("b", "next"), 0);
  expect(damagedAt).toBeGreaterThan(revision);
  expect((await api.ask("DELETE", `${SECRETS("b")}/other`, ignore)).code).toBe(200);
  expect((await watched).map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual(["ADDED next", "DELETED other"]); // as it was known
  expect((await api.ask("DELETE", `${SECRETS("a")}/whole`, ignore)).code).toBe(200); // what can be read is deleted as ever
  expect(asked.at(-1)).toBe("DELETE whole");
});

test("one that somebody mends is there again, one that goes elsewhere is gone", async () => {
  const { beneath, store } = await stores();
  const cache = new WatchCache(store, systemClock), stop = new AbortController(), ready = Promise.withResolvers<void>(), logs: unknown[] = [];
  for (const name of ["a", "b", "c"]) await store.put(keyOf("x", name), secret("x", name), 0);
  const first = await beneath.put(keyOf("x", "d"), DAMAGED, 0);
  const life = cache.run(stop.signal, ready.resolve, { ...silentLog, error: (_, fields) => void logs.push(fields?.["key"]) });
  await ready.promise;
  const secrets = cache.resource("/registry/core/secrets/"), told: string[] = [];
  secrets.listen(({ type, entry }) => told.push(`${type} ${entry.object.metadata.name}`));
  const second = await beneath.put(keyOf("x", "a"), DAMAGED, (await beneath.get(keyOf("x", "a")))!.revision);
  await cache.fresh(stop.signal);
  expect(() => secrets.under("/registry/core/secrets/x/")).toThrow("unable to transform key");
  expect([secrets.size, [...secrets.values()].length]).toEqual([2, 2]);
  await store.put(keyOf("x", "d"), secret("x", "d"), first);
  await beneath.delete(keyOf("x", "a"), second);
  await cache.fresh(stop.signal);
  expect(secrets.under("/registry/core/secrets/").map(({ object }) => object.metadata.name)).toEqual(["b", "c", "d"]);
  expect([told, logs]).toEqual([["ADDED d", "DELETED a"], [keyOf("x", "d"), keyOf("x", "a")]]);
  stop.abort();
  await life;
});

test("where most cannot be read, it is the wrong store, or the keys are missing: nothing begins", async () => {
  const { beneath, store } = await stores();
  await beneath.put(keyOf("a", "one"), DAMAGED, 0);
  await beneath.put("/registry/core/configmaps/a/one", { kind: "ConfigMap" }, 0);
  await expect(new WatchCache(store, systemClock).run(new AbortController().signal, () => undefined, silentLog)).rejects.toThrow("the value cannot be decrypted");
  const foreign = { ...(await memoryStore()), revision: 3, list: () => Promise.resolve({ rows: ["a", "b", "c"].map((name, i) => ({ key: keyOf("x", name), revision: i, get value(): never { throw new StoreError("corrupt", { key: name, reason: "the value is protobuf" }); } })), revision: 3, more: false, remaining: 0 }) };
  await expect(new WatchCache(foreign as never, systemClock).run(new AbortController().signal, () => undefined, silentLog)).rejects.toThrow("the value is protobuf");
});

test("where all is sealed by a key service that is away, everything begins: it may be a pod of this node", async () => {
  const beneath = await memoryStore();
  const service = { prefix: "k8s:enc:kms:v2:vault:", seal: () => { throw new KeyAwayError("it does not answer"); }, open: () => { throw new KeyAwayError("it does not answer"); } };
  const store = encryptedStore(beneath, () => [service, identity]);
  for (const name of ["a", "b"]) await beneath.put(keyOf("x", name), { $encrypted: `${service.prefix}AAAA` }, 0);
  await using api = await apiServer({ store });
  const told = (message: string): object => ({ code: 500, reason: "InternalError", message: `Internal error occurred: ${message}` });
  for (const path of ["/api/v1/secrets", "/api/v1/namespaces/x/secrets/a"]) expect((await api.ask("GET", path)).body).toMatchObject(told(`unable to transform key "${keyOf("x", "a")}": it does not answer`));
  expect((await api.ask("POST", "/api/v1/namespaces/x/secrets", { body: secret("x", "c") })).body).toMatchObject(told("it does not answer"));
  expect((await api.ask("GET", "/api/v1/configmaps")).body.items).toEqual([]);
  expect(await api.cache.mendUnreadable(api.signal)).toEqual([]);
});

test("what could not be read while a key service was away is there again once it answers, and who watches is told", async () => {
  const beneath = await memoryStore();
  let isAway = true;
  const service = { prefix: "k8s:enc:kms:v2:vault:", seal: (plain: Buffer) => plain, open: (sealed: Buffer) => { if (isAway) throw new Error("the service does not answer"); return sealed; } };
  const store = encryptedStore(beneath, (key) => (key.startsWith("/registry/core/secrets/") ? [service] : []));
  const sealed = (name: string) => ({ $encrypted: `${service.prefix}${Buffer.from(JSON.stringify(secret("a", name))).toString("base64")}` });
  await store.put(keyOf("a", "known"), secret("a", "known"), 0);
  await store.put("/registry/core/configmaps/a/c", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "a", uid: "c", creationTimestamp: "2026-01-01T00:00:00Z" } }, 0);
  await beneath.put(keyOf("a", "early"), sealed("early"), 0);
  await using api = await apiServer({ store });
  const names = async (): Promise<unknown> => (await api.ask("GET", "/api/v1/namespaces/a/secrets")).body.items?.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
  const watched = api.events("/api/v1/namespaces/a/secrets", 2, { query: { resourceVersion: String(beneath.revision) } });
  await beneath.put(keyOf("a", "late"), sealed("late"), 0);
  await api.cache.fresh(api.signal);
  expect([await names(), await api.cache.mendUnreadable(api.signal), await names()]).toEqual([undefined, [], undefined]);
  isAway = false;
  const told: unknown[] = [];
  const once = { async *every() { yield; } };
  await mendingUnreadable({ cache: api.cache, clock: once, log: { ...silentLog, info: (_, facts) => void told.push(facts) } }).run(api.signal, () => {});
  expect(told).toEqual([{ keys: [keyOf("a", "early"), keyOf("a", "late")] }]);
  await api.cache.fresh(api.signal);
  expect([await names(), await api.cache.mendUnreadable(api.signal)]).toEqual([["early", "known", "late"], []]);
  expect((await watched).map(({ type, object }) => `${type} ${object.metadata.name}`)).toEqual(["ADDED early", "ADDED late"]);
});

test("with the gate it is told and deleted as upstream does it: a list names each row, and what can be read, or is asked for in any other way at once, is refused", async () => {
  const { beneath, store } = await stores();
  await store.put(keyOf("a", "whole"), secret("a", "whole"), 0);
  for (let i = 0; i < 101; i++) await beneath.put(keyOf("a", `damaged-${i}`), DAMAGED, 0);
  for (let i = 0; i < 200; i++) await store.put(`/registry/core/configmaps/a/c-${i}`, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `c-${i}`, namespace: "a", uid: "c", creationTimestamp: "2026-01-01T00:00:00Z" } }, 0);
  let isAllowed = false;
  await using api = await apiServer({ store, authorizer: { authorize: ({ verb }) => (verb === "unsafe-delete-ignore-read-errors" && !isAllowed ? { decision: "no-opinion", reason: "nobody lets ann" } : { decision: "allow", reason: "" }), rulesFor: () => Promise.reject(new Error("nobody asks")) } });
  keepFieldsOf(new Set([UNSAFE_DELETION]));
  onTestFinished(() => keepFieldsOf(new Set()));
  const SECRETS = "/api/v1/namespaces/a/secrets", ignore = { query: { ignoreStoreReadErrorWithClusterBreakingPotential: "true" } };
  const corrupt = (name: string): unknown => expect.stringMatching(`^StorageError: corrupt object, Code: 7, Key: ${keyOf("a", name)}, ResourceVersion: 0, AdditionalErrorMsg: data from the storage is not transformable revision=0: the value cannot be decrypted`);

  const { body: list } = await api.ask("GET", SECRETS);
  expect(list).toMatchObject({ code: 500, reason: "StorageReadError", message: "failed to read one or more secrets from the storage", details: { name: "list", kind: "secrets" } });
  expect(list.details.causes).toHaveLength(101);
  expect(list.details.causes[0]).toEqual({ reason: "UnexpectedServerResponse", message: corrupt("damaged-0"), field: keyOf("a", "damaged-0") });
  expect(list.details.causes[100]).toEqual({ reason: "FieldValueTooMany", message: "too many errors, the list is truncated" });
  expect((await api.ask("GET", `${SECRETS}/damaged-1`)).body).toMatchObject({ code: 500, reason: "InternalError", message: expect.stringMatching(/^Internal error occurred: StorageError: corrupt object/) });

  expect((await api.ask("DELETE", `${SECRETS}/whole`, ignore)).body).toMatchObject({ code: 403, message: 'secrets "whole" is forbidden: not permitted to do "unsafe-delete-ignore-read-errors", reason: nobody lets ann' });
  isAllowed = true;
  expect((await api.ask("DELETE", `${SECRETS}/whole`, ignore)).body).toMatchObject({ code: 422, message: 'secrets "whole" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is exclusively used to delete corrupt object(s), try again by removing this option' });
  expect((await api.ask("DELETE", `${SECRETS}/nowhere`, ignore)).code).toBe(422);
  expect((await api.ask("DELETE", SECRETS, ignore)).body).toMatchObject({ code: 422, message: 'DeleteOptions.meta.k8s.io "" is invalid: ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: is not allowed with DELETECOLLECTION, try again after removing the option' });
  const options = { ignoreStoreReadErrorWithClusterBreakingPotential: true, dryRun: ["All"], propagationPolicy: "Orphan", gracePeriodSeconds: 0, preconditions: { uid: "u" } };
  expect((await api.ask("DELETE", `${SECRETS}/damaged-1`, { body: options })).body.details.causes.map(({ message }: { message: string }) => message)).toEqual(
    ["dryRun", "propagationPolicy", "gracePeriodSeconds", "preconditions"].map((name) => `Invalid value: true: cannot be set together with .${name}`));
  expect((await api.ask("DELETE", `${SECRETS}/damaged-1`, ignore)).body).toMatchObject({ status: "Success", details: { name: "damaged-1", kind: "secrets" } });
  expect((await api.ask("GET", `${SECRETS}/damaged-1`)).code).toBe(404);
});

test("where a key service answers for some values alone, as after one of its keys is gone, those are there again, wherever they stand; of the others it is told what is the matter now", async () => {
  const beneath = await memoryStore();
  let refused = "it does not answer";
  const service = {
    prefix: "k8s:enc:kms:v2:vault:", seal: (plain: Buffer) => plain,
    open(sealed: Buffer) {
      if (refused === "it does not answer" || sealed.includes("old-")) throw new KeyAwayError(refused);
      return sealed;
    },
  };
  const store = encryptedStore(beneath, (key) => (key.startsWith("/registry/core/secrets/") ? [service] : []));
  const olds = Array.from({ length: 12 }, (_, i) => `old-${String(i).padStart(2, "0")}`);
  for (const name of [...olds, "web"]) await beneath.put(keyOf("a", name), { $encrypted: `${service.prefix}${Buffer.from(JSON.stringify(secret("a", name))).toString("base64")}` }, 0);
  await using api = await apiServer({ store });
  expect(await api.cache.mendUnreadable(api.signal)).toEqual([]);
  refused = "key 1 is disabled";
  const mended = [await api.cache.mendUnreadable(api.signal), await api.cache.mendUnreadable(api.signal)].flat();
  expect(mended).toEqual([keyOf("a", "web")]);
  await api.cache.fresh(api.signal);
  expect((await api.ask("GET", "/api/v1/namespaces/a/secrets/web")).body).toMatchObject({ metadata: { name: "web" } });
  for (const name of olds) expect((await api.ask("GET", `/api/v1/namespaces/a/secrets/${name}`)).body.message).toContain("key 1 is disabled");
});
