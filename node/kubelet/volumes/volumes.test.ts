import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { ObjectMeta } from "../../../core/api/meta/object-meta.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { toPem } from "../../../core/pki/pem.ts";
import { notFound } from "../../../core/api/meta/status-error.ts";
import { ExecError } from "../../os/exec.ts";
import { type Mounts, systemMounts } from "../../os/mount.ts";
import { hasFuse, silentFileSystem } from "../../../test/silent-file-system.ts";
import { type Payload, setVolumeOwnership, writePayload } from "./atomic-writer.ts";
import { checkHostPath } from "./host-path.ts";
import { configMapPayload, type PayloadFacts, projectedPayload } from "./payload.ts";
import { giveToGroup } from "./volume-directory.ts";
import { type SetUpDeps, setUpVolume, tmpfsMounter } from "./set-up.ts";
import { AttachLimitReached } from "./mount-failure.ts";
import { bindSubPath, SubPathNotMade } from "./subpath.ts";
import { volumeMetrics } from "./volume-metrics.ts";
import { AttachLimitExceeded, volumeManager, VolumesNotReady } from "./volumes.ts";
import type { VolumeDeps } from "./volume-deps.ts";

let directory = "";
beforeEach(() => { directory = realpathSync(mkdtempSync(join(tmpdir(), "volume-"))); });
afterEach(() => {
  systemMounts().unmountAll(directory);
  rmSync(directory, { recursive: true });
});

const files = (content: Record<string, string>, mode = 0o644): Payload => new Map(Object.entries(content).map(([path, text]) => [path, { data: Buffer.from(text), mode }]));
const write = (payload: Payload) => writePayload(directory, payload, { clock: systemClock, random: systemRandom, prepare: async () => undefined });

test("files change together, and what is gone is gone", async () => {
  expect(await write(files({ a: "1", "dir/b": "2" }))).toBe(true);
  const before = readlinkSync(join(directory, "..data"));
  expect([readFileSync(join(directory, "a"), "utf8"), readFileSync(join(directory, "dir/b"), "utf8"), readlinkSync(join(directory, "a"))]).toEqual(["1", "2", "..data/a"]);
  expect(await write(files({ a: "1", "dir/b": "2" }))).toBe(false);
  expect(await write(files({ a: "9", c: "3" }, 0o600))).toBe(true);
  expect(readdirSync(directory).filter((name) => !name.startsWith("..")).toSorted()).toEqual(["a", "c"]);
  expect([readFileSync(join(directory, "a"), "utf8"), statSync(join(directory, "c")).mode & 0o777]).toEqual(["9", 0o600]);
  expect(readdirSync(directory)).not.toContain(before);
  rmSync(join(directory, "a")); // as a crash between the swap and the links would leave it
  expect(await write(files({ a: "9", c: "3" }, 0o600))).toBe(false);
  expect(readlinkSync(join(directory, "a"))).toBe("..data/a");
  await expect(write(files({ "../x": "" }))).rejects.toThrow("invalid path");
});

test.runIf(process.platform === "linux" && process.getuid?.() === 0)("a file that is one user's is so with the link to it", async () => {
  const owned = (uid: number): Payload => new Map([["token", { data: Buffer.from("t"), mode: 0o600, uid }], ["ca", { data: Buffer.from("c"), mode: 0o644 }], ["d/token", { data: Buffer.from("t"), mode: 0o600, uid }]]);
  await write(owned(1234));
  expect(["token", "ca", "d"].map((name) => [lstatSync(join(directory, name)).uid, statSync(join(directory, name)).uid])).toEqual([[1234, 1234], [0, 0], [1234, 0]]);
});

test("however many files there are, all are gone through a few times: a ConfigMap may have a hundred thousand keys of nothing", async () => {
  class Counted extends Map<string, Payload extends ReadonlyMap<string, infer F> ? F : never> {
    rounds = 0;
    override [Symbol.iterator]() {
      this.rounds++;
      return super[Symbol.iterator]();
    }
  }
  const payload = new Counted(files(Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, ""]))));
  await write(payload);
  expect([readdirSync(directory).length, payload.rounds < 10]).toEqual([102, true]);
});

