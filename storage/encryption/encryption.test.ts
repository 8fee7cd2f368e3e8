import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Server, ServerCredentials, status as grpcStatus } from "@grpc/grpc-js";
import { afterAll, describe, expect, test } from "vitest";
import { bytes, many, type Message, message, string } from "../etcd/wire.ts";
import { memoryStore } from "../memory.ts";
import type { Store, StoreEvent, Value } from "../store.ts";
import { aesCbc, aesGcm, secretbox } from "./ciphers.ts";
import { encryptionRules, encryptionSettings } from "./configuration.ts";
import { type EncryptionRule, encryptedStore, isSealed, plaintextOf, prefixOf, providersOf } from "./encryption.ts";
import type { KmsMeter } from "./kms.ts";
import { identity, KeyAwayError, type Provider, type TransformTrace } from "./provider.ts";
import { rewriteStale } from "./rewrite.ts";

const KEY = "/registry/core/secrets/default/db";
const VALUE: Value = { kind: "Secret", data: { password: "aHVudGVyMg==" } };
const secret = (fill: number, length = 32) => Buffer.alloc(length, fill);
const context = Buffer.from(KEY);
const clock = { uptimeMs: () => 0, after: () => ({ cancel() {} }) };

describe("ciphers", () => {
  test.each<[string, Provider]>([
    ["aescbc", aesCbc({ name: "key1", secret: secret(1) })], ["aescbc", aesCbc({ name: "short", secret: secret(1, 16) })], ["aesgcm", aesGcm({ name: "key1", secret: secret(2) })], ["secretbox", secretbox({ name: "key1", secret: secret(3) })],
  ])("%s: what is sealed opens again, and nothing else does", async (kind, provider) => {
    expect(provider.prefix).toMatch(`k8s:enc:${kind}:v1:`);
    for (const text of ["", "x", "a".repeat(16), "z".repeat(1000)]) expect((await provider.open(await provider.seal(Buffer.from(text), context), context)).toString()).toBe(text);
    const sealed = await provider.seal(Buffer.from("text"), context);
    expect(sealed.equals(await provider.seal(Buffer.from("text"), context))).toBe(false); // a new nonce each time
    expect(() => provider.open(sealed.subarray(0, 8), context)).toThrow("the stored data was shorter than the required size");
    if (kind === "aescbc") return; // not authenticated
    const changed = Buffer.from(sealed);
    changed[changed.length - 1]! ^= 1;
    expect(() => provider.open(changed, context)).toThrow();
    if (kind === "aesgcm") expect(() => provider.open(sealed, Buffer.from("/registry/core/secrets/default/other"))).toThrow("message authentication failed");
  });

  /** NIST SP 800-38A, F.2.5, padded; NaCl's own test of its secretbox. */
  test.each<[string, Provider, string, string]>([
    ["aescbc", aesCbc({ name: "k", secret: Buffer.from("603deb1015ca71be2b73aef0857d77811f352c073b6108d72d9810a30914dff4", "hex") }), "000102030405060708090a0b0c0d0e0ff58c4c04d6e5f1ba779eabfb5f7bfbd6485a5c81519cf378fa36d42b8547edc0", "6bc1bee22e409f96e93d7e117393172a"],
    [
      "secretbox", secretbox({ name: "k", secret: Buffer.from("1b27556473e985d462cd51197a9a46c76009549eac6474f206c4ee0844f68389", "hex") }),
      "69696ee955b62b73cd62bda875fc73d68219e0036b7a0b37f3ffc7703f9400e52a7dfb4b3d3305d98e993b9f48681273c29650ba32fc76ce48332ea7164d96a4476fb8c531a1186ac0dfc17c98dce87b4da7f011ec48c97271d2c20f9b928fe2270d6fb863d51738b48eeee314a7cc8ab932164548e526ae90224368517acfeabd6bb3732bc0e9da99832b61ca01b6de56244a9e88d5f9b37973f622a43d14a6599b1f654cb45a74e355a5",
      "be075fc53c81f2d5cf141316ebeb0c7b5228c52a4c62cbd44b66849b64244ffce5ecbaaf33bd751a1ac728d45e6c61296cdc3c01233561f41db66cce314adb310e3be8250c46f06dceea3a7fa1348057e2f6556ad6b1318a024a838f21af1fde048977eb48f59ffd4924ca1c60902e52f0a089bc76897040e082f937763848645e0705",
    ],
  ])("%s: known bytes", async (_kind, provider, sealed, plain) => expect((await provider.open(Buffer.from(sealed, "hex"), context)).toString("hex")).toBe(plain));
});

