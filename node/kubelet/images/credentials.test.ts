import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import type { Cri } from "../../cri/client.ts";
import { exec } from "../../os/exec.ts";
import { credentialProviders, type Puller } from "./credential-provider.ts";
import { checkedProviders, readProviders } from "./credential-provider-config.ts";
import { forgetPulls, pullRecords } from "./pull-records.ts";
import { imagePuller, type ImageRequest } from "./puller.ts";

const signal = new AbortController().signal;
let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "images-")); });
afterEach(() => rmSync(directory, { recursive: true }));

const API_VERSION = "credentialprovider.kubelet.k8s.io/v1";
const config = (provider: object) => ({ apiVersion: "kubelet.config.k8s.io/v1", kind: "CredentialProviderConfig", providers: [{ name: "helper", apiVersion: API_VERSION, matchImages: ["*.example.com"], defaultCacheDuration: "1h", ...provider }] });
const tokenAttributes = { serviceAccountTokenAudience: "reg", requireServiceAccount: true, cacheType: "ServiceAccount" };
const answer = (more: object = {}) => JSON.stringify({ kind: "CredentialProviderResponse", apiVersion: API_VERSION, cacheKeyType: "Registry", auth: { "https://*.example.com/v2/": { username: "me", password: "pw" } }, ...more });
const pulling = ({ name = "sa", annotations = { a: "1", b: "2" }, token = "token" }: { readonly name?: string; readonly annotations?: Record<string, string>; readonly token?: string } = {}) => async (): Promise<Puller> => ({ account: { namespace: "d", name, uid: name }, annotations, token: async (audience) => `${token} for ${audience}` });

const ENDLESS = "did not end in time";
const decoded = (...values: object[]) => checkedProviders(values.flatMap(readProviders));

