import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testPki } from "../../test/certificates.ts";
import type { Secret } from "../api/gen/core.v1.ts";
import { type StatusError, unauthorized } from "../api/meta/status-error.ts";
import type { UserInfo } from "../api/request/user.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { generateKey } from "../pki/authority.ts";
import { readCertificatePems } from "../pki/pem.ts";
import type { Pki } from "../pki/pki.ts";
import { spkiOf } from "../pki/signature.ts";
import type { Authenticator, Credentials } from "./authenticator.ts";
import { authenticatorChain } from "./authn.ts";
import { bearerTokenAuthenticator, tokenUnion } from "./bearer-token.ts";
import { bootstrapTokenAuthenticator } from "./bootstrap-token.ts";
import { isProxyHeader, requestHeaderAuthenticator, STANDARD_PROXY_HEADERS } from "./request-header.ts";
import { staticTokenAuthenticator } from "./static-token.ts";
import { certificateAuthenticator } from "./x509.ts";

const NOW_MS = Date.parse("2026-07-01T00:00:00Z");
const clock: Clock = { ...systemClock, nowMs: () => NOW_MS };
const API = ["https://kubernetes.default.svc.cluster.local"];
const signal = new AbortController().signal;

let pki: Pki;
beforeAll(async () => { pki = await testPki(); });
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

interface Shown { readonly certificate?: string | Uint8Array; readonly headers?: readonly (readonly [string, string])[]; readonly protocols?: readonly string[] }

function credentials({ certificate, headers = [], protocols = [] }: Shown): Credentials {
  const raw = typeof certificate === "string" ? pki.leaf(certificate).certificate.raw : certificate;
  return {
    header: (name) => headers.filter(([one]) => one === name).map(([, value]) => value).join(", ") || undefined,
    headers: () => headers, webSocketProtocols: protocols, remoteAddress: "10.0.0.1", ...(raw ? { peerCertificate: { authorized: true, subject: {}, raw, issuers: [] } } : {}),
  };
}

function issue(subject: { commonName: string; organizations: readonly string[]; uids?: readonly string[] }, { usages = ["client auth"] as const, notBeforeMs = NOW_MS - 1000, notAfterMs = NOW_MS + 1000, spki }: { usages?: readonly ("client auth" | "server auth")[]; notBeforeMs?: number; notAfterMs?: number; spki: Uint8Array }): Uint8Array {
  return readCertificatePems(pki.authority("client-ca").issue({ subject, spki, usages, notBeforeMs, notAfterMs }))[0]!;
}

const secret = (id: string, data: Record<string, string>, change: Partial<Secret> = {}): Secret => ({
  apiVersion: "v1", kind: "Secret", metadata: { name: `bootstrap-token-${id}`, namespace: "kube-system", uid: "u", resourceVersion: "1", creationTimestamp: "" }, type: "bootstrap.kubernetes.io/token",
  data: Object.fromEntries(Object.entries({ "token-id": id, "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true", ...data }).map(([key, value]) => [key, Buffer.from(value).toString("base64")])), ...change,
});

const SECRETS = [
  secret("abcdef", { "auth-extra-groups": "system:bootstrappers:worker,system:bootstrappers:a" }), secret("expire", { expiration: "2026-06-30T23:59:59Z" }),
  secret("future", { expiration: "2026-07-01T02:00:00+01:00" }), secret("badexp", { expiration: "soon" }), secret("dayexp", { expiration: "2030-01-01" }), secret("nousag", { "usage-bootstrap-authentication": "false" }),
  secret("groups", { "auth-extra-groups": "system:masters" }), secret("otype0", {}, { type: "Opaque" }),
];

