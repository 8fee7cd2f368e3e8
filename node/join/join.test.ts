import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { eventually } from "../../test/fake-api.ts";
import { ca, joinServer } from "../../test/join-server.ts";
import { forbidden, serviceUnavailable, type StatusError, unauthorized } from "../../core/api/meta/status-error.ts";
import type { EndpointSlice } from "../../core/api/gen/discovery.v1.ts";
import type { Client } from "../../core/client/client.ts";
import type { Informer } from "../../core/client/informer.ts";
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, LEASES, NODES } from "../../core/client/resources.ts";
import { httpTransport } from "../../core/client/http-transport.ts";
import { clientOver } from "../../core/client/resource-client.ts";
import { type Clock, systemClock } from "../../core/lifecycle/clock.ts";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { silentLog } from "../../core/observe/log.ts";
import { altNamesOf } from "../../core/pki/alt-names.ts";
import { kubeletSubject } from "../../core/pki/identities.ts";
import { certificateHash, formatJoinToken, parseJoinToken } from "../../core/pki/join-token.ts";
import { machineName, machineOf } from "../../core/pki/machine-key.ts";
import { readCertificatePems } from "../../core/pki/pem.ts";
import { followAuthorities } from "./authorities.ts";
import { NodeIdentity } from "./identity.ts";
import { joinCluster, type JoinOptions } from "./join.ts";
import { nodeCertificates } from "./node-certificates.ts";
import { KUBELET_SERVING_SIGNER, requestCertificate } from "./request-certificate.ts";
import { learnServers } from "./servers.ts";
import { connectionError, describeSkew, discoverTrust } from "./trust.ts";

const DAY_MS = 86_400_000;
const stops: AbortController[] = [];
afterEach(() => { for (const stop of stops.splice(0)) stop.abort(); });

async function serve(given?: Parameters<typeof joinServer>[0]) {
  const server = await joinServer(given);
  stops.push(server.stop);
  return server;
}

const machine = (): string => mkdtempSync(join(tmpdir(), "join-"));
function options(dir: string, given: Partial<JoinOptions>): JoinOptions {
  return { servers: [], token: undefined, nodeName: "edge-1", dir: join(dir, "tls"), remembered: [join(dir, "checkpoint")], userAgent: "test", clock: systemClock, random: systemRandom, log: silentLog, ...given };
}
const soon = (): AbortSignal => AbortSignal.timeout(60_000);

test("a machine joins with a token, tells it to no one before it knows the server, and needs neither afterwards", async () => {
  const { url, token, state, stop, api, pki } = await serve();
  const dir = machine();
  const joined = await joinCluster(options(dir, { servers: [url], token }), soon());
  expect(joined.client.certificate.subject).toMatchObject({ commonName: "system:node:edge-1", organizations: ["system:nodes"] });
  expect([joined.ca, joined.cluster.settings]).toEqual([ca(pki), { "cluster-cidr": "10.1.0.0/16", "client-ca.crt": "client ca", "server-ca.crt": ca(pki) }]);
  expect(state.seen.slice(0, 3)).toEqual(["anonymous GET cluster-info", "anonymous GET cluster-info", "bootstrapper POST certificatesigningrequests"]);
  expect(state.seen.at(-1)).toBe("system:node:edge-1 GET coracle-cluster");
  const [csr] = api.all(CERTIFICATE_SIGNING_REQUESTS);
  expect(machineOf(csr!.metadata.annotations, atob(csr!.spec.request))).toBe(machineName(joined.machineKey));
  for (const file of ["client-kubelet.key", "machine.key"]) expect(statSync(join(dir, "tls", file)).mode & 0o777).toBe(0o600);
  stop.abort();
  const again = await joinCluster(options(dir, { servers: [url] }), soon());
  expect(again.client.certificatePem).toBe(joined.client.certificatePem);
  expect(again.cluster.settings).toEqual(joined.cluster.settings);
});

test("a server whose CA is not the token's learns nothing", async () => {
  const { url, state } = await serve();
  const other = await testPki();
  await expect(joinCluster(options(machine(), { servers: [url], token: formatJoinToken(ca(other), "abcdef.0123456789abcdef") }), soon())).rejects.toMatchObject({ code: "wrong-ca", message: expect.stringContaining("is not the server of this token: the token names a CA with the SHA-256") });
  expect(state.seen).toEqual(["anonymous GET cluster-info"]);
});

