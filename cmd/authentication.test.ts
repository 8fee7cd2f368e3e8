import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { Authorizer } from "../core/authz/authorizer.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { generateKey, selfSign } from "../core/pki/authority.ts";
import { readCertificatePems } from "../core/pki/pem.ts";
import { parseCertificate } from "../core/pki/x509.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { authenticationSettings, extraCas, proxyHeaders, proxyNames, serviceAccountSettings } from "./authentication.ts";
import { authorizationSettings } from "./authorization.ts";

const directory = mkdtempSync(join(tmpdir(), "authentication-"));
afterAll(() => rmSync(directory, { recursive: true }));
const file = (name: string, text: string): string => {
  writeFileSync(join(directory, name), text);
  return join(directory, name);
};
const key = () => generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
const own = key();
const common = () => ({ serverId: "apiserver-x", clock: systemClock, log: silentLog, metrics: metricsRegistry() });
const authentication = (...args: string[]) => authenticationSettings({ ...common(), args: apiServerArgs(args), apiAudiences: ["api"], issuers: ["https://me"] });
const says = (decision: "allow" | "no-opinion"): Authorizer => ({ authorize: () => ({ decision, reason: decision }), rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }) });
const authorization = (...args: string[]) => authorizationSettings({ ...common(), args: apiServerArgs(args), node: says("no-opinion"), rbac: says("allow") });
const CONFIGURATION = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: false}\n";

test("ServiceAccount tokens: keys are rotated by giving the old one beside the new", () => {
  const next = key();
  const pem = (one: typeof next) => one.export({ type: "pkcs8", format: "pem" }).toString();
  const publicPem = (one: typeof next) => createPublicKey(one).export({ type: "spki", format: "pem" }).toString();
  const settings = (...args: string[]) => serviceAccountSettings(apiServerArgs(args), { signing: own, verifying: [own], issuer: "https://standard" });
  expect(settings()).toMatchObject({ signing: own, verifying: [own], issuers: ["https://standard"], apiAudiences: ["https://standard"], extendExpiration: true });
  const rotated = settings(`service-account-signing-key-file=${file("next.key", pem(next))}`, `service-account-key-file=${file("keys.pem", publicPem(next) + publicPem(own))}`, "service-account-issuer=https://new", "service-account-issuer=https://old", "service-account-max-token-expiration=2h", "service-account-extend-token-expiration=false");
  expect([rotated.signing.equals(next), rotated.verifying.map((one, i) => one.equals(createPublicKey([next, own][i]!)))]).toEqual([true, [true, true]]);
  expect(rotated).toMatchObject({ issuers: ["https://new", "https://old"], apiAudiences: ["https://new"], expirationSecondsMax: 7_200, extendExpiration: false });
  expect(settings(`service-account-signing-key-file=${join(directory, "next.key")}`).verifying.map((one) => one.equals(createPublicKey(next)))).toEqual([true, false]); // tokens from before still hold
  const parameters = "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"; // what openssl ecparam -genkey puts before a key
  expect(settings(`service-account-key-file=${file("with-parameters.pem", parameters + pem(next))}`).verifying.map((one) => one.equals(createPublicKey(next)))).toEqual([true]);
  expect(() => settings(`service-account-key-file=${file("parameters", parameters)}`)).toThrow("does not contain any valid RSA or ECDSA public keys");
  expect(() => settings(`service-account-key-file=${file("empty", "x")}`)).toThrow("does not contain any valid RSA or ECDSA public keys");
});

test.each<[readonly string[], string]>([
  [["service-account-issuer=http://[::1]:namedport"], `service-account-issuer "http://[::1]:namedport" contained a ':' but was not a valid URL: parse "http://[::1]:namedport": invalid port ":namedport" after host`],
  [["service-account-issuer=http://foo.bar.com", "service-account-issuer=http://foo.bar.com"], 'service-account-issuer "http://foo.bar.com" is already specified'],
  [["service-account-jwks-uri=https://host:port"], 'service-account-jwks-uri must be a valid URL: parse "https://host:port": invalid port ":port" after host'],
  [["service-account-jwks-uri=http://baz.com"], "service-account-jwks-uri requires https scheme, parsed as: http://baz.com"],
  [["service-account-max-token-expiration=10m"], "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds"],
])("ServiceAccount tokens cannot be of %o", (args, told) => expect(() => serviceAccountSettings(apiServerArgs(args), { signing: own, verifying: [own], issuer: "https://standard" })).toThrow(told));