describe("the store", () => {
  const one = secretbox({ name: "key1", secret: secret(1) });
  const two = aesCbc({ name: "key2", secret: secret(2) });
  const rule = (...providers: Provider[]): EncryptionRule[] => [{ resources: ["secrets"], providers }];
  const stores = async (rules: () => readonly EncryptionRule[]) => {
    const beneath = await memoryStore();
    return { beneath, store: encryptedStore(beneath, (key) => providersOf(rules(), key)) };
  };

  test("values lie sealed beneath, in upstream's form, and are read as they were written", async () => {
    const { beneath, store } = await stores(() => rule(one, identity));
    const revision = await store.put(KEY, VALUE, 0);
    await store.put("/registry/core/configmaps/default/c", { kind: "ConfigMap" }, 0);
    const lying = (await beneath.get(KEY))!.value;
    expect([isSealed(lying), prefixOf(lying), JSON.stringify(lying).includes("password")]).toEqual([true, "k8s:enc:secretbox:v1:key1:", false]);
    expect((await beneath.get("/registry/core/configmaps/default/c"))!.value).toEqual({ kind: "ConfigMap" });
    expect(await store.get(KEY)).toEqual({ key: KEY, value: VALUE, revision });
    expect(plaintextOf(lying)).toBe(VALUE); // one copy
    expect((await store.list({ prefix: "/" })).rows.map(({ value }) => value["kind"])).toEqual(["ConfigMap", "Secret"]);
  });

  test("watches and conflicts show what is in it, also to a process that has not written it", async () => {
    const { beneath, store } = await stores(() => rule(one));
    const revision = await store.put(KEY, VALUE, 0);
    const { value } = (await beneath.get(KEY))!;
    await beneath.put(KEY, { ...value }, revision); // as another server would: not our object
    await expect(store.put(KEY, VALUE, revision)).rejects.toMatchObject({ code: "conflict", current: { value: VALUE } });
    await store.delete(KEY, beneath.revision);
    const events: StoreEvent[] = [];
    const end = new AbortController();
    for await (const batch of store.watch({ prefix: "/registry/", after: 1 }, end.signal)) {
      events.push(...batch.events);
      if (events.length >= 3) end.abort();
    }
    expect(events.map(({ type, row, previous }) => [type, row.value, previous?.value])).toEqual([["put", VALUE, undefined], ["put", VALUE, VALUE], ["delete", VALUE, VALUE]]);
  });

  test("keys are rotated: the first seals, all are read, and what is stale is sealed anew", async () => {
    let rules = rule(identity);
    const { beneath, store } = await stores(() => rules);
    const signal = new AbortController().signal;
    await store.put(KEY, VALUE, 0);
    const prefix = async () => prefixOf((await beneath.get(KEY))!.value);
    const rewrite = () => rewriteStale({ beneath, store, rules: () => rules, signal });
    rules = rule(one, identity);
    expect([await prefix(), await rewrite(), await prefix()]).toEqual(["", { rewritten: 1, rows: { "k8s:enc:secretbox:v1:key1:": 1 } }, "k8s:enc:secretbox:v1:key1:"]);
    rules = rule(two, one);
    expect([(await store.get(KEY))?.value, await rewrite(), await prefix()]).toEqual([VALUE, { rewritten: 1, rows: { "k8s:enc:aescbc:v1:key2:": 1 } }, "k8s:enc:aescbc:v1:key2:"]);
    rules = rule(identity, two);
    expect([(await rewrite()).rewritten, await prefix(), (await rewrite()).rewritten]).toEqual([1, "", 0]);
  });

  test("a value that nobody can open any more stays as it is, and is counted; those after it are sealed anew", async () => {
    const lost = secretbox({ name: "lost", secret: secret(9) });
    const beneath = await memoryStore(), signal = new AbortController().signal;
    await beneath.put("/registry/core/secrets/a/a", { $encrypted: `${lost.prefix}AAAA` }, 0);
    await beneath.put(KEY, VALUE, 0);
    const rules = rule(one, identity), store = encryptedStore(beneath, (key) => providersOf(rules, key));
    expect(await rewriteStale({ beneath, store, rules: () => rules, signal })).toEqual({ rewritten: 1, rows: { [lost.prefix]: 1, [one.prefix]: 1 } });
    expect(prefixOf((await beneath.get(KEY))!.value)).toBe(one.prefix);
  });

  test("without its key, or without a configuration, a value cannot be read, and why is told", async () => {
    let rules: readonly EncryptionRule[] = rule(one);
    const beneath = await memoryStore();
    await encryptedStore(beneath, (key) => providersOf(rules, key)).put(KEY, VALUE, 0);
    const later: Store = encryptedStore({ ...beneath, get: async (key) => ({ ...(await beneath.get(key))!, value: { ...(await beneath.get(key))!.value } }) } as Store, (key) => providersOf(rules, key)); // of another process
    rules = [];
    await expect(later.get(KEY)).rejects.toMatchObject({ code: "corrupt", fields: { reason: "the value is encrypted (k8s:enc:secretbox:v1:key1:…), and no provider is configured that could read it" } });
    rules = rule(secretbox({ name: "key1", secret: secret(9) }));
    await expect(later.get(KEY)).rejects.toMatchObject({ code: "corrupt", fields: { reason: "the value cannot be decrypted: output array was not large enough for encryption" } });
    rules = rule(secretbox({ name: "key1", secret: secret(9) }), one); // the same prefix, another key
    expect((await later.get(KEY))?.value).toEqual(VALUE);
  });

  test("an object with a member of that name is an object", async () => {
    const { beneath, store } = await stores(() => []);
    const odd = { kind: "Odd", $encrypted: "k8s:enc:secretbox:v1:key1:AAAA" };
    await store.put("/registry/example.com/odds/a", odd, 0);
    expect([(await store.get("/registry/example.com/odds/a"))?.value, (await encryptedStore({ ...beneath, get: async () => ({ key: "/registry/example.com/odds/a", value: { ...odd }, revision: 2 }) } as Store, () => []).get("/registry/example.com/odds/a"))?.value]).toEqual([odd, odd]);
  });

  test.each([
    ["/registry/core/secrets/a/b", "secrets"], ["/registry/core/pods/a/b", "*."], ["/registry/apps/deployments/a/b", "*.apps"], ["/registry/example.com/crontabs/a/b", "crontabs.example.com"], ["/registry/batch/jobs/a/b", "*.*"],
    ["/bootstrap/x", undefined],
  ])("%s is sealed as %s", (key, name) => {
    const rules = ["secrets", "*.", "*.apps", "crontabs.example.com", "*.*"].map((resource): EncryptionRule => ({ resources: [resource], providers: [{ ...identity, prefix: resource }] }));
    expect(providersOf(rules, key)[0]?.prefix).toBe(name);
  });

  test("a resource that several rules name has the providers of all, and of none that name its group", () => {
    const rules = [["*.apps", "later"], ["secrets", "one"], ["secrets", "two"], ["*.", "later"]].map(([resource, prefix]): EncryptionRule => ({ resources: [resource!], providers: [{ ...identity, prefix: prefix! }] }));
    expect(providersOf(rules, KEY).map(({ prefix }) => prefix)).toEqual(["one", "two"]);
  });
});

