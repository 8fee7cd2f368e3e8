import { isUtf8 } from "node:buffer";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Container, Pod, Service } from "../../../core/api/gen/core.v1.ts";
import { notFound } from "../../../core/api/meta/status-error.ts";
import { textOfBytes } from "./byte-text.ts";
import { containerConfig, sendable } from "./container-config.ts";
import { environmentOf, type ObjectSource } from "./environment.ts";
import { expand, expandAll, expandStrictly } from "./expansion.ts";
import { resourceValue } from "./field-reference.ts";
import { containerAnnotations, containerHash, isOfOtherDefinition, readAnnotations } from "./labels.ts";
import { containerMounts, type MountFacts, mountsImageSubPaths } from "./mounts.ts";
import { containerSecurityContext, namespacesOf, verifyNonRoot } from "./security-context.ts";
import { serviceEnvironment } from "./service-env.ts";

const pod = (spec: Partial<Pod["spec"]> = {}): Pod => ({
  apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "n", uid: "u", resourceVersion: "", creationTimestamp: "", labels: { "a/b": "c", x: 'q"' } }, spec: { containers: [{ name: "c" }], nodeName: "n1", ...spec },
});

test("a container remembers how it is to be ended, to the digit", () => {
  const preStop = { sleep: { seconds: (2n ** 63n - 1n) as unknown as number } };
  const annotations = containerAnnotations(pod({ terminationGracePeriodSeconds: preStop.sleep.seconds }), { name: "c", lifecycle: { preStop } }, 0);
  expect(annotations["io.kubernetes.container.preStopHandler"]).toBe('{"sleep":{"seconds":9223372036854775807}}');
  expect(readAnnotations(annotations)).toMatchObject({ preStop, gracePeriodSeconds: 2 ** 63 });
});

test("whether a container is another now is seen by its hash, a stock kubelet's or one of ours", () => {
  const one = { name: "test_container", image: "foo/image:v1" };
  expect([containerHash(one), containerHash({ name: "foo", image: "bar" })]).toEqual(["8e45cbd0", "11a6d6d6"]); // kubernetes v1.36 pkg/kubelet/container/helpers_test.go
  expect(["8e45cbd0", "cd1853f2", "8e45cbd1", ""].map((hash) => isOfOtherDefinition(hash, one))).toEqual([false, false, true, true]);
});

test("$(NAME)", () => {
  const lookup = (name: string) => ({ A: "1", B: "$(A)" })[name];
  expect(["$(A)", "$(B)", "$$(A)", "$(NOPE)", "$A", "$$$(A)", "a$", "$("].map((text) => expand(text, lookup))).toEqual(["1", "$(A)", "$(A)", "$(NOPE)", "$A", "$1", "a$", "$("]);
  expect(() => expandStrictly("$(NOPE)/$(A)", lookup)).toThrow(/^missing value for NOPE$/);
  expect(() => expandStrictly("$(Z)/$(E)/$(Z)", (name) => (name === "E" ? "" : undefined))).toThrow(/^missing value for E, Z$/);
});

test("what no program could be started with is not made: texts of texts of texts, and one text many times over", async () => {
  const text = (amount: number) => "x".repeat(amount);
  expect(expand("$(A)$(A)", () => text(60_000))).toHaveLength(120_000);
  expect(() => expand("$(A)$(A)$(A)", () => text(60_000))).toThrow('"$(A)$(A)$(A)" becomes longer than 131072 characters, which no program can be started with');
  expect(() => expandAll(Array.from({ length: 100 }, () => "$(A)"), () => text(100_000))).toThrow("arguments are longer than 6291456 characters together, which no program can be started with");
  const environment = (container: object, data: Record<string, string> = {}) => environmentOf({ pod: { metadata: { name: "p", namespace: "n", uid: "u" }, spec: {} }, container: { name: "c", ...container }, objects: { configMap: async () => ({ data }) }, services: new Map() } as never);
  const doubled = Array.from({ length: 40 }, (_, i) => ({ name: `V${i + 1}`, value: `$(V${i})$(V${i})` }));
  await expect(environment({ env: [{ name: "V0", value: "laugh" }, ...doubled] })).rejects.toThrow("no program can be started with");
  const many = Array.from({ length: 1000 }, (_, i) => ({ name: `V${i}`, valueFrom: { configMapKeyRef: { name: "m", key: "k" } } }));
  await expect(environment({ env: many }, { k: text(100_000) })).rejects.toThrow("environment variables are longer than 6291456 characters together, which no program can be started with");
  await expect(environment({ envFrom: many.map(({ name }) => ({ prefix: name, configMapRef: { name: "m" } })) }, { k: text(100_000) })).rejects.toThrow("environment variables are longer");
  expect((await environment({ env: many.slice(0, 10) }, { k: text(100_000) })).size).toBe(10);
});