/** A provider that is `script`, and notes what it is asked; `logged`: what was logged of it. */
function provider(script: string, more: object = {}, timeoutMs = 60_000) {
  writeFileSync(join(directory, "helper"), `#!/bin/sh\ncat >> "${directory}/asked"; echo >> "${directory}/asked"\n${script}\n`, { mode: 0o755 });
  const logged: string[] = [];
  const metrics = metricsRegistry();
  const log = { ...silentLog, error: (message: string, { error }: { readonly error?: Error } = {}) => void logged.push(`${message}: ${error?.message} ${JSON.stringify(error)} ${JSON.stringify(error?.cause)}`) };
  const { credentials } = credentialProviders({ providers: decoded(config(more)), binDir: directory, environment: { PATH: "/usr/bin:/bin" }, exec: (command, args, options) => exec(command, args, { ...options, timeoutMs }), metrics, clock: systemClock, log });
  return {
    logged, metrics,
    users: async (image: string, puller: () => Promise<Puller | undefined> = pulling(), until: AbortSignal = signal) => (await credentials(image, puller, until)).map(({ auth, serviceAccount }) => `${auth.username}:${auth.password}${serviceAccount ? ` for ${serviceAccount.name}` : ""}`),
    asked: () => (existsSync(join(directory, "asked")) ? readFileSync(join(directory, "asked"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as object) : []),
  };
}

test("a provider is asked about images that match, once for each registry, and told who pulls", async () => {
  const { users, asked } = provider(`echo '${answer()}' | sed 's/"me"/"'$WHO'"/'`, { env: [{ name: "WHO", value: "you" }], tokenAttributes: { ...tokenAttributes, requiredServiceAccountAnnotationKeys: ["a"] } });
  expect(await users("r.example.com/a:1")).toEqual(["you:pw for sa"]);
  expect(await users("r.example.com/b:1")).toEqual(["you:pw for sa"]);
  expect(await users("elsewhere.com/b:1")).toEqual([]);
  expect(await users("s.example.com/b:1", async () => undefined)).toEqual([]); // no service account: it is not asked
  expect(await users("s.example.com/b:1", pulling({ annotations: {} }))).toEqual([]);
  expect(asked()).toEqual([{ apiVersion: API_VERSION, kind: "CredentialProviderRequest", image: "r.example.com/a", serviceAccountToken: "token for reg", serviceAccountAnnotations: { a: "1" } }]);
});

test("pods that pull the same image at once ask once; who asks no longer ends it for nobody else, but for itself", async () => {
  const { users, asked } = provider(`sleep 0.3; echo '${answer({ cacheDuration: "0s" })}'`);
  const early = new AbortController();
  const all = [users("r.example.com/a", pulling(), early.signal), users("r.example.com/a:2"), users("r.example.com/a:3")];
  setTimeout(() => early.abort(new Error("the pod is gone")), 50);
  expect(await Promise.allSettled(all)).toMatchObject([{ reason: { message: "the pod is gone" } }, { value: ["me:pw"] }, { value: ["me:pw"] }]);
  expect(asked()).toHaveLength(1);
  expect([await users("r.example.com/a"), asked().length]).toEqual([["me:pw"], 2]);
});

test("a provider that nobody waits for any more is ended", async () => {
  const { users } = provider(`echo $$ > "${directory}/pid"; exec sleep 60`);
  const pid = (): string => (existsSync(join(directory, "pid")) ? readFileSync(join(directory, "pid"), "utf8").trim() : "");
  const lives = (): boolean => {
    try {
      return process.kill(Number(pid()), 0);
    } catch {
      return false; // it is gone
    }
  };
  const early = new AbortController();
  const gone = users("r.example.com/a", pulling(), early.signal);
  await expect.poll(pid).not.toBe("");
  expect(lives()).toBe(true);
  early.abort(new Error("the pod is gone"));
  await expect(gone).rejects.toThrow("the pod is gone");
  await expect.poll(lives).toBe(false);
});

test("what a provider has answered for one service account is for no other, nor for the same one with other annotations", async () => {
  const { users, asked } = provider(`echo '${answer({ cacheKeyType: "Global" })}'`, { tokenAttributes: { ...tokenAttributes, optionalServiceAccountAnnotationKeys: ["a"] } });
  for (const who of [{}, {}, { token: "newer" }, { name: "other" }, { annotations: { a: "9" } }, { annotations: { a: "1", b: "7" } }]) await users("r.example.com/a", pulling(who));
  expect(asked()).toHaveLength(3);
  const byToken = provider(`echo '${answer()}'`, { tokenAttributes: { ...tokenAttributes, cacheType: "Token" } });
  for (const who of [{}, {}, { token: "newer" }]) await byToken.users("r.example.com/a", pulling(who));
  expect(byToken.asked()).toHaveLength(3 + 2);
});

test.each([
  ["no JSON", `echo '{"auth": {"password": "hush"}} '; echo hush`, "error decoding credential provider plugin response from stdout"],
  ["what is for another version", `echo '${answer({ apiVersion: "v7" })}'`, `apiVersion from credential plugin response did not match expected apiVersion:${API_VERSION}, actual apiVersion:v7`],
  ["no kind of key", `echo '${answer({ cacheKeyType: "Planet" })}'`, "credential provider plugin did not return a valid cacheKeyType: Planet"],
  ["the token that it was given", `echo '${answer({ auth: { "r.example.com": { username: "me", password: "token for reg" } } })}'`, "credential provider plugin returned the service account token as the password which is not allowed when service account cache type is not set to 'Token'"],
  ["nothing, and fails", "echo no such user >&2; exit 3", "error execing credential provider plugin helper for image r.example.com/a: exit status 3: no such user"],
  ["nothing, ever, nor does it end when it is asked to", "trap '' TERM; while :; do sleep 0.1; done", ENDLESS],
  ["without end", "trap '' TERM; yes hush", ENDLESS],
])("a provider that answers %s is as none: why is logged, without what it answered", async (_, script, why) => {
  const { users, logged } = provider(script, { tokenAttributes }, why === ENDLESS ? 1_000 : undefined);
  expect(await users("r.example.com/a")).toEqual([]);
  expect(logged).toHaveLength(1);
  expect(logged[0]).toContain(why);
  expect(logged[0]).not.toContain("hush");
});

test("how long a provider takes, and that it fails, is counted; what it answers is no failure of its run", async () => {
  const failing = provider("exit 3");
  await failing.users("r.example.com/a");
  const lines = failing.metrics.render().split("\n");
  expect(lines).toContain('kubelet_credential_provider_plugin_errors_total{plugin_name="helper"} 1');
  expect(lines).toContain('kubelet_credential_provider_plugin_duration_count{plugin_name="helper"} 1');
  const babbling = provider("echo none");
  await babbling.users("r.example.com/a");
  expect(babbling.metrics.render()).not.toContain("kubelet_credential_provider_plugin_errors_total{");
});

test.each([
  [{ name: "a/b" }, `providers.name: Invalid value: "a/b": provider name cannot contain '/'`],
  [{ name: "..\\b" }, "provider name cannot contain '/'"],
  [{ name: "a b" }, `providers.name: Invalid value: "a b": provider name cannot contain spaces`],
  [{ name: ".." }, `providers.name: Invalid value: "..": provider name cannot be '..'`],
  [{ matchImages: [] }, "providers.matchImages: Required value: at least 1 item in matchImages is required"],
  [{ apiVersion: "v7" }, `providers.apiVersion: Unsupported value: "v7"`],
  [{ defaultCacheDuration: undefined }, "providers.defaultCacheDuration: Required value"],
  [{ defaultCacheDuration: "-1s" }, `providers.defaultCacheDuration: Invalid value: "-1s": must be greater than or equal to 0`],
  [{ defaultCacheDuration: "-1m" }, `Invalid value: "-1m0s": must be greater than or equal to 0`], [{ defaultCacheDuration: "soon" }, 'time: invalid duration "soon"'],
  [{ matchImages: ["%invalid%"] }, `failed to validate credential provider config: providers.matchImages: Invalid value: "%invalid%": match image is invalid: parse "https://%invalid%": invalid URL escape "%in"`],
  [{ matchImages: [], apiVersion: "" }, "failed to validate credential provider config: [providers.apiVersion: Required value, providers.matchImages: Required value: at least 1 item in matchImages is required]"],
  [{ matchImage: ["a"], env: [{ name: "A", valueFrom: "b" }] }, 'strict decoding error: unknown field "providers[0].matchImage", unknown field "providers[0].env[0].valueFrom"'],
  [{ matchImages: "a" }, "providers[0].matchImages: expected a list"], [{ args: [1] }, "providers[0].args[0]: expected a string"], [{ tokenAttributes: { ...tokenAttributes, requireServiceAccount: "yes" } }, "expected a bool"],
  [{ tokenAttributes: { ...tokenAttributes, requiredServiceAccountAnnotationKeys: ["Ends-", "a.b/C"] } }, `providers.tokenAttributes.requiredServiceAccountAnnotationKeys: Invalid value: "Ends-": name part must consist of alphanumeric characters`],
  [{ tokenAttributes: { ...tokenAttributes, optionalServiceAccountAnnotationKeys: ["a", "a"] } }, `providers.tokenAttributes.optionalServiceAccountAnnotationKeys: Duplicate value: "a"`],
  [{ tokenAttributes: { ...tokenAttributes, requiredServiceAccountAnnotationKeys: ["a", "b"], optionalServiceAccountAnnotationKeys: ["b", "c"] } }, `providers.tokenAttributes: Invalid value: ["b"]: annotation keys cannot be both required and optional`],
  [{ tokenAttributes: { ...tokenAttributes, serviceAccountTokenAudience: "" } }, "providers.tokenAttributes.serviceAccountTokenAudience: Required value"],
  [{ tokenAttributes: { ...tokenAttributes, cacheType: "" } }, "providers.tokenAttributes.cacheType: Required value: cacheType is required to be set when tokenAttributes is specified. Supported values are: ServiceAccount, Token"],
  [{ tokenAttributes: { ...tokenAttributes, requireServiceAccount: false, requiredServiceAccountAnnotationKeys: ["a"] } }, "providers.tokenAttributes.requiredServiceAccountAnnotationKeys: Forbidden: requireServiceAccount cannot be false when requiredServiceAccountAnnotationKeys is set"],
  [{ tokenAttributes, apiVersion: `${API_VERSION}beta1` }, `providers.tokenAttributes: Forbidden: tokenAttributes is only supported for ${API_VERSION} API version`],
])("%j is refused: %s", (one, message) => {
  expect(() => decoded(config(one))).toThrow(message);
});

test("only v1 of the configuration speaks of tokens", () => {
  expect(() => decoded({ ...config({ tokenAttributes }), apiVersion: "kubelet.config.k8s.io/v1beta1" })).toThrow('strict decoding error: unknown field "providers[0].tokenAttributes"');
  expect(decoded({ ...config({ args: null, env: [{ name: "A", value: null }] }), apiVersion: "kubelet.config.k8s.io/v1alpha1" })).toMatchObject([{ args: [], env: [{ name: "A", value: "" }] }]);
  expect(() => decoded({ apiVersion: "kubelet.config.k8s.io/v1", kind: "CredentialProviderConfig" })).toThrow("providers: Required value: at least 1 item in plugins is required");
});

test("a name stands in one of the files", () => {
  expect(() => decoded(config({}), config({ matchImages: ["a"] }))).toThrow('duplicate provider name "helper" found in configuration file(s)');
});

test("an image that was pulled with a Secret is pulled again for who does not have it; what was preloaded is everybody's", async () => {
  const images = new Set(["preloaded:1"]);
  const pulls: string[] = [];
  const cri = { call: async (method: string, request: { image: { image: string }; auth?: { username: string } }) => {
    if (method === "ImageService/ImageStatus") return images.has(request.image.image) ? { image: { id: `id of ${request.image.image}` } } : {};
    pulls.push(`${request.image.image} as ${request.auth?.username ?? "nobody"}`);
    if (request.image.image.startsWith("private") && request.auth?.username !== "alice") throw new Error("denied");
    images.add(request.image.image);
    return {};
  } } as unknown as Cri;
  const puller = imagePuller({ cri, clock: systemClock, events: { event: () => undefined }, serialize: false, parallelMax: 2, records: pullRecords({ root: join(directory, "image_manager"), nowMs: () => 0, verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] } }) });
  const alice = [{ auth: { username: "alice", password: "x" }, secret: { namespace: "d", name: "s", uid: "1" } }];
  let uids = 0;
  const get = (image: string, credentials: object[] = [], policy = "IfNotPresent") => puller.ensure({ pod: { metadata: { uid: `u${uids++}` } }, image, policy, about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => credentials } as unknown as ImageRequest, signal).then(() => "ok", (error: { reason: string }) => error.reason);

  expect(await get("preloaded:1")).toBe("ok");
  expect(await get("private:1", alice)).toBe("ok");
  expect(await get("private:1", alice)).toBe("ok");
  expect(await get("private:1", alice.map(({ auth }) => ({ auth, secret: { namespace: "e", name: "copy", uid: "2" } })))).toBe("ok"); // the same credentials under another name
  expect(pulls).toEqual(["private:1 as alice"]);
  expect([await get("private:1"), await get("private:1", [], "Never")]).toEqual(["ErrImagePull", "ErrImageNeverPull"]);
  const account = (name: string) => [{ auth: { username: "alice", password: name }, serviceAccount: { namespace: "d", name, uid: name } }];
  expect([await get("private:2", account("sa")), await get("private:2", account("sa")), await get("private:2"), await get("private:2", account("other").map(({ serviceAccount }) => ({ auth: { username: "bob" }, serviceAccount })))]).toEqual(["ok", "ok", "ErrImagePull", "ErrImagePull"]);
  expect(pulls.splice(2)).toEqual(["private:2 as alice", "private:2 as nobody", "private:2 as bob"]);
  expect([await get("public:1"), await get("public:1")]).toEqual(["ok", "ok"]);
  expect(pulls.splice(0).slice(1)).toEqual(["private:1 as nobody", "public:1 as nobody"]);

  for (const name of readdirSync(join(directory, "image_manager/pulled"))) writeFileSync(join(directory, "image_manager/pulled", name), ""); // cut short: who may have what is not known, and proved anew
  expect([await get("private:1"), await get("private:1", alice), await get("private:1", alice), await get("public:1")]).toEqual(["ErrImagePull", "ok", "ok", "ok"]);
  expect(pulls).toEqual(["private:1 as nobody", "private:1 as alice", "public:1 as nobody"]);
});

