import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tls from "node:tls";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { generateKey, keyPem, selfSign, signerFirst } from "./authority.ts";
import { ADMIN, FRONT_PROXY, serversAlone, SERVING_NAME, type ServingNames } from "./identities.ts";
import { formatKubeconfig, writeKubeconfig } from "./kubeconfig.ts";
import { openPki, type Pki, SHARED_FILES } from "./pki.ts";
import { certificateRotation } from "./rotate.ts";
import { chainProblem } from "./verify-chain.ts";

const DAY_MS = 86_400_000;
const RELEASED_MS = Date.parse("2026-06-01T00:00:00Z");
const NAMES: ServingNames = { nodeName: "edge-1", nodeIps: ["192.168.1.7", "fd00::7"], serviceIps: ["10.43.0.1"], clusterDomain: "cluster.local", extra: ["api.example.com"] };
const openssl = ((): boolean => { try { execFileSync("openssl", ["version"], { stdio: "ignore" }); return true; } catch { return false; } })();

let dir = "";
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), "pki-")); });
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A wall clock that stands where it is put. */
function clockAt(iso: string): Clock & { set(iso: string): void } {
  let nowMs = Date.parse(iso);
  return { ...systemClock, nowMs: () => nowMs, set(next) { nowMs = Date.parse(next); } };
}

function open(clock: Clock, names = NAMES): Promise<Pki> {
  return openPki({ dir, names: () => names, clock, random: systemRandom, log: silentLog, releasedMs: RELEASED_MS });
}

describe("what a disk has damaged", () => {
  const DAMAGE: Readonly<Record<string, (text: string) => string>> = { empty: () => "", "cut in half": (text) => text.slice(0, text.length / 2), zeros: (text) => "\0".repeat(text.length), "a flipped bit": (text) => text.replace(/^(.{200}).{4}/s, "$1!!!!") };
  test.each(Object.keys(DAMAGE))("each file that the cluster has only once is as it was when it is %s", async (how) => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    await open(clock);
    for (const name of SHARED_FILES) {
      const before = readFileSync(join(dir, name), "utf8");
      writeFileSync(join(dir, name), DAMAGE[how]!(before));
      await open(clock);
      expect(readFileSync(join(dir, name), "utf8"), name).toBe(before);
    }
  });

  test("an authority that was replaced while we ran is not undone", async () => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    const pki = await open(clock);
    const key = await generateKey();
    const text = selfSign("new", { key, random: systemRandom, notBeforeMs: 0, notAfterMs: Date.parse("2040-01-01") });
    writeFileSync(join(dir, "client-ca.key"), keyPem(key));
    writeFileSync(join(dir, "client-ca.crt"), text);
    await pki.renew();
    writeFileSync(join(dir, "client-ca.crt"), "");
    expect((await open(clock)).authority("client-ca").bundlePem).toBe(text);
  });
});