function chain(anonymous = true): Authenticator {
  const secrets = { find: async (namespace: string, name: string) => SECRETS.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name) };
  const tokens = tokenUnion([
    staticTokenAuthenticator([{ token: "s3cret", user: { name: "joiner", groups: ["joiners"] } }], API),
    bootstrapTokenAuthenticator({ secrets, apiAudiences: API, clock, log: silentLog }),
  ]);
  return authenticatorChain({
    anonymous: () => ({ enabled: anonymous, paths: [] }), log: silentLog,
    authenticators: [
      requestHeaderAuthenticator({ roots: () => pki.authority("request-header-ca").bundle, clock, allowedNames: ["system:auth-proxy"] }),
      certificateAuthenticator({ roots: () => pki.authority("client-ca").bundle, clock }),
      bearerTokenAuthenticator(tokens, API),
    ],
  });
}

/** "name uid [groups] extra", or the refusal. */
async function who(shown: Shown, anonymous = true): Promise<string> {
  try {
    const { user } = (await chain(anonymous).authenticate(credentials(shown), signal))!;
    const extra = Object.entries(user.extra ?? {}).filter(([key]) => !key.endsWith("credential-id")).map(([key, values]) => ` ${key}=${values.join("|")}`).join("");
    return `${user.name}${user.uid ? `/${user.uid}` : ""} [${user.groups.join(" ")}]${extra}`;
  } catch (error) {
    return `${(error as StatusError).code} ${(error as StatusError).message}`;
  }
}

const bearer = (token: string): Shown => ({ headers: [["authorization", `Bearer ${token}`]] });

test("all requests of a connection come as one and the same user: what is known of him need not be found out again", async () => {
  const user: UserInfo = { name: "jane", groups: ["dev"] };
  const chain = authenticatorChain({ authenticators: [{ authenticate: () => Promise.resolve({ user }) }], anonymous: () => ({ enabled: false, paths: [] }), log: silentLog });
  const [first, second] = [await chain.authenticate(credentials({}), signal), await chain.authenticate(credentials({}), signal)];
  expect(first!.user).toEqual({ name: "jane", groups: ["dev", "system:authenticated"] });
  expect(second!.user).toBe(first!.user);
});