test("services as variables", () => {
  const service = (name: string, namespace: string, spec: Service["spec"]): Service => ({ apiVersion: "v1", kind: "Service", metadata: { name, namespace, uid: "", resourceVersion: "", creationTimestamp: "" }, spec });
  const services = [
    service("kubernetes", "default", { clusterIP: "10.0.0.1", ports: [{ port: 443, name: "https", protocol: "TCP" }] }), service("my-db", "n", { clusterIP: "fd00::1", ports: [{ port: 53, protocol: "UDP" }] }),
    service("headless", "n", { clusterIP: "None" }), service("other", "x", { clusterIP: "10.0.0.9", ports: [{ port: 1 }] }),
  ];
  const linked = serviceEnvironment(services, "n", true);
  expect(linked.get("MY_DB_SERVICE_HOST")).toBe("fd00::1");
  expect(Object.fromEntries([...linked].filter(([name]) => name.startsWith("MY_DB")))).toEqual({
    MY_DB_SERVICE_HOST: "fd00::1", MY_DB_SERVICE_PORT: "53", MY_DB_PORT: "udp://[fd00::1]:53", MY_DB_PORT_53_UDP: "udp://[fd00::1]:53",
    MY_DB_PORT_53_UDP_PROTO: "udp", MY_DB_PORT_53_UDP_PORT: "53", MY_DB_PORT_53_UDP_ADDR: "fd00::1",
  });
  expect([...linked.keys()].filter((name) => name.startsWith("KUBERNETES")).length).toBe(8);
  expect([...serviceEnvironment(services, "n", false).keys()].every((name) => name.startsWith("KUBERNETES"))).toBe(true);
  expect(linked.has("OTHER_SERVICE_HOST") || linked.has("HEADLESS_SERVICE_HOST")).toBe(false);
});

test("the environment, and what is wrong with it", async () => {
  const meta = (name: string) => ({ name, uid: "", resourceVersion: "", creationTimestamp: "" });
  const objects: ObjectSource = {
    configMap: async (_, name) => { if (name !== "cfg") throw notFound({ group: "", resource: "configmap" }, name); return { apiVersion: "v1", kind: "ConfigMap", metadata: meta(name), data: { a: "1", b: "2" } }; },
    secret: async (_, name) => ({ apiVersion: "v1", kind: "Secret", metadata: meta(name), data: { pw: Buffer.from("s3cret").toString("base64"), bytes: "/w==" } }),
  };
  const build = (container: Partial<Container>) => environmentOf({
    pod: pod({ containers: [{ name: "c" }, { name: "d", resources: { limits: { cpu: "3" } } }] }), container: { name: "c", ...container }, podIps: ["10.0.0.5", "fd00::5"], hostIps: ["172.16.0.1"], services: new Map([["KUBERNETES_SERVICE_HOST", "10.0.0.1"], ["A", "service"]]), objects, allocatable: { cpu: "2", memory: "1Gi" }, readFileKey: async () => undefined,
  });
  const from = (valueFrom: NonNullable<Container["env"]>[number]["valueFrom"]) => build({ env: [{ name: "X", valueFrom }] }).then((env) => env.get("X"), (error: Error) => error.message);
  const env = await build({ envFrom: [{ prefix: "C_", configMapRef: { name: "cfg" } }, { configMapRef: { name: "none", optional: true } }], env: [{ name: "A", value: "$(C_a)$(KUBERNETES_SERVICE_HOST)" }, { name: "E", value: "" }] });
  expect(Object.fromEntries(env)).toEqual({ KUBERNETES_SERVICE_HOST: "10.0.0.1", C_a: "1", C_b: "2", A: "110.0.0.1", E: "" });
  expect(await from({ secretKeyRef: { name: "s", key: "pw" } })).toBe("s3cret");
  expect(await from({ secretKeyRef: { name: "s", key: "no" } })).toBe("couldn't find key no in Secret n/s");
  expect(await from({ configMapKeyRef: { name: "none", key: "a" } })).toBe(`configmap "none" not found`);
  expect(await from({ configMapKeyRef: { name: "none", key: "a", optional: true } })).toBeUndefined();
  expect(await from({ fieldRef: { fieldPath: "status.podIPs" } })).toBe("10.0.0.5,fd00::5");
  expect(await from({ fieldRef: { fieldPath: "metadata.labels['a/b']" } })).toBe("c");
  expect(await from({ fieldRef: { fieldPath: "spec.nonsense" } })).toBe("unsupported fieldPath: spec.nonsense");
  expect(await from({ resourceFieldRef: { resource: "limits.cpu" } })).toBe("2");
  expect(await from({ resourceFieldRef: { containerName: "d", resource: "limits.cpu" } })).toBe("3");
  expect(await from({ resourceFieldRef: { containerName: "e", resource: "limits.cpu" } })).toBe("container e not found");
  expect(await from({ resourceFieldRef: { resource: "limits.memory", divisor: "1Mi" } })).toBe("1024");
  expect(await from({ resourceFieldRef: { resource: "requests.cpu", divisor: "1m" } })).toBe("0");
});