test("a server that shows the right CA but cannot prove to be of it learns nothing", async () => {
  const real = await testPki();
  const { url, state, api } = await serve(); // certificates of another CA …
  const info = api.all(CONFIG_MAPS).find(({ metadata }) => metadata.name === "cluster-info")!;
  await api.client.resource(CONFIG_MAPS).update({ ...info, data: { kubeconfig: info.data!["kubeconfig"]!.replace(/(certificate-authority-data: ).*/, `$1${btoa(ca(real))}`) } }, { signal: soon() }); // … than it says
  await expect(joinCluster(options(machine(), { servers: [url], token: formatJoinToken(ca(real), "abcdef.0123456789abcdef") }), soon())).rejects.toMatchObject({ code: "bad-certificate" });
  expect(state.seen.every((line) => line.startsWith("anonymous"))).toBe(true);
});

test.each([
  ["an unknown or expired token", { token: (good: string) => good.replace(/.$/, "x") }, "bad-token", "it is unknown there, or has expired"],
  ["no token", { token: () => undefined }, "no-token", "it needs --token"],
  ["half a token", { token: (good: string) => good.slice(0, 40) }, "bad-token", "the token is damaged"],
  ["a name that is another machine's", { refuse: { conditions: [{ type: "Denied", status: "True", reason: "NodeNameTaken", message: "node edge-1 is another machine: give this one another name" }] } }, "name-taken", "node edge-1 is another machine"],
  ["an administrator who says no", { refuse: { conditions: [{ type: "Denied", status: "True", reason: "KubectlDeny", message: "not today" }] } }, "refused", "was denied: not today"],
] as const)("what does not pass by itself ends the attempt: %s", async (_, { token, refuse }: { token?: (good: string) => string | undefined; refuse?: unknown }, code, message) => {
  const server = await serve();
  server.state.refuse = refuse as never;
  await expect(joinCluster(options(machine(), { servers: [server.url], token: token ? token(server.token) : server.token }), soon())).rejects.toMatchObject({ code, message: expect.stringContaining(message) });
});

test("what passes by itself is waited for: the second of two servers, or the first when it comes", async () => {
  const { url, token } = await serve();
  const told: string[] = [];
  const log = { ...silentLog, warn: (message: string, fields?: Record<string, unknown>) => void told.push(`${message}: ${String(fields?.["error"])}`) };
  await joinCluster(options(machine(), { servers: ["https://127.0.0.1:1", url], token, log }), soon());
  expect(told).toHaveLength(1);
  expect(told[0]).toContain("not joined yet, next try soon: https://127.0.0.1:1 cannot be reached");
});

test("a clock that is wrong is told, and does not keep a machine out", async () => {
  const { url, token } = await serve();
  const told: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void told.push(message) };
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() - 40 * 365 * DAY_MS };
  await joinCluster(options(machine(), { servers: [url], token, log, clock }), soon());
  expect(told).toEqual(["this machine's clock is 14600 days behind the server's: set it right, certificates and leases depend on it"]);
});

test("a node whose certificate has expired, by its clock or by the calendar, does not wait for the server either", async () => {
  const { url, token, stop } = await serve();
  const dir = machine();
  const joined = await joinCluster(options(dir, { servers: [url], token }), soon());
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() + 3 * 366 * DAY_MS };
  expect((await joinCluster(options(dir, { servers: [url], token, clock }), soon())).ca).toBe(joined.ca);
  stop.abort();
  const alone = await joinCluster(options(dir, { servers: [url], token, clock }), soon());
  expect(alone.cluster.settings).toEqual(joined.cluster.settings);
});

test("a token of another cluster makes the machine leave the old one; it stays the same machine", async () => {
  const first = await serve(), second = await serve();
  const dir = machine();
  const one = await joinCluster(options(dir, { servers: [first.url], token: first.token }), soon());
  mkdirSync(join(dir, "checkpoint"));
  writeFileSync(join(dir, "checkpoint/journal"), "secrets of the first");
  const two = await joinCluster(options(dir, { servers: [second.url], token: second.token }), soon());
  expect(two.ca).toBe(ca(second.pki));
  expect(machineName(two.machineKey)).toBe(machineName(one.machineKey));
  expect(existsSync(join(dir, "checkpoint"))).toBe(false);
});

test("a token that is not of the server's cluster does not cost a node its identity", async () => {
  const { url, token } = await serve();
  const other = await testPki();
  const dir = machine();
  const joined = await joinCluster(options(dir, { servers: [url], token }), soon());
  mkdirSync(join(dir, "checkpoint"));
  await expect(joinCluster(options(dir, { servers: [url], token: formatJoinToken(ca(other), "abcdef.0123456789abcdef") }), soon())).rejects.toMatchObject({ code: "wrong-ca" });
  expect(existsSync(join(dir, "checkpoint"))).toBe(true);
  expect((await joinCluster(options(dir, { servers: [url], token }), soon())).client.certificatePem).toBe(joined.client.certificatePem);
});