describe("first start", () => {
  test("makes three authorities, a signing key and all leaves, keys for the owner only", async () => {
    await open(clockAt("2026-07-01T00:00:00Z"));
    const files = readdirSync(dir).sort();
    expect(files).toEqual([
      "client-admin", "client-auth-proxy", "client-ca", "client-controller", "client-kube-apiserver", "client-kube-proxy", "client-scheduler",
      "request-header-ca", "server-ca", "serving-kube-apiserver", "serving-kubelet",
    ].flatMap((name) => [`${name}.crt`, `${name}.key`]).concat("service.key", "copies").sort());
    for (const file of files.filter((name) => name !== "copies")) expect(statSync(join(dir, file)).mode & 0o777, file).toBe(file.endsWith(".key") ? 0o600 : 0o644 & ~process.umask());
  });

  test.runIf(openssl)("openssl accepts every certificate for its purpose, and for no other", async () => {
    await open(systemClock);
    const verify = (ca: string, purpose: string, leaf: string): string => {
      try { return execFileSync("openssl", ["verify", "-x509_strict", "-purpose", purpose, "-CAfile", join(dir, `${ca}.crt`), join(dir, `${leaf}.crt`)], { stdio: "pipe" }).toString().trim().split(": ")[1]!; } catch { return "refused"; }
    };
    expect(verify("server-ca", "sslserver", "serving-kube-apiserver")).toBe("OK");
    expect(verify("client-ca", "sslclient", "client-admin")).toBe("OK");
    expect(verify("request-header-ca", "sslclient", "client-auth-proxy")).toBe("OK");
    expect(verify("client-ca", "sslserver", "client-admin")).toBe("refused");
    expect(verify("client-ca", "sslserver", "serving-kube-apiserver")).toBe("refused");
    const text = execFileSync("openssl", ["x509", "-noout", "-text", "-in", join(dir, "serving-kube-apiserver.crt")]).toString();
    expect(text).toContain("DNS:kubernetes, DNS:kubernetes.default, DNS:kubernetes.default.svc, DNS:kubernetes.default.svc.cluster.local, DNS:localhost, DNS:edge-1, DNS:api.example.com, " +
      "IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1, IP Address:192.168.1.7, IP Address:FD00:0:0:0:0:0:0:7, IP Address:10.43.0.1");
    const subject = execFileSync("openssl", ["x509", "-noout", "-subject", "-nameopt", "RFC2253", "-in", join(dir, "client-admin.crt")]).toString().trim();
    expect(subject).toBe("subject=CN=system:admin,O=system:masters");
  });

  test("node's TLS trusts both ends", async () => {
    const pki = await open(systemClock);
    const serving = pki.leaf(SERVING_NAME);
    const server = tls.createServer({ key: serving.keyPem, cert: serving.certificatePem, ca: pki.authority("client-ca").bundlePem, requestCert: true, rejectUnauthorized: true });
    const peer = new Promise<string>((resolve) => server.on("secureConnection", (socket) => resolve(`${socket.authorized} ${socket.getPeerCertificate().subject.CN}`)));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { keyPem: key, certificatePem: cert } = pki.leaf(ADMIN.name);
    const client = tls.connect({ port: (server.address() as { port: number }).port, host: "127.0.0.1", servername: "kubernetes.default.svc", key, cert, ca: pki.authority("server-ca").bundlePem });
    await new Promise((resolve, reject) => { client.on("secureConnect", resolve); client.on("error", reject); });
    expect(await peer).toBe("true system:admin");
    client.destroy();
    server.close();
  });
});