describe("a pod that goes while its image is being pulled", () => {
  const image = "offline:1", root = () => join(directory, "image_manager");
  const request = { pod: { metadata: { uid: "u" } }, image, policy: "IfNotPresent", about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => [] } as unknown as ImageRequest;

  /** `isHere`: the image is on the node; `on`: what the runtime does when it is asked. */
  function node(on: (method: string, wanted: AbortSignal) => Promise<void> | void) {
    const state = { isHere: false };
    const cri = { call: async (method: string, _: unknown, options: { signal: AbortSignal }) => {
      await on(method, options.signal);
      return method === "ImageService/ImageStatus" && state.isHere ? { image: { id: "id" } } : {};
    } } as unknown as Cri;
    const records = pullRecords({ root: root(), nowMs: () => 0, verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] } });
    return { state, records, puller: imagePuller({ cri, clock: systemClock, events: { event: () => undefined }, serialize: false, records }) };
  }

  test("leaves no mark: the next one takes the image that was imported meanwhile", async () => {
    const gone = new AbortController();
    const { state, puller } = node(async (method, wanted) => {
      if (method !== "ImageService/PullImage") return;
      setTimeout(() => gone.abort(new Error("its pod is deleted")), 1);
      await new Promise((_, reject) => wanted.addEventListener("abort", () => reject(wanted.reason as Error)));
    });
    await expect(puller.ensure(request, gone.signal)).rejects.toThrow("its pod is deleted");
    state.isHere = true;
    expect([await puller.ensure(request, signal), readdirSync(join(root(), "pulling"))]).toEqual([{ id: "id" }, []]);
  });

  test("after it was pulled: what it was pulled with is nobody's", async () => {
    const gone = new AbortController();
    const { state, puller, records } = node((method, wanted) => {
      wanted.throwIfAborted();
      if (method !== "ImageService/PullImage") return;
      state.isHere = true;
      gone.abort(new Error("its pod is deleted"));
    });
    await expect(puller.ensure(request, gone.signal)).rejects.toThrow("its pod is deleted");
    expect(await records.mayUse(image, { id: "id" }, async () => [])).toBe(false);
    await records.tidy({ all: async () => ["id"], find: async () => ({ id: "id" }) });
    expect([await records.mayUse(image, { id: "id" }, async () => []), readdirSync(join(root(), "pulling"))]).toEqual([false, []]);
  });
});

