import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { silentLog } from "../core/observe/log.ts";
import { generateKey, keyPem, selfSign } from "../core/pki/authority.ts";
import { certificateHash, formatJoinToken } from "../core/pki/join-token.ts";
import { readCertificatePems } from "../core/pki/pem.ts";
import { SHARED_FILES } from "../core/pki/pki.ts";
import { memoryStore } from "../storage/memory.ts";
import { followSharedKeys, shareKeys, type SharedKeysOptions } from "./shared-keys.ts";

const settings = { "service-cidr": "10.43.0.0/16" };
const read = (dir: string): string[] => SHARED_FILES.map((name) => readFileSync(join(dir, name), "utf8"));

test("servers that start at the same time end up with the same keys, and later ones get them", async () => {
  const { share, dir } = await cluster();
  const [a, b, c] = [dir(), dir(), dir()];
  await Promise.all([share(a), share(b)]);
  expect(read(b)).toEqual(read(a));
  await share(c);
  await share(a); // a restart
  expect(read(c)).toEqual(read(a));
  rmSync(join(c, "service.key"));
  await share(c); // half of it was lost
  expect(read(c)).toEqual(read(a));
  expect(new Set(read(a)).size).toBe(SHARED_FILES.length);
});

test("a cluster whose ranges an older server has put down as its owner wrote them takes those that are the same", async () => {
  const { share, dir } = await cluster();
  await share(dir(), { settings: { "cluster-cidr": "10.42.7.1/16,FD00:42::/56", "cluster-domain": "cluster.local" } });
  await share(dir(), { settings: { "cluster-cidr": "10.42.0.0/16,fd00:42::/56", "cluster-domain": "cluster.local" } });
});

test("who does not belong to the cluster is refused, and keeps what it has", async () => {
  const { share, dir } = await cluster();
  const [first, foreign] = [dir(), dir()];
  await share(first);
  await expect(share(dir(), { secret: "other" })).rejects.toThrow("the datastore is of a cluster with another token");
  await expect(share(dir(), { settings: { "service-cidr": "10.0.0.0/16" } })).rejects.toThrow('--service-cidr is "10.43.0.0/16" on the other servers of this cluster, not "10.0.0.0/16"');
  await share(dir(), { settings: { "service-cidr": "10.43.0.0/16,fd00::/112" } }); // of one family, it becomes one of both
  await expect(share(dir(), { settings: { "service-cidr": "fd00::/112,10.43.0.0/16" } })).rejects.toThrow("on the other servers of this cluster");
  writeFileSync(join(foreign, "server-ca.crt"), "another");
  await expect(share(foreign)).rejects.toThrow(`${join(foreign, "server-ca.crt")} is not that of the cluster in the datastore`);
  expect(readFileSync(join(foreign, "server-ca.crt"), "utf8")).toBe("another");
  const ca = readFileSync(join(first, "server-ca.crt"), "utf8");
  const otherCa = readFileSync(join(first, "client-ca.crt"), "utf8");
  expect(certificateHash(readCertificatePems(ca)[0]!)).toMatch(/^[0-9a-f]{64}$/);
  await share(dir(), { given: formatJoinToken(ca, "secret") });
  await expect(share(dir(), { given: formatJoinToken(otherCa, "secret") })).rejects.toThrow("the CA in it is not that of the cluster");
});

test("authorities that are replaced on one server are those of all, also of one that was off; what cannot be used and keys of tokens stay where they are", async () => {
  const { share, follow, dir } = await cluster();
  const [a, b, late] = [dir(), dir(), dir()];
  for (const one of [a, b, late]) await share(one);
  const [onA, onB] = [await follow(a), await follow(b)];
  for (const one of [onA, onB, onA, onB]) await one.look();
  const before = readFileSync(join(a, "server-ca.crt"), "utf8"), all = read(b);
  const key = await generateKey();
  const next = selfSign("next", { key, random: systemRandom, notBeforeMs: 0, notAfterMs: Date.now() + 1e9 });
  writeFileSync(join(a, "server-ca.crt"), next + before); // its key is not there yet
  for (const one of [onA, onB]) await one.look();
  expect(read(b)).toEqual(all);
  writeFileSync(join(a, "server-ca.key"), keyPem(key));
  writeFileSync(join(b, "service.key"), "b's own");
  for (const one of [onA, onB, onA, onB]) await one.look();
  expect(["server-ca.crt", "server-ca.key", "service.key"].map((name) => readFileSync(join(b, name), "utf8"))).toEqual([next + before, keyPem(key), "b's own"]);
  await share(late, { given: formatJoinToken(before, "secret") });
  expect(read(late)).toEqual(read(a));
  await share(dir(), { given: formatJoinToken(next, "secret") });
  writeFileSync(join(a, "server-ca.crt"), next);
  await onA.look();
  writeFileSync(join(late, "server-ca.crt"), before); // it was off for too long: nobody trusts what it knows
  await expect(share(late)).rejects.toThrow("is not that of the cluster in the datastore");
});

async function cluster() {
  const store = await memoryStore();
  return {
    dir: () => mkdtempSync(join(tmpdir(), "keys-")),
    follow: (dir: string) => followSharedKeys({ store, dir, secret: "secret", random: systemRandom, log: silentLog }),
    share: (dir: string, options: Partial<SharedKeysOptions> = {}) => shareKeys({ store, dir, secret: "secret", given: "secret", settings, clock: systemClock, random: systemRandom, log: silentLog, releasedMs: 0, ...options }),
  };
}