test("files that cannot be written leave what was there, and nothing else", async () => {
  await write(files({ a: "1" }));
  const before = readdirSync(directory);
  for (let tries = 0; tries < 3; tries++) await expect(write(files({ a: "2", "a/b": "3" }))).rejects.toThrow();
  await expect(writePayload(directory, files({ a: "2" }), { clock: systemClock, random: systemRandom, prepare: async () => { throw new Error("no group"); } })).rejects.toThrow("no group");
  expect([readdirSync(directory), readFileSync(join(directory, "a"), "utf8")]).toEqual([before, "1"]);
});

test.each([
  ["", 'must not be empty: ""'], ["/a", "must be relative path: /a"], [`${"a/".repeat(2048)}b`, "must be less than or equal to 4096 characters"], ["a/../b", "must not contain '..': a/../b"],
  [`a/${"é".repeat(128)}`, "filenames must be less than or equal to 255 characters"], ["..a", "must not start with '..': ..a"],
])("%s is no path of a file in a volume", async (path, why) => {
  await expect(write(files({ [path]: "" }))).rejects.toThrow(`invalid path: ${why}`);
});

test("a volume is given to a group", async () => {
  mkdirSync(join(directory, "d"));
  chmodSync(join(directory, "d"), 0o755);
  writeFileSync(join(directory, "d/f"), "", { mode: 0o600 });
  symlinkSync("/etc/hostname", join(directory, "d/link"));
  await setVolumeOwnership(directory, { gid: 4321, readOnly: false, onlyIfRootDiffers: false });
  const look = (path: string) => { const { gid, mode } = statSync(join(directory, path)); return [gid, (mode & 0o7777).toString(8)]; };
  expect([look("d"), look("d/f")]).toEqual([[4321, "2775"], [4321, "660"]]);
  expect(statSync("/etc/hostname").gid).toBe(0);
  chmodSync(join(directory, "d/f"), 0o600);
  await setVolumeOwnership(directory, { gid: 4321, readOnly: false, onlyIfRootDiffers: true });
  expect(look("d/f")).toEqual([4321, "600"]);
});

test("a volume is a group's when all in it is: whoever is stopped half-way begins again", async () => {
  for (let i = 0; i < 1000; i++) writeFileSync(join(directory, `f${i}`), "");
  const given = setVolumeOwnership(directory, { gid: 4321, readOnly: false, onlyIfRootDiffers: true });
  while (readdirSync(directory).every((name) => statSync(join(directory, name)).gid !== 4321)) await new Promise((resolve) => setTimeout(resolve, 0));
  expect(statSync(directory).gid).not.toBe(4321);
  await given;
  expect(statSync(directory).gid).toBe(4321);
});

test("a volume whose file system gives nothing to a group is used as it is, and that is told", async () => {
  const [source, shown] = [join(directory, "source"), join(directory, "shown")];
  for (const path of [source, shown]) mkdirSync(path);
  writeFileSync(join(source, "f"), "");
  symlinkSync("f", join(source, "link"));
  systemMounts().bind(source, shown, { readOnly: true });
  const warnings: unknown[] = [];
  const told = { clock: systemClock, events: { event: () => undefined } as never, log: { warn: (_: string, facts?: object) => void warnings.push(facts) } };
  const pod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { containers: [], securityContext: { fsGroup: 4321 } } } as unknown as Pod;
  await giveToGroup(pod, shown, { readOnly: false, told });
  expect(warnings).toMatchObject([{ pod: "p", group: 4321, error: { code: "EROFS" } }]);
  expect(statSync(join(shown, "f")).gid).toBe(0);
  await expect(giveToGroup(pod, join(directory, "none"), { readOnly: false, told })).rejects.toThrow("ENOENT");
});

test("a subpath stays in its volume", async () => {
  const volumePath = join(directory, "volume");
  const bind = (subPath: string) => bindSubPath({ volumePath, subPath, target: join(directory, "target") }, systemMounts());
  mkdirSync(join(volumePath, "inside"), { recursive: true });
  writeFileSync(join(volumePath, "inside/file"), "x");
  symlinkSync("inside", join(volumePath, "good"));
  symlinkSync("/etc", join(volumePath, "bad"));
  expect(readdirSync(await bind("good"))).toEqual(["file"]);
  expect(readdirSync(await bind("made/on/the/way"))).toEqual([]);
  await expect(bind("bad")).rejects.toThrow("not within volume path");
  await expect(bind("bad/new")).rejects.toThrow("not within volume path");
  expect(() => readdirSync("/etc/new")).toThrow("ENOENT");
  await expect(bind("bad/new")).rejects.toThrow(SubPathNotMade);
  expect(await bind("bad").catch((error: unknown) => error)).not.toBeInstanceOf(SubPathNotMade);
  for (let i = 0; i < 2; i++) { // what was a directory when the container was started last may be a file now, and the other way around
    expect(readFileSync(await bind("inside/file"), "utf8")).toBe("x");
    expect(readdirSync(await bind("good"))).toEqual(["file"]);
  }
});