describe("later starts", () => {
  test("keep what is there", async () => {
    const first = await open(clockAt("2026-07-01T00:00:00Z"));
    const second = await open(clockAt("2026-08-01T00:00:00Z"));
    expect(second.leaf(SERVING_NAME).certificatePem).toBe(first.leaf(SERVING_NAME).certificatePem);
    expect(second.authority("client-ca").bundlePem).toBe(first.authority("client-ca").bundlePem);
    expect(second.serviceAccountKeys.signing.equals(first.serviceAccountKeys.signing)).toBe(true);
  });

  test("a leaf is renewed below 90 days, and with a new key", async () => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    const pki = await open(clock);
    const before = pki.leaf(ADMIN.name);
    clock.set("2027-03-30T00:00:00Z"); // 93 days left
    expect(await pki.renew()).toEqual([]);
    clock.set("2027-04-05T00:00:00Z");
    expect(await pki.renew()).toHaveLength(8);
    expect(pki.leaf(ADMIN.name).keyPem).not.toBe(before.keyPem);
    expect(pki.leaf(ADMIN.name).certificate.notAfterMs).toBe(Date.parse("2027-04-05T00:00:00Z") + 365 * DAY_MS);
  });

  test("a new address is added to the serving certificates, whose keys stay: machines that were told the key know the server by it", async () => {
    const names = { ...NAMES };
    const pki = await openPki({ dir, names: () => names, clock: clockAt("2026-07-01T00:00:00Z"), random: systemRandom, log: silentLog, releasedMs: RELEASED_MS });
    const { keyPem: key } = pki.leaf(SERVING_NAME);
    names.nodeIps = ["192.168.1.8"];
    expect(await pki.renew()).toEqual([SERVING_NAME, "serving-kubelet"]);
    expect(pki.leaf(SERVING_NAME).keyPem).toBe(key);
    expect(pki.leaf(SERVING_NAME).certificate.altNames.ipAddresses).toContain("192.168.1.8");
  });

  test("a server is known at its machine's other addresses, too: with the default route on another network it is still found where it was", async () => {
    const names = { ...NAMES, otherIps: NAMES.nodeIps };
    const pki = await openPki({ dir, names: () => names, clock: clockAt("2026-07-01T00:00:00Z"), random: systemRandom, log: silentLog, releasedMs: RELEASED_MS });
    Object.assign(names, { nodeIps: ["10.8.0.11"], otherIps: ["10.8.0.11", "192.168.1.7"] });
    await pki.renew();
    expect(pki.leaf(SERVING_NAME).certificate.altNames.ipAddresses.filter((ip) => /^1(0\.8|92)/.test(ip))).toEqual(["10.8.0.11", "192.168.1.7"]);
    expect(pki.leaf("serving-kubelet").certificate.altNames.ipAddresses).toEqual(["10.8.0.11"]);
    expect([true, false].map((hasNode) => serversAlone(names, { hasNode }).includes("192.168.1.7"))).toEqual([true, false]); // an agent beside the server has it
  });

  test.each(["client-admin.key", "client-admin.crt"])("a damaged or missing %s heals", async (file) => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    const first = await open(clock);
    rmSync(join(dir, file));
    const second = await open(clock);
    expect(second.leaf(ADMIN.name).certificatePem).not.toBe(first.leaf(ADMIN.name).certificatePem);
    writeFileSync(join(dir, file), "half");
    expect((await open(clock)).leaf(ADMIN.name).certificatePem).not.toBe(second.leaf(ADMIN.name).certificatePem);
  });

  test("a power cut between a new key and its certificate heals", async () => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    await open(clock);
    writeFileSync(join(dir, "client-admin.key"), readFileSync(join(dir, "client-scheduler.key")));
    const { certificatePem, keyPem } = (await open(clock)).leaf(ADMIN.name);
    expect(new X509Certificate(certificatePem).checkPrivateKey(createPrivateKey(keyPem))).toBe(true);
  });

  test("an authority without its key, and without a copy, is refused, a key without its certificate gets one", async () => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    const first = await open(clock);
    for (const file of ["copies", "client-ca.crt"]) rmSync(join(dir, file), { recursive: true });
    const second = await open(clock);
    expect(chainProblem(first.leaf(ADMIN.name).certificate, { roots: second.authority("client-ca").bundle, usage: "client auth", nowMs: clock.nowMs() })).toBeUndefined();
    for (const file of ["copies", "client-ca.key"]) rmSync(join(dir, file), { recursive: true });
    await expect(open(clock)).rejects.toThrow(/its key .*client-ca.key is not: restore it/);
  });
});