test.each<[string, Uint8Array]>([
  ["text", Buffer.from("aé€😀")], ["one byte", Buffer.of(0xff)], ["a character cut off", Buffer.of(0x61, 0xe2, 0x82)], ["bytes between characters", Buffer.of(0x80, 0xc3, 0xa9, 0xfe, 0xf0, 0x9f, 0x98, 0x80, 0xc3)],
  ["what a surrogate would be", Buffer.of(0xed, 0xb2, 0x80)], ["longer ways to write characters", Buffer.of(0xc0, 0xaf, 0xc1, 0xbf, 0xe0, 0x9f, 0xbf, 0xf0, 0x8f, 0xbf, 0xbf)],
  ["what is beyond the last character", Buffer.of(0xf4, 0x90, 0x80, 0x80, 0xf5, 0x80, 0x80, 0x80, 0xff)], ["the first and the last of each length", Buffer.from("\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}")], ["those, and more", Buffer.concat([Buffer.from("\u0080\u07ff\u0800\ud7ff\ue000\uffff\u{10000}\u{10ffff}"), Buffer.of(0x80)])], ["nothing but such bytes", Buffer.alloc(1_000, 0xe2)], ["all there are", Buffer.from(Array.from({ length: 256 }, (_, i) => i))],
])("a variable has the bytes of its Secret: %s", async (_, bytes) => {
  const objects: ObjectSource = {
    configMap: async (__, name) => { throw notFound({ group: "", resource: "configmap" }, name); },
    secret: async () => ({ apiVersion: "v1", kind: "Secret", metadata: { name: "s", uid: "", resourceVersion: "", creationTimestamp: "" }, data: { bytes: Buffer.from(bytes).toString("base64") } }),
  };
  const container = { name: "c", args: ["$(X)"], env: [{ name: "X", valueFrom: { secretKeyRef: { name: "s", key: "bytes" } } }, { name: "Y", value: "<$(X)>" }] };
  const given = pod({ containers: [container] });
  const environment = await environmentOf({ pod: given, container, podIps: [], hostIps: [], services: new Map(), objects, allocatable: {}, readFileKey: async () => undefined });
  const config = containerConfig({ pod: given, container, restartCount: 0, imageId: "i", environment, mounts: [], devices: [], platform: {} });
  expect(config.envs).toEqual([{ key: "X", value: Buffer.from(bytes) }, { key: "Y", value: Buffer.concat([Buffer.from("<"), bytes, Buffer.from(">")]) }]);
  if (isUtf8(bytes)) expect(sendable(config).args).toEqual([Buffer.from(bytes).toString()]);
  else expect(() => sendable(config)).toThrow("grpc: error while marshaling: string field contains invalid UTF-8");
});