test("a subpath that several containers make at once is there for each of them", async () => {
  const volumePath = join(directory, "volume");
  mkdirSync(volumePath, { mode: 0o755 });
  const places = await Promise.all(Array.from({ length: 20 }, (_, i) => bindSubPath({ volumePath, subPath: "a/b/c", target: join(directory, `target-${i}`) }, systemMounts())));
  for (const place of places) expect(readdirSync(place)).toEqual([]);
  expect(statSync(join(volumePath, "a/b")).mode & 0o777).toBe(0o755);
});

test.skipIf(!hasFuse())("a subpath of a disk that does not answer is waited for beside everything else", async () => {
  const silent = silentFileSystem();
  const bound = bindSubPath({ volumePath: silent.path, subPath: "a", target: join(directory, "target") }, systemMounts()).then(() => "bound", () => "failed");
  expect(await Promise.race([bound, new Promise((resolve) => setTimeout(resolve, 100, "waited for"))])).toBe("waited for");
  silent[Symbol.dispose]();
  expect(await bound).toBe("failed");
});

describe("while a container swaps a directory of its volume for a link that leads out", () => {
  const SWAP = "const { symbols } = require('bun:ffi').dlopen('libc.so.6', { renameat2: { args: ['i32', 'cstring', 'i32', 'cstring', 'u32'], returns: 'i32' } }); process.chdir(process.argv.at(-1)); const [a, link] = ['a\\0', 'link\\0'].map((name) => Buffer.from(name)); for (;;) symbols.renameat2(-100, a, -100, link, 2);"; // RENAME_EXCHANGE
  let volumePath: string, outside: string, container: ChildProcess;
  beforeEach(async () => {
    [volumePath, outside] = [join(directory, "volume"), join(directory, "outside")];
    for (const path of [join(volumePath, "a"), outside]) mkdirSync(path, { recursive: true });
    symlinkSync(outside, join(volumePath, "link"));
    for (const path of [join(volumePath, "a"), outside]) writeFileSync(join(path, "file"), "");
    container = spawn(process.execPath, ["-e", SWAP, "--", volumePath], { stdio: "ignore" });
    await new Promise((resolve) => container.once("spawn", resolve));
  });
  afterEach(async () => {
    container.kill("SIGKILL");
    await new Promise((resolve) => container.once("close", resolve));
  });

  test("a subpath is made in the volume", async () => {
    const mounts = { unmountAll: () => undefined, bind: () => undefined } as unknown as ReturnType<typeof systemMounts>;
    for (let i = 0; i < 2000 && readdirSync(outside).length === 1; i++) {
      try { await bindSubPath({ volumePath, subPath: `a/made-${i}/b`, target: join(directory, `target-${i}`) }, mounts); } catch { /* it is not there, or leads out, or became a link */ }
    }
    expect(readdirSync(outside)).toEqual(["file"]);
  });

  test("what is in the volume is given to its group, and nothing else", async () => {
    const given = (): number[] => [outside, join(outside, "file")].map((path) => statSync(path).gid);
    for (let i = 0; i < 300 && given().every((gid) => gid === 0); i++) await setVolumeOwnership(volumePath, { gid: 4321, readOnly: false, onlyIfRootDiffers: false }).catch(() => undefined);
    expect(given()).toEqual([0, 0]);
  });
});

test.each([
  ["Directory", "d", ""], ["Directory", "f", "is not a directory"], ["File", "f", ""], ["File", "none", "is not a file"], ["DirectoryOrCreate", "new", ""], ["FileOrCreate", "new-file", ""], ["Socket", "f", "is not a socket file"], ["", "none", ""],
] as const)("hostPath %s %s", async (type, path, problem) => {
  mkdirSync(join(directory, "d"));
  writeFileSync(join(directory, "f"), "");
  const check = checkHostPath({ path: join(directory, path), type });
  if (problem) await expect(check).rejects.toThrow(`hostPath type check failed: ${join(directory, path)} ${problem}`);
  else await check;
});

