import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { silentLog } from "../../../core/observe/log.ts";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { ExecError } from "../../os/exec.ts";
import { subordinateIds, userNamespaces } from "./user-namespaces.ts";

let dataDir = "";
beforeEach(() => { dataDir = mkdtempSync(join(tmpdir(), "userns-")); });
afterEach(() => rmSync(dataDir, { recursive: true }));

const pod = (uid: string, hostUsers: boolean | undefined = false): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name: uid, uid }, spec: { containers: [], hostUsers } } as unknown as Pod);
const first = { next: () => 0 };
const record = (uid: string): string => join(dataDir, "pods", uid, "userns");

test("each pod has ids of its own, also after a restart, and others' once those are gone", async () => {
  const before = userNamespaces({ dataDir, log: silentLog, random: first, maxPods: 110 });
  before.setUp(undefined, []);
  expect([await before.rangeOf(pod("host", true)), await before.rangeOf({ ...pod("said-nothing"), spec: { containers: [] } })]).toEqual([undefined, undefined]);
  expect((await Promise.all(["a", "b", "a"].map((uid) => before.rangeOf(pod(uid))))).map((range) => range?.hostId)).toEqual([65_536, 131_072, 65_536]);
  expect(JSON.parse(readFileSync(record("b"), "utf8"))).toEqual({ uidMappings: [{ hostId: 131_072, containerId: 0, length: 65_536 }], gidMappings: [{ hostId: 131_072, containerId: 0, length: 65_536 }] });
  const second = userNamespaces({ dataDir, log: silentLog, random: first, maxPods: 110 });
  second.setUp(undefined, ["a", "b", "none"]);
  expect((await second.rangeOf(pod("c")))?.hostId).toBe(196_608);
  writeFileSync(record("b"), ""); // cut short: by a power cut, after which nobody has its ids
  const third = userNamespaces({ dataDir, log: silentLog, random: first, maxPods: 110 });
  third.setUp(undefined, ["a", "b", "c"]);
  expect((await third.rangeOf(pod("b")))?.hostId).toBe(131_072);
  await second.release("a");
  expect(existsSync(record("a"))).toBe(false);
  expect((await second.rangeOf(pod("d")))?.hostId).toBe(65_536);
});

test("ids that could not be noted are nobody's", async () => {
  const some = userNamespaces({ dataDir, log: silentLog, random: first, maxPods: 110 });
  mkdirSync(join(dataDir, "pods"));
  writeFileSync(join(dataDir, "pods", "a"), "in the way of its directory");
  for (let i = 0; i < 2; i++) await expect(some.rangeOf(pod("a"))).rejects.toThrow();
  expect((await some.rangeOf(pod("b")))?.hostId).toBe(65_536);
});

test("which ids is left to chance, so that pods of two nodes hardly have the same", async () => {
  const some = userNamespaces({ dataDir, log: silentLog, maxPods: 2, random: { next: () => 0.75 } });
  some.setUp({ hostId: 65_536, length: 4 * 65_536 }, []);
  expect((await Promise.all(["a", "b", "c"].map((uid) => some.rangeOf(pod(uid))))).map((range) => range!.hostId / 65_536)).toEqual([4, 1, 2]);
});

test("only ids that were set aside, as many as a pod is to have", async () => {
  const some = userNamespaces({ dataDir, log: silentLog, random: first, maxPods: 2, idsPerPod: 131_072 });
  some.setUp({ hostId: 262_144, length: 262_144 }, []);
  expect([await some.rangeOf(pod("a")), await some.rangeOf(pod("b"))]).toEqual([{ hostId: 262_144, length: 131_072 }, { hostId: 393_216, length: 131_072 }]);
  await expect(some.rangeOf(pod("c"))).rejects.toThrow("could not find an empty slot to allocate a user namespace");
  writeFileSync(record("a"), readFileSync(record("a"), "utf8").replaceAll("262144", "65536"));
  expect(() => userNamespaces({ dataDir, log: silentLog, random: first, maxPods: 2, idsPerPod: 131_072 }).setUp({ hostId: 262_144, length: 262_144 }, ["a"])).toThrow("wrong user namespace offset specified 65536");
});

test.each<[object, { hostId: number; length: number }, string]>([
  [{ maxPods: 5, idsPerPod: 1000 }, { hostId: 65_536, length: 655_360 }, "kubelet user namespace length 1000 is not a multiple of 65536"],
  [{ maxPods: 5 }, { hostId: 100_000, length: 655_360 }, "kubelet user assigned ID 100000 is not a multiple of 65536"],
  [{ maxPods: 5 }, { hostId: 0, length: 655_360 }, "kubelet user assigned ID 0 must be greater or equal to 65536"],
  [{ maxPods: 5 }, { hostId: 65_536, length: 65_537 }, "kubelet user assigned IDs length 65537 is not a multiple of 65536"],
  [{ maxPods: 5 }, { hostId: 65_536, length: 65_536 }, "kubelet user assigned IDs are not enough to support 5 pods"],
])("%j with %j: %s", (options, ids, message) => expect(() => userNamespaces({ dataDir, log: silentLog, random: first, maxPods: 1, ...options }).setUp(ids, [])).toThrow(message));

test("subordinate ids are asked for where the user exists and the tool does", async () => {
  const { signal } = new AbortController();
  const says = (uids: string, gids = uids) => async (_: string, [flag]: readonly string[]) => ({ exitCode: 0, stdout: flag === "-g" ? gids : uids, stderr: "" });
  const passwd = "root:x:0:0::/root:/bin/sh\nkubelet:x:999:999::/:/bin/false\n";
  expect(await subordinateIds({ exec: says("0: kubelet 65536 7208960\n"), passwd, signal })).toEqual({ hostId: 65_536, length: 7_208_960 });
  expect(await subordinateIds({ exec: says("0: kubelet 65536 7208960\n"), passwd: "root:x:0:0\n", signal })).toBeUndefined();
  expect(await subordinateIds({ exec: async () => { throw new ExecError("not-found", "no such program"); }, passwd, signal })).toBeUndefined();
  await expect(subordinateIds({ exec: says("0: kubelet 1 2\n", "0: kubelet 3 4\n"), passwd, signal })).rejects.toThrow('mismatched subuids and subgids for user "kubelet"');
  await expect(subordinateIds({ exec: says("0: kubelet 1 2\n1: kubelet 3 4\n"), passwd, signal })).rejects.toThrow("it must contain only one line");
  for (const line of ["0: kubelet 65536", "0: kubelet Foo 65536", "0: kubelet 0 Bar", "0: kubelet 4294967296 65536", "0: kubelet 65536 4294967296", "0: kubelet -1 65536", "0: kubelet 65536 -1"]) await expect(subordinateIds({ exec: says(line), passwd, signal }), line).rejects.toThrow("invalid line");
});