test("that a token does not name the CA is told once, however often it is tried", async () => {
  const told: string[] = [];
  const stop = new AbortController();
  const log = { ...silentLog, warn: (message: string) => { told.push(message.slice(0, 40)); if (told.length > 3) stop.abort(); } };
  const clock: Clock = { ...systemClock, sleep: () => Promise.resolve() };
  await expect(joinCluster(options(machine(), { servers: ["https://127.0.0.1:1"], token: "abcdef.0123456789abcdef", log, clock }), stop.signal)).rejects.toThrow();
  expect(told.map((line) => line.startsWith("not joined yet"))).toEqual([false, true, true, true]);
});

test("a certificate is there as soon as it is signed: the server tells, nobody looks again and again; one that does not tell is looked at", async () => {
  const { api } = await serve();
  const never: Clock = { ...systemClock, sleep: (_, signal) => systemClock.sleep(10 * DAY_MS, signal) };
  const untold = new Error("watching is not for you");
  const silent = clientOver({ call: (request) => api.call(request), async *watch() { await Promise.reject(untold); yield undefined as never; } });
  const reads: string[] = [];
  api.fail = ({ method, path }) => void (method === "GET" && reads.push(path.split("/").at(-1)!));
  const wanted = { signerName: KUBELET_SERVING_SIGNER, subject: kubeletSubject("edge-1"), altNames: altNamesOf(["edge-1"]), usages: ["digital signature", "server auth"] as const };
  expect((await requestCertificate({ client: api.client, clock: never, log: silentLog }, wanted, soon())).certificate.altNames.dnsNames).toEqual(["edge-1"]);
  expect(reads).toEqual([]);
  await requestCertificate({ client: silent, clock: systemClock, log: silentLog }, wanted, soon());
  expect(reads.length).toBeGreaterThan(0);
});

test("a server that stumbles once does not leave a node without its serving certificate for a minute; one that refuses is asked at the next look", async () => {
  const { url, token, api } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const clock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / 50, signal) };
  const trying = async (error: StatusError, expected: number): Promise<number> => {
    let posts = 0;
    api.fail = ({ method }) => (method === "POST" && posts++ === 0 ? error : undefined);
    const stop = new AbortController();
    const life = nodeCertificates({ identity, client: api.client, bootstrap: undefined, nodeIps: () => [`10.0.0.${error.code % 256}`], onServing: () => undefined, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
    await eventually(() => posts, (count) => count >= expected);
    await Bun.sleep(500); // one more would come
    stop.abort();
    await life;
    return posts;
  };
  expect([await trying(forbidden({ group: "", resource: "x" }, "", "not yet"), 1), await trying(serviceUnavailable("not now"), 2)]).toEqual([1, 2]);
  expect(identity.serving).toBeDefined();
});

test("certificates are had and renewed: serving for the node's names, both long before their end", async () => {
  const { url, token, api } = await serve({ lifeMs: 1_000_000 });
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const first = identity.client.certificatePem;
  let aheadMs = 0;
  let ips = ["10.0.0.1"];
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() + aheadMs, every: (_, signal) => systemClock.every(30, signal) };
  const client = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock }));
  let reloads = 0;
  const stop = new AbortController();
  stops.push(stop);
  const life = nodeCertificates({ identity, client, bootstrap: undefined, nodeIps: () => ips, onServing: () => void reloads++, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
  await eventually(() => identity.serving?.certificate.altNames, (names) => names?.ipAddresses.join() === "10.0.0.1" && names.dnsNames.join() === "edge-1");
  expect(identity.client.certificatePem).toBe(first);
  ips = ["10.0.0.2"];
  await eventually(() => identity.serving?.certificate.altNames.ipAddresses.join(), (seen) => seen === "10.0.0.2");
  aheadMs = 950_000; // nine tenths of its life at least
  await eventually(() => identity.client.certificatePem !== first, Boolean);
  expect(reloads).toBeGreaterThanOrEqual(2);
  expect(new Set(api.all(CERTIFICATE_SIGNING_REQUESTS).map(({ spec }) => spec.signerName)).size).toBe(2);
  stop.abort();
  await life;
  expect(api.all(NODES)).toEqual([]);
});