test("what is no text alone may be some together: an argument, and a directory of a volume; what is none then is refused, or several directories would be one", async () => {
  const environment = new Map(Object.entries({ A: textOfBytes(Buffer.of(0xc3)), B: textOfBytes(Buffer.of(0xa9)) }));
  const config = (arg: string) => containerConfig({ pod: pod(), container: { name: "c", command: [arg], args: [arg] }, restartCount: 0, imageId: "i", environment, mounts: [], devices: [], platform: {} });
  expect(sendable(config("caf$(A)$(B)"))).toMatchObject({ command: ["café"], args: ["café"] });
  expect(() => sendable(config("caf$(A)"))).toThrow("grpc: error while marshaling: string field contains invalid UTF-8");
  const mounts = async (subPathExpr: string) => await containerMounts({ os: "linux", pod: pod(), container: { name: "c", volumeMounts: [{ name: "v", mountPath: "/m", subPathExpr }] }, volumes: new Map([["v", { hostPath: undefined, readOnly: true, managed: false, image: { reference: "r", policy: undefined } }]]), environment, podDir: "/p", hosts: undefined, recursiveReadOnly: true, imageSubPaths: true } as unknown as MountFacts);
  expect(await mounts("caf$(A)$(B)")).toMatchObject([{ image_sub_path: "café" }]);
  await expect(mounts("caf$(A)")).rejects.toThrow("error SubPath `caf\ufffd` must be valid UTF-8");
});

test("a limit of nothing is none: what the container may use is then what its pod may, or its node has", () => {
  const limit = (cpu: string, podLevel?: string) => resourceValue({ resource: "limits.cpu" }, { name: "c", resources: { limits: { cpu } } }, { allocatable: { cpu: "6" }, podLevel: podLevel === undefined ? undefined : { cpu: podLevel } });
  expect([limit("0"), limit("0", "0"), limit("0", "2"), limit("1", "2")]).toEqual(["6", "6", "2", "1"]);
});

test("AppArmor: what an annotation says of a container goes before what is said of the whole pod, and the container's own word before both", () => {
  const owner = pod({ securityContext: { appArmorProfile: { type: "RuntimeDefault" } } });
  const annotated = { ...owner, metadata: { ...owner.metadata, annotations: { "container.apparmor.security.beta.kubernetes.io/c": "localhost/own" } } };
  const profile = (of: Pod, container: Container) => containerSecurityContext({ pod: of, container, imageUser: { uid: 0, username: "" }, namespaces: namespacesOf(of), volumeGroups: [], seccompDir: "/seccomp", seccompDefault: false, maskedPaths: [] }).apparmor;
  expect(profile(owner, { name: "c" })).toEqual({ profile_type: "RuntimeDefault" });
  expect(profile(annotated, { name: "c" })).toEqual({ profile_type: "Localhost", localhost_ref: "own" });
  expect(profile(annotated, { name: "c", securityContext: { appArmorProfile: { type: "Unconfined" } } })).toEqual({ profile_type: "Unconfined" });
});

test("who a container runs as", () => {
  const container: Container = { name: "c", securityContext: { runAsGroup: 3, allowPrivilegeEscalation: false, capabilities: { add: ["NET_ADMIN"], drop: ["ALL"] }, seccompProfile: { type: "Localhost", localhostProfile: "p/x.json" } } };
  const owner = pod({ securityContext: { runAsUser: 1, runAsGroup: 2, fsGroup: 9, supplementalGroups: [8] }, containers: [container] });
  const facts = { pod: owner, container, imageUser: { uid: 0, username: "" }, namespaces: namespacesOf(owner), volumeGroups: [8, 7, 7], seccompDir: "/seccomp", seccompDefault: false, maskedPaths: ["/sys/devices/system/cpu/cpu0/thermal_throttle"] };
  expect(containerSecurityContext(facts)).toMatchObject({
    run_as_user: { value: 1 }, run_as_group: { value: 3 }, supplemental_groups: [9, 8, 7], no_new_privs: true, capabilities: { add_capabilities: ["NET_ADMIN"], drop_capabilities: ["ALL"] },
    masked_paths: expect.arrayContaining(["/proc/kcore", "/sys/devices/system/cpu/cpu0/thermal_throttle"]), seccomp: { profile_type: "Localhost", localhost_ref: "/seccomp/p/x.json" }, namespace_options: { network: "POD", pid: "CONTAINER", ipc: "POD" },
  });
  expect(containerSecurityContext({ ...facts, pod: pod(), container: { name: "c", securityContext: { procMount: "Unmasked" } } })).toMatchObject({ masked_paths: [], seccomp: { profile_type: "Unconfined" }, run_as_user: { value: 0 } });
  expect(namespacesOf(pod({ hostPID: true }), "target")).toEqual({ network: "POD", ipc: "POD", pid: "NODE" });
  expect(namespacesOf(pod(), "target")).toEqual({ network: "POD", ipc: "POD", pid: "TARGET", target_id: "target" });

  const nonRoot = (runAsUser: number | undefined, image: { uid: number | undefined; username: string }) => { try { verifyNonRoot(pod(), { name: "c", securityContext: { runAsNonRoot: true, runAsUser } }, image); return "fine"; } catch (error) { return (error as Error).message; } };
  expect(nonRoot(5, { uid: 0, username: "" })).toBe("fine");
  expect(nonRoot(0, { uid: 7, username: "" })).toBe(`container's runAsUser breaks non-root policy (pod: "p_n(u)", container: c)`);
  expect(nonRoot(undefined, { uid: 0, username: "" })).toBe(`container has runAsNonRoot and image will run as root (pod: "p_n(u)", container: c)`);
  expect([nonRoot(undefined, { uid: 2_147_483_647, username: "" }), nonRoot(5, { uid: -1, username: "" })]).toEqual(["fine", "fine"]);
  for (const uid of [2_147_483_648, -1]) expect(nonRoot(undefined, { uid, username: "" })).toBe(`container has runAsNonRoot and image has an invalid user id (${uid}). (Must be 1-(2147483647)): must be between 0 and 2147483647, inclusive (pod: "p_n(u)", container: c)`);
  expect(nonRoot(undefined, { uid: undefined, username: "www" })).toBe(`container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root (pod: "p_n(u)", container: c)`);
});

