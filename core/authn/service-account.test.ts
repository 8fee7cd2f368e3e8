import { generateKeyPairSync } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { TokenRequest } from "../api/gen/authentication.v1.ts";
import type { Node, Pod, Secret, ServiceAccount } from "../api/gen/core.v1.ts";
import { type ApiObject, keyOf, objectKey } from "../api/meta/object-meta.ts";
import type { StatusError } from "../api/meta/status-error.ts";
import type { Lookup } from "../client/lookup.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { jwkSet, namedKeys, parseJwt, signJwt, verifyingKeys } from "../pki/jwt.ts";
import { refusalDetail } from "./authn.ts";
import { jsonWebKeySet, openIdConfiguration, openIdDocument } from "./openid.ts";
import { reviewSelf, reviewToken } from "./reviews.ts";
import { serviceAccountTokenAuthenticator } from "./service-account.ts";
import { encodeLegacyClaims } from "./service-account-claims.ts";
import { tokenIssuer } from "./token-issuer.ts";

const ISSUER = "https://kubernetes.default.svc.cluster.local";
const START_MS = Date.parse("2026-07-01T00:00:00Z");
const signal = new AbortController().signal;
const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const random: Random = { next: () => 0, uuid: () => "jti-1", bytes: (length) => new Uint8Array(length) };

