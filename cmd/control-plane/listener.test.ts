import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { runAll } from "../../core/lifecycle/run-all.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { metricsRegistry } from "../../core/observe/metrics.ts";
import { servingFrom, testPki } from "../../test/certificates.ts";
import { apiServerArgs } from "../apiserver-args.ts";
import { listenerOf } from "./listener.ts";

test("whoever shows what it shows is told when a given certificate is renewed", async () => {
  const pki = await testPki(), stop = new AbortController(), told = Promise.withResolvers<void>();
  const [certFile, keyFile] = [join(pki.dir, "given.crt"), join(pki.dir, "given.key")];
  async function give(ageMs: number): Promise<string> {
    const { cert, key } = await servingFrom(pki, Date.now() - ageMs);
    writeFileSync(keyFile, key);
    writeFileSync(certFile, cert);
    return cert;
  }
  const first = await give(60_000);
  const listener = listenerOf({
    settings: { bindAddress: "127.0.0.1", httpsListenPort: 0 }, args: apiServerArgs([`tls-cert-file=${certFile}`, `tls-private-key-file=${keyFile}`]), pki, extraCas: { clients: () => [], proxies: () => [] },
    handler: () => Promise.reject(new Error("nobody asks")), isPassedOn: () => false, metrics: metricsRegistry(), cbor: false, columnTexts: () => Promise.reject(new Error("no table")), tunnel: { handler: (others) => others },
    clock: { ...systemClock, every: (_, signal) => systemClock.every(10, signal) }, random: systemRandom, log,
  });
  listener.onReload(told.resolve);
  const running = runAll(listener.parts, stop.signal);
  onTestFinished(async () => {
    stop.abort();
    await running;
    rmSync(pki.dir, { recursive: true });
  });
  expect(listener.tls().cert).toBe(first);
  const second = await give(0);
  await told.promise;
  expect(listener.tls().cert).toBe(second);
});

test.each([["cors-allowed-origins=example.com", "does not pin to start/end of host"], ["cors-allowed-origins=//a(:|$),//b[:", "invalid regular expression: error parsing regexp"], ["goaway-chance=0.03", "can not be less than 0 or greater than 0.02"]])("%s is refused", (setting, told) => {
  expect(() => listenerOf({ args: apiServerArgs([setting]), pki: {}, extraCas: {}, clock: systemClock, log, metrics: metricsRegistry(), handler: () => Promise.reject(new Error("nobody asks")) } as unknown as Parameters<typeof listenerOf>[0])).toThrow(told);
});