test("what the files say", async () => {
  const pod = { metadata: { name: "p", namespace: "n" }, spec: { containers: [{ name: "c", securityContext: { runAsUser: 7 } }] } } as Pod;
  const facts: PayloadFacts = {
    pod, hostIps: [], allocatable: {}, token: async () => "tok", certificate: (index) => ({ key: `key ${index};`, chain: "chain" }), trustBundles: async () => [{ metadata: { name: "ca" }, spec: { trustBundle: toPem("CERTIFICATE", Buffer.from("x")) } } as never],
    objects: {
      configMap: async (_, name) => { if (name !== "cfg") throw notFound({ group: "", resource: "configmap" }, name); return { apiVersion: "v1", kind: "ConfigMap", metadata: { name, uid: "", resourceVersion: "", creationTimestamp: "" }, data: { a: "1" }, binaryData: { b: "AAE=" } }; },
      secret: async (_, name) => { throw notFound({ group: "", resource: "secret" }, name); },
    },
  };
  const all = { items: undefined, optional: undefined, mode: 0o644 };
  expect([...(await configMapPayload(facts, "cfg", all)).keys()]).toEqual(["a", "b"]);
  await expect(configMapPayload(facts, "nope", all)).rejects.toThrow(`configmap "nope" not found`);
  expect((await configMapPayload(facts, "nope", { ...all, optional: true })).size).toBe(0);
  await expect(configMapPayload(facts, "cfg", { ...all, items: [{ key: "x", path: "x" }] })).rejects.toThrow("configmap references non-existent config key: x");
  const unclean = ["a", "./d/./x", ".//y", "././z", "e//f/"].map((path) => ({ key: "a", path }));
  expect([...(await configMapPayload(facts, "cfg", { ...all, items: unclean })).keys()]).toEqual(["a", "d/x", "y", "z", "e/f"]);
  const projected = await projectedPayload(facts, { sources: [{ serviceAccountToken: { path: "token" } }, { configMap: { name: "cfg", items: [{ key: "a", path: "d/a", mode: 0o400 }] } }] });
  expect([...projected].map(([path, { mode, uid }]) => [path, mode, uid])).toEqual([["token", 0o600, 7], ["d/a", 0o400, undefined]]);
  const others: [string, Partial<Pod["spec"]>, unknown][] = [
    ["another user looks into it", { ephemeralContainers: [{ name: "debug", securityContext: { runAsUser: 8 } }] }, [0o644, undefined]], ["somebody looks into it", { ephemeralContainers: [{ name: "debug" }] }, [0o644, undefined]],
    ["its user looks into it", { ephemeralContainers: [{ name: "debug", securityContext: { runAsUser: 7 } }] }, [0o600, 7]], ["nobody is named first", { initContainers: [{ name: "init" }] }, [0o644, undefined]],
  ];
  for (const [why, spec, expected] of others) {
    const { mode, uid } = (await projectedPayload({ ...facts, pod: { ...pod, spec: { ...pod.spec, ...spec } } }, { sources: [{ serviceAccountToken: { path: "token" } }] })).get("token")!;
    expect([mode, uid], why).toEqual(expected);
  }
  const anchors = await projectedPayload(facts, { sources: [{ clusterTrustBundle: { name: "ca", path: "d/ca.crt" } }] });
  expect([...anchors].map(([path, { data, mode, uid }]) => [path, String(data), mode, uid])).toEqual([["d/ca.crt", toPem("CERTIFICATE", Buffer.from("x")), 0o600, 7]]);
  const certified = await projectedPayload(facts, { sources: [{ downwardAPI: {} }, { podCertificate: { signerName: "e.com/s", keyType: "ED25519", credentialBundlePath: "d/bundle.pem", keyPath: "key.pem", certificateChainPath: "chain.pem" } }, { podCertificate: { keyPath: "other.pem" } }] });
  expect([...certified].map(([path, { data, mode, uid }]) => [path, String(data), mode, uid])).toEqual([["d/bundle.pem", "key 1;chain", 0o600, 7], ["key.pem", "key 1;", 0o600, 7], ["chain.pem", "chain", 0o600, 7], ["other.pem", "key 2;", 0o600, 7]]);
  await expect(projectedPayload(facts, { sources: [{ secret: { name: "s" } }, { configMap: { name: "x" } }] })).rejects.toThrow(`[secret "s" not found, configmap "x" not found]`);
  await expect(projectedPayload(facts, { sources: [{ secret: { name: "s" } }, { secret: { name: "s" } }] })).rejects.toThrow(/^secret "s" not found$/);
});