function world(options: Partial<Parameters<typeof tokenIssuer>[0]> = {}) {
  let nowMs = START_MS;
  const clock: Clock = { ...systemClock, nowMs: () => nowMs };
  const meta = (name: string, uid: string, namespace?: string) => ({ name, uid, resourceVersion: "1", creationTimestamp: "", ...(namespace === undefined ? {} : { namespace }) });
  const serviceAccounts = objects<ServiceAccount>({ apiVersion: "v1", kind: "ServiceAccount", metadata: meta("web", "sa-1", "default") });
  const pods = objects<Pod>({ apiVersion: "v1", kind: "Pod", metadata: meta("web-0", "pod-1", "default"), spec: { serviceAccountName: "web", nodeName: "node-1", containers: [] } } as unknown as Pod,
    { apiVersion: "v1", kind: "Pod", metadata: meta("other", "pod-2", "default"), spec: { serviceAccountName: "other", containers: [] } } as unknown as Pod);
  const secrets = objects<Secret>({ apiVersion: "v1", kind: "Secret", metadata: meta("web-token", "secret-1", "default"), type: "kubernetes.io/service-account-token" });
  const nodes = objects<Node>({ apiVersion: "v1", kind: "Node", metadata: meta("node-1", "node-uid-1") } as Node);
  const lookups = { serviceAccounts, pods, secrets, nodes };
  const used: string[] = [];
  const keys = verifyingKeys(namedKeys([key]));
  const tokens = serviceAccountTokenAuthenticator({ ...lookups, keys: () => keys, issuers: [ISSUER], apiAudiences: [ISSUER], clock, markUsed: async ({ metadata }) => void used.push(metadata.name) });
  const issuer = tokenIssuer({ ...lookups, sign: async (claims) => signJwt(claims, key), issuer: ISSUER, apiAudiences: [ISSUER], clock, random, ...options });
  const notes: string[] = [];
  const request = (spec: Partial<TokenRequest["spec"]> = {}, metadata = {}, name = "web"): Promise<TokenRequest> =>
    issuer.tokenRequest({ namespace: "default", name }, { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", metadata, spec } as TokenRequest, { signal, warn: (text) => notes.push(text), annotate: (name, value) => notes.push(`${name}=${value}`) });
  const who = async (token: string, audiences: readonly string[] = [ISSUER]): Promise<unknown> => {
    try { return (await tokens.authenticateToken(token, audiences, signal))?.user; } catch (error) { return refusalDetail(error); }
  };
  return { ...lookups, tokens, issuer, request, who, notes, used, at(iso: string) { nowMs = Date.parse(iso); } };
}

function objects<T extends ApiObject>(...items: T[]): Lookup<T> & { set(object: T): void; remove(namespace: string, name: string): void; get(namespace: string, name: string): T } {
  const byKey = new Map(items.map((item) => [keyOf(item), item]));
  return {
    find: async (namespace, name) => byKey.get(objectKey(namespace, name)), get: (namespace, name) => byKey.get(objectKey(namespace, name))!,
    set: (object) => void byKey.set(keyOf(object), object), remove: (namespace, name) => void byKey.delete(objectKey(namespace, name)),
  };
}

const bound = (kind: string, name: string, uid?: string) => ({ boundObjectRef: { kind, apiVersion: "v1", name, uid } });

describe("tokens bound to a pod", () => {
  test("carry upstream's claims, and say who, which pod and which node", async () => {
    const { request, who, notes } = world();
    const { status, metadata, spec } = await request({ expirationSeconds: 3600, ...bound("Pod", "web-0", "pod-1") });
    expect(status?.expirationTimestamp).toBe("2026-07-01T01:00:00Z");
    expect(metadata).toEqual({ name: "web", namespace: "default", uid: "sa-1", creationTimestamp: "2026-07-01T00:00:00Z" });
    expect(spec.audiences).toEqual([ISSUER]);
    expect(notes).toEqual(["authentication.kubernetes.io/issued-credential-id=JTI=jti-1"]);
    expect(JSON.stringify(parseJwt(status!.token)!.claims)).toBe(
      `{"aud":["${ISSUER}"],"exp":1782867600,"iat":1782864000,"iss":"${ISSUER}","jti":"jti-1","kubernetes.io":{"namespace":"default","node":{"name":"node-1","uid":"node-uid-1"},"pod":{"name":"web-0","uid":"pod-1"},"serviceaccount":{"name":"web","uid":"sa-1"}},"nbf":1782864000,"sub":"system:serviceaccount:default:web"}`,
    );
    expect(await who(status!.token)).toEqual({
      name: "system:serviceaccount:default:web", uid: "sa-1", groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"],
      extra: {
        "authentication.kubernetes.io/pod-name": ["web-0"], "authentication.kubernetes.io/pod-uid": ["pod-1"], "authentication.kubernetes.io/credential-id": ["JTI=jti-1"],
        "authentication.kubernetes.io/node-name": ["node-1"], "authentication.kubernetes.io/node-uid": ["node-uid-1"],
      },
    });
  });

  test("end with what they are bound to", async () => {
    const w = world();
    const { token } = (await w.request(bound("Pod", "web-0"))).status!;
    const pod = w.pods.get("default", "web-0");
    w.pods.set({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-06-30T23:59:30Z" } });
    expect(await w.who(token)).toMatchObject({ name: "system:serviceaccount:default:web" }); // shutting down
    w.pods.set({ ...pod, metadata: { ...pod.metadata, deletionTimestamp: "2026-06-30T23:58:30Z" } });
    expect(await w.who(token)).toBe("service account token has been invalidated");
    w.pods.set({ ...pod, metadata: { ...pod.metadata, uid: "pod-9" } });
    expect(await w.who(token)).toBe("pod UID (pod-9) does not match service account pod ref claim (pod-1)");
    w.pods.remove("default", "web-0");
    expect(await w.who(token)).toBe("service account token has been invalidated");
    w.pods.set(pod);
    const account = w.serviceAccounts.get("default", "web");
    w.serviceAccounts.set({ ...account, metadata: { ...account.metadata, uid: "sa-9" } });
    expect(await w.who(token)).toBe("service account UID (sa-9) does not match claim (sa-1)");
    w.serviceAccounts.remove("default", "web");
    expect(await w.who(token)).toBe('serviceaccounts "web" not found');
  });

  test("expire, with a minute's grace; a clock that went back does not lock pods out", async () => {
    const w = world();
    const { token } = (await w.request({ expirationSeconds: 600, ...bound("Pod", "web-0") })).status!;
    w.at("2026-07-01T00:10:59Z");
    expect(await w.who(token)).toMatchObject({ uid: "sa-1" });
    w.at("2026-07-01T00:11:01Z");
    expect(await w.who(token)).toBe("service account token has expired");
    w.at("1970-01-01T00:00:10Z");
    expect(await w.who(token)).toMatchObject({ uid: "sa-1" });
  });

  test("what admission adds to pods lives a year, and says when to be renewed", async () => {
    const w = world();
    const { status } = await w.request({ expirationSeconds: 3607, ...bound("Pod", "web-0") });
    const claims = parseJwt(status!.token)!.claims as { exp: number; iat: number; "kubernetes.io": { warnafter: number } };
    expect([claims.exp - claims.iat, claims["kubernetes.io"].warnafter - claims.iat, status?.expirationTimestamp]).toEqual([31_536_000, 3607, "2026-07-01T01:00:07Z"]);
    const other = parseJwt((await w.request({ expirationSeconds: 3607, audiences: ["vault"], ...bound("Pod", "web-0") })).status!.token)!.claims as { exp: number; iat: number };
    expect(other.exp - other.iat).toBe(3607);
  });

  test("what admission adds lives a year even if others may not live so long", async () => {
    const w = world({ expirationSecondsMax: 7_200 });
    const expiresAfter = async (expirationSeconds: number): Promise<number> => {
      const { exp, iat } = parseJwt((await w.request({ expirationSeconds, ...bound("Pod", "web-0") })).status!.token)!.claims as { exp: number; iat: number };
      return exp - iat;
    };
    expect([await expiresAfter(3607), await expiresAfter(90_000)]).toEqual([31_536_000, 7_200]);
    expect(w.notes).toContain("requested expiration of 90000 seconds shortened to 7200 seconds");
  });
});

test("a token for another audience is not for us, and a review for that audience finds it good", async () => {
  const w = world();
  const { token } = (await w.request({ audiences: ["vault"] })).status!;
  expect(await w.who(token)).toBe(`token audiences ["vault"] is invalid for the target audiences ["${ISSUER}"]`);
  expect(await w.who(token, ["vault", "x"])).toMatchObject({ uid: "sa-1" });
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "TokenReview", metadata: {} as never, spec: { token, audiences: ["vault", "x"] } };
  expect((await reviewToken(review, { tokens: w.tokens, apiAudiences: [ISSUER] }, signal)).status).toEqual({
    authenticated: true, audiences: ["vault"],
    user: { username: "system:serviceaccount:default:web", uid: "sa-1", groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"], extra: { "authentication.kubernetes.io/credential-id": ["JTI=jti-1"] } },
  });
  expect((await reviewToken({ ...review, spec: { token } }, { tokens: w.tokens, apiAudiences: [ISSUER] }, signal)).status).toEqual({ user: {}, error: `[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["${ISSUER}"]]` });
  expect((await reviewToken({ ...review, spec: { token: "x" } }, { tokens: w.tokens, apiAudiences: [ISSUER] }, signal)).status).toEqual({ user: {}, error: "invalid bearer token" });
  const sent = { user: { username: "me", groups: ["a"] }, audiences: ["x"], authenticated: true };
  expect((await reviewToken({ ...review, spec: { token: "x" }, status: sent }, { tokens: w.tokens, apiAudiences: [ISSUER] }, signal)).status).toEqual({ user: sent.user, audiences: ["x"], error: "invalid bearer token" });
  await expect(reviewToken({ ...review, spec: {} }, { tokens: w.tokens, apiAudiences: [ISSUER] }, signal)).rejects.toThrow("token is required for TokenReview in authentication");
});

test.each([
  ["another key", (token: string) => token.replace(/\.[^.]+$/, `.${signJwt({}, key).split(".")[2]}`), "go-jose/go-jose: error in cryptographic primitive"],
  ["a key nobody has", (token: string) => signJwt(parseJwt(token)!.claims, generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey), "invalid signature, no keys found"],
  ["another issuer", () => signJwt({ iss: "https://elsewhere", sub: "system:serviceaccount:default:web" }, key), undefined],
  ["no claims of ours", () => signJwt({ iss: ISSUER, aud: [ISSUER] }, key), "service account token claims could not be validated"],
  ["not a token", () => "abc", undefined],
])("%s", async (_name, change, answer) => {
  const w = world();
  expect(await w.who(change((await w.request()).status!.token))).toEqual(answer);
});

describe("requests that are refused", () => {
  test.each([
    [{ expirationSeconds: 599 }, {}, "web", 'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes'],
    [{}, { name: "other" }, "web", 'TokenRequest.authentication.k8s.io "web" is invalid: metadata.name: Invalid value: "other": must match the service account name if specified'],
    [{}, { uid: "sa-9" }, "web", 'Operation cannot be fulfilled on TokenRequest.authentication.k8s.io "web": the UID in the token request (sa-9) does not match the UID of the service account (sa-1)'],
    [{}, {}, "gone", 'serviceaccounts "gone" not found'],
    [bound("Pod", "gone"), {}, "web", 'pods "gone" not found'],
    [bound("Pod", "other"), {}, "web", 'cannot bind token for serviceaccount "web" to pod running with different serviceaccount name.'],
    [bound("Pod", "web-0", "pod-9"), {}, "web", 'Operation cannot be fulfilled on Pod "web-0": the UID in the bound object reference (pod-9) does not match the UID in record. The object might have been deleted and then recreated'],
    [bound("Pod", ""), {}, "web", "Name parameter required."], [bound("Node", "a/b"), {}, "web", `Name parameter invalid: "a/b": may not contain '/'`],
    [bound("ConfigMap", "x"), {}, "web", "cannot bind token to object of type /v1, Kind=ConfigMap"],
  ])("%j %j %s", async (spec, metadata, name, message) => {
    await expect(world().request(spec, metadata, name)).rejects.toThrow(message);
  });
});

test("the version of what a token is bound to does not matter, nor whether it is one", async () => {
  for (const apiVersion of ["", "v2", "a/b/c"]) expect((await world().request({ boundObjectRef: { kind: "Pod", apiVersion, name: "web-0" } })).status?.token).toBeTruthy();
  await expect(world().request({ boundObjectRef: { kind: "Pod", apiVersion: "apps/v1", name: "web-0" } })).rejects.toThrow("cannot bind token to object of type apps/v1, Kind=Pod");
});

test("an issued request has its fields in the order of their types", async () => {
  const issued = await world().request({}, { generateName: "x-", labels: { a: "b" } });
  expect([Object.keys(issued), Object.keys(issued.metadata!)]).toEqual([["kind", "apiVersion", "metadata", "spec", "status"], ["name", "generateName", "namespace", "uid", "creationTimestamp", "labels"]]);
});

test("tokens can be bound to a Secret or a node", async () => {
  const w = world();
  const onSecret = (await w.request(bound("Secret", "web-token"))).status!.token;
  const onNode = (await w.request(bound("Node", "node-1"))).status!.token;
  expect(await w.who(onSecret)).toMatchObject({ extra: { "authentication.kubernetes.io/credential-id": ["JTI=jti-1"] } });
  expect(await w.who(onNode)).toMatchObject({ extra: { "authentication.kubernetes.io/node-name": ["node-1"], "authentication.kubernetes.io/node-uid": ["node-uid-1"] } });
  w.secrets.remove("default", "web-token");
  w.nodes.remove("", "node-1");
  expect(await w.who(onSecret)).toBe("service account token has been invalidated");
  expect(await w.who(onNode)).toBe("service account token has been invalidated");
});

describe("legacy tokens", () => {
  const legacy = signJwt(encodeLegacyClaims({ namespace: "default", secretName: "web-token", serviceAccount: { name: "web", uid: "sa-1" } }), key);
  const withToken = (w: ReturnType<typeof world>, change: Partial<Secret> = {}) => w.secrets.set({ ...w.secrets.get("default", "web-token"), data: { token: Buffer.from(legacy).toString("base64") }, ...change });

  test("live as long as the Secret that holds them", async () => {
    const w = world();
    expect(await w.who(legacy)).toBe("Token does not match server's copy");
    withToken(w);
    expect(await w.who(legacy)).toEqual({ name: "system:serviceaccount:default:web", uid: "sa-1", groups: ["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"] });
    expect(w.used).toEqual(["web-token"]);
    expect(await w.who(legacy, ["vault"])).toBe(`token audiences ["${ISSUER}"] is invalid for the target audiences ["vault"]`);
    const { metadata } = w.secrets.get("default", "web-token");
    withToken(w, { metadata: { ...metadata, labels: { "kubernetes.io/legacy-token-invalid-since": "2026-01-01" } } });
    expect(await w.who(legacy)).toMatch(/^the token in secret default\/web-token for service account default\/web has been marked invalid\. Use tokens from the TokenRequest API/);
    w.secrets.remove("default", "web-token");
    expect(await w.who(legacy)).toBe("Token has been invalidated");
  });

  test("say that they are used, and whether anybody made them", async () => {
    const w = world();
    withToken(w);
    const shown = async () => (await w.tokens.authenticateToken(legacy, [ISSUER], signal))!;
    const user = "system:serviceaccount:default:web";
    expect(await shown()).toMatchObject({ annotations: { "authentication.k8s.io/legacy-token": user, "authentication.k8s.io/legacy-token-manual-secret": "web-token" } });
    w.serviceAccounts.set({ ...w.serviceAccounts.get("default", "web"), secrets: [{ name: "web-token" }] });
    const { annotations, warnings } = await shown();
    expect(annotations).toEqual({ "authentication.k8s.io/legacy-token": user, "authentication.k8s.io/legacy-token-autogenerated-secret": "web-token" });
    expect(warnings).toEqual(["Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated secret-based tokens."]);
  });

  test("must name what they are for", async () => {
    const w = world();
    expect(await w.who(signJwt({ ...encodeLegacyClaims({ namespace: "default", secretName: "", serviceAccount: { name: "web", uid: "sa-1" } }) }, key))).toBe("secretName claim is missing");
    expect(await w.who(signJwt({ ...encodeLegacyClaims({ namespace: "default", secretName: "s", serviceAccount: { name: "web", uid: "sa-1" } }), sub: "system:admin" }, key))).toBe("sub claim is invalid");
  });
});

test("a token that should have been read again is noted", async () => {
  const w = world();
  const { status } = await w.request({ expirationSeconds: 3607, ...bound("Pod", "web-0", "pod-1") });
  const shown = async () => (await w.tokens.authenticateToken(status!.token, [ISSUER], signal))!.annotations;
  expect(await shown()).toBeUndefined();
  w.at(new Date(START_MS + (3607 + 90) * 1000).toISOString());
  expect(await shown()).toEqual({ "authentication.k8s.io/stale-token": "subject: system:serviceaccount:default:web, seconds after warning threshold: 90" });
});

test("what has not happened yet is counted, too", () => {
  const metrics = metricsRegistry();
  serviceAccountTokenAuthenticator({ ...world(), keys: () => verifyingKeys(namedKeys([key])), issuers: [ISSUER], apiAudiences: [ISSUER], clock: systemClock, metrics });
  expect(metrics.render().split("\n").filter((line) => line.startsWith("serviceaccount_")).sort()).toEqual(["invalid_legacy_auto_token_uses", "legacy_auto_token_uses", "legacy_manual_token_uses", "legacy_tokens", "stale_tokens", "valid_tokens"].map((name) => `serviceaccount_${name}_total 0`));
});

test("what relying parties read", () => {
  const { body, contentType, cacheControl } = openIdConfiguration({ issuer: ISSUER, jwksUri: "https://10.0.0.1:6443/openid/v1/jwks", keys: namedKeys([key]) });
  expect(body).toBe(`{"issuer":"${ISSUER}","jwks_uri":"https://10.0.0.1:6443/openid/v1/jwks","response_types_supported":["id_token"],"subject_types_supported":["public"],"id_token_signing_alg_values_supported":["ES256"]}`);
  expect([contentType, cacheControl]).toEqual(["application/json", "public, max-age=3600"]);
  expect(jsonWebKeySet({ keys: namedKeys([key]) })).toEqual({ contentType: "application/jwk-set+json", cacheControl: "public, max-age=3600", body: JSON.stringify(jwkSet(namedKeys([key]))) });
  for (const path of ["/.well-known/openid-configuration", "/openid/v1/jwks"]) expect(openIdDocument(`${path}/`, { issuer: ISSUER, jwksUri: "https://10.0.0.1", keys: namedKeys([key]) })).toMatchObject({ body: openIdDocument(path, { issuer: ISSUER, jwksUri: "https://10.0.0.1", keys: namedKeys([key]) })!.body });
  expect(openIdDocument("/openid", { issuer: ISSUER, jwksUri: "https://10.0.0.1", keys: namedKeys([key]) })).toBeUndefined();
  expect(() => openIdConfiguration({ issuer: "http://x", jwksUri: "https://x", keys: namedKeys([key]) })).toThrow("issuer URL must use https scheme, got: http://x");
});

test("who am I", () => {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" };
  expect(reviewSelf(review, { name: "jane", groups: ["dev"], extra: { a: ["b"] } }, "2026-07-01T00:00:00Z")).toEqual({
    ...review, metadata: { creationTimestamp: "2026-07-01T00:00:00Z" }, status: { userInfo: { username: "jane", groups: ["dev"], extra: { a: ["b"] } } },
  });
  expect(reviewSelf(review, { name: "", groups: ["dev"] }, "").status).toEqual({ userInfo: { groups: ["dev"] } });
});

test("errors carry their code", async () => {
  const codes = await Promise.all([world().request({ expirationSeconds: 1 }), world().request({}, { uid: "x" }), world().request({}, {}, "gone"), world().request(bound("X", "x"))].map((one) => one.catch((error: StatusError) => error.code)));
  expect(codes).toEqual([422, 409, 404, 400]);
});

test("audiences of a token are looked up among those asked for, of which there may be very many", async () => {
  const w = world();
  const looks = async (n: number): Promise<number> => {
    const names = Array.from({ length: n }, (_, i) => `audience-${i}`);
    const { token } = (await w.request({ audiences: names })).status!;
    let count = 0;
    const asked = new Proxy(names, { get: (from, field) => { count++; return Reflect.get(from, field) as unknown; } });
    expect((await w.tokens.authenticateToken(token, asked, signal))?.audiences).toHaveLength(n);
    return count;
  };
  expect(await looks(400) / await looks(200)).toBeLessThan(3);
});

test("a token is remembered as one we signed unless it is very long", async () => {
  const w = world(), keys = verifyingKeys(namedKeys([key]));
  let asked = 0;
  const tokens = serviceAccountTokenAuthenticator({ ...w, keys: () => { asked++; return keys; }, issuers: [ISSUER], apiAudiences: [ISSUER], clock: { ...systemClock, nowMs: () => START_MS } });
  const askedAgain = async (audiences: string[]): Promise<number> => {
    const { token } = (await w.request({ audiences: [ISSUER, ...audiences] })).status!;
    expect(await tokens.authenticateToken(token, [ISSUER], signal)).toBeDefined();
    asked = 0;
    expect(await tokens.authenticateToken(token, [ISSUER], signal)).toBeDefined();
    return asked;
  };
  expect([await askedAgain([]), await askedAgain(Array.from({ length: 2_000 }, (_, i) => `audience-${i}`))]).toEqual([1, 2]);
});