test("a node at an address that nobody approves, as the server has it, too, on another network, serves by its name till then", async () => {
  const { url, token, state } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const clock: Clock = { ...systemClock, after: (ms, work) => systemClock.after(ms / 100, work) };
  const client = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock: systemClock }));
  const stop = new AbortController();
  stops.push(stop);
  state.unapproved = ["192.168.8.100"];
  const life = nodeCertificates({ identity, client, bootstrap: undefined, nodeIps: () => ["192.168.8.100"], onServing: () => undefined, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
  const names = (): string => { const { dnsNames = [], ipAddresses = [] } = identity.serving?.certificate.altNames ?? {}; return [...dnsNames, ...ipAddresses].join(); };
  await eventually(names, (seen) => seen === "edge-1");
  state.unapproved = []; // somebody does
  await eventually(names, (seen) => seen === "edge-1,192.168.8.100");
  stop.abort();
  await life;
});

test("a node that serves by its name alone, as nobody approves its address, has another certificate for that long before the end of the first", async () => {
  const { url, token, state } = await serve({ lifeMs: 1_000_000 });
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  let aheadMs = 0;
  const clock: Clock = {
    ...systemClock, nowMs: () => Date.now() + aheadMs, after: (ms, work) => systemClock.after(ms / 1000, work), every: (_, signal) => systemClock.every(30, signal), sleep: (ms, signal) => systemClock.sleep(ms / 1000, signal),
  };
  const client = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock: systemClock }));
  const stop = new AbortController();
  stops.push(stop);
  state.unapproved = ["192.168.8.100"];
  const life = nodeCertificates({ identity, client, bootstrap: undefined, nodeIps: () => ["192.168.8.100"], onServing: () => undefined, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
  const first = await eventually(() => identity.serving, (leaf) => leaf !== undefined);
  aheadMs = 950_000;
  await eventually(() => identity.serving, (leaf) => leaf !== first);
  expect(identity.serving?.certificate.altNames).toMatchObject({ dnsNames: ["edge-1"], ipAddresses: [] });
  stop.abort();
  await life;
});

test("where the server is not there yet a certificate is asked for again after seconds, and each minute where it stays away", async () => {
  const { url, token } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const slept: number[] = [];
  const clock: Clock = { ...systemClock, sleep: (ms, signal) => { slept.push(ms); return systemClock.sleep(1, signal); }, every: (_, signal) => systemClock.every(1_000_000, signal) };
  const at = (server: () => string) => clientOver(httpTransport({ server: server(), credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock }));
  const [away, there] = [at(() => "https://127.0.0.1:1"), at(() => url)];
  let failures = 0;
  const client = { ...there, resource: ((...args: Parameters<typeof there.resource>) => (failures < 3 ? away : there).resource(...args)) as typeof there.resource };
  const live = async (given: typeof there, told: () => boolean): Promise<void> => {
    const stop = new AbortController();
    const life = nodeCertificates({ identity, client: given, bootstrap: undefined, nodeIps: () => ["10.0.0.1"], onServing: () => undefined, failed: () => void failures++, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
    await eventually(told, Boolean);
    stop.abort();
    await life;
  };
  await live(away, () => failures >= 5);
  expect(slept).toEqual([2_000, 4_000, 8_000, 16_000]);
  failures = 0;
  await live(client, () => identity.serving !== undefined);
  expect(failures).toBe(3);
});

test("a node whose certificate has expired asks for another one in its own name; if it is not let, with its token; without one it is told once what to do", async () => {
  const { url, token, state } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() + 800 * DAY_MS, every: (_, signal) => systemClock.every(30, signal) };
  const own = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock }));
  const stranger = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, token: "unknown" }), clock }));
  const bootstrap = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, token: parseJoinToken(token).secret }), clock }));
  const askers = async (client: typeof own, given: typeof own | undefined): Promise<{ readonly asked: string[]; readonly told: string[] }> => {
    const told: string[] = [];
    state.seen.length = 0;
    const stop = new AbortController();
    const life = nodeCertificates({ identity, client, bootstrap: given, nodeIps: () => [], onServing: () => undefined, clock, random: systemRandom, log: { ...silentLog, error: (message) => void told.push(message) } }).run(stop.signal, () => {});
    const posts = () => state.seen.filter((line) => line.includes(" POST "));
    await eventually(posts, (seen) => seen.length >= (client === own ? 2 : 6)); // what is had is had for a while
    stop.abort();
    await life;
    return { asked: [...new Set(posts())], told };
  };
  expect((await askers(own, bootstrap)).asked).toEqual(["system:node:edge-1 POST certificatesigningrequests"]);
  expect((await askers(stranger, bootstrap)).asked).toEqual(["refused POST certificatesigningrequests", "bootstrapper POST certificatesigningrequests"]);
  expect(await askers(stranger, undefined)).toEqual({ asked: ["refused POST certificatesigningrequests"], told: ["this node's certificate has expired: start the agent with --token to join again"] });
});