const NODE = `size=${1024 ** 3}`;
test.each<[string, string | undefined, string[][]]>([
  ["knows noswap", undefined, [["size=1048576", "noswap"], [NODE, "noswap"], [NODE, "noswap"], [NODE, "noswap"]]], ["does not know it", "EINVAL", [["size=1048576", "noswap"], ["size=1048576"], [NODE], [NODE], [NODE]]],
])("memory-backed volumes stay out of swap where the kernel %s", async (_, code, expected) => {
  const tried: string[][] = [];
  const warnings: string[] = [];
  const mounts = {
    isMountPoint: () => false, mount({ options }: { options: string[] }) {
      tried.push(options);
      if (code && options.includes("noswap")) throw Object.assign(new Error("mount"), { code });
    },
  } as unknown as Mounts;
  const tmpfs = tmpfsMounter({ mounts, log: { ...silentLog, warn: (message) => void warnings.push(message) } });
  const deps = { dataDir: directory, mounts, tmpfs, allocatable: () => ({ memory: "1Gi" }), tokens: {}, hostIps: [], clock: systemClock, random: systemRandom, objects: { secret: async () => ({ data: { key: "dmFsdWU=" } }) } } as unknown as SetUpDeps;
  const pod = { metadata: { uid: "u", name: "p", namespace: "d" }, spec: { containers: [{ name: "c" }] } } as unknown as Pod;
  const volumes = [{ name: "m", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } }, { name: "s", secret: { secretName: "s" } }, { name: "p", projected: { sources: [{ secret: { name: "s" } }] } }, { name: "d", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } }];
  for (const volume of volumes) await setUpVolume(deps, pod, volume, { signal: new AbortController().signal, onBound: () => undefined, nested: () => [] });
  expect(tried).toEqual(expected); // Secrets, projected and downward volumes too
  expect(warnings).toEqual(code ? [expect.stringContaining("may be swapped to disk")] : []);
  await setUpVolume(deps, pod, volumes[3]!, { signal: new AbortController().signal, onBound: () => undefined, nested: () => [] });
  expect(tried.length).toBe(expected.length); // where an older version has put files on the disk, and containers see them there
});

test.each<[string, object, string]>([
  ["its memory is not limited", [{ name: "c" }], NODE], ["its memory is", [{ name: "c", resources: { limits: { memory: "64Mi" } } }], `size=${64 << 20}`], ["only that of some of its containers is", [{ name: "c", resources: { limits: { memory: "64Mi" } } }, { name: "d" }], NODE],
])("what a pod has in memory is no more than it may have of it, or than the node has: %s", async (_, containers, size) => {
  const sizes: (string | undefined)[] = [];
  const mounts = { isMountPoint: () => false } as unknown as Mounts;
  const tmpfs = (target: string, options: readonly string[]) => {
    sizes.push(options[0]);
    chmodSync(target, 0o1777); // as the kernel makes it
  };
  const deps = { dataDir: directory, mounts, tmpfs, allocatable: () => ({ memory: "1Gi" }), tokens: {}, hostIps: [], clock: systemClock, random: systemRandom, objects: { secret: async () => ({ data: {} }) } } as unknown as SetUpDeps;
  const pod = { metadata: { uid: "u", name: "p", namespace: "d" }, spec: { containers } } as unknown as Pod;
  const modes: number[] = [];
  for (const volume of [{ name: "m", emptyDir: { medium: "Memory" } }, { name: "s", secret: { secretName: "s" } }]) {
    const { hostPath } = await setUpVolume(deps, pod, volume, { signal: new AbortController().signal, onBound: () => undefined, nested: () => [] });
    modes.push(statSync(hostPath!).mode & 0o7777);
  }
  expect(sizes).toEqual([size, size]);
  expect(modes).toEqual([0o1777, 0o1777]);
});

