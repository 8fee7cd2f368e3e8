import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { forSealingOnly, testPki } from "../test/certificates.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { altNamesOf } from "../core/pki/alt-names.ts";
import { type Authority, authority, generateKey, keyPem, selfSign } from "../core/pki/authority.ts";
import { spkiOf } from "../core/pki/signature.ts";
import type { Validity } from "../core/pki/validity.ts";
import { apiServerArgs } from "./apiserver-args.ts";
import { givenCertificates } from "./given-certificates.ts";

const directory = mkdtempSync(join(tmpdir(), "given-"));
const period = { notBeforeMs: 0, notAfterMs: Date.now() + 3_600_000 };
let pki: Awaited<ReturnType<typeof testPki>>;
let stranger: Authority;
beforeAll(async () => {
  pki = await testPki();
  const key = await generateKey();
  stranger = authority(selfSign("stranger", { key, random: systemRandom, ...period }), keyPem(key), systemRandom);
});
afterAll(() => { for (const one of [directory, pki.dir]) rmSync(one, { recursive: true }); });

/** Writes NAME.crt and NAME.key, for these names. */
const issue = (name: string, by: Authority, ...names: string[]): Promise<string> => issueFor(period, name, by, ...names);
async function issueFor(validity: Validity, name: string, by: Authority, ...names: string[]): Promise<string> {
  const key = await generateKey();
  const cert = by.issue({ subject: { commonName: "", organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf(names), ...validity });
  writeFileSync(join(directory, `${name}.crt`), cert);
  writeFileSync(join(directory, `${name}.key`), keyPem(key));
  return cert;
}
const file = (name: string): string => join(directory, name);
const given = (...settings: string[]) => givenCertificates(apiServerArgs(settings), { clusterCas: () => pki.authority("server-ca").bundle, clock: { ...systemClock, every: () => systemClock.every(10, stop.signal) }, log: silentLog });
const stop = new AbortController();

test("who asks for a name is shown its certificate: by the names in it, or by those that are given, which may be wildcards", async () => {
  const [own, a, b] = [await issue("own", pki.authority("server-ca"), "api.internal"), await issue("a", stranger, "api.example.com", "*.apps.example.com"), await issue("b", stranger, "unused.example.com")];
  const certificates = given(`tls-cert-file=${file("own.crt")}`, `tls-private-key-file=${file("own.key")}`, `tls-sni-cert-key=${file("a.crt")},${file("a.key")}`, `tls-sni-cert-key=${file("b.crt")},${file("b.key")}:*.example.com,x.org`);
  expect(certificates.standard()?.cert).toBe(own);
  const shown = (name: string) => certificates.named?.(name)?.cert;
  expect([shown("api.example.com"), shown("API.example.com."), shown("x.apps.example.com"), shown("other.example.com"), shown("x.org"), shown("unused.example.com"), shown("localhost"), shown("y.x.org")]).toEqual([a, a, a, b, b, b, undefined, undefined]);
  expect([given().standard(), given().named]).toEqual([undefined, undefined]);
});

test("names that are given count more than those in a certificate, wherever they stand; of each the first counts", async () => {
  const [one, other] = [await issue("one", stranger, "both.example.com", "*.apps.example.com"), await issue("two", stranger, "both.example.com")];
  const [first, second] = ["one", "two"].map((name) => `tls-sni-cert-key=${file(`${name}.crt`)},${file(`${name}.key`)}`) as [string, string];
  const shown = (name: string, ...settings: string[]) => given(...settings).named?.(name)?.cert;
  expect([shown("both.example.com", first, second), shown("both.example.com", first, `${second}:both.example.com`), shown("x.apps.example.com", first, `${second}:*.apps.example.com`), shown("both.example.com", `${first}:*.example.com`, second)]).toEqual([one, other, other, other]);
});

test("a certificate that is renewed is shown from then on; one that does not go with its key is not", async () => {
  const before = await issue("renewed", stranger, "r.example.com");
  const certificates = given(`tls-sni-cert-key=${file("renewed.crt")},${file("renewed.key")}`);
  let changes = 0;
  const changed = Promise.withResolvers<void>();
  const running = certificates.part(() => { changes++; changed.resolve(); }).run(stop.signal, () => undefined);
  writeFileSync(file("renewed.crt"), "-----BEGIN CERTIFICATE-----\nbroken");
  await systemClock.sleep(50, stop.signal);
  expect(certificates.named?.("r.example.com")?.cert).toBe(before);
  const after = await issue("renewed", stranger, "r.example.com");
  await changed.promise;
  stop.abort();
  await running;
  expect([changes, certificates.named?.("r.example.com")?.cert]).toEqual([1, after]);
});

test.each([
  ["that ended while the machine was off", { notBeforeMs: 0, notAfterMs: Date.now() - 1000 }],
  ["whose time has not come by a clock that is not set yet", { notBeforeMs: Date.now() + 600_000, notAfterMs: Date.now() + 3_600_000 }],
])("one %s is no reason to do without a server: the cluster's own is shown until there is one that holds", async (_, validity) => {
  await issueFor(validity, "late", pki.authority("server-ca"), "api.internal");
  const stopped = new AbortController();
  const certificates = givenCertificates(apiServerArgs([`tls-cert-file=${file("late.crt")}`, `tls-private-key-file=${file("late.key")}`]), { clusterCas: () => pki.authority("server-ca").bundle, clock: { ...systemClock, every: () => systemClock.every(10, stopped.signal) }, log: silentLog });
  expect(certificates.standard()).toBeUndefined();
  const changed = Promise.withResolvers<void>();
  const running = certificates.part(changed.resolve).run(stopped.signal, () => undefined);
  const renewed = await issue("late", pki.authority("server-ca"), "api.internal");
  await changed.promise;
  stopped.abort();
  await running;
  expect(certificates.standard()?.cert).toBe(renewed);
});

test("one that ends while the server runs is shown no more, the cluster's own is, until it is renewed", async () => {
  const ending = new AbortController(), told: string[] = [];
  let nowMs = Date.now();
  const first = await issue("ending", pki.authority("server-ca"), "api.internal");
  const certificates = givenCertificates(apiServerArgs([`tls-cert-file=${file("ending.crt")}`, `tls-private-key-file=${file("ending.key")}`]), {
    clusterCas: () => pki.authority("server-ca").bundle, clock: { ...systemClock, nowMs: () => nowMs, every: () => systemClock.every(10, ending.signal) }, log: { ...silentLog, error: (message: string) => void told.push(message) },
  });
  const shown: (string | undefined)[] = [certificates.standard()?.cert];
  const running = certificates.part(() => void shown.push(certificates.standard()?.cert)).run(ending.signal, () => undefined);
  nowMs = period.notAfterMs + 1000;
  await expect.poll(() => shown.length).toBe(2);
  const second = await issueFor({ notBeforeMs: 0, notAfterMs: nowMs + 3_600_000 }, "ending", pki.authority("server-ca"), "api.internal");
  await expect.poll(() => shown.at(-1)).toBe(second);
  ending.abort();
  await running;
  expect([shown[0], shown[1], told[0]]).toEqual([first, undefined, "a serving certificate does not hold now; the cluster's own is shown until there is one that does"]);
});

test("what cannot be used is refused by name", async () => {
  await issue("s", stranger, "s.example.com");
  await issue("t", stranger, "t.example.com");
  const [crt, key] = [file("s.crt"), file("s.key")];
  expect(() => given(`tls-cert-file=${crt}`)).toThrow("tls-cert-file and tls-private-key-file go together");
  expect(() => given(`tls-cert-file=${crt}`, `tls-private-key-file=${key}`)).toThrow(`this is not of it (x509: certificate signed by unknown authority): show it to those who ask for its names, with tls-sni-cert-key=${crt},${key}`);
  expect(() => given(`tls-sni-cert-key=${crt},${file("t.key")}`)).toThrow("private key does not match public key");
  expect(() => given(`tls-sni-cert-key=${crt}`)).toThrow("expected comma separated certificate and key file paths");
  expect(() => given(`tls-sni-cert-key=${crt},${key}:`)).toThrow("empty names list is not allowed");
  expect(() => given(`tls-sni-cert-key=${crt},/none`)).toThrow("/none: no such file");
});

test("a certificate whose key may sign nothing is none for nodes; others are shown one of RSA", async () => {
  const files: Record<string, string> = {};
  for (const type of ["rsa", "ec"] as const) {
    const { cert, key } = await forSealingOnly(pki, "server-ca", type);
    writeFileSync(file(`${type}.crt`), cert);
    writeFileSync(file(`${type}.key`), key);
    files[type] = cert;
  }
  expect(() => given(`tls-cert-file=${file("rsa.crt")}`, `tls-private-key-file=${file("rsa.key")}`)).toThrow("its key usage is without digital signature: nodes do not take it");
  expect(given(`tls-sni-cert-key=${file("rsa.crt")},${file("rsa.key")}:a.example.com`).named?.("a.example.com")?.cert).toBe(files.rsa);
  expect(() => given(`tls-sni-cert-key=${file("ec.crt")},${file("ec.key")}:a.example.com`)).toThrow("KEY_USAGE_BIT_INCORRECT");
});
