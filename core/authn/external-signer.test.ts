import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { encodePart, keyId, namedKeys, parseJwt, signatureHolds, signJwt } from "../pki/jwt.ts";
import { eventually } from "../../test/eventually.ts";
import { externalSigner, type FetchedKeys, type SigningService } from "./external-signer.ts";

const ec = (namedCurve = "P-256"): KeyObject => generateKeyPairSync("ec", { namedCurve }).privateKey;
const der = (key: KeyObject): Buffer => createPublicKey(key).export({ type: "spki", format: "der" });
const told = (key: KeyObject, others: object = {}) => ({ key_id: keyId(key), key: der(key), ...others });
const signal = new AbortController().signal;
const now = { seconds: 1_700_000_000, nanos: 500_000_000 };

function world(answers: Partial<FetchedKeys> = {}, seconds = 86_400) {
  const key = ec();
  const state = { keys: { keys: [told(key)], data_timestamp: now, refresh_hint_seconds: 5, ...answers } as FetchedKeys, asked: 0, closed: 0, header: undefined as object | string | undefined, failure: undefined as Error | undefined };
  const service: SigningService = {
    async sign() {
      const header = state.header ?? { alg: "ES256", kid: keyId(key), typ: "JWT" };
      return { header: typeof header === "string" ? header : encodePart(header), signature: "c2lnbmVk" };
    },
    async fetchKeys() {
      state.asked++;
      if (state.failure) throw state.failure;
      return state.keys;
    },
    metadata: async () => ({ max_token_expiration_seconds: seconds }),
    close: () => void state.closed++,
  };
  const metrics = metricsRegistry();
  const begin = () => externalSigner({ service, clock: systemClock, log: silentLog, metrics });
  return { key, state, begin, metrics };
}

test("a token is what the other side says of its claims, and is verified with the keys it tells", async () => {
  const { key, begin } = world({ keys: undefined! });
  await expect(begin()).rejects.toThrow("while setting up external-jwt-signer: while initially filling key cache: while performing initial cache fill: while fetching token verification keys: found no keys");
  const w = world();
  const signer = await w.begin();
  const claims = { sub: "system:serviceaccount:default:web", aud: ["api"] };
  const jwt = parseJwt(await signer.sign(claims, signal))!;
  expect([jwt.header, jwt.claims]).toEqual([{ alg: "ES256", kid: keyId(w.key), typ: "JWT" }, claims]);
  expect(signatureHolds(parseJwt(signJwt(claims, w.key))!, signer.keys())).toBe(true);
  expect(signatureHolds(parseJwt(signJwt(claims, key))!, signer.keys())).toBe(false);
  expect(signer.expirationSecondsMax).toBe(86_400);
});

test.each<[string, Partial<FetchedKeys>]>([
  ["found invalid refresh hint (0s)", { refresh_hint_seconds: undefined! }],
  ["found no keys", { keys: [] }],
  ["invalid data timestamp: proto: invalid nil Timestamp", { data_timestamp: undefined! }],
  ['found invalid public key id ""', { keys: [{ key: der(ec()) }] }],
  ["found empty public key", { keys: [{ key_id: "a" }] }],
  ["while parsing external public keys: ", { keys: [{ key_id: "a", key: Buffer.from("key") }] }],
])("no server begins with an answer of which is told: %s", async (words, answers) => {
  const { begin, state } = world(answers);
  await expect(begin()).rejects.toThrow(words);
  expect(state.closed).toBe(1);
});

test("tokens live for ten minutes at least", () => expect(world({}, 599).begin()).rejects.toThrow(/^max token life supported by external-jwt-signer \(599s\) is less than acceptable \(min 600s\)$/));

test.each<[string, object | string]>([
  ["while unwrapping header: illegal base64 data at input byte 1", "a="],
  ["while parsing header JSON: ", Buffer.from("no").toString("base64url")],
  ['while parsing header JSON: json: unknown field "jku"', { alg: "ES256", kid: "k", typ: "JWT", jku: "x" }],
  ["bad type", { alg: "ES256", kid: "k" }],
  ["key id missing", { alg: "ES256", typ: "JWT" }],
  ["key id longer than 1 kb", { alg: "ES256", kid: "k".repeat(1_025), typ: "JWT" }],
  ['bad signing algorithm "ABC"', { alg: "ABC", kid: "k", typ: "JWT" }],
])("no token has a header of which is told: %s", async (words, header) => {
  const { begin, state, metrics } = world();
  const signer = await begin();
  state.header = header;
  await expect(signer.sign({}, signal)).rejects.toThrow(`while validating header: ${words}`);
  expect(metrics.render()).toContain('apiserver_externaljwt_sign_request_total{code="unknown-non-grpc"} 1');
});

test("a key that only verifies what is old signs nothing, and is not published", async () => {
  const old = ec();
  const w = world();
  const signer = await w.begin();
  w.state.header = { alg: "ES256", kid: keyId(old), typ: "JWT" };
  w.state.keys = { ...w.state.keys, keys: [...w.state.keys.keys!, told(old, { exclude_from_oidc_discovery: true })] };
  await expect(signer.sign({}, signal)).rejects.toThrow(`while validating header: key used for signing JWT (kid: ${keyId(old)}) is excluded from OIDC discovery docs`);
  expect(signatureHolds(parseJwt(signJwt({}, old))!, signer.keys())).toBe(true);
  expect(signer.published().keys.map(({ id }) => id)).toEqual(namedKeys([w.key]).map(({ id }) => id));
});

test("keys of a kind that signs no tokens are left out, and the others are good", async () => {
  const w = world();
  const odd = generateKeyPairSync("ed25519").privateKey;
  w.state.keys = { ...w.state.keys, keys: [told(odd), ...w.state.keys.keys!] };
  const signer = await w.begin();
  expect([signer.keys().all.length, signer.keys().byId(keyId(odd))]).toEqual([1, []]);
});

test("keys are asked for again as often as the other side says, once for many who want them, and are kept while it says nothing", async () => {
  const w = world({ refresh_hint_seconds: 0.02 });
  const signer = await w.begin();
  const stop = new AbortController();
  const running = signer.part.run(stop.signal, () => undefined);
  const next = ec();
  w.state.keys = { ...w.state.keys, keys: [told(next)], refresh_hint_seconds: 3_600 };
  await eventually("the new key is known", async () => signer.keys().byId(keyId(next)).length === 1);
  const before = w.state.asked;
  w.state.failure = Object.assign(new Error("rpc error: code = Unavailable desc = gone"), { code: "Unavailable" });
  const all = await Promise.all([signer.newerKeys(), signer.newerKeys(), signer.newerKeys()]);
  expect([w.state.asked - before, all.every((keys) => keys === signer.keys()), signer.published().maxAgeSeconds > 3_500]).toEqual([1, true, true]);
  expect(w.metrics.render().split("\n").filter((line) => line.startsWith("apiserver_externaljwt_fetch_keys_request_total"))).toEqual(['apiserver_externaljwt_fetch_keys_request_total{code="OK"} 2', 'apiserver_externaljwt_fetch_keys_request_total{code="Unavailable"} 1']);
  expect(w.metrics.render()).toContain("apiserver_externaljwt_fetch_keys_data_timestamp 1700000000.5");
  stop.abort();
  await running;
  expect(w.state.closed).toBe(1);
});