test("certificates that were had while clocks were ahead are renewed when the time is set; once, if it is this machine's clock that is behind", async () => {
  const { url, token, api } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const first = identity.client.certificatePem;
  let looks = 0;
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() - 800 * DAY_MS, async *every(_, signal) { for await (const one of systemClock.every(30, signal)) { yield one; looks++; } } };
  const client = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock }));
  const stop = new AbortController();
  const life = nodeCertificates({ identity, client, bootstrap: undefined, nodeIps: () => ["10.0.0.1"], onServing: () => undefined, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
  await eventually(() => identity.client.certificatePem !== first && identity.serving !== undefined, Boolean);
  const [second, serving] = [identity.client.certificatePem, identity.serving];
  const asked = api.all(CERTIFICATE_SIGNING_REQUESTS).length;
  const until = looks + 10;
  await eventually(() => looks, (seen) => seen >= until);
  expect([identity.client.certificatePem, identity.serving, api.all(CERTIFICATE_SIGNING_REQUESTS).length]).toEqual([second, serving, asked]);
  stop.abort();
  await life;
});

test("a node whose certificate does not hold by the server's clock alone asks for another one, once in a while; other refusals change nothing", async () => {
  const { url, token, api } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const first = identity.client.certificatePem;
  let upMs = 0, looks = 0, code: 403 | 401 | undefined = 401;
  const clock: Clock = { ...systemClock, uptimeMs: () => upMs, async *every(_, signal) { for await (const one of systemClock.every(30, signal)) { yield one; looks++; } } };
  const there = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock: systemClock }));
  const leases = there.resource(LEASES);
  const doubting = { ...leases, get: ((...args: Parameters<typeof leases.get>) => (code === undefined ? leases.get(...args) : Promise.reject(code === 403 ? forbidden({ group: "coordination.k8s.io", resource: "leases" }, "edge-1", "no") : unauthorized()))) as typeof leases.get };
  const client = { ...there, resource: ((ref: typeof LEASES) => (ref === LEASES ? doubting : there.resource(ref))) as typeof there.resource };
  const stop = new AbortController();
  stops.push(stop);
  const life = nodeCertificates({ identity, client, bootstrap: undefined, nodeIps: () => ["10.0.0.1"], onServing: () => undefined, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
  const later = async (): Promise<void> => { const until = looks + 3; await eventually(() => looks, (seen) => seen >= until); };
  await eventually(() => identity.serving, Boolean);
  await later();
  expect(identity.client.certificatePem).toBe(first);
  const serving = identity.serving!.certificatePem;
  code = 403;
  await eventually(() => identity.client.certificatePem !== first, Boolean);
  await eventually(() => identity.serving?.certificatePem !== serving, Boolean); // whoever calls this node has that clock, too
  const second = identity.client.certificatePem, asked = api.all(CERTIFICATE_SIGNING_REQUESTS).length;
  await later();
  expect(api.all(CERTIFICATE_SIGNING_REQUESTS)).toHaveLength(asked); // refused still: it would be no better
  upMs += 60_000;
  await eventually(() => identity.client.certificatePem !== second, Boolean);
  stop.abort();
  await life;
});

test("a clock that is so far ahead that each new certificate is due at once has them renewed twice a day, not each minute", async () => {
  const { url, token, api } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  let looks = 0, laterMs = 0;
  const clock: Clock = { ...systemClock, nowMs: () => Date.now() + 350 * DAY_MS, uptimeMs: () => systemClock.uptimeMs() + laterMs, async *every(_, signal) { for await (const one of systemClock.every(30, signal)) { yield one; looks++; } } };
  const client = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock }));
  const stop = new AbortController();
  const life = nodeCertificates({ identity, client, bootstrap: undefined, nodeIps: () => ["10.0.0.1"], onServing: () => undefined, clock, random: systemRandom, log: silentLog }).run(stop.signal, () => {});
  const requests = (): number => api.all(CERTIFICATE_SIGNING_REQUESTS).length;
  await eventually(() => identity.serving, Boolean);
  for (const until = looks + 10; looks < until;) await Bun.sleep(30);
  expect(requests()).toBe(3); // the one it joined with, and one of each
  laterMs = 12 * 3_600_000;
  await eventually(requests, (count) => count === 5);
  stop.abort();
  await life;
});

