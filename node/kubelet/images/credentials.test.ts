import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import type { Cri } from "../../cri/client.ts";
import { credentialProviders, decodeProviders } from "./credential-provider.ts";
import { pullRecords } from "./pull-records.ts";
import { imagePuller, type ImageRequest } from "./puller.ts";

const signal = new AbortController().signal;
let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "images-")); });
afterEach(() => rmSync(directory, { recursive: true }));

const config = (provider: object) => ({ apiVersion: "kubelet.config.k8s.io/v1", kind: "CredentialProviderConfig", providers: [{ name: "helper", apiVersion: "credentialprovider.kubelet.k8s.io/v1", matchImages: ["*.example.com"], defaultCacheDuration: "1h", ...provider }] });

test("a provider is asked about images that match, once for each registry, and told who pulls", async () => {
  writeFileSync(join(directory, "helper"), `#!/bin/sh\ncat >> ${directory}/asked; echo >> ${directory}/asked\necho '{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","auth":{"*.example.com":{"username":"'$WHO'","password":"pw"}}}'\n`, { mode: 0o755 });
  const providers = credentialProviders({ providers: decodeProviders(config({ env: [{ name: "WHO", value: "me" }], tokenAttributes: { serviceAccountTokenAudience: "reg", requireServiceAccount: true, requiredServiceAccountAnnotationKeys: ["a"] } })), binDir: directory, environment: { PATH: "/usr/bin:/bin" }, clock: systemClock, log: silentLog });
  const puller = async () => ({ serviceAccount: "d/sa", annotations: { a: "1", b: "2" }, token: async (audience: string) => `token for ${audience}` });
  expect(await providers.credentials("r.example.com/a:1", puller, signal)).toEqual([{ username: "me", password: "pw" }]);
  expect(await providers.credentials("r.example.com/b:1", puller, signal)).toEqual([{ username: "me", password: "pw" }]);
  expect(await providers.credentials("elsewhere.com/b:1", puller, signal)).toEqual([]);
  expect(await providers.credentials("s.example.com/b:1", async () => undefined, signal)).toEqual([]); // no service account: it is not asked
  const asked = readFileSync(join(directory, "asked"), "utf8").trim().split("\n").map((line) => JSON.parse(line) as object);
  expect(asked).toEqual([{ apiVersion: "credentialprovider.kubelet.k8s.io/v1", kind: "CredentialProviderRequest", image: "r.example.com/a:1", serviceAccountToken: "token for reg", serviceAccountAnnotations: { a: "1" } }]);
});

test.each([
  [{ name: "a/b" }, `providers[0].name: Invalid value: "a/b": provider name cannot contain path separators`],
  [{ matchImages: [] }, "providers[0].matchImages: Required value: at least 1 item in matchImages is required"],
  [{ apiVersion: "v7" }, `providers[0].apiVersion: Unsupported value: "v7"`],
  [{ defaultCacheDuration: undefined }, "providers[0].defaultCacheDuration: Required value"],
])("%j is refused: %s", (provider, message) => {
  expect(() => decodeProviders(config(provider))).toThrow(message);
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
  const puller = imagePuller({ cri, clock: systemClock, events: { event: () => undefined }, serialize: false, parallelMax: 2, records: pullRecords({ dataDir: directory, nowMs: () => 0, verification: { policy: "NeverVerifyPreloadedImages", allowlist: [] } }) });
  const alice = [{ auth: { username: "alice", password: "x" }, secret: { namespace: "d", name: "s", uid: "1" } }];
  let uids = 0;
  const get = (image: string, credentials: object[] = [], policy = "IfNotPresent") => puller.ensure({ pod: { metadata: { uid: `u${uids++}` } }, image, policy, about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => credentials } as unknown as ImageRequest, signal).then(() => "ok", (error: { reason: string }) => error.reason);

  expect(await get("preloaded:1")).toBe("ok");
  expect(await get("private:1", alice)).toBe("ok");
  expect(await get("private:1", alice)).toBe("ok");
  expect(await get("private:1", alice.map(({ auth }) => ({ auth, secret: { namespace: "e", name: "copy", uid: "2" } })))).toBe("ok"); // the same credentials under another name
  expect(pulls).toEqual(["private:1 as alice"]);
  expect([await get("private:1"), await get("private:1", [], "Never")]).toEqual(["ErrImagePull", "ErrImageNeverPull"]);
  expect([await get("public:1"), await get("public:1")]).toEqual(["ok", "ok"]);
  expect(pulls.splice(0).slice(1)).toEqual(["private:1 as nobody", "public:1 as nobody"]);

  for (const name of readdirSync(join(directory, "image_manager/pulled"))) writeFileSync(join(directory, "image_manager/pulled", name), ""); // cut short: who may have what is not known, and proved anew
  expect([await get("private:1"), await get("private:1", alice), await get("private:1", alice), await get("public:1")]).toEqual(["ErrImagePull", "ok", "ok", "ok"]);
  expect(pulls).toEqual(["private:1 as nobody", "private:1 as alice", "public:1 as nobody"]);
});