test("authorities of others are trusted beside ours", async () => {
  const caKey = await generateKey();
  const pem = selfSign("corporate", { key: caKey, random: systemRandom, notBeforeMs: 0, notAfterMs: 4e12 });
  const ours = parseCertificate(readCertificatePems(selfSign("ours", { key: caKey, random: systemRandom, notBeforeMs: 0, notAfterMs: 4e12 }))[0]!);
  const other = selfSign("other", { key: caKey, random: systemRandom, notBeforeMs: 0, notAfterMs: 4e12 });
  const looks = { ...systemClock, every: (_: number, signal: AbortSignal) => systemClock.every(5, signal) };
  let changes = 0;
  const extra = (...given: string[]) => extraCas(apiServerArgs(given), "client-ca-file", { clock: looks, log: silentLog, changed: () => changes++ });
  const found = extra(`client-ca-file=${file("ca.pem", pem)}`);
  const bundle = [ours];
  const roots = found.with(() => bundle);
  const names = () => roots().map(({ subject }) => subject.commonName);
  const first = roots();
  expect([names(), roots() === first, found.pem()]).toEqual([["ours", "corporate"], true, [pem]]);
  expect(extra().with(() => bundle)()).toBe(bundle);
  expect(() => extra(`client-ca-file=${file("none.pem", "")}`)).toThrow("does not contain any valid RSA or ECDSA certificates");
  const stop = new AbortController();
  const running = found.parts[0]!.run(stop.signal, () => undefined);
  file("ca.pem", "");
  await systemClock.sleep(20, stop.signal);
  expect([names(), changes]).toEqual([["ours", "corporate"], 0]); // what cannot be used leaves what was before
  file("ca.pem", pem + other);
  await expect.poll(() => changes).toBe(1);
  expect([names(), found.pem()]).toEqual([["ours", "corporate", "other"], [pem + other]]);
  stop.abort();
  await running;
});

test("anonymous: by flag, or by the file", () => {
  expect([authentication().anonymous(), authentication("anonymous-auth=false").anonymous()]).toEqual([{ enabled: true, paths: [] }, { enabled: false, paths: [] }]);
  expect(authentication(`authentication-config=${file("a.yaml", CONFIGURATION)}`).anonymous()).toEqual({ enabled: false, paths: [] });
});

test("front proxies say who a caller is in the headers that the settings name, the uid only where one is named", () => {
  const warned: unknown[] = [];
  const headers = (...given: string[]) => proxyHeaders(apiServerArgs(given), { warn: (_, fields) => void warned.push(fields?.["setting"]) });
  expect(headers()).toEqual({ user: ["X-Remote-User"], uid: [], group: ["X-Remote-Group"], extraPrefixes: ["X-Remote-Extra-"] });
  expect(headers("requestheader-uid-headers=X-Id,x-remote-uid", "requestheader-username-headers=x-remote-user", "requestheader-username-headers= X-Login")).toMatchObject({ uid: ["X-Id", "x-remote-uid"], user: ["x-remote-user", "X-Login"] });
  expect(warned).toEqual([]);
  expect(headers("requestheader-group-headers=X-Team", "requestheader-extra-headers-prefix=X-More-")).toMatchObject({ group: ["X-Team"], extraPrefixes: ["X-More-"] });
  expect(warned).toEqual(["requestheader-group-headers", "requestheader-extra-headers-prefix"]);
  expect(() => headers("requestheader-uid-headers=X-Id")).toThrow("--requestheader-uid-headers is set without specifying the standard X-Remote-Uid header - API aggregation will not work");
  expect(() => headers("requestheader-username-headers=X-Login, ")).toThrow('empty value in "requestheader-username-headers"');
});

test("anonymous: nobody where all may do everything", () => {
  expect(["RBAC,AlwaysAllow", "RBAC,AlwaysDeny"].map((modes) => authentication(`authorization-mode=${modes}`).anonymous().enabled)).toEqual([false, true]);
});

test("of whom an authority of front proxies vouches for, those may speak for others who are named, or all where none is", async () => {
  const certificate = async (name: string) => parseCertificate(readCertificatePems(selfSign(name, { key: await generateKey(), random: systemRandom, notBeforeMs: 0, notAfterMs: 4e12 }))[0]!);
  const [clients, proxies] = [await certificate("clients"), await certificate("proxies")];
  const names = (proxyCas: readonly typeof clients[], ...given: string[]) => proxyNames(apiServerArgs(given), { own: "me", clientCas: [clients], proxyCas });
  expect([names([]), names([], "requestheader-allowed-names=a,b"), names([proxies]), names([proxies, clients], "requestheader-allowed-names=a")]).toEqual([["me"], ["me", "a", "b"], [], ["me", "a"]]);
  expect(() => names([proxies, clients])).toThrow("--requestheader-client-ca-file and --client-ca-file contain overlapping certificates; --requestheader-allowed-names must be specified");
  expect(() => names([proxies], "requestheader-allowed-names=a, ")).toThrow('empty value in "requestheader-allowed-names"');
});