test("authorities that the cluster has got since are trusted after the next start, and those of before go on being", async () => {
  const { url, token, api, pki } = await serve();
  const dir = machine();
  await joinCluster(options(dir, { servers: [url], token }), soon());
  const next = ca(await testPki());
  const info = api.all(CONFIG_MAPS).find(({ metadata }) => metadata.name === "cluster-info")!;
  await api.client.resource(CONFIG_MAPS).update({ ...info, data: { kubeconfig: info.data!["kubeconfig"]!.replace(/(certificate-authority-data: ).*/, `$1${btoa(next + ca(pki))}`) } }, { signal: soon() });
  const again = await joinCluster(options(dir, { servers: [url], token }), soon());
  expect(readCertificatePems(again.ca).map(certificateHash)).toEqual([ca(pki), next].flatMap((pem) => readCertificatePems(pem).map(certificateHash)));
  const once = readFileSync(join(dir, "tls/server-ca.crt"), "utf8"), told: string[] = [];
  await joinCluster(options(dir, { servers: [url], token }), soon());
  await api.client.resource(CONFIG_MAPS).delete(info, {}, { signal: soon() }); // as good as a server that answers nobody it does not know
  await joinCluster(options(dir, { servers: [url, "https://127.0.0.1:1"], token, log: { ...silentLog, warn: (message) => void told.push(message) } }), soon());
  expect([readFileSync(join(dir, "tls/server-ca.crt"), "utf8"), told]).toEqual([once, ["the cluster's authorities cannot be read, those of last time are trusted"]]);
});

test("authorities that the cluster gets while a node runs are trusted, and judge its callers, without a restart; certificates of those before have successors of the new", async () => {
  const { url, token, api, pki } = await serve();
  const identity = await joinCluster(options(machine(), { servers: [url], token }), soon());
  const client = clientOver(httpTransport({ server: url, credentials: () => ({ ca: identity.ca, cert: identity.client.certificatePem, key: identity.client.keyPem }), clock: systemClock }));
  const stop = new AbortController(), others = await testPki(), tells = [] as string[];
  stops.push(stop);
  const clock: Clock = { ...systemClock, every: (_, signal) => systemClock.every(20, signal) };
  const common = { identity, client, clock, random: { ...systemRandom, next: () => 0 }, log: silentLog };
  const lives = [
    followAuthorities({ ...common, onClientCa: () => void tells.push(identity.cluster.settings["client-ca.crt"]!) }),
    nodeCertificates({ ...common, bootstrap: undefined, nodeIps: () => ["10.0.0.1"], onServing: () => undefined }),
  ].map((part) => part.run(stop.signal, () => {}));
  await eventually(() => identity.serving !== undefined, Boolean);
  const settings = api.all(CONFIG_MAPS).find(({ metadata }) => metadata.name === "coracle-cluster")!;
  const [newCallers, newServers, requests] = [others.authority("client-ca").bundlePem, ca(others), api.all(CERTIFICATE_SIGNING_REQUESTS).length];
  await api.client.resource(CONFIG_MAPS).update({ ...settings, data: { ...settings.data, "client-ca.crt": newCallers + pki.authority("client-ca").bundlePem, "server-ca.crt": newServers + ca(pki) } }, { signal: soon() });
  await eventually(() => tells, (all) => all.length === 1);
  expect(tells[0]).toContain(newCallers);
  expect(readCertificatePems(identity.ca).map(certificateHash)).toEqual([ca(pki), newServers].flatMap((pem) => readCertificatePems(pem).map(certificateHash)));
  await eventually(() => api.all(CERTIFICATE_SIGNING_REQUESTS).map(({ spec }) => spec.signerName.split("/")[1]).slice(requests), (asked) => asked.length >= 2);
  await Bun.sleep(100);
  stop.abort();
  await Promise.all(lives);
  // This server signs with the authority of before: a node asks once, not at each look.
  expect(api.all(CERTIFICATE_SIGNING_REQUESTS).map(({ spec }) => spec.signerName.split("/")[1]).slice(requests).sort()).toEqual(["kube-apiserver-client-kubelet", "kubelet-serving"]);
});