test("huge pages are of a size that the pod has asked for; a directory that somebody has removed is made again", async () => {
  const mounted: string[] = [];
  const mounts = { isMountPoint: () => false, mount: ({ options }: { options: string[] }) => void mounted.push(options[0]!) } as unknown as Mounts;
  const deps = { dataDir: directory, mounts, tokens: {}, hostIps: [], allocatable: () => ({}) } as unknown as SetUpDeps;
  const pod = (...pages: string[]) => ({ metadata: { uid: "u", name: "p", namespace: "d" }, spec: { containers: [{ name: "c", resources: { limits: Object.fromEntries(pages.map((page) => [`hugepages-${page}`, "4Mi"])) } }] } }) as unknown as Pod;
  const made = (of: Pod, medium: string) => setUpVolume(deps, of, { name: "v", emptyDir: { medium } }, { signal: new AbortController().signal, onBound: () => undefined, nested: () => [] }).then(({ hostPath }) => hostPath!, ({ message }: Error) => message);
  await made(pod("2Mi", "1Gi"), "HugePages-2048Ki");
  expect(mounted).toEqual(["pagesize=2M"]);
  expect(await made(pod("1Gi"), "HugePages-2Mi")).toBe("medium HugePages-2Mi: hugePages storage requested, but there is no resource request for huge pages");
  expect(await made(pod("2Mi", "1Gi"), "HugePages")).toBe("medium: HugePages can't be used if container requests multiple huge page sizes");
  const path = await made(pod(), "");
  rmSync(path, { recursive: true });
  expect(statSync(await made(pod(), "")).isDirectory()).toBe(true);
});

test("what is noted of a pod's volumes goes with it, wherever the data is", async () => {
  const dataDir = join(directory, "volumes/data");
  const deps = { dataDir, mounts: systemMounts(), tokens: {}, hostIps: [], allocatable: () => ({}) } as unknown as SetUpDeps;
  await setUpVolume(deps, { metadata: { uid: "u", name: "p", namespace: "d" }, spec: { containers: [] } } as unknown as Pod, { name: "v", emptyDir: {} }, { signal: new AbortController().signal, onBound: () => undefined, nested: () => [] });
  expect(readdirSync(directory)).toEqual(["volumes"]);
  expect(readdirSync(join(dataDir, "pods/u/plugins/kubernetes.io~empty-dir/v"))).toEqual(["ready"]);
});

test("a pod whose volume the node has no room for is told so in the end, and belongs elsewhere", async () => {
  let uptimeMs = 0, nowMs = 0;
  const claim = { metadata: { name: "c", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  const bound = { metadata: { name: "pv" }, spec: { claimRef: { uid: "claim-uid" }, csi: { driver: "d", volumeHandle: "h" } } };
  const deps = {
    dataDir: directory, mounts: systemMounts(), clock: { ...systemClock, uptimeMs: () => uptimeMs, nowMs: () => nowMs }, events: { event: () => undefined }, log: silentLog, hostIps: [], allocatable: () => ({}), tokens: {},
    client: { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound : claim) }) }, metrics: volumeMetrics(metricsRegistry()),
    csi: { setUp: async () => { throw new AttachLimitReached("full"); } },
  } as unknown as VolumeDeps;
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }], containers: [{ name: "c", volumeMounts: [{ name: "v", mountPath: "/v" }] }] } } as unknown as Pod;
  const volumes = volumeManager({ ...deps, node: () => ({ metadata: { name: "here" } as ObjectMeta }) });
  const { signal } = new AbortController();
  await expect(volumes.prepare(pod, signal)).rejects.toThrow(VolumesNotReady);
  nowMs = 1e12; // the clock is set: no time has gone by for that
  await expect(volumes.prepare(pod, signal)).rejects.toThrow(VolumesNotReady);
  uptimeMs = 124_000;
  await expect(volumes.prepare(pod, signal)).rejects.toThrow(new AttachLimitExceeded("Node has reached its volume attachment limit, rejecting pod. unmounted volumes=[v], unattached volumes=[v], failed to process volumes=[]: context deadline exceeded"));
});

test("a part of a volume that a container had holds it no more when its driver takes it away", async () => {
  const path = (...of: string[]): string => join(directory, "pods/u", ...of);
  for (const part of ["volumes/v", "volume-subpaths/v/c/0"]) mkdirSync(path(part), { recursive: true });
  const mounted = new Set([path("volumes/v"), path("volume-subpaths/v/c/0")]);
  const mounts = { list: () => [], unmountAll: (below: string) => { for (const one of mounted) if (one.startsWith(below)) mounted.delete(one); return []; } } as unknown as Mounts;
  let held: string[] | undefined;
  const deps = {
    dataDir: directory, mounts, clock: systemClock, metrics: volumeMetrics(metricsRegistry()), expander: { released: () => undefined }, tokens: { forget: () => undefined }, certificates: { forget: () => undefined },
    csi: { tearDown: async () => { held = [...mounted]; } },
  } as unknown as VolumeDeps;
  await volumeManager(deps).release("u", { keepMessages: false, signal: new AbortController().signal });
  expect(held).toEqual([path("volumes/v")]);
  expect(existsSync(path())).toBe(false);
});