test.each<[() => unknown, string]>([
  [() => authentication(`authentication-config=${file("b.yaml", CONFIGURATION)}`, "anonymous-auth=true"), "anonymous-auth cannot be set"],
  [() => authentication(`authentication-config=${file("c.yaml", CONFIGURATION)}`, "oidc-issuer-url=https://x"), "mutually exclusive"],
  [() => authentication("oidc-client-id=me"), "oidc-*"], [() => authentication("authentication-config=/nowhere"), "/nowhere: no such file"],
  [() => authentication(`authentication-config=${file("d.yaml", "kind: Pod")}`), "d.yaml: no kind"],
  [() => authorization("authorization-mode=Node,Magic"), 'authorization-mode "Magic" is not a valid mode'], [() => authorization("authorization-mode=RBAC,RBAC"), "given twice"],
  [() => authorization("authorization-mode=Webhook"), "authorization-webhook-config-file is required"],
  [() => authorization("authorization-mode=ABAC"), "authorization-mode ABAC's authorization policy file not passed"],
  [() => authorization("authorization-mode=RBAC", "authorization-policy-file=/x"), "cannot specify authorization-policy-file without mode ABAC"],
  [() => authorization("authorization-mode=ABAC", "authorization-policy-file=/nowhere"), "open /nowhere: no such file or directory"],
  [() => authorization("authorization-mode=ABAC", `authorization-policy-file=${file("bad.jsonl", "{")}`), "line 1: {: couldn't get version/kind"],
])("cannot be: %#", (make, told) => expect(make).toThrow(told));

test("policies of a file authorize, by mode and by configuration; a file that is read again adds none", async () => {
  const policies = `authorization-policy-file=${file("good.jsonl", '{"user":"jane"}')}`;
  const decide = async ({ authorizer }: ReturnType<typeof authorization>) => (await authorizer.authorize({ isResource: false, verb: "get", path: "/", user: { name: "jane", groups: [] } })).decision;
  const configured = (authorizers: string) => `apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: ${authorizers}\n`;
  const path = file("abac.yaml", configured("[{type: ABAC, name: abac}]"));
  expect([await decide(authorization("authorization-mode=ABAC", policies)), await decide(authorization(`authorization-config=${path}`, policies))]).toEqual(["allow", "allow"]);
  expect(() => authorization(`authorization-config=${path}`)).toThrow("authorization-policy-file: open : no such file or directory");
  const later = file("later.yaml", configured("[{type: AlwaysDeny, name: alwaysdeny}]"));
  const stop = new AbortController();
  const told: unknown[] = [];
  const log = { ...silentLog, error: (_: string, { error }: { error: Error }) => { told.push(error.message); stop.abort(); } } as unknown as typeof silentLog;
  const clock = { ...systemClock, every: (_: number, signal: AbortSignal) => systemClock.every(5, signal) };
  const { parts } = authorizationSettings({ ...common(), clock, log, args: apiServerArgs([`authorization-config=${later}`, policies]), node: says("no-opinion"), rbac: says("allow") });
  file("later.yaml", configured("[{type: AlwaysDeny, name: alwaysdeny}, {type: ABAC, name: abac}]"));
  await parts[0]!.run(stop.signal, () => undefined);
  expect(told).toEqual([expect.stringContaining("authorizer type ABAC is not allowed if it was not enabled at initial server startup")]);
});

test("modes of authorization", async () => {
  const decide = async (...args: string[]) => (await authorization(...args).authorizer.authorize({ isResource: false, verb: "get", path: "/", user: { name: "jane", groups: [] } })).decision;
  expect([await decide(), await decide("authorization-mode=Node"), await decide("authorization-mode=AlwaysDeny,AlwaysAllow")]).toEqual(["allow", "no-opinion", "allow"]);
  const path = file("z.yaml", "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: Node, name: node}]\n");
  expect(await decide(`authorization-config=${path}`)).toBe("no-opinion");
  await expect(decide(`authorization-config=${path}`, "authorization-mode=RBAC")).rejects.toThrow("cannot be used together");
});
