import { expect, test } from "vitest";
import { silentEvents } from "../../../core/client/events.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { type Cri, CriError, type CriErrorCode } from "../../cri/client.ts";
import { globMatches } from "./host-glob.ts";
import { fullName, repositoryOf, withDefaultTag } from "../../cri/image-name.ts";
import { credentialsFor, keyMatches, parseDockerConfig } from "./keyring.ts";
import { imagePuller, type ImageRequest } from "./puller.ts";

const DIGEST = `sha256:${"0".repeat(64)}`;

test.each([
  ["busybox", "busybox:latest", "docker.io/library/busybox", ":latest"],
  ["a/b:1", "a/b:1", "docker.io/a/b", ":1"],
  ["localhost/b", "localhost/b:latest", "localhost/b", ":latest"],
  ["registry.example:5000/a/b", "registry.example:5000/a/b:latest", "registry.example:5000/a/b", ":latest"],
  [`x.io/a@${DIGEST}`, `x.io/a@${DIGEST}`, "x.io/a", `@${DIGEST}`],
  [`x.io:5000/a:1@${DIGEST}`, `x.io:5000/a:1@${DIGEST}`, "x.io:5000/a", `@${DIGEST}`],
  ["index.docker.io/a", "index.docker.io/a:latest", "docker.io/library/a", ":latest"],
])("%s", (image, tagged, repository, rest) => {
  expect([withDefaultTag(image), repositoryOf(image), fullName(image)]).toEqual([tagged, repository, `${repository}${rest}`]);
});