test("settings and servers that become known at once are both remembered", async () => {
  const identity = await NodeIdentity.open(join(machine(), "tls"), "edge-1");
  await identity.setCluster(() => ({ settings: { "a": "old" }, servers: [] }));
  const asked = Promise.withResolvers<void>(), answer = Promise.withResolvers<object>(), stop = new AbortController();
  stops.push(stop);
  const client = { resource: () => ({ get: () => { asked.resolve(); return answer.promise; } }) } as unknown as Client;
  let changed: (change: { readonly object: EndpointSlice; readonly deleted: boolean }) => void = () => undefined;
  const slices = { onChange: (handler: typeof changed) => { changed = handler; return () => undefined; } } as unknown as Informer<EndpointSlice>;
  const lives = [
    followAuthorities({ identity, client, onClientCa: () => undefined, clock: systemClock, random: { ...systemRandom, next: () => 0 }, log: silentLog }),
    learnServers({ slices, identity, log: silentLog }),
  ].map((part) => part.run(stop.signal, () => {}));
  await asked.promise;
  answer.resolve({ data: { "a": "new" } });
  changed({ object: { metadata: { namespace: "default", name: "kubernetes" }, addressType: "IPv4", endpoints: [{ addresses: ["10.0.0.1"] }], ports: [{ name: "https", port: 6443 }] } as unknown as EndpointSlice, deleted: false });
  await Bun.sleep(300);
  stop.abort();
  await Promise.all(lives);
  expect(identity.cluster).toEqual({ settings: { "a": "new" }, servers: ["https://10.0.0.1:6443"] });
});

test("what is remembered of the cluster is asked for again when it makes no sense", async () => {
  const { url, token } = await serve();
  const dir = machine();
  await joinCluster(options(dir, { servers: [url], token }), soon());
  for (const text of ["null", "{}", '{"settings":null,"servers":[]}']) {
    for (const file of ["cluster.json", "copies/cluster.json"]) writeFileSync(join(dir, "tls", file), text);
    await expect(joinCluster(options(dir, { servers: ["https://127.0.0.1:1"], token: undefined }), AbortSignal.timeout(300)), "not gone on with").rejects.toThrow();
    expect((await joinCluster(options(dir, { servers: [url], token: undefined }), soon())).cluster).toMatchObject({ settings: { "cluster-cidr": "10.1.0.0/16" }, servers: [] });
  }
});

test("a key of the machine's that the disk has damaged, with its copy, does not keep its node from starting", async () => {
  const { url, token } = await serve();
  const dir = machine();
  const before = await joinCluster(options(dir, { servers: [url], token }), soon());
  for (const file of ["machine.key", "copies/machine.key"]) writeFileSync(join(dir, "tls", file), "\0".repeat(200));
  const told: string[] = [];
  const after = await joinCluster(options(dir, { servers: [url], token, log: { ...silentLog, error: (message) => void told.push(message) } }), soon());
  expect([after.client.certificatePem, told.length, existsSync(join(dir, "tls/machine.key.damaged"))]).toEqual([before.client.certificatePem, 1, true]);
  expect(machineName(after.machineKey)).not.toBe(machineName(before.machineKey));
  expect(machineName((await joinCluster(options(dir, { servers: [url], token }), soon())).machineKey)).toBe(machineName(after.machineKey));
});

test("who answers that he is busy is asked again; who answers without end is no server, and takes no memory", async () => {
  const { key, cert } = servingMaterial(await testPki());
  let sent = 0;
  const server = Bun.serve({ port: 0, tls: { key, cert }, fetch: () => (sent++ === 0 ? new Response("busy", { status: 429 }) : new Response(new ReadableStream({ pull: (to) => void (sent++, to.enqueue(new Uint8Array(65_536))) }))) });
  const discover = () => discoverTrust(`https://localhost:${server.port}`, { caHash: undefined, nowMs: () => Date.now(), signal: soon() });
  await expect(discover()).rejects.toThrow("is not ready for machines that join yet: it answered 429");
  await expect(discover()).rejects.toMatchObject({ code: "not-a-server" });
  expect(sent).toBeLessThan(1_000);
  await server.stop(true);
});

test("tokens are read as they are written", async () => {
  const pem = ca(await testPki());
  const hash = certificateHash(readCertificatePems(pem)[0]!);
  expect(hash).toBe(createHash("sha256").update(readCertificatePems(pem)[0]!).digest("hex"));
  expect(parseJoinToken(` ${formatJoinToken(pem, "abcdef.0123456789abcdef")}\n`)).toEqual({ caHash: hash, secret: "abcdef.0123456789abcdef" });
  expect(parseJoinToken("my own secret")).toEqual({ caHash: undefined, secret: "my own secret" });
  for (const damaged of [`K10${hash}`, `K10${hash.slice(1)}::x`, `K10${hash}::`]) expect(() => parseJoinToken(damaged)).toThrow("damaged");
});