test("a volume that failed is tried again in time, though the clock is set back", async () => {
  let uptimeMs = 0, nowMs = 1e12;
  const volumes = volumeManager({ dataDir: directory, mounts: systemMounts(), clock: { ...systemClock, uptimeMs: () => uptimeMs, nowMs: () => nowMs }, events: { event: () => undefined }, log: silentLog, node: () => ({ metadata: { name: "n" } }), metrics: volumeMetrics(metricsRegistry()), hostIps: [], allocatable: () => ({}), tokens: {} } as unknown as VolumeDeps);
  const path = join(directory, "late");
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { volumes: [{ name: "v", hostPath: { path, type: "Directory" } }], containers: [{ name: "c", volumeMounts: [{ name: "v", mountPath: "/v" }] }] } } as unknown as Pod;
  const { signal } = new AbortController();
  await expect(volumes.prepare(pod, signal)).rejects.toMatchObject({ retryMs: 500 });
  mkdirSync(path);
  nowMs = 0;
  uptimeMs = 400;
  await expect(volumes.prepare(pod, signal)).rejects.toMatchObject({ retryMs: 100 });
  uptimeMs = 500;
  expect((await volumes.prepare(pod, signal)).get("v")?.hostPath).toBe(path);
});

test("a place of the machine that is another one's disk is looked at once that answers", async () => {
  let isAway = true;
  const mounts = { ...systemMounts(), list: () => [{ target: directory, options: [], fsType: "nfs4", source: "nas:/", superOptions: [] }] };
  const exec = async (): Promise<object> => { if (isAway) throw new ExecError("timeout", "stat"); return { exitCode: 0, stdout: "", stderr: "" }; };
  const setUp = () => setUpVolume({ mounts, exec, allocatable: () => ({}), tokens: {} } as unknown as SetUpDeps, { metadata: { uid: "u" } } as Pod, { name: "v", hostPath: { path: directory, type: "Directory" } }, { signal: new AbortController().signal, onBound: () => undefined, nested: () => [] }).catch(({ message }: Error) => message);
  expect(await setUp()).toBe(`hostPath type check failed: ${directory} does not answer`);
  isAway = false;
  expect(await setUp()).toMatchObject({ hostPath: directory, isRemote: true });
});

test("of a pod's sources what they have in common is read once: thousands of them may be of the same ConfigMap of a megabyte", async () => {
  const asked: string[] = [];
  let containers = 0;
  const pod = { metadata: { name: "p", namespace: "n" }, spec: { get containers() { containers++; return [{ name: "c", resources: { limits: { cpu: "2" } } }]; } } } as unknown as Pod;
  const facts = { pod, hostIps: [], allocatable: {}, token: async () => "tok", objects: { configMap: async (_: string, name: string) => { asked.push(`configMap ${name}`); return { data: { a: "1", b: name } }; }, secret: async (_: string, name: string) => { asked.push(`secret ${name}`); return { data: { a: "Mg==" } }; } } } as unknown as PayloadFacts;
  const many = <T>(of: (i: number) => T): T[] => Array.from({ length: 100 }, (_, i) => of(i));
  const files = await projectedPayload(facts, { sources: [
    ...many(() => ({ configMap: { name: "x" } })), ...many((i) => ({ configMap: { name: "y", items: [{ key: "b", path: `y${i}` }] } })), ...many((i) => ({ secret: { name: "s", items: [{ key: "a", path: `s${i}` }] } })), { configMap: { name: "y" } }, { configMap: { name: "x" } }, { configMap: { name: "y", items: [{ key: "b", path: "a" }] } },
    ...many((i) => ({ serviceAccountToken: { path: `t${i}` } })), { downwardAPI: { items: many((i) => ({ path: `d${i}`, resourceFieldRef: { containerName: "c", resource: "limits.cpu" } })) } },
  ] });
  expect([asked.toSorted(), containers < 10, files.size, ...["a", "b", "y7", "s7", "t7", "d7"].map((path) => Buffer.from(files.get(path)!.data).toString())]).toEqual([["configMap x", "configMap y", "secret s"], true, 402, "y", "x", "y", "2", "tok", "2"]);
  expect(files.get("y1")!.data).toBe(files.get("y99")!.data); // once in memory, too
});