describe("client certificates", () => {
  test("the subject is the user; the certificate's hash is its credential id", async () => {
    expect(await who({ certificate: "client-admin" })).toBe("system:admin [system:masters system:authenticated]");
    const { user } = (await chain().authenticate(credentials({ certificate: "client-admin" }), signal))!;
    expect(user.extra?.["authentication.kubernetes.io/credential-id"]?.[0]).toMatch(/^X509SHA256=[0-9a-f]{64}$/);
  });

  test("how long they still last is counted", async () => {
    const metrics = metricsRegistry();
    const spki = spkiOf(await generateKey());
    const authenticator = certificateAuthenticator({ roots: () => pki.authority("client-ca").bundle, clock, metrics });
    await authenticator.authenticate(credentials({ certificate: issue({ commonName: "jane", organizations: [] }, { spki, notAfterMs: NOW_MS + 3_000_000 }) }), signal);
    const lines = metrics.render().split("\n").filter((line) => line.startsWith("apiserver_client_certificate_expiration_seconds_bucket"));
    expect(lines.slice(1, 3)).toEqual(['apiserver_client_certificate_expiration_seconds_bucket{le="1800"} 0', 'apiserver_client_certificate_expiration_seconds_bucket{le="3600"} 1']);
    await expect(authenticator.authenticate(credentials({ certificate: issue({ commonName: "jane", organizations: [] }, { spki, notAfterMs: NOW_MS - 1_000 }) }), signal)).rejects.toThrow("Unauthorized");
    expect(metrics.render()).toContain('apiserver_client_certificate_expiration_seconds_bucket{le="0"} 1\n'); // one that holds no more, too
  });

  test("a certificate is checked once a connection, also beside an authority that has ended", async () => {
    const spki = spkiOf(await generateKey());
    const [own] = pki.authority("client-ca").bundle, roots = [{ ...own!, subjectRaw: new Uint8Array([48, 0]), notAfterMs: NOW_MS - 1 }, own!];
    const authenticator = certificateAuthenticator({ roots: () => roots, clock });
    const shown = credentials({ certificate: issue({ commonName: "jane", organizations: [] }, { spki }) });
    const [first, second] = [await authenticator.authenticate(shown, signal), await authenticator.authenticate(shown, signal)];
    expect([first?.user.name, second?.user === first?.user]).toEqual(["jane", true]);
  });

  test("what does not hold is 401, unless something else does", async () => {
    const spki = spkiOf(await generateKey());
    const jane = { commonName: "jane", organizations: ["dev", "ops"] };
    expect(await who({ certificate: issue(jane, { spki }) })).toBe("jane [dev ops system:authenticated]");
    expect(await who({ certificate: issue({ ...jane, uids: ["u-1"] }, { spki }) })).toBe("jane/u-1 [dev ops system:authenticated]");
    expect(await who({ certificate: issue({ ...jane, uids: ["u-1", "u-2"] }, { spki }) })).toBe("401 Unauthorized");
    expect(await who({ certificate: issue({ commonName: "", organizations: ["dev"] }, { spki }) })).toBe("system:anonymous [system:unauthenticated]");
    const expired = issue(jane, { spki, notAfterMs: NOW_MS - 1 });
    expect(await who({ certificate: expired })).toBe("401 Unauthorized");
    expect(await who({ certificate: expired, ...bearer("s3cret") })).toBe("joiner [joiners system:authenticated]");
    expect(await who({ certificate: issue(jane, { spki, usages: ["server auth"] }) })).toBe("401 Unauthorized");
    expect(await who({ certificate: "serving-kube-apiserver" })).toBe("401 Unauthorized");
    expect(await who({ certificate: Uint8Array.of(0x30, 0) })).toBe("401 Unauthorized");
  });

  test("a node that was off for longer than its certificate holds may ask for another one as itself, and nothing else; a revoked one may not", async () => {
    const spki = spkiOf(await generateKey());
    const late = (commonName: string, organizations: string[]) => issue({ commonName, organizations }, { spki, notAfterMs: NOW_MS - 1 });
    expect(await who({ certificate: late("system:node:shed", ["system:nodes"]) })).toBe("system:node:shed [coracle:expired-nodes system:authenticated]");
    expect(await who({ certificate: late("system:node:shed", ["system:nodes", "system:masters"]) })).toBe("401 Unauthorized");
    expect(await who({ certificate: late("shed", ["system:nodes"]) })).toBe("401 Unauthorized");
    expect(await who({ certificate: issue({ commonName: "system:node:shed", organizations: ["system:nodes"] }, { spki, notAfterMs: NOW_MS - 1, usages: ["server auth"] }) })).toBe("401 Unauthorized");
    expect(await who({ certificate: issue({ commonName: "system:node:shed", organizations: ["system:nodes"] }, { spki, notBeforeMs: NOW_MS + 2000, notAfterMs: NOW_MS + 9000 }) })).toBe("system:node:shed [coracle:expired-nodes system:authenticated]"); // of when clocks were ahead
    const asked: string[] = [];
    const revokedNodes = { check: async ({ name, groups }: UserInfo) => { asked.push(`${name} ${groups.join()}`); throw unauthorized("revoked"); } };
    const authenticator = certificateAuthenticator({ roots: () => pki.authority("client-ca").bundle, clock, revokedNodes });
    await expect(authenticator.authenticate(credentials({ certificate: late("system:node:shed", ["system:nodes"]) }), signal)).rejects.toMatchObject({ code: 401 });
    expect(asked).toEqual(["system:node:shed system:nodes"]);
  });

  test("a clock that was not set cannot say that something is not valid yet: it is before this program was made", async () => {
    const young = credentials({ certificate: issue({ commonName: "jane", organizations: [] }, { spki: spkiOf(await generateKey()), notBeforeMs: NOW_MS + 2000, notAfterMs: NOW_MS + 9000 }) });
    const at = (releasedMs: number) => certificateAuthenticator({ roots: () => pki.authority("client-ca").bundle, clock, releasedMs });
    const asked = async (authenticator: ReturnType<typeof at>) => (await authenticator.authenticate(young, signal).catch((error: StatusError) => error.code) as { user?: { name: string } }).user?.name;
    const unset = at(NOW_MS + 1000);
    expect([await asked(unset), await asked(unset), await asked(at(NOW_MS))]).toEqual(["jane", "jane", undefined]);
  });
});

