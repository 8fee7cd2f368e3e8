import { createPublicKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { runAll } from "../core/lifecycle/run-all.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { encodePart, keyId, parseJwt, signatureHolds } from "../core/pki/jwt.ts";
import { rpcServer } from "../node/cri/rpc-server.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { serviceAccountSettings } from "./authentication.ts";
import { tokenKeys } from "./control-plane/token-keys.ts";
import { TOKEN_SIGNER_METHODS, type TokenSignerMethods } from "./token-signer.ts";

const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const own = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const signal = new AbortController().signal;

function settings(...args: string[]) { return serviceAccountSettings(apiServerArgs(args), { signing: own, verifying: [own], issuer: "https://standard" }); }

function signerAt(socket: string, signer: KeyObject) {
  return rpcServer<TokenSignerMethods>({
    name: "signer", socket, methods: TOKEN_SIGNER_METHODS, log: silentLog,
    calls: {
      "ExternalJWTSigner/Sign": ({ claims }) => {
        const header = encodePart({ alg: "ES256", kid: "k1", typ: "JWT" });
        return { header, signature: sign("sha256", Buffer.from(`${header}.${claims}`), { key: signer, dsaEncoding: "ieee-p1363" }).toString("base64url") };
      },
      "ExternalJWTSigner/FetchKeys": () => ({ keys: [{ key_id: "k1", key: createPublicKey(signer).export({ type: "spki", format: "der" }) }], data_timestamp: { seconds: 1_700_000_000 }, refresh_hint_seconds: 60 }),
      "ExternalJWTSigner/Metadata": () => ({ max_token_expiration_seconds: 7_200 }),
    },
  });
}

test("another program signs, though it comes up after us; it says how long tokens live", async () => {
  const socket = join(mkdtempSync(join(tmpdir(), "signer-")), "s.sock");
  const stop = new AbortController();
  const metrics = metricsRegistry();
  const common = { clock: systemClock, log: silentLog, metrics };
  const beginning = tokenKeys({ settings: settings(`service-account-signing-endpoint=${socket}`), ...common });
  await systemClock.sleep(150, signal);
  const running = runAll([signerAt(socket, key)], stop.signal);
  const keys = await beginning;
  const jwt = parseJwt(await keys.sign({ sub: "me" }, signal))!;
  expect([jwt.claims, signatureHolds(jwt, keys.keys())]).toEqual([{ sub: "me" }, true]);
  expect([keys.expirationSecondsMax, keys.extendedSeconds, keys.legacyTokenKey, keys.published().keys.map(({ id }) => id)]).toEqual([7_200, 7_200, undefined, ["k1"]]);
  expect(metrics.render()).toContain('apiserver_externaljwt_request_duration_seconds_count{code="OK",method="/v1.ExternalJWTSigner/Sign"} 1');
  await expect(tokenKeys({ settings: settings(`service-account-signing-endpoint=${socket}`, "service-account-max-token-expiration=3h"), ...common, metrics: metricsRegistry() })).rejects.toThrow("service-account-max-token-expiration cannot be set longer than the token expiration supported by service-account-signing-endpoint: 3h0m0s > 2h0m0s");
  const ending = new AbortController();
  const parts = runAll(keys.parts, ending.signal);
  ending.abort();
  await parts;
  stop.abort();
  await running;
});

test("without another program the cluster's key signs, an hour is what relying parties keep keys", async () => {
  expect(keyId(own)).not.toBe(keyId(key));
  const keys = await tokenKeys({ settings: settings(), clock: systemClock, log: silentLog, metrics: metricsRegistry() });
  expect(parseJwt(await keys.sign({}, signal))!.header).toEqual({ alg: "ES256", kid: keyId(own) });
  expect([keys.legacyTokenKey, keys.published().maxAgeSeconds, keys.parts]).toEqual([own, undefined, []]);
});

test.each<[readonly string[], string]>([
  [["service-account-signing-endpoint=/s", "service-account-key-file=/k"], "can't set `--service-account-signing-key-file` and/or `--service-account-key-file` with `--service-account-signing-endpoint` (They are mutually exclusive)"],
  [["service-account-signing-endpoint=@a b"], 'invalid value "@a b" passed for `--service-account-signing-endpoint`, when prefixed with @ must be a valid abstract socket name'],
])("%o cannot be", (args, told) => expect(() => settings(...args)).toThrow(told));