describe("an authority that is replaced while the server runs", () => {
  async function replace(name: string, before: readonly string[]): Promise<string> {
    const key = await generateKey();
    const pem = selfSign(`new-${name}`, { key, random: systemRandom, notBeforeMs: Date.parse("2026-06-30T00:00:00Z"), notAfterMs: Date.parse("2046-01-01T00:00:00Z") });
    writeFileSync(join(dir, `${name}.key`), keyPem(key));
    writeFileSync(join(dir, `${name}.crt`), [pem, ...before].join(""));
    return pem;
  }

  test("counts at the next look: it signs, and what the one before has signed is good until that is trusted no more", async () => {
    const pki = await open(clockAt("2026-07-01T00:00:00Z"));
    const before = pki.authority("server-ca").bundlePem, shown = pki.leaf(SERVING_NAME).certificatePem;
    const next = await replace("server-ca", [before]);
    expect(await pki.renew()).toEqual(["server-ca"]);
    expect([pki.authority("server-ca").bundlePem, pki.leaf(SERVING_NAME).certificatePem]).toEqual([next + before, shown]);
    expect(signerFirst(pki.authority("server-ca"), pki.leaf(SERVING_NAME).certificate)).toBe(before + next);
    expect(await pki.renew()).toEqual([]);
    writeFileSync(join(dir, "server-ca.crt"), next);
    expect(await pki.renew()).toEqual(["server-ca", SERVING_NAME, "serving-kubelet"]);
    expect(signerFirst(pki.authority("server-ca"), pki.leaf(SERVING_NAME).certificate)).toBe(next);
    expect(new X509Certificate(pki.leaf(SERVING_NAME).certificatePem).verify(new X509Certificate(next).publicKey)).toBe(true);
  });

  test("is told of, and copied once it can be, although its copy could not be written", async () => {
    const pki = await open(clockAt("2026-07-01T00:00:00Z"));
    const before = pki.authority("server-ca").bundlePem;
    rmSync(join(dir, "copies"), { recursive: true });
    writeFileSync(join(dir, "copies"), ""); // as on a disk without room
    const next = await replace("server-ca", [before]);
    const told = await pki.renew().catch(() => []);
    rmSync(join(dir, "copies"));
    expect([...told, ...await pki.renew()]).toEqual(["server-ca"]);
    expect(readFileSync(join(dir, "copies", "server-ca.crt"), "utf8")).toBe(next + before);
    expect(await pki.renew()).toEqual([]);
  });

  test("is told of although a certificate could not be written then", async () => {
    const pki = await open(clockAt("2026-07-01T00:00:00Z"));
    await replace("client-ca", [pki.authority("client-ca").bundlePem]);
    const blocked = join(dir, "client-admin.key.next");
    rmSync(join(dir, "client-admin.crt"));
    mkdirSync(blocked); // nothing is written there
    await expect(pki.renew()).rejects.toThrow();
    rmSync(blocked, { recursive: true });
    expect(await pki.renew()).toEqual(["client-ca", ADMIN.name]);
  });

  test("is left alone while its key is another one, which is told once", async () => {
    const told: string[] = [];
    const pki = await openPki({ dir, names: () => NAMES, clock: clockAt("2026-07-01T00:00:00Z"), random: systemRandom, log: { ...silentLog, error: (message) => void told.push(message) }, releasedMs: RELEASED_MS });
    const before = pki.authority("client-ca").bundlePem, key = readFileSync(join(dir, "client-ca.key"));
    const next = await replace("client-ca", []);
    const nextKey = readFileSync(join(dir, "client-ca.key"));
    writeFileSync(join(dir, "client-ca.key"), key); // half of it is written
    expect([await pki.renew(), await pki.renew()]).toEqual([[], []]);
    expect([pki.authority("client-ca").bundlePem, told]).toEqual([before, ["a certificate authority that was replaced cannot be used; the one before still holds"]]);
    writeFileSync(join(dir, "client-ca.key"), nextKey);
    expect((await pki.renew())[0]).toBe("client-ca");
    expect(pki.authority("client-ca").bundlePem).toBe(next);
  });
});