describe("front proxies", () => {
  const speaksFor: Shown["headers"] = [["x-remote-user", "jane"], ["x-remote-uid", "7"], ["x-remote-group", "dev"], ["x-remote-group", "ops, eu"], ["x-remote-extra-acme.com%2fscopes", "a"], ["x-remote-extra-acme.com%2fscopes", "b"]];
  test.each([
    ["front-proxy CA: its word for a uid is taken by those only who are told to", "client-auth-proxy", speaksFor, "jane [dev ops, eu system:authenticated] acme.com/scopes=a|b"],
    ["front-proxy CA, but no headers: its certificate names no user", "client-auth-proxy", [], "401 Unauthorized"],
    ["a user's certificate: the headers are nobody's word", "client-admin", speaksFor, "system:admin [system:masters system:authenticated]"],
    ["no certificate", undefined, speaksFor, "system:anonymous [system:unauthenticated]"],
  ] as const)("%s", async (_name, certificate, headers, seen) => {
    expect(await who({ headers, ...(certificate === undefined ? {} : { certificate }) })).toBe(seen);
  });

  test("names in UTF-8, of which each byte is a character here", async () => {
    const bytes = (text: string): string => Buffer.from(text).toString("latin1");
    const authenticator = requestHeaderAuthenticator({ roots: () => pki.authority("request-header-ca").bundle, clock, allowedNames: [] });
    const headers = [["x-remote-user", bytes("jürgen")], ["x-remote-group", bytes("日")], ["x-remote-extra-a", bytes("č")]] as const;
    expect((await authenticator.authenticate(credentials({ headers, certificate: "client-auth-proxy" }), signal))?.user).toMatchObject({ name: "jürgen", groups: ["日"], extra: { a: ["č"] } });
  });

  test("the uid, where it is taken", async () => {
    const authenticator = requestHeaderAuthenticator({ roots: () => pki.authority("request-header-ca").bundle, clock, allowedNames: [], headers: { ...STANDARD_PROXY_HEADERS, uid: ["X-Remote-Uid"] } });
    expect((await authenticator.authenticate(credentials({ headers: speaksFor, certificate: "client-auth-proxy" }), signal))?.user.uid).toBe("7");
  });

  test("headers of other names: the first user and uid that are there, groups and extras of all, in the order the names have", async () => {
    const headers = { user: ["X-Login", "X-Remote-User"], uid: ["X-Remote-Uid", "X-Id"], group: ["X-Team", "X-Remote-Group"], extraPrefixes: ["X-More-", "x-also-"] };
    const authenticator = requestHeaderAuthenticator({ roots: () => pki.authority("request-header-ca").bundle, clock, allowedNames: [], headers });
    const asked = async (given: NonNullable<Shown["headers"]>): Promise<unknown> => (await authenticator.authenticate(credentials({ headers: given, certificate: "client-auth-proxy" }), signal))?.user;
    expect(await asked([["x-remote-group", "dev"], ["x-also-a", "1"], ["x-more-a", "2"], ["x-remote-extra-a", "3"], ["x-team", "ops"], ["x-team", ""], ["x-login", ""], ["x-remote-user", "jane"], ["x-id", "7"]]))
      .toEqual({ name: "jane", uid: "7", groups: ["ops", "dev"], extra: { a: ["2", "1"] } });
    expect(await asked([["x-login", "ann"], ["x-remote-user", "jane"]])).toMatchObject({ name: "ann", groups: [], extra: {} });
    expect(await asked([["x-login", ""], ["x-login", "ann"], ["x-remote-user", "jane"], ["x-remote-user", "joe"]])).toMatchObject({ name: "jane" }); // of one that comes twice the first counts
    expect(["x-login", "x-remote-uid", "x-more-anything", "x-moreover", "authorization"].map(isProxyHeader(headers))).toEqual([true, true, true, false, false]);
  });
});