test.each<[string, string, boolean]>([["containerd", "v2.1.9", false], ["containerd", "1.7.24", false], ["containerd", "2.2.0", true], ["containerd", "v3.0.0", true], ["cri-o", "1.33.0", true]])("%s %s mounts directories of images: %s", async (name, version, can) => {
  expect(mountsImageSubPaths({ name, version })).toBe(can);
  const facts = { os: "linux", pod: pod(), container: { name: "c", volumeMounts: [{ name: "v", mountPath: "/m", subPath: "etc" }] }, volumes: new Map([["v", { hostPath: undefined, readOnly: true, managed: false, image: { reference: "sha256:1", policy: undefined } }]]), environment: new Map(), podDir: "/p", hosts: undefined, recursiveReadOnly: true, imageSubPaths: can } as unknown as MountFacts;
  if (can) expect(await containerMounts(facts)).toMatchObject([{ container_path: "/m", image: { image: "sha256:1" }, image_sub_path: "etc", readonly: true }]);
  else await expect(containerMounts(facts)).rejects.toThrow('subPath of image volume "v" is not supported by the runtime: containerd can since 2.2');
});

test("a container that ends again and again leaves as many files for its last words as the runtime has containers of it", async () => {
  const podDir = mkdtempSync(join(tmpdir(), "mounts-"));
  let dead: string[] = []; // the newest
  let made = 0;
  try {
    for (let restart = 0; restart < 20; restart++) {
      const facts = { os: "linux", pod: pod(), container: { name: "c", terminationMessagePath: "/dev/termination-log" }, volumes: new Map(), environment: new Map(), podDir, hosts: undefined, mounted: new Set(dead), random: { bytes: () => Uint8Array.of(0, 0, 0, made++) } } as unknown as MountFacts;
      dead = [(await containerMounts(facts))[0]!.host_path!, ...dead].slice(0, 2);
    }
    expect(readdirSync(join(podDir, "containers/c")).sort()).toEqual(["00000011", "00000012", "00000013"]);
  } finally {
    rmSync(podDir, { recursive: true });
  }
});

test.skipIf(process.platform !== "linux")("a disk that hangs when a container's files are written holds up nobody else", async () => {
  const podDir = mkdtempSync(join(tmpdir(), "mounts-"));
  const slow = join(podDir, "etc-hosts"); // a pipe that nobody reads yet, as slow as that disk
  execFileSync("mkfifo", [slow]);
  const reader = spawn("sh", ["-c", 'sleep 1; cat "$0"', slow], { stdio: ["ignore", "pipe", "ignore"] });
  let turns = 0;
  const others = setInterval(() => void turns++, 20);
  try {
    const facts = { os: "linux", pod: pod(), container: { name: "c" }, volumes: new Map(), environment: new Map(), podDir, hosts: "127.0.0.1 localhost\n", mounted: new Set() } as unknown as MountFacts;
    expect(await containerMounts(facts)).toMatchObject([{ container_path: "/etc/hosts", host_path: slow }]);
    expect(turns).toBeGreaterThan(10);
  } finally {
    clearInterval(others);
    reader.kill();
    rmSync(podDir, { recursive: true });
  }
});