test.each([
  ["CERT_HAS_EXPIRED", "bad-clock", "this machine's clock is 3 days ahead of the server's"],
  ["ERR_TLS_CERT_ALTNAME_INVALID", "bad-certificate", "start the server with --tls-san edge.example"],
  ["SELF_SIGNED_CERT_IN_CHAIN", "bad-certificate", "has not signed"],
  ["EPROTO", "not-a-server", "does not speak TLS"],
])("a connection that fails with %s is explained", (code, expected, message) => {
  const error = connectionError("https://edge.example:6443", Object.assign(new Error("x"), { code }), 3 * DAY_MS);
  expect(error).toMatchObject({ code: expected, message: expect.stringContaining(message) });
  expect([describeSkew(-90_000), describeSkew(600_000)]).toEqual(["90 s behind", "10 min ahead of"]);
});

test("a machine that was refused and is started again and again asks ever more rarely, but at once with another token; once it is let in nothing is left of that", async () => {
  const { url, token, state, api } = await serve();
  state.refuse = { conditions: [{ type: "Denied", status: "True", reason: "NodeRevoked", message: "no" }] };
  let nowMs = Date.now();
  const waited: number[] = [];
  const clock: Clock = {
    ...systemClock, nowMs: () => nowMs,
    sleep: async (ms, signal) => {
      if (ms < 1_000) return await systemClock.sleep(ms, signal); // until the request is answered
      waited.push(Math.round(ms / 1000));
      nowMs += ms;
    },
  };
  const dir = machine();
  const start = (given = token): Promise<unknown> => joinCluster(options(dir, { servers: [url], token: given, clock }), soon());
  for (let i = 0; i < 7; i++) {
    await expect(start()).rejects.toMatchObject({ code: "refused" });
    nowMs += 5_000; // the service manager's
  }
  expect(waited).toEqual([5, 15, 35, 75, 115, 115]);
  expect(api.all(CERTIFICATE_SIGNING_REQUESTS).length).toBe(7);
  state.token = "abcdef.fedcba9876543210";
  await expect(start(token.replace("0123456789abcdef", "fedcba9876543210"))).rejects.toMatchObject({ code: "refused" });
  expect(waited.length).toBe(6);
  state.refuse = undefined;
  nowMs += 60_000;
  await start(token.replace("0123456789abcdef", "fedcba9876543210"));
  expect([waited.length, existsSync(join(dir, "tls/refused.json"))]).toEqual([6, false]);
});

test("the identity on disk is the node's: another name is another node", async () => {
  const { url, token } = await serve();
  const dir = machine();
  await joinCluster(options(dir, { servers: [url], token }), soon());
  await expect(joinCluster(options(dir, { servers: [url], nodeName: "edge-2" }), soon())).rejects.toMatchObject({ code: "no-token" });
  expect(readFileSync(join(dir, "tls/client-kubelet.crt"), "utf8")).toContain("BEGIN CERTIFICATE");
});

test("a disk that damages one file of a node does not make it need a token, nor another machine, even while no server answers", async () => {
  const { url, token, stop } = await serve();
  const dir = machine(), at = (name: string): string => join(dir, "tls", name);
  const joined = await joinCluster(options(dir, { servers: [url], token }), soon());
  stop.abort();
  for (const name of ["server-ca.crt", "client-kubelet.crt", "client-kubelet.key", "cluster.json", "machine.key"]) {
    const before = readFileSync(at(name), "utf8");
    for (const damaged of ["", before.slice(0, before.length / 2), "\0".repeat(before.length)]) {
      writeFileSync(at(name), damaged);
      const again = await joinCluster(options(dir, { servers: [url] }), soon());
      expect([again.ca, again.client.certificatePem, again.cluster, machineName(again.machineKey)], name).toEqual([joined.ca, joined.client.certificatePem, joined.cluster, machineName(joined.machineKey)]);
    }
  }
});

test("a renewal that a power cut has torn leaves the certificate of before; a node that has moved to another cluster keeps no copies of the one before", async () => {
  const { url, token } = await serve();
  const dir = machine(), at = (name: string): string => join(dir, "tls", name);
  const { client } = await joinCluster(options(dir, { servers: [url], token }), soon());
  writeFileSync(at("client-kubelet.key"), readFileSync(at("machine.key"))); // the new key is there, its certificate is not
  expect((await joinCluster(options(dir, { servers: [url] }), soon())).client.certificatePem).toBe(client.certificatePem);
  const other = await serve();
  const moved = await joinCluster(options(dir, { servers: [other.url], token: other.token }), soon());
  expect(readFileSync(at("copies/client-kubelet.crt"), "utf8")).toBe(moved.client.certificatePem);
  expect([moved.client.certificatePem === client.certificatePem, readFileSync(at("copies/server-ca.crt"), "utf8")]).toEqual([false, ca(other.pki)]);
});