describe("of an image on the node", () => {
  const image = "private:1", imageRef = "sha256:1";
  const secret = (name: string, password: string) => ({ auth: { username: "alice", password }, secret: { namespace: "d", name, uid: `uid of ${name}` } });
  const start = () => pullRecords({ root: join(directory, "image_manager"), nowMs: () => 0, verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] } });
  const mayUse = (records: ReturnType<typeof start>, ...credentials: ReturnType<typeof secret>[]) => records.mayUse(image, { id: imageRef }, async () => credentials);

  test("while one of its pulls goes on it is not taken for preloaded, though another has failed", async () => {
    const records = start();
    await records.begin(image);
    await records.begin(image);
    await records.failed(image);
    expect([await mayUse(records), await mayUse(start())]).toEqual([false, false]); // nor after a crash
    await records.failed(image);
    expect(await mayUse(records)).toBe(true);
  });

  test("pulled under two names at once it is known by both", async () => {
    const records = start();
    await Promise.all([records.pulled(image, imageRef, secret("first", "x")), records.pulled("alias:1", imageRef, secret("other", "y"))]);
    expect(await Promise.all([mayUse(records, secret("first", "x")), records.mayUse("alias:1", { id: imageRef }, async () => [secret("other", "y")])])).toEqual([true, true]);
  });

  test("whose pull could not be noted, as the disk was full, is not being pulled any more", async () => {
    const records = start();
    const inTheWay = join(directory, "image_manager/pulled", `sha256-${createHash("sha256").update(imageRef).digest("hex")}.tmp`);
    mkdirSync(inTheWay, { recursive: true });
    await records.begin(image);
    await expect(records.pulled(image, imageRef, undefined)).rejects.toThrow("EISDIR");
    rmSync(inTheWay, { recursive: true });
    await records.tidy({ all: async () => [imageRef], find: async () => ({ id: imageRef }) });
    expect(readdirSync(join(directory, "image_manager/pulling"))).toEqual([]);
  });

  test("a Secret with what it was pulled with is known from then on, also when it changes", async () => {
    const records = start();
    await records.begin(image);
    await records.pulled(image, imageRef, secret("first", "x"));
    expect(await mayUse(records, secret("copy", "y"))).toBe(false);
    expect(await mayUse(records, secret("copy", "x"))).toBe(true);
    expect(await mayUse(records, secret("copy", "y"))).toBe(true); // it has been changed
    expect(await mayUse(start(), secret("third", "y"))).toBe(true); // likewise
  });

  test("whose pull was cut off is a pulled one under each of its names, once it is here; what is noted of one that is here no more goes", async () => {
    const here = (...ids: string[]) => ({ all: async () => ids, find: async (name: string) => (name === image && ids.includes(imageRef) ? { id: imageRef } : undefined) });
    await start().begin(image); // and the power goes
    const records = start();
    const asOther = () => records.mayUse("alias:1", { id: imageRef }, async () => []);
    await records.tidy(here("another"));
    expect([await asOther(), await mayUse(records)]).toEqual([true, false]);
    await records.tidy(here(imageRef, "another"));
    expect([await asOther(), await mayUse(records), readdirSync(join(directory, "image_manager/pulling"))]).toEqual([false, false, []]);
    await records.begin(image);
    await records.tidy(here(imageRef));
    expect(readdirSync(join(directory, "image_manager/pulling")), "it is being pulled").toHaveLength(1);
    await records.pulled(image, imageRef, secret("first", "x"));
    expect(await mayUse(records, secret("first", "x"))).toBe(true);
    const late = Promise.withResolvers<string[]>();
    const tidied = records.tidy({ ...here(), all: () => late.promise });
    await Bun.sleep(1);
    await records.begin(image);
    await records.pulled(image, imageRef, secret("first", "x")); // after the images were listed
    late.resolve([]);
    await tidied;
    expect(readdirSync(join(directory, "image_manager/pulled"))).toHaveLength(1);
    await records.tidy(here());
    expect(readdirSync(join(directory, "image_manager/pulled"))).toEqual([]);
  });

  test("a pull that was cut off says nothing of what came from this node's own archives", async () => {
    await start().begin(image); // and the power goes
    const records = start();
    const own = { id: imageRef, pinned: true };
    const mayUseOwn = () => records.mayUse(image, own, async () => []);
    expect([await mayUseOwn(), await mayUse(records)]).toEqual([true, false]);
    await records.tidy({ all: async () => [imageRef], find: async () => own });
    expect([await mayUseOwn(), await mayUse(records)]).toEqual([true, true]);
    await records.begin(image);
    await records.pulled(image, imageRef, secret("first", "x"));
    expect(await mayUseOwn()).toBe(false); // it was pulled after all
  });

  test("nor of what somebody imported since, under whichever name", async () => {
    await start().begin("busybox:1"); // and the power goes
    await start().begin(image);
    const records = start();
    const mayUseIt = (name: string) => records.mayUse(name, { id: imageRef }, async () => []);
    forgetPulls(join(directory, "image_manager"), ["docker.io/library/busybox:1"]);
    expect([await mayUseIt("busybox:1"), await mayUseIt(image)]).toEqual([true, false]);
    forgetPulls(join(directory, "image_manager"), ["docker.io/library/private:1"]);
    expect(await mayUseIt(image)).toBe(true);
  });

  test("a hundred Secrets are known by name; those of the same name with another content then prove themselves", async () => {
    const records = start();
    await records.begin(image);
    for (let i = 0; i < 100; i++) await records.pulled(image, imageRef, secret(`s${i}`, "x"));
    expect([await mayUse(records, secret("s7", "y")), await mayUse(records, secret("s7", "x"))]).toEqual([false, true]);
  });

  test("what is known already is not written again", async () => {
    const records = start();
    for (const name of ["b", "a", "b"]) {
      await records.begin(image);
      await records.pulled(image, imageRef, secret(name, "x"));
    }
    const [file] = readdirSync(join(directory, "image_manager/pulled")).map((name) => join(directory, "image_manager/pulled", name));
    expect(JSON.parse(readFileSync(file!, "utf8"))).toMatchObject({ apiVersion: "kubelet.config.k8s.io/v1beta1", credentialMapping: { private: { kubernetesSecrets: [{ name: "a" }, { name: "b" }] } } });
    const before = statSync(file!).ino;
    await records.begin(image);
    await records.pulled(image, imageRef, secret("b", "x"));
    await mayUse(records, secret("b", "x"));
    expect(statSync(file!).ino).toBe(before);
  });
});