describe("bearer tokens", () => {
  const encoded = (token: string): string => `base64url.bearer.authorization.k8s.io.${Buffer.from(token).toString("base64url")}`;
  test.each([
    ["known", bearer("s3cret"), "joiner [joiners system:authenticated]"],
    ["scheme in any case", { headers: [["authorization", " bearer s3cret "]] }, "joiner [joiners system:authenticated]"],
    ["unknown", bearer("guess"), "401 Unauthorized"],
    ["empty", { headers: [["authorization", "Bearer  s3cret"]] }, "system:anonymous [system:unauthenticated]"],
    ["another scheme", { headers: [["authorization", "Basic s3cret"]] }, "system:anonymous [system:unauthenticated]"],
    ["WebSocket", { protocols: ["v5.channel.k8s.io", encoded("s3cret")] }, "joiner [joiners system:authenticated]"],
    ["WebSocket, nothing else offered", { protocols: [encoded("s3cret")] }, "401 Unauthorized"],
    ["WebSocket, a character too many", { protocols: ["v5", `${encoded("s3cret")}A`] }, "401 Unauthorized"],
    ["WebSocket, two tokens", { protocols: ["v5", encoded("s3cret"), encoded("s3cret")] }, "401 Unauthorized"],
    ["bootstrap", bearer("abcdef.0123456789abcdef"), "system:bootstrap:abcdef [system:bootstrappers system:bootstrappers:a system:bootstrappers:worker system:authenticated]"],
    ["bootstrap, before its end", bearer("future.0123456789abcdef"), "system:bootstrap:future [system:bootstrappers system:authenticated]"],
    ["bootstrap, wrong secret", bearer("abcdef.0123456789abcdee"), "401 Unauthorized"],
    ["bootstrap, expired", bearer("expire.0123456789abcdef"), "401 Unauthorized"],
    ["bootstrap, expiry unreadable", bearer("badexp.0123456789abcdef"), "401 Unauthorized"],
    ["bootstrap, expiry a day alone", bearer("dayexp.0123456789abcdef"), "401 Unauthorized"],
    ["bootstrap, not for this", bearer("nousag.0123456789abcdef"), "401 Unauthorized"],
    ["bootstrap, groups it may not give", bearer("groups.0123456789abcdef"), "401 Unauthorized"],
    ["bootstrap, Secret of another type", bearer("otype0.0123456789abcdef"), "401 Unauthorized"],
  ] as readonly [string, Shown, string][])("%s", async (_name, shown, seen) => expect(await who(shown)).toBe(seen));
});

test("who puts two spaces before a token is nobody, and told so", async () => {
  const warnings = async (authorization: string) => (await chain().authenticate(credentials({ headers: [["authorization", authorization]] }), signal))?.warnings;
  expect(await warnings("Bearer  s3cret")).toEqual(["the provided Authorization header contains extra space before the bearer token, and is ignored"]);
  expect([await warnings("Bearer "), await warnings("Basic  s3cret"), await warnings("Bearer s3cret")]).toEqual([undefined, undefined, undefined]);
});

test("without anonymous access, nothing shown is 401", async () => {
  expect(await who({}, false)).toBe("401 Unauthorized");
  expect(await who({})).toBe("system:anonymous [system:unauthenticated]");
});

test("the 401 tells the caller nothing", async () => {
  const refused = await chain().authenticate(credentials(bearer("guess")), signal).catch((error: StatusError) => error.status);
  expect(refused).toEqual({ kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "Unauthorized", reason: "Unauthorized", code: 401 });
});
