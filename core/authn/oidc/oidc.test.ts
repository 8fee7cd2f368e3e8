import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { constants, createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { StatusError } from "../../api/meta/status-error.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { NO_ALT_NAMES } from "../../pki/alt-names.ts";
import { authority, generateKey, keyPem, selfSign } from "../../pki/authority.ts";
import { spkiOf } from "../../pki/signature.ts";
import { refusalDetail } from "../authn.ts";
import { readTokenFile } from "../token-file.ts";
import { authenticationConfiguration, type JwtAuthenticator, oidcAuthenticator } from "./configuration.ts";
import { silentLog } from "../../observe/log.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { oidcMetrics } from "./metrics.ts";
import { oidcTokens } from "./oidc.ts";

const HOUR_MS = 3_600_000;
const { signal } = new AbortController();
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const ec = generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
let uptimeMs = 0;
const clock: Clock = { ...systemClock, uptimeMs: () => uptimeMs };
const asked: string[] = [];
let served: object[] = [{ ...createPublicKey(rsa).export({ format: "jwk" }), kid: "r1", use: "sig" }];
let ca = "", url = "";
/** What the endpoint of distributed claims answers, and what it was shown. */
let elsewhere = "", shownElsewhere: string | undefined;
const server = { close: () => {} };

beforeAll(async () => {
  const caKey = await generateKey();
  const serverKey = await generateKey();
  const [notBeforeMs, notAfterMs] = [Date.now() - HOUR_MS, Date.now() + HOUR_MS];
  ca = selfSign("issuer-ca", { key: caKey, random: systemRandom, notBeforeMs, notAfterMs });
  const cert = authority(ca, keyPem(caKey), systemRandom).issue({ subject: { commonName: "localhost", organizations: [] }, spki: spkiOf(serverKey), altNames: { ...NO_ALT_NAMES, dnsNames: ["localhost"] }, usages: ["digital signature", "server auth"], notBeforeMs, notAfterMs });
  const https = createServer({ cert, key: keyPem(serverKey) }, (request, response) => {
    asked.push(request.url ?? "");
    if (request.url === "/claims") {
      shownElsewhere = request.headers.authorization;
      return void (elsewhere === "" ? response.writeHead(500).end() : response.end(elsewhere));
    }
    const issuer = request.url?.startsWith("/other") ? `${url}/wrong` : url;
    response.end(JSON.stringify(request.url?.endsWith("/keys") ? { keys: served } : { issuer, jwks_uri: `${url}/keys` }));
  });
  await new Promise<void>((resolve) => https.listen(0, "localhost", resolve));
  url = `https://localhost:${(https.address() as AddressInfo).port}`;
  server.close = () => https.close();
});
afterAll(() => server.close());

interface How { readonly key?: KeyObject; readonly alg?: string; readonly kid?: string; readonly saltLength?: number }

function token(claims: object, { key, alg = "RS256", kid = "r1", saltLength }: How = {}): string { return shown({ alg, ...(kid === "" ? {} : { kid }) }, claims, { key, saltLength }); }

function shown(header: { readonly alg: string; readonly kid?: unknown; readonly crit?: unknown; readonly b64?: unknown }, claims: object, { key = rsa, saltLength = constants.RSA_PSS_SALTLEN_DIGEST }: { readonly key?: KeyObject | undefined; readonly saltLength?: number | undefined } = {}): string {
  const { alg } = header;
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const payload = { iss: url, aud: "me", sub: "jane", exp: Math.floor(Date.now() / 1000) + 600, ...claims };
  const signed = `${part(header)}.${header.b64 === false ? JSON.stringify(payload) : part(payload)}`;
  const options = alg.startsWith("ES") ? { key, dsaEncoding: "ieee-p1363" as const } : alg.startsWith("PS") ? { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength } : { key };
  return `${part(header)}.${part(payload)}.${sign("sha256", Buffer.from(signed), options).toString("base64url")}`;
}

const read = (jwt: object[], rest: object = {}) => authenticationConfiguration(JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AuthenticationConfiguration", jwt, ...rest }), { disallowedIssuers: ["https://kubernetes.default.svc"] });
const issuer = (more: object = {}) => ({ issuer: { url, audiences: ["me"], certificateAuthority: ca }, claimMappings: { username: { claim: "sub", prefix: "x:" } }, ...more });

/** "name [groups]", or why not. */
async function who(shown: string, configuration: JwtAuthenticator): Promise<string> {
  try {
    const found = await oidcTokens({ configuration, apiAudiences: ["api"], clock, log: silentLog }).authenticateToken(shown, ["api"], signal);
    if (!found) return "not its kind";
    const { name, uid, groups, extra = {} } = found.user;
    return `${name}${uid ? `/${uid}` : ""} [${groups.join(" ")}]${Object.entries(extra).map(([key, values]) => ` ${key}=${values.join("|")}`).join("")}`;
  } catch (error) {
    expect((error as StatusError).code).toBe(401);
    return refusalDetail(error);
  }
}
const one = (more: object = {}): JwtAuthenticator => read([issuer(more)]).jwt[0]!;

describe("tokens", () => {
  test("of an issuer it has found by its discovery document, with keys it has fetched once", async () => {
    served = [{ ...createPublicKey(rsa).export({ format: "jwk" }), kid: "r1", use: "sig" }];
    asked.length = 0;
    const tokens = oidcTokens({ configuration: one(), apiAudiences: ["api"], clock, log: silentLog });
    const user = async (shown: string) => (await tokens.authenticateToken(shown, ["api"], signal))?.user.name;
    expect([await user(token({})), await user(token({ sub: "joe" }, { alg: "PS256" })), await user(token({ iss: "https://other" }))]).toEqual(["x:jane", "x:joe", undefined]);
    expect(asked).toEqual(["/.well-known/openid-configuration", "/keys"]);
    await expect(user(token({}, { key: ec, alg: "ES256", kid: "e1" }))).rejects.toThrow(); // a key that is not there, asked for too soon
    served.push({ ...createPublicKey(ec).export({ format: "jwk" }), kid: "e1" });
    uptimeMs += 11_000;
    expect(await user(token({}, { key: ec, alg: "ES256", kid: "e1" }))).toBe("x:jane");
    expect(asked).toEqual(["/.well-known/openid-configuration", "/keys", "/keys"]);
  });

  test("that name no key are tried with all there are, and with those an issuer has taken instead", async () => {
    const next = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    served = [{ ...createPublicKey(rsa).export({ format: "jwk" }), use: "sig" }];
    const tokens = oidcTokens({ configuration: one(), apiAudiences: ["api"], clock, log: silentLog });
    const user = async (shown: string) => (await tokens.authenticateToken(shown, ["api"], signal))?.user.name;
    expect(await user(token({}, { kid: "" }))).toBe("x:jane");
    served = [{ ...createPublicKey(next).export({ format: "jwk" }), use: "sig" }];
    uptimeMs += 11_000;
    expect([await user(token({}, { kid: "", key: next })), await user(token({ sub: "joe" }, { kid: "", key: next, alg: "PS256", saltLength: 20 }))]).toEqual(["x:jane", "x:joe"]);
  });

  test("are counted by their issuer, and when its keys were fetched is told for as long as it is configured", async () => {
    served = [{ ...createPublicKey(rsa).export({ format: "jwk" }), kid: "r1", use: "sig" }];
    const metrics = metricsRegistry();
    const meter = oidcMetrics(metrics, { serverId: "apiserver-x", clock: { nowMs: () => 5_000 } });
    const tokens = oidcTokens({ configuration: one(), apiAudiences: ["api"], clock, log: silentLog, meter });
    await tokens.authenticateToken(token({}), ["api"], signal);
    await expect(tokens.authenticateToken(token({ exp: 1 }), ["api"], signal)).rejects.toThrow();
    await tokens.authenticateToken(token({ iss: "https://other" }), ["api"], signal);
    const hash = (text: string): string => `sha256:${new Bun.CryptoHasher("sha256").update(text).digest("hex")}`;
    const [by, of] = [`apiserver_id_hash="${hash("apiserver-x")}"`, `jwt_issuer_hash="${hash(url)}"`];
    const shown = (): string[] => metrics.render().split("\n").filter((line) => /^apiserver_authentication_jwt_.*(_info|_timestamp_seconds|_count)\{/.test(line)).sort();
    expect(shown()).toEqual([
      `apiserver_authentication_jwt_authenticator_latency_seconds_count{${of},result="success"} 1`, `apiserver_authentication_jwt_authenticator_latency_seconds_count{${of},result="failure"} 1`,
      `apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds{${by},${of},result="success"} 5`,
      `apiserver_authentication_jwt_authenticator_jwks_fetch_last_key_set_info{${by},hash="${hash(JSON.stringify({ keys: served }))}",${of}} 1`,
    ].sort());
    meter.keep([]);
    expect(shown()).toHaveLength(2);
  });

  test.each<[string, () => string, RegExp]>([
    ["never to expire", () => token({ exp: "1e400" }), /^oidc: verify token: oidc: failed to unmarshal claims: strconv.ParseFloat: parsing "1e400": value out of range/],
    ["to expire after all times", () => token({ exp: 1e300 }), /^oidc: verify token: oidc: token is expired/],
    ["expired", () => token({ exp: 1 }), /^oidc: verify token: oidc: token is expired \(Token Expiry: 1970/],
    ["for others", () => token({ aud: ["you"] }), /expected audience "me" got \["you"\]/],
    ["not yet good", () => token({ nbf: Date.now() / 1000 + 3_000 }), /before the nbf/],
    ["signed by nobody", () => token({}).replace(/\.[^.]*$/, `.${Buffer.alloc(256).toString("base64url")}`), /failed to verify signature/],
    ["a key of another kind", () => token({}, { key: ec, alg: "ES256", kid: "r1" }), /failed to verify signature/],
    ["a weak algorithm", () => token({}, { alg: "HS256" }), /id token signed with unsupported algorithm, expected \["ES256" .* got "HS256"/],
    ["more to it than we know of", () => shown({ alg: "RS256", kid: "r1", crit: ["exp"] }, {}), /failed to verify signature/],
    ["more to it in no list", () => shown({ alg: "RS256", kid: "r1", crit: "b64" }, {}), /failed to verify signature/],
    ["signed as it is sent, and not saying so", () => shown({ alg: "RS256", kid: "r1" }, {}).replace(/^[^.]*/, Buffer.from(JSON.stringify({ alg: "RS256", kid: "r1", b64: false })).toString("base64url")), /failed to verify signature/],
    ["signed as nobody can tell", () => shown({ alg: "RS256", kid: "r1", b64: "no" }, {}), /failed to verify signature/],
    ["a header that is none", () => `${Buffer.from("hello").toString("base64url")}.${token({}).split(".")[1]}.x`, /^oidc: verify token: oidc: malformed jwt: illegal base64 data at input byte 0$/],
    ["no JSON", () => `${Buffer.from("hello").toString("base64url")}.${token({}).split(".")[1]}.`, /^oidc: verify token: oidc: malformed jwt: invalid character 'h' looking for beginning of value$/],
    ["a key by number", () => shown({ alg: "RS256", kid: 5 }, {}), /malformed jwt: failed to unmarshal key ID: json: cannot unmarshal number into Go value of type string: "5"$/],
    ["a minute too early", () => token({ nbf: Date.now() / 1000 + 100 }), /before the nbf/],
    ["sub", () => token({ sub: 7 }), /^oidc: verify token: oidc: failed to unmarshal claims: json: cannot unmarshal number into Go struct field idToken.sub of type string$/],
    ["aud", () => token({ aud: ["me", 5] }), /cannot unmarshal number into Go struct field idToken.aud of type string$/],
    ["exp", () => token({ exp: "soon" }), /invalid number literal, trying to unmarshal "\\"soon\\"" into Number$/],
    ["sources", () => token({ _claim_names: { groups: "a" }, _claim_sources: { a: 1 } }), /idToken._claim_sources of type oidc.claimSource$/],
  ])("%s: refused", async (_name, make, told) => expect(await who(make(), one())).toMatch(told));

  test.each([{ crit: [] }, { crit: null }, { crit: ["b64"] }, { b64: null }, { b64: true }, { b64: false }, { crit: ["b64"], b64: false }])("a token whose header says %j is one", async (more) => {
    expect(await who(shown({ alg: "RS256", kid: "r1", ...more }, {}), one())).toMatch(/^x:jane /);
  });

  test("for others than this server nobody looks at a token", async () => {
    const tokens = oidcTokens({ configuration: one(), apiAudiences: ["api"], clock, log: silentLog });
    expect(await tokens.authenticateToken(token({ exp: 1 }), ["vault"], signal)).toBeUndefined();
    expect((await tokens.authenticateToken(token({}), ["vault", "api"], signal))?.audiences).toEqual(["api"]);
  });

  test("groups that stand elsewhere are fetched, with what the token says to show, and believed as far as the token there", async () => {
    const configuration = one({ claimMappings: { username: { claim: "sub", prefix: "" }, groups: { claim: "groups", prefix: "g:" } } });
    const spread = (source: object = {}) => token({ _claim_names: { groups: "src" }, _claim_sources: { src: { endpoint: `${url}/claims`, ...source } } });
    const groups = ["a", "b"];
    elsewhere = token({ groups });
    expect([await who(spread(), configuration), shownElsewhere]).toEqual(["jane [g:a g:b]", undefined]);
    expect([await who(spread({ access_token: "secret" }), configuration), shownElsewhere]).toEqual(["jane [g:a g:b]", "Bearer secret"]);
    expect(await who(token({ groups: "here", _claim_names: { groups: "src" }, _claim_sources: { src: { endpoint: "https://x" } } }), configuration)).toBe("jane [g:here]"); // one that stands here is not asked for
    expect(await who(token({ _claim_names: { mail: "src" }, _claim_sources: { src: {} } }), configuration)).toBe("jane []");
    expect(await who(spread({ endpoint: "", JWT: "x" }), configuration)).toBe("jane []");
    const refused = "oidc: could not expand distributed claims: ";
    for (const [answer, why] of [
      ["", `${refused}while getting distributed claim "groups": error while getting distributed claim JWT: 500 Internal Server Error`], ["nonsense", `${refused}getting untrusted issuer from endpoint ${url}/claims failed for claim "groups": malformed token`],
      [token({}), `${refused}jwt returned by distributed claim endpoint "${url}/claims" did not contain claim: groups`],
      [token({ groups, aud: "you" }), `${refused}verify distributed claim token: oidc: expected audience "me" got ["you"]`], [token({ groups, exp: 1 }), `${refused}verify distributed claim token: oidc: token is expired`],
      [token({ groups }).replace(/\.[^.]*$/, `.${Buffer.alloc(256).toString("base64url")}`), `${refused}verify distributed claim token: failed to verify signature`], [token({ groups, iss: "http://other" }), `${refused}verifying untrusted issuer http://other failed`],
    ] as const) {
      elsewhere = answer;
      expect(await who(spread(), configuration)).toContain(why);
    }
    for (const claims of [{ _claim_names: { groups: "src" } }, { _claim_names: { groups: "src" }, _claim_sources: {} }]) expect(await who(token(claims), configuration)).toBe("oidc: verify token: oidc: source does not exist");
    expect(await who(spread({ endpoint: "http://x/claims" }), configuration)).toContain("http://x/claims is not https");
  });

  test("flags say the same for one issuer", async () => {
    const flags = { issuerUrl: url, clientId: "me", ca, requiredClaims: [], signingAlgorithms: [] };
    expect(await who(token({ groups: "admins" }), oidcAuthenticator({ ...flags, groupsClaim: "groups", groupsPrefix: "o:" }))).toBe(`${url}#jane [o:admins]`);
    expect(await who(token({ email: "j@e.org", email_verified: false }), oidcAuthenticator({ ...flags, usernameClaim: "email" }))).toBe("oidc: email not verified");
    expect(await who(token({}), oidcAuthenticator({ ...flags, usernamePrefix: "-", requiredClaims: ["hd=e.org"] }))).toBe("oidc: required claim hd not present in ID token");
    expect(await who(token({ hd: "f.org" }), oidcAuthenticator({ ...flags, requiredClaims: ["hd=e.org"] }))).toBe("oidc: required claim hd value does not match. Got = f.org, want = e.org");
    expect(() => oidcAuthenticator({ ...flags, clientId: "" })).toThrow("must be specified together");
    expect(() => oidcAuthenticator({ ...flags, signingAlgorithms: ["RS256", "HS256"] })).toThrow('oidc: unsupported signing alg: "HS256"');
  });
});

describe("an AuthenticationConfiguration", () => {
  const mapped = (claimMappings: object, more: object = {}) => one({ claimMappings: { username: { claim: "sub", prefix: "" }, ...claimMappings }, ...more });
  test("claims become a user, by name or by expression", async () => {
    const configuration = mapped({
      username: { expression: 'claims.email.split("@")[0]' }, groups: { expression: 'claims.roles.map(r, "r:" + r)' }, uid: { claim: "oid" }, extra: [{ key: "example.com/tenant", valueExpression: "claims.tenant" }],
    }, { claimValidationRules: [{ expression: "claims.email_verified == true", message: "verify it" }, { claim: "hd", requiredValue: "e.org" }], userValidationRules: [{ expression: "!user.username.startsWith('system:')", message: "reserved" }] });
    const claims = { email: "jane@e.org", email_verified: true, roles: ["a", "b"], oid: "7", tenant: "t", hd: "e.org", jti: "j1" };
    expect(await who(token(claims), configuration)).toBe("jane/7 [r:a r:b] authentication.kubernetes.io/credential-id=JTI=j1 example.com/tenant=t");
    expect(await who(token({ ...claims, email_verified: false }), configuration)).toBe("oidc: error evaluating claim validation expression: validation expression 'claims.email_verified == true' failed: verify it");
    expect(await who(token({ ...claims, email: "system:x@e.org" }), configuration)).toBe("oidc: error evaluating user info validation rule: validation expression '!user.username.startsWith('system:')' failed: reserved");
    expect(await who(token({ ...claims, email: undefined }), configuration)).toContain("oidc: error evaluating username claim expression: expression 'claims.email.split");
  });

  test("all rules, and all extras, are evaluated before what they say is looked at", async () => {
    const rules = mapped({}, { claimValidationRules: [{ expression: "claims.sub == 'x'", message: "not x" }, { expression: "claims.gone == 'x'" }] });
    expect(await who(token({}), rules)).toBe("oidc: error evaluating claim validation expression: expression 'claims.gone == 'x'' resulted in error: no such key: gone");
    const extras = mapped({ extra: [{ key: "e.org/a", valueExpression: "1" }, { key: "e.org/b", valueExpression: "claims.gone" }] });
    expect(await who(token({}), extras)).toBe("expression 'claims.gone' resulted in error: no such key: gone");
  });

  test("its discovery document may stand elsewhere, but must be of the issuer", async () => {
    const elsewhere = (path: string) => one({ issuer: { url, audiences: ["me"], certificateAuthority: ca, discoveryURL: url + path } });
    expect(await who(token({}), elsewhere("/elsewhere"))).toBe("x:jane []");
    expect(await who(token({}), elsewhere("/other"))).toBe("oidc: authenticator not initialized");
    expect(await who(token({}), one({ issuer: { url, audiences: ["me"] } }))).toBe("oidc: authenticator not initialized"); // whose certificate we do not trust
  });

  test("that it cannot be asked is told once, not for every token", async () => {
    const told: unknown[] = [];
    const tokens = oidcTokens({ configuration: one({ issuer: { url, audiences: ["me"], certificateAuthority: ca, discoveryURL: `${url}/other` } }), apiAudiences: ["api"], clock, log: { ...silentLog, error: (_: string, facts?: object) => void told.push(facts) } });
    for (let i = 0; i < 3; i++) await expect(tokens.authenticateToken(token({}), ["api"], signal)).rejects.toThrow();
    expect(told).toEqual([{ issuer: url, error: expect.objectContaining({ message: expect.stringContaining("issuer did not match the issuer returned by provider") }) }]);
  });

  test("whether an issuer can be asked is known before a token is shown", async () => {
    const made = (configuration: JwtAuthenticator) => oidcTokens({ configuration, apiAudiences: ["api"], clock: { ...clock, sleep: async () => {} }, log: silentLog });
    await made(one()).initialized(AbortSignal.abort());
    const wrong = one({ issuer: { url, audiences: ["me"], certificateAuthority: ca, discoveryURL: `${url}/other` } });
    await expect(made(wrong).initialized(AbortSignal.abort())).rejects.toThrow(`oidc: authenticator for issuer "${url}" is not healthy: oidc: issuer did not match the issuer returned by provider, expected "${url}" got "${url}/wrong"`);
  });

  test("expressions see numbers as doubles and find names that are no words; what may not be there is nobody's name", async () => {
    const configuration = mapped({
      username: { expression: "claims.sub" }, groups: { expression: '[dyn("roles" in claims ? "r" : ""), claims.deep.a__slash__b, claims.list[0].?x__dot__y.orValue("")]' }, extra: [{ key: "e.org/a/b", valueExpression: 'claims["a.b"]' }],
    }, { claimValidationRules: [{ expression: "claims.exp - claims.at <= 1200.5", message: "too long" }] });
    const claims = { "a.b": "v", deep: { "a/b": "d" }, list: [{ "x.y": "l" }], at: Math.floor(Date.now() / 1000), roles: [] };
    expect(await who(token(claims), configuration)).toBe("jane [r d l] e.org/a/b=v");
    expect(await who(token(claims), mapped({ username: { expression: "claims.?sub" } }))).toBe("oidc: error evaluating username claim expression: username claim expression must return a string");
  });

  test("claims that are null are empty, as they are for Go", async () => {
    const configuration = mapped({ username: { claim: "email", prefix: "x:" }, groups: { claim: "groups", prefix: "g:" }, uid: { claim: "oid" } }, { claimValidationRules: [{ claim: "hd", requiredValue: "" }] });
    expect(await who(token({ email: null, groups: [null, "a"], oid: null, hd: null }), configuration)).toBe("x: [g: g:a]");
    expect(await who(token({ email: "j", email_verified: null, groups: null, oid: null, hd: null }), configuration)).toBe("oidc: email not verified");
    expect(await who(token({ email: "j", groups: ["a", 5], oid: "1", hd: "" }), configuration)).toBe('oidc: parse groups claim "groups": json: cannot unmarshal array into Go value of type string');
  });

  test.each<[string, () => unknown, string | RegExp]>([
    ["our own issuer", () => read([issuer({ issuer: { url: "https://kubernetes.default.svc", audiences: ["a"] } })]), "URL must not overlap with disallowed issuers: [https://kubernetes.default.svc]"],
    ["no TLS", () => read([issuer({ issuer: { url: "http://x", audiences: ["a"] } })]), 'jwt[0].issuer.url: Invalid value: "http://x": URL scheme must be https'],
    ["no audience", () => read([issuer({ issuer: { url } })]), "jwt[0].issuer.audiences: Required value: at least one jwt[0].issuer.audiences is required"],
    ["two audiences", () => read([issuer({ issuer: { url, audiences: ["a", "b"] } })]), "audienceMatchPolicy must be MatchAny for multiple audiences"],
    ["no prefix", () => mapped({ username: { claim: "sub" } }), "jwt[0].claimMappings.username.prefix: Required value: prefix is required when claim is set"],
    ["an email nobody verified", () => mapped({ username: { expression: "claims.email" } }), "claims.email_verified must be used in claimMappings.username.expression"],
    ["an expression that is none", () => mapped({ username: { expression: "claims." } }), "compilation failed"],
    ["a field users do not have", () => one({ userValidationRules: [{ expression: "user.age > 3" }] }), "undefined field 'age'"],
    ["a reserved key", () => mapped({ extra: [{ key: "a.k8s.io/b", valueExpression: "claims.x" }] }), "are reserved for Kubernetes use"],
    ["twice", () => read([issuer(), issuer()]), "jwt[1].issuer.url: Duplicate value"],
    ["an expression beside a claim, which is not looked at", () => mapped({ username: { claim: "sub", expression: "claims." }, uid: { claim: "sub", expression: "claims." } }), /^\[jwt\[0\]\.claimMappings\.username: Invalid value: "": claim and expression can't both be set, jwt\[0\]\.claimMappings\.uid: Invalid value: "": claim and expression can't both be set\]$/],
    ["each issuer's own troubles, then that it is there twice", () => read([issuer({ issuer: { url: "http://x", audiences: ["a"] } }), issuer({ issuer: { url: "http://x" } }), issuer({ issuer: { url, audiences: [] } })]), /scheme must be https, jwt\[1\]\.issuer\.url: Invalid value.*, jwt\[1\]\.issuer\.audiences: .*, jwt\[1\]\.issuer\.url: Duplicate value: "http:\/\/x", jwt\[2\]\.issuer\.audiences/],
    ["too many issuers", () => read(Array.from({ length: 65 }, () => issuer({ issuer: {} }))), /^jwt: Too many: 65: must have at most 64 items$/],
    ["anonymous, half", () => read([], { anonymous: { enabled: false, conditions: [{ path: "/livez" }] } }), "enabled should be set to true when conditions are defined"],
    ["unknown", () => read([], { oidc: {} }), 'unknown field "oidc"'],
    ["a URL that is none", () => read([issuer({ issuer: { url: "https://x:port", audiences: ["a"] } })]), 'jwt[0].issuer.url: Invalid value: "https://x:port": parse "https://x:port": invalid port ":port" after host'],
    ["an authority that is none", () => read([issuer({ issuer: { url, audiences: ["a"], certificateAuthority: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" } })]), 'jwt[0].issuer.certificateAuthority: Invalid value: "<omitted>": x509: malformed certificate'],
    ["a way out that is none", () => read([issuer({ issuer: { url, audiences: ["a"], egressSelectorType: "etcd" } })]), 'jwt[0].issuer.egressSelectorType: Invalid value: "etcd": egress selector must be either controlplane or cluster'],
    ["a way out that is not configured", () => read([issuer({ issuer: { url, audiences: ["a"], egressSelectorType: "cluster" } })]), 'oidc: egress lookup required with egress selector type "cluster"'],
    ["a way out that is not configured, beside what else is wrong", () => read([issuer({ issuer: { url, egressSelectorType: "cluster" } })]), /^jwt\[0\]\.issuer\.audiences: Required value: at least one jwt\[0\]\.issuer\.audiences is required$/],
    ["a rule that says no truth", () => one({ claimValidationRules: [{ expression: "claims.a" }] }), 'jwt[0].claimValidationRules[0].expression: Invalid value: "claims.a": must evaluate to bool'],
    ["a user's rule that says no truth", () => one({ userValidationRules: [{ expression: "user.username" }] }), 'jwt[0].userValidationRules[0].expression: Invalid value: "user.username": must evaluate to bool'],
    ["a key of no domain", () => mapped({ extra: [{ key: "-a/b", valueExpression: "claims.x" }] }), 'jwt[0].claimMappings.extra[0].key: Invalid value: "-a": a lowercase RFC 1123 subdomain'],
    ["another anonymous", () => authenticationConfiguration("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: true}\n", { disallowedIssuers: [], before: { jwt: [], anonymous: { enabled: false, paths: [] } } }), "anonymous: Forbidden: changed from initial configuration file"],
    ["empty", () => authenticationConfiguration("", { disallowedIssuers: [] }), "empty config data"],
  ])("cannot be: %s", (_name, make, told) => expect(make).toThrow(told));

  test("an address counts as used where an expression says so, and nowhere else", () => {
    for (const expression of ["'claims.email' + claims.sub", "claims.email_address", "claims.mail.email", "claims.email_verified ? claims.email : claims.sub"]) mapped({ username: { expression } });
    expect(() => one({ claimValidationRules: [{ expression: "claims.?email_verified.orValue(true)" }], claimMappings: { username: { expression: "claims.email" } } })).toThrow('must evaluate to bool, jwt[0].claimMappings.username.expression: Invalid value: "claims.email": claims.email_verified must be used'); // a rule that is none uses nothing
    for (const expression of ["claims.?email.orValue('')", "[claims.email][0]", "has(claims.email) ? 'a' : 'b'"]) expect(() => mapped({ username: { expression } })).toThrow("claims.email_verified must be used");
  });

  test("anonymous", () => expect(read([], { anonymous: { enabled: true, conditions: [{ path: "/livez" }] } }).anonymous).toEqual({ enabled: true, paths: ["/livez"] }));
});

test("a token file", () => {
  expect(readTokenFile('t1,jane,1,"a,b"\n\n"t""2",joe,2\n')).toEqual([{ token: "t1", user: { name: "jane", uid: "1", groups: ["a", "b"] } }, { token: 't"2', user: { name: "joe", uid: "2", groups: [] } }]);
  expect(() => readTokenFile("t,jane")).toThrow("must have at least 3 columns (token, user name, user uid), found 2");
});