test("volumes of a pod are made a few at a time", async () => {
  let now = 0, most = 0;
  const objects = { configMap: async () => {
    most = Math.max(most, ++now);
    await new Promise((resolve) => setTimeout(resolve, 1));
    now--;
    return { data: { a: "1" } };
  } };
  const volumes = volumeManager({ dataDir: directory, mounts: systemMounts(), clock: systemClock, random: systemRandom, events: { event: () => undefined }, log: silentLog, hostIps: [], allocatable: () => ({}), tokens: {}, objects, node: () => ({ metadata: { name: "n" } }), metrics: volumeMetrics(metricsRegistry()) } as unknown as VolumeDeps);
  const names = Array.from({ length: 40 }, (_, i) => `v${i}`);
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { volumes: names.map((name) => ({ name, configMap: { name: "c" } })), containers: [{ name: "c", volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })) }] } } as unknown as Pod;
  expect([[...(await volumes.prepare(pod, new AbortController().signal)).keys()], most]).toEqual([names, 16]);
});

test("a volume that says which group it is of tells", async () => {
  const claim = { metadata: { name: "c", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  const groupOf = async (annotations?: Record<string, string>) => {
    const bound = { metadata: { name: "pv", annotations }, spec: { claimRef: { uid: "claim-uid" }, hostPath: { path: directory } } };
    const volumes = volumeManager({
      dataDir: directory, mounts: systemMounts(), clock: systemClock, events: { event: () => undefined }, log: silentLog, hostIps: [], allocatable: () => ({}), tokens: {}, node: () => ({ metadata: { name: "n" } }), metrics: volumeMetrics(metricsRegistry()),
      client: { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound : claim) }) },
    } as unknown as VolumeDeps);
    const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }], containers: [{ name: "c", volumeMounts: [{ name: "v", mountPath: "/v" }] }] } } as unknown as Pod;
    return (await volumes.prepare(pod, new AbortController().signal)).get("v")?.group;
  };
  expect([await groupOf(), await groupOf({ "pv.beta.kubernetes.io/gid": "1234" }), await groupOf({ "pv.beta.kubernetes.io/gid": "staff" })]).toEqual([undefined, 1234, undefined]);
});

test("a volume of other nodes is not mounted here; one that is there stays when the node is called something else", async () => {
  const shelf = join(directory, "shelf");
  mkdirSync(shelf);
  const claim = { metadata: { name: "c", namespace: "n", uid: "claim-uid" }, spec: { volumeName: "pv" }, status: { phase: "Bound" } };
  const nodeAffinity = { required: { nodeSelectorTerms: [{ matchExpressions: [{ key: "kubernetes.io/hostname", operator: "In", values: ["there"] }] }] } };
  const bound = { metadata: { name: "pv" }, spec: { claimRef: { uid: "claim-uid" }, hostPath: { path: shelf }, nodeAffinity } };
  let uptimeMs = 0, hostname = "here";
  const deps = {
    dataDir: directory, mounts: systemMounts(), clock: { ...systemClock, uptimeMs: () => (uptimeMs += 1_000_000) }, events: { event: () => undefined }, log: silentLog, hostIps: [], allocatable: () => ({}), tokens: {},
    node: () => ({ metadata: { name: "n", labels: { "kubernetes.io/hostname": hostname } } }), metrics: volumeMetrics(metricsRegistry()),
    client: { resource: () => ({ get: async ({ metadata: { name } }: { metadata: { name: string } }) => (name === "pv" ? bound : claim) }) },
  } as unknown as VolumeDeps;
  const pod = { metadata: { uid: "u", name: "p", namespace: "n" }, spec: { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "c" } }], containers: [{ name: "c", volumeMounts: [{ name: "v", mountPath: "/v" }] }] } } as unknown as Pod;
  const volumes = volumeManager(deps);
  const { signal } = new AbortController();
  await expect(volumes.prepare(pod, signal)).rejects.toThrow('MountVolume.NodeAffinity check failed for volume "pv" : no matching NodeSelectorTerms');
  hostname = "there";
  expect((await volumes.prepare(pod, signal)).get("v")?.hostPath).toBe(shelf);
  hostname = "here";
  expect((await volumes.prepare(pod, signal)).get("v")?.hostPath).toBe(shelf);
});