describe("a key service", () => {
  const directory = mkdtempSync(join(tmpdir(), "kms-"));
  const endpoint = `unix://${directory}/kms.sock`;
  const server = new Server();
  let keyID = "1", encryptedUnder: (() => string) | undefined; // unless it says otherwise, under the key it names
  let well = true, version = "v2", annotated = "version.example.com";
  let wrong: ((ciphertext: Buffer) => Buffer) | undefined;
  const calls: string[] = [];
  const annotation = message({ key: string(1), value: bytes(2) });
  const encrypt = message({ ciphertext: bytes(1), keyID: string(2), annotations: many(3, annotation) });
  const plain = message({ plaintext: bytes(1) });
  const method = <Request, Read>(name: string, request: Message<Read, never>, response: Message<unknown, Request>) => ({ path: `/v2.KeyManagementService/${name}`, requestStream: false, responseStream: false, requestSerialize: () => Buffer.alloc(0), requestDeserialize: request.decode, responseSerialize: response.encode, responseDeserialize: () => undefined });
  const flip = (data: Buffer): Buffer => Buffer.from(data.map((byte) => byte ^ 0x5a));
  server.addService({ Status: method("Status", message({}), message({ version: string(1), healthz: string(2), keyID: string(3) })), Encrypt: method("Encrypt", plain, encrypt), Decrypt: method("Decrypt", message({ ciphertext: bytes(1), uid: string(2), keyID: string(3), annotations: many(4, annotation) }), plain) } as never, {
    Status: (_: unknown, answer: (error: unknown, value?: unknown) => void) => answer(null, { version, healthz: well ? "ok" : "sealed", keyID }),
    Encrypt: ({ request }: { request: { plaintext: Buffer } }, answer: (error: unknown, value?: unknown) => void) => { calls.push("Encrypt"); answer(null, { ciphertext: flip(request.plaintext), keyID: encryptedUnder?.() ?? keyID, annotations: [{ key: annotated, value: Buffer.from("1") }] }); },
    Decrypt: ({ request }: { request: { ciphertext: Buffer } }, answer: (error: unknown, value?: unknown) => void) => { calls.push("Decrypt"); well ? answer(null, { plaintext: wrong?.(request.ciphertext) ?? flip(request.ciphertext) }) : answer({ code: grpcStatus.INTERNAL, details: "sealed" }); },
  } as never);
  const abstract = `coracle-kms-${process.pid}`;
  const listening = Promise.all([endpoint.replace("unix://", "unix:"), ...(process.platform === "linux" ? [`unix:\0${abstract}`] : [])].map((at) => new Promise<void>((resolve, reject) => server.bindAsync(at, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())))));
  afterAll(() => {
    server.forceShutdown();
    rmSync(directory, { recursive: true });
  });
  const rules = async (at = endpoint, by: typeof clock = clock, mayComeLater = false, trace?: TransformTrace) => await encryptionRules(encryptionSettings({ apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration", resources: [{ resources: ["secrets"], providers: [{ kms: { apiVersion: "v2", name: "vault", endpoint: at } }] }] }), { clock: by, mayComeLater, trace });
  const look = (provider: Provider): Promise<unknown> => (provider as unknown as { check(): Promise<unknown> }).check();

  test.runIf(process.platform === "linux")("may have an abstract address", async () => {
    await listening;
    const { providers: [provider] } = (await rules(`unix:///@${abstract}`))[0]!;
    expect((await provider!.open(await provider!.seal(Buffer.from("text"), context), context)).toString()).toBe("text");
    provider!.close?.();
    calls.splice(0);
  });

  test("what it seals and opens is told to whoever is traced, what goes wrong too", async () => {
    await listening;
    const told: unknown[] = [];
    const trace: TransformTrace = (name, attributes) => {
      const events: unknown[] = [];
      return { event: (event, of) => void events.push(of ? [event, of] : event), end: () => void told.push([name, attributes, events]) };
    };
    const traced = async () => (await rules(endpoint, clock, false, trace))[0]!.providers[0]!;
    const [one, other] = [await traced(), await traced()], named = { "transformer.provider.name": "vault" };
    const sealed = await one.seal(Buffer.from("text"), context);
    await one.open(sealed, context);
    await other.open(sealed, context);
    await expect(Promise.resolve(other.open(sealed, Buffer.from("/elsewhere")))).rejects.toThrow("message authentication failed");
    await expect(Promise.resolve(other.open(Buffer.alloc(0), context))).rejects.toThrow("encrypted data is empty");
    const from = "TransformFromStorage with envelopeTransformer", began = ["About to decode encrypted object", "Decoded encrypted object"];
    expect(told).toEqual([
      ["TransformToStorage with envelopeTransformer", named, ["About to encrypt data using DEK", "Data encryption succeeded", "About to encode encrypted object", "Encoded encrypted object"]],
      [from, named, [...began, "About to decrypt data using DEK", "Data decryption succeeded"]],
      [from, named, [...began, "About to decrypt DEK using remote service", "DEK decryption succeeded", "About to decrypt data using DEK", "Data decryption succeeded"]],
      [from, named, [...began, "About to decrypt data using DEK", "Data decryption failed", ["exception", { "exception.message": "cipher: message authentication failed" }]]],
      [from, named, ["About to decode encrypted object", "Decoding encrypted object failed", ["exception", { "exception.message": "encrypted data is empty" }]]],
    ]);
    for (const provider of [one, other]) provider.close?.();
    calls.splice(0);
  });

  test("is asked once for a seed, not for a value; a new key of its makes values stale", async () => {
    await listening;
    const [first] = await rules();
    const provider = first!.providers[0]!;
    const sealed = await provider.seal(Buffer.from("text"), context);
    expect([provider.prefix, (await provider.open(sealed, context)).toString(), calls.splice(0)]).toEqual(["k8s:enc:kms:v2:vault:", "text", ["Encrypt"]]);
    const [again] = await rules(); // the server starts again
    const later = again!.providers[0]!;
    calls.splice(0);
    expect((await Promise.all([1, 2, 3].map(() => later.open(sealed, context)))).map(String)).toEqual(["text", "text", "text"]);
    expect((await later.open(sealed, context)).toString()).toBe("text");
    expect(calls.splice(0)).toEqual(["Decrypt"]);
    await expect(Promise.resolve(later.open(sealed, Buffer.from("/elsewhere")))).rejects.toThrow("message authentication failed");
    expect(later.isStale?.(sealed)).toBe(false);
    keyID = "2";
    await look(later);
    expect([later.isStale?.(sealed), calls.splice(0)]).toEqual([true, ["Encrypt"]]);
    well = false;
    expect([await look(later), later.trouble?.()]).toEqual(["got unexpected healthz status: sealed", "got unexpected healthz status: sealed"]);
    await expect(rules()).rejects.toThrow('kms provider vault at unix://');
    for (const one of [provider, later]) one.close?.();
  });

  test("that comes after the server seals and opens once it has answered; until then what is sealed is neither lost nor damaged", async () => {
    await listening;
    [well, keyID] = [true, "2"];
    const written = (await rules())[0]!.providers[0]!;
    const beneath = await memoryStore(), other = "/registry/core/secrets/default/plain";
    await encryptedStore(beneath, () => [written]).put(KEY, VALUE, 0);
    await beneath.put(other, VALUE, 0);
    written.close?.();
    const anew = JSON.parse(JSON.stringify((await beneath.get(KEY))!.value)) as Value; // as another process reads it
    const sealedRow = { ...(await beneath.get(KEY))!, value: anew };
    await expect(rules(`unix://${directory}/none.sock`)).rejects.toThrow("kms provider vault at unix://"); // of a file that is read again
    well = false;
    const late = (await rules(endpoint, clock, true))[0]!.providers[0]!;
    const store = encryptedStore({ ...beneath, get: async (key) => (key === KEY ? sealedRow : await beneath.get(key)), list: async () => ({ rows: [sealedRow], revision: 3, more: false, remaining: 0 }) } as Store, () => [late, identity]);
    keyID = "";
    const never = (await rules(endpoint, clock, true))[0]!.providers[0]!;
    const without = encryptedStore({ ...beneath, get: async () => sealedRow, list: async () => ({ rows: [sealedRow], revision: 3, more: false, remaining: 0 }) } as Store, () => [never, identity]);
    const away = { code: "key-away", fields: { key: KEY, reason: "got unexpected nil transformer" } };
    await expect(without.get(KEY)).rejects.toMatchObject(away);
    await expect(without.put(KEY, VALUE, sealedRow.revision)).rejects.toMatchObject(away);
    const [row] = (await without.list({ prefix: "/" })).rows;
    expect(() => row!.value).toThrow("got unexpected nil transformer");
    expect(never.trouble?.()).toBe('[got unexpected healthz status: sealed, got invalid KMSv2 KeyID hash "": keyID is empty]');
    await expect(store.get(KEY)).rejects.toMatchObject({ code: "key-away", fields: { reason: "failed to decrypt DEK, error: sealed" } });
    [well, keyID] = [true, "2"];
    expect([await look(never), (await without.get(KEY))?.value, (await store.get(KEY))?.value]).toEqual([undefined, VALUE, VALUE]);
    late.close?.();
    never.close?.();
  });

  test("is counted: its calls by how they end, its keys by what is done with them, the seeds that are remembered", async () => {
    await listening;
    [well, keyID] = [true, "2"];
    const told: unknown[] = [], tell = (what: string) => (...facts: unknown[]): void => void told.push([what, ...facts]);
    const meter = (): KmsMeter => ({ called: (method, _ms, code) => tell("called")(method.split("/").at(-1), code), named: tell("named"), misnamed: tell("misnamed"), used: tell("used"), remembers: tell("remembers") });
    const settings = encryptionSettings({ apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration", resources: [{ resources: ["secrets"], providers: [{ kms: { apiVersion: "v2", name: "vault", endpoint } }] }] });
    const [one, other] = [(await rules())[0]!.providers[0]!, (await encryptionRules(settings, { clock, mayComeLater: false, meter }))[0]!.providers[0]!];
    const sealed = await one.seal(Buffer.from("text"), context);
    expect(told.splice(0)).toEqual([["called", "Status", "OK"], ["named", "2"], ["called", "Encrypt", "OK"], ["remembers", 1]]);
    await other.open(await other.seal(Buffer.from("text"), context), context);
    await other.open(sealed, context);
    expect(told.splice(0)).toEqual([["used", "to_storage", "2"], ["used", "from_storage", "2"], ["called", "Decrypt", "OK"], ["remembers", 2], ["used", "from_storage", "2"]]);
    [well, keyID] = [false, "x".repeat(1025)];
    await look(other);
    await expect(Promise.resolve((await encryptionRules(settings, { clock, mayComeLater: true, meter }))[0]!.providers[0]!.open(sealed, context))).rejects.toThrow("got unexpected nil transformer");
    expect(told.filter((one) => (one as unknown[])[0] === "misnamed")).toEqual([["misnamed", "too_long"], ["misnamed", "too_long"]]);
    [well, keyID] = [true, "2"];
    for (const provider of [one, other]) provider.close?.();
    calls.splice(0);
  });

  test("is asked again after a wrong answer: none is remembered", async () => {
    await listening;
    [well, keyID] = [true, "2"];
    const [one, other] = [(await rules())[0]!.providers[0]!, (await rules())[0]!.providers[0]!];
    const sealed = await one.seal(Buffer.from("text"), context), open = async (): Promise<string> => (await other.open(sealed, context)).toString();
    wrong = () => Buffer.alloc(0);
    await expect(open()).rejects.toThrow("invalid seed length 0 used for key generation");
    await expect(open()).rejects.toThrow(KeyAwayError);
    wrong = (ciphertext) => ciphertext;
    await expect(open()).rejects.toThrow("message authentication failed");
    wrong = undefined;
    expect(await open()).toBe("text");
    for (const provider of [one, other]) provider.close?.();
    calls.splice(0);
  });

  test("that is not well seals on while it names its key; one that answers no more does so for three minutes", async () => {
    await listening;
    well = true;
    let uptimeMs = 0;
    const provider = (await rules(endpoint, { ...clock, uptimeMs: () => uptimeMs }))[0]!.providers[0]!;
    const sealed = (): string => { try { return provider.seal(Buffer.from("text"), context) instanceof Buffer ? "sealed" : "?"; } catch (error) { return (error as Error).message; } };
    [well, uptimeMs] = [false, 170_000];
    expect(await look(provider)).toBe("got unexpected healthz status: sealed");
    uptimeMs = 340_000;
    expect(sealed()).toBe("sealed");
    keyID = "";
    expect(await look(provider)).toBe("[got unexpected healthz status: sealed, got invalid KMSv2 KeyID hash \"\": keyID is empty]");
    uptimeMs = 360_000;
    expect(sealed()).toContain("has not been well for too long");
    [well, keyID] = [true, "3"];
    provider.close?.();
  });

  test("is not believed that seals under another key than it names, or with annotations nobody could read again, or speaks another version than before", async () => {
    await listening;
    const provider = (await rules())[0]!.providers[0]!;
    const sealed = await provider.seal(Buffer.from("text"), context);
    [keyID, encryptedUnder] = ["4", () => "other"];
    expect(await look(provider)).toMatch(/^failed to rotate DEK: statusKeyIDHash=sha256:\w{64}, encryptKeyIDHash=sha256:\w{64}$/);
    expect(provider.isStale?.(sealed)).toBe(false); // it still seals under the key before
    encryptedUnder = () => (keyID = "5"); // it changes its key between two answers
    expect([await look(provider), provider.isStale?.(sealed)]).toEqual([undefined, true]);
    [keyID, encryptedUnder, annotated] = ["6", undefined, "version"];
    expect(await look(provider)).toContain('failed to validate annotations: annotations: Invalid value: "version": should be a domain');
    [annotated, version] = ["version.example.com", "v2beta1"];
    expect(await look(provider)).toBe("KMSv2 API version should not change after the initial status response version v2, got v2beta1");
    version = "v2";
    expect(await look(provider)).toBeUndefined();
    provider.close?.();
  });
});

describe("a configuration", () => {
  const key = { name: "k", secret: secret(1).toString("base64") };
  const kms = { kms: { apiVersion: "v2", name: "v", endpoint: "unix:///x" } };
  const read = (...resources: object[]) => encryptionSettings({ apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration", resources });
  const one = (provider: object, names: string[] = ["secrets"]) => read({ resources: names, providers: [provider] });

  test("as upstream's documentation has it", () => {
    expect(one({ aescbc: { keys: [key] } })).toEqual([{ resources: ["secrets"], providers: [{ kind: "aescbc", keys: [{ name: "k", secret: secret(1) }] }] }]);
    expect(one({ kms: { apiVersion: "v2", name: "a", endpoint: "unix:///x", timeout: "5s" } })[0]?.providers).toEqual([{ kind: "kms", kms: { name: "a", endpoint: "unix:///x", timeoutMs: 5_000, version: "v2" } }]);
    expect(one({ kms: { apiVersion: "v2", name: "a", endpoint: "unix:///x", timeout: "1m0.5s" } })[0]?.providers).toEqual([{ kind: "kms", kms: { name: "a", endpoint: "unix:///x", timeoutMs: 60_500, version: "v2" } }]);
    expect(one({ secretbox: { keys: [{ ...key, secret: `${key.secret}\n` }] } })[0]?.providers).toEqual([{ kind: "secretbox", keys: [{ name: "k", secret: secret(1) }] }]);
    expect(one({ identity: {}, kms: null }, ["secrets.", "*.apps"])).toEqual([{ resources: ["secrets", "*.apps"], providers: [{ kind: "identity" }] }]);
  });

  test.each<[() => unknown, string]>([
    [() => read(), "resources: Required value: at least one resources is required"],
    [() => one({ aescbc: { keys: [] } }), "resources[0].providers[0].aescbc.keys: Required value: at least one keys is required"],
    [() => one({ aescbc: { keys: [{ ...key, secret: "AAAA" }] } }), 'resources[0].providers[0].aescbc.keys[0].secret: Invalid value: "REDACTED": secret is not of the expected length, got 3, expected one of [16 24 32]'],
    [() => one({ secretbox: { keys: [{ ...key, secret: "!" }] } }), 'Invalid value: "REDACTED": secrets must be base64 encoded'],
    [() => one({}), "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"],
    [() => one({ identity: {}, aesgcm: { keys: [key] } }), "more than one provider specified in a single element"],
    [() => one({ identity: {} }, ["secrets", "*."]), "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"],
    [() => one({ identity: {} }, ["*"]), "use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources"],
    [() => one({ identity: {} }, ["Secrets"]), "resource name should not contain capital letters"],
    [() => one({ identity: {} }, ["a", "a."]), 'resources[0].resources: Invalid value: ["a","a."]: the same resource cannot be specified multiple times'],
    [() => one({ kms: { apiVersion: "v2", name: "a:b", endpoint: "http://x" } }), 'unsupported scheme "http" for KMS provider, only unix is supported'],
    [() => one({ kms: { name: "a", endpoint: "unix:///x" } }), "KMSv1 is deprecated"],
    [() => one({ kms: { apiVersion: "", name: "a:b", endpoint: "unix:///x", cachesize: 0 } }), "resources[0].providers[0].kms.cachesize: Invalid value: 0: cachesize should be a positive value, or negative to disable"],
    [() => one({ kms: { apiVersion: "v2", name: "a", endpoint: "unix:///a\n" } }), 'invalid endpoint for kms provider, error: parse "unix:///a\\n": net/url: invalid control character in URL'],
    [() => one({ kms: { apiVersion: "v2", name: "a", endpoint: "unix:///x", timeout: "5" } }), 'time: invalid duration "5"'],
    [() => read({ resources: ["a"], providers: [kms] }, { resources: ["b"], providers: [kms] }), 'resources[1].providers[0].kms.name: Invalid value: "v": duplicate KMS provider name v, names must be unique'],
    [() => read({ resources: ["*."], providers: [{ identity: {} }] }, { resources: ["secrets"], providers: [{ identity: {} }] }), 'resource "secrets" is masked by earlier rule "*."'],
    [() => read({ resources: ["*.*"], providers: [{ identity: {} }] }, { resources: ["jobs.batch"], providers: [{ identity: {} }] }), 'resource "jobs.batch" is masked by earlier rule "*.*"'],
    [() => one({ rot13: {} }), 'unknown field "resources[0].providers[0].rot13"'],
  ])("%#", (make, told) => expect(make).toThrow(told));
});