describe("wrong clocks", () => {
  test("a device that starts in 1970 has certificates that hold then, and still hold when the clock is set", async () => {
    const clock = clockAt("1970-01-01T00:00:05Z");
    const pki = await open(clock);
    const problem = (): string | undefined => chainProblem(pki.leaf(ADMIN.name).certificate, { roots: pki.authority("client-ca").bundle, usage: "client auth", nowMs: clock.nowMs() });
    expect(problem()).toBeUndefined();
    clock.set("2026-07-01T00:00:00Z");
    expect(problem()).toBeUndefined();
    clock.set("2029-07-01T00:00:00Z");
    expect(problem()).toContain("after its end");
    expect(await pki.renew()).toHaveLength(8);
    expect(problem()).toBeUndefined();
    clock.set("1970-01-01T00:00:05Z"); // the battery was empty again
    expect(await pki.renew()).toEqual([]);
    expect(problem()).toBeUndefined();
  });

  test.each(["2038-01-19T03:14:08Z", "2106-02-07T06:28:15Z"])("a clock that says %s, as one with an empty battery may, ends no cluster", async (time) => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    const pki = await open(clock);
    clock.set(time);
    await pki.renew();
    for (const [name, authority] of [[ADMIN.name, "client-ca"], [SERVING_NAME, "server-ca"]] as const) {
      expect(chainProblem(pki.leaf(name).certificate, { roots: pki.authority(authority).bundle, usage: authority === "client-ca" ? "client auth" : "server auth", nowMs: clock.nowMs() })).toBeUndefined();
    }
  });

  test("an authority is never replaced by itself", async () => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    const before = (await open(clock)).authority("server-ca").bundlePem;
    clock.set("2150-01-01T00:00:00Z");
    expect((await open(clock)).authority("server-ca").bundlePem).toBe(before);
  });

  test("a clock beyond the end of the authorities does not have the certificates written again and again", async () => {
    const clock = clockAt("2026-07-01T00:00:00Z");
    const pki = await open(clock);
    clock.set("2126-03-01T00:00:00Z");
    expect(await pki.renew()).toHaveLength(8); // they last as long as the authorities do now
    expect(await pki.renew()).toEqual([]);
    expect((await open(clock)).leaf(ADMIN.name).certificatePem).toBe(pki.leaf(ADMIN.name).certificatePem);
  });

  test("rotation looks every minute, tells who uses the certificates, and survives a failure", async () => {
    const stop = new AbortController();
    const told: string[][] = [];
    let turn = 0;
    const clock: Clock = { ...systemClock, async *every() { for (let i = 0; i < 3; i++) yield; } };
    const pki = { renew: async () => { if (turn++ === 0) throw new Error("disk full"); return turn === 2 ? ["a"] : []; } };
    await certificateRotation({ pki, clock, log: silentLog, onRenewed: (names) => void told.push([...names]) }).run(stop.signal, () => {});
    expect(told).toEqual([["a"]]);
  });
});

test("a front proxy's certificate leads to no user, nor the other way round", async () => {
  const pki = await open(systemClock);
  const nowMs = systemClock.nowMs();
  const problem = (leaf: string, ca: "client-ca" | "request-header-ca"): string | undefined =>
    chainProblem(pki.leaf(leaf).certificate, { roots: pki.authority(ca).bundle, usage: "client auth", nowMs });
  expect(problem(FRONT_PROXY.name, "request-header-ca")).toBeUndefined();
  expect(problem(FRONT_PROXY.name, "client-ca")).toBe("x509: certificate signed by unknown authority");
  expect(problem(ADMIN.name, "request-header-ca")).toBe("x509: certificate signed by unknown authority");
  expect(chainProblem(pki.leaf(SERVING_NAME).certificate, { roots: pki.authority("server-ca").bundle, usage: "client auth", nowMs })).toBe("x509: certificate specifies an incompatible key usage");
});

test("kubeconfig", async () => {
  const path = join(dir, "admin.kubeconfig");
  writeFileSync(path, "old");
  chmodSync(path, 0o644);
  await writeKubeconfig(path, { server: "https://127.0.0.1:6443", certificateAuthorityPem: "CA", user: { certificatePem: "CRT", keyPem: "KEY" } });
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(path, "utf8")).toBe(`apiVersion: v1
kind: Config
clusters:
- name: "default"
  cluster:
    server: "https://127.0.0.1:6443"
    certificate-authority-data: Q0E=
users:
- name: "default"
  user:
    client-certificate-data: Q1JU
    client-key-data: S0VZ
contexts:
- name: "default"
  context:
    cluster: "default"
    user: "default"
current-context: "default"
preferences: {}
`);
  const { ino } = statSync(path);
  await writeKubeconfig(path, { server: "https://127.0.0.1:6443", certificateAuthorityPem: "CA", user: { certificatePem: "CRT", keyPem: "KEY" } });
  expect(statSync(path).ino).toBe(ino); // nothing is written that is there
  expect(formatKubeconfig({ server: "x", certificateAuthorityPem: "", user: { token: "a\"b" } })).toContain('    token: "a\\"b"');
});