test("what is no image name", () => {
  expect(() => withDefaultTag("Busybox")).toThrow(`couldn't parse image name "Busybox": invalid reference format: repository name (library/Busybox) must be lowercase`);
  expect(() => withDefaultTag("EXAMPLE.com:5000/a/B:1")).toThrow("invalid reference format: repository name (a/B) must be lowercase");
  expect(() => withDefaultTag("0".repeat(64))).toThrow(`invalid repository name (${"0".repeat(64)}), cannot specify 64-byte hexadecimal strings`);
  expect(() => withDefaultTag("a-".repeat(500_000))).toThrow(/^couldn't parse image name "(a-){127}a…": invalid reference format$/);
  expect(withDefaultTag(`r.io:5000/${"a".repeat(255)}`)).toMatch(/:latest$/);
  expect(() => withDefaultTag(`r.io/${"a".repeat(256)}`)).toThrow("repository name must not be more than 255 characters");
  expect(() => withDefaultTag("V1__b/c")).toThrow(`couldn't parse image name "V1__b/c": repository name must be lowercase`);
  const digests: [string, string][] = [["sha256", "0".repeat(63)], ["sha512", "0".repeat(64)], ["sha256", "A".repeat(64)], ["md5", "0".repeat(32)]];
  const why = ([algorithm, hex]: [string, string]): string => { try { return withDefaultTag(`a@${algorithm}:${hex}`); } catch (error) { return (error as Error).message.replace(/^.*": /, ""); } };
  expect(digests.map(why)).toEqual(["invalid checksum digest length", "invalid checksum digest length", "invalid checksum digest format", "unsupported digest algorithm"]);
  expect(why(["sha384", "a".repeat(96)])).toBe(`a@sha384:${"a".repeat(96)}`);
  expect(() => withDefaultTag("a b")).toThrow(`couldn't parse image name "a b": invalid reference format`);
});

test("whose credentials fit", () => {
  const auth = (name: string) => ({ auth: Buffer.from(`${name}:pw`).toString("base64") });
  const entries = parseDockerConfig(JSON.stringify({ auths: { "https://index.docker.io/v1/": auth("hub"), "*.example.com": auth("wild"), "r.example.com/team": auth("team"), "reg:5000": auth("port") } }));
  const users = (image: string) => credentialsFor(image, entries).map(({ auth: { username } }) => username);
  expect(users("busybox")).toEqual(["hub"]);
  expect(users("r.example.com/team/x:1")).toEqual(["team", "wild"]);
  expect(users("r.example.com/other")).toEqual(["wild"]);
  expect(users("a.b.example.com/x")).toEqual([]);
  expect(users("reg:5000/x")).toEqual(["port"]);
  expect(users("reg:5001/x")).toEqual([]);
});

test.each([
  ["*", "", true], ["a*c", "abbc", true], ["a*c", "abcb", false], ["*a*b*", "xxaxxbxx", true], ["??", "ab", true], ["??", "a", false], ["r[a-c]?", "rbx", true], ["r[^a-c]", "rb", false], ["r[]]", "r]", false], ["r[\\]]", "r]", true],
  ["\\*", "*", true], ["\\*", "a", false], ["[b-a]", "a", false], ["[a", "a", false], ["a\\", "a\\", false], ["a.c", "abc", false], ["(a+)+", "a", false],
  [`${"*a".repeat(40)}*b`, "a".repeat(200), false], // with regular expressions, longer than the universe has been
])("the pattern %s and %s: %s", (glob, text, matches) => {
  expect(globMatches(glob, text)).toBe(matches);
});

test.each([
  ["reg:5000", "reg:5000/x", true], ["reg:", "reg/x", true], ["reg:*", "reg:5000/x", false], ["[::1]:5000", "[::1]:5000/x", true], ["*.example.com:443", "r.example.com:443/x", true], ["*.example.com", "r.example.com:443/x", false], ["reg/team", "reg/teams/x", true], ["reg/*", "reg/team", false],
])("the key %s and %s: %s", (key, repository, matches) => {
  expect(keyMatches(key, repository)).toBe(matches);
});

test("a failed pull is told, and then waited for", async () => {
  const told: string[] = [];
  const ensured: unknown[] = [];
  let nowMs = 0;
  const cri = { call: async (method: string) => {
    if (method === "ImageService/PullImage") throw new Error("rpc error: code = NotFound desc = no such image");
    return {};
  } } as unknown as Cri;
  const puller = imagePuller({ cri, clock: { ...systemClock, nowMs: () => nowMs }, events: { event: (_, type, reason, message) => void told.push(`${type} ${reason} ${message}`) }, serialize: true, onEnsured: (policy, found) => void ensured.push([policy, found]) });
  const request = { pod: { metadata: { uid: "u" } }, image: "x:1", policy: "IfNotPresent", about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => [] } as unknown as ImageRequest;
  const go = (more = {}) => puller.ensure({ ...request, ...more }, new AbortController().signal).catch((error: unknown) => `${(error as { reason: string }).reason}: ${(error as Error).message}`);
  expect(await go()).toBe("ErrImagePull: rpc error: code = NotFound desc = no such image");
  expect(await go()).toBe(`ImagePullBackOff: Back-off pulling image "x:1": ErrImagePull: rpc error: code = NotFound desc = no such image`);
  expect(puller.waitsUntilMs("u", "x:1")).toBe(10_000);
  nowMs = 10_000;
  expect(await go()).toMatch(/^ErrImagePull/);
  expect(puller.waitsUntilMs("u", "x:1")).toBe(30_000);
  expect(await go({ policy: "Never" })).toBe(`ErrImageNeverPull: Container image "x:1" is not present with pull policy of Never`);
  const pulled = ["IfNotPresent", { isPresent: false, mustPull: true }];
  expect(ensured).toEqual([pulled, pulled, pulled, ["Never", { isPresent: false }]]);
  expect(told).toEqual([
    `Normal Pulling Pulling image "x:1"`, `Warning Failed Failed to pull image "x:1": rpc error: code = NotFound desc = no such image`, `Normal BackOff Back-off pulling image "x:1"`,
    `Normal Pulling Pulling image "x:1"`, `Warning Failed Failed to pull image "x:1": rpc error: code = NotFound desc = no such image`, `Warning ErrImageNeverPull Container image "x:1" is not present with pull policy of Never`,
  ]);
});

test.each<[string, string, string, string]>([
  ["Unknown", "failed to resolve reference", "failed to resolve reference", "ErrImagePull: failed to resolve reference"],
  ["NotFound", "no such image", "rpc error: code = NotFound desc = no such image", "ErrImagePull: rpc error: code = NotFound desc = no such image"],
  ["Unknown", "RegistryUnavailable: it sleeps", "RegistryUnavailable: it sleeps", "RegistryUnavailable: image pull failed for x:1 because the registry is unavailable: it sleeps"],
  ["Unknown", "SignatureValidationFailed: whose?", "SignatureValidationFailed: whose?", "SignatureValidationFailed: image pull failed for x:1 because the signature validation failed: whose?"],
])("what the runtime says of a pull with code %s and %j is told in its own words", async (code, detail, told, failure) => {
  const said: string[] = [];
  const cri = { call: async (method: string) => { throw new CriError({ method, code: code as CriErrorCode, detail }); } } as unknown as Cri;
  const puller = imagePuller({ cri, clock: systemClock, events: { event: (_about, _type, _reason, message) => void said.push(message) }, serialize: true });
  const request = { pod: { metadata: { uid: "u" } }, image: "x:1", policy: "Always", about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => [] } as unknown as ImageRequest;
  expect(await puller.ensure(request, new AbortController().signal).catch((error: unknown) => `${(error as { reason: string }).reason}: ${(error as Error).message}`)).toBe(failure);
  expect(said.at(-1)).toBe(`Failed to pull image "x:1": ${told}`);
});

test("a pull that succeeds between two that fail does not make the wait short again, ten minutes of peace do", async () => {
  let nowMs = 1_000;
  let fails = true;
  const cri = { call: async (method: string) => {
    if (method === "ImageService/PullImage" && fails) throw new Error("no");
    return { image: { id: "i" } };
  } } as unknown as Cri;
  const puller = imagePuller({ cri, clock: { ...systemClock, nowMs: () => nowMs }, events: silentEvents.from({ component: "kubelet" }), serialize: true });
  const request = { pod: { metadata: { uid: "u" } }, image: "x:1", policy: "Always", about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => [] } as unknown as ImageRequest;
  const waits = async (atMs: number, failing = true): Promise<number | undefined> => {
    [nowMs, fails] = [atMs, failing];
    await puller.ensure(request, new AbortController().signal).catch(() => undefined);
    const untilMs = puller.waitsUntilMs("u", "x:1");
    return untilMs === undefined ? undefined : untilMs - nowMs;
  };
  expect([await waits(1_000), await waits(20_000, false), await waits(30_000), await waits(640_000)]).toEqual([10_000, undefined, 20_000, 10_000]);
  nowMs = 0; // the clock is set back
  expect(puller.waitsUntilMs("u", "x:1")).toBeUndefined();
});

test.each([[0, "0s"], [999.9, "999ms"], [61_500, "1m1.5s"], [3_661_500, "1h1m1.5s"]])("a pull of %i ms took %s", async (tookMs, told) => {
  const said: string[] = [];
  let uptimeMs = 0;
  const cri = { call: async (method: string) => {
    if (method === "ImageService/PullImage") uptimeMs += tookMs;
    return { image: { id: "i", size: "7" } };
  } } as unknown as Cri;
  const puller = imagePuller({ cri, clock: { ...systemClock, uptimeMs: () => uptimeMs }, events: { event: (_about, _type, _reason, message) => void said.push(message) }, serialize: true });
  await puller.ensure({ pod: { metadata: { uid: "u" } }, image: "x:1", policy: "Always", about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => [] } as unknown as ImageRequest, new AbortController().signal);
  expect(said.at(-1)).toBe(`Successfully pulled image "x:1" in ${told} (${told} including waiting). Image size: 7 bytes.`);
});

test("who does not want an image any more does not wait for those that are pulled before it, nor does anybody for him", async () => {
  const pulls = new Map<string, () => void>();
  const cri = { call: async (method: string, { image }: { image: { image: string } }) => {
    if (method === "ImageService/PullImage") await new Promise<void>((resolve) => pulls.set(image.image, resolve));
    return { image: { id: "i" } };
  } } as unknown as Cri;
  const puller = imagePuller({ cri, clock: systemClock, events: silentEvents.from({ component: "kubelet" }), serialize: true });
  const pull = (image: string, signal = new AbortController().signal) => puller.ensure({ pod: { metadata: { uid: image } }, image, policy: "Always", about: {}, sandbox: {}, runtimeHandler: "", credentials: async () => [] } as unknown as ImageRequest, signal);
  const gone = new AbortController();
  const first = pull("a:1");
  const second = pull("b:1", gone.signal).catch((error: unknown) => error);
  const third = pull("c:1");
  await expect.poll(() => [...pulls.keys()]).toEqual(["a:1"]);
  gone.abort(new Error("its pod is deleted"));
  expect(await second).toMatchObject({ message: "its pod is deleted" });
  pulls.get("a:1")!();
  await first;
  await expect.poll(() => [...pulls.keys()]).toEqual(["a:1", "c:1"]);
  pulls.get("c:1")!();
  expect(await third).toEqual({ id: "i" });
});

test("user and password of a docker configuration are base64, padded or not, on as many lines as there are; what is none is refused", () => {
  const read = (auth: string): unknown => parseDockerConfig(JSON.stringify({ auths: { a: { auth } } }))[0]?.auth;
  for (const auth of ["Zm9vOmJhcg==", "Zm9vOmJhcg", "Zm9vOm\nJhcg==\n", "Zm9vOmJhcg\r\n"]) expect(read(auth)).toEqual({ username: "foo", password: "bar" });
  expect(() => read("cGFudHM=")).toThrow("unable to parse auth field, must be formatted as base64(username:password)");
  for (const auth of ["Zm9vOmJhcg== ", "pants", "Zm9vOmJhcg=", "Zm9v!mJhcg==", "Zm9vOmJhcmE==="]) expect(() => read(auth)).toThrow("illegal base64 data at input byte");
});
