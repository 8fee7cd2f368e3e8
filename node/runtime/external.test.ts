import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { silentLog } from "../../core/observe/log.ts";
import { type Cri, CriError, type CriErrorCode } from "../cri/client.ts";
import { memoryRuntime } from "../cri/memory-runtime.ts";
import { answerOf, cniBinDirOf, decodeConfig, installPlugins, pinning } from "./external.ts";

const directory = mkdtempSync(join(tmpdir(), "external-"));
afterAll(() => rmSync(directory, { recursive: true }));

test("where the runtime looks for CNI plug-ins: containerd says so, in each of its versions; others do not", () => {
  const where = (text: string | undefined) => cniBinDirOf(decodeConfig(text));
  expect(where(`{"cni":{"binDir":"/usr/lib/cni","confDir":"/etc/cni/net.d"}}`)).toBe("/usr/lib/cni");
  expect(where(`{"cni":{"binDir":"","binDirs":["/a","/b"]}}`)).toBe("/a");
  expect([where(`{"cni":{"binDir":""}}`), where("{}"), where("[crio]\n"), where(undefined)]).toEqual(Array(4).fill("/opt/cni/bin"));
});

test("a runtime that does not answer is told and waited for; what speaks no CRI is no runtime; who is told to stop waits no more", async () => {
  const told: unknown[] = [];
  const log = { ...silentLog, warn: (_: string, facts: object = {}) => void told.push(facts) };
  const stop = new AbortController();
  let uptimeMs = 0;
  const clock = { uptimeMs: () => uptimeMs, sleep: async (ms: number) => void (uptimeMs += ms) };
  const asked = (...codes: readonly (CriErrorCode | "starts" | "stop")[]) => {
    const left = [...codes];
    const call = (method: string): Promise<unknown> => {
      const code = left.shift();
      if (code === "stop") stop.abort();
      if (code === undefined) return Promise.resolve({ info: { config: "{}" } });
      return Promise.reject(code === "starts" ? new CriError({ method, code: "Unknown", detail: "server is not initialized yet" }) : new CriError({ method, code: code === "stop" ? "Canceled" : code, detail: "no" }));
    };
    return answerOf({ cri: { call: call as Cri["call"] }, endpoint: "/run/none.sock", clock, log }, stop.signal);
  };
  const fact = (code: string) => ({ endpoint: "/run/none.sock", error: `rpc error: code = ${code} desc = no` });
  expect(await asked("DeadlineExceeded", "Unavailable")).toEqual({ info: { config: "{}" } });
  expect(told).toEqual([fact("DeadlineExceeded")]);
  told.length = 0;
  const sinceMs = uptimeMs;
  expect(await asked("starts", ...Array<CriErrorCode>(250).fill("Unavailable"))).toEqual({ info: { config: "{}" } }); // as containerd does while it starts
  expect([told, uptimeMs > sinceMs]).toEqual([[fact("Unavailable"), fact("Unavailable")], true]);
  await expect(asked("Unimplemented")).rejects.toThrow("what listens at /run/none.sock (--container-runtime-endpoint) speaks no CRI");
  await expect(asked("Internal")).rejects.toThrow("rpc error: code = Internal desc = no");
  await expect(asked("Unknown")).rejects.toThrow("rpc error: code = Unknown desc = no");
  expect(await asked("stop")).toBeUndefined();
});

test("the image of sandboxes is shown as pinned, so that nobody collects it", async () => {
  const runtime = memoryRuntime({ nowMs: () => 0 });
  for (const name of ["pause:1", "web:1"]) runtime.images.add(name);
  const { images = [] } = await pinning(runtime, () => "pause:1").call("ImageService/ListImages", {});
  expect(images.map(({ repo_tags, pinned }) => [repo_tags?.[0], pinned ?? false])).toEqual([["pause:1", true], ["web:1", false]]);
});

test.skipIf(process.platform !== "linux")("plug-ins find our tools; those that are there stay; loopback answers in the version it is asked in", () => {
  const [own, cniBinDir, binDir] = ["its own", "cni", "it's ours"].map((name) => join(directory, name)) as [string, string, string];
  for (const path of [own, cniBinDir, binDir]) mkdirSync(path);
  const program = (path: string, text: string) => writeFileSync(path, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  program(join(own, "bridge"), "echo its own");
  program(join(cniBinDir, "bridge"), "echo ours");
  program(join(cniBinDir, "portmap"), "nft");
  program(join(binDir, "nft"), "cat");
  program(join(binDir, "ip"), `printf '%s\\n' "$*" > '${directory}/ip'`);
  expect(installPlugins(own, { cniBinDir, binDir })).toEqual(["portmap", "loopback"]);
  expect(installPlugins(own, { cniBinDir, binDir })).toEqual([]);
  const call = (name: string, input: string) => spawnSync(join(own, name), { input, encoding: "utf8", env: { PATH: process.env["PATH"], CNI_COMMAND: "ADD", CNI_NETNS: "/run/netns/cni-1" } }).stdout;
  expect([call("bridge", ""), call("portmap", "asked")]).toEqual(["its own\n", "asked"]);
  expect(JSON.parse(call("loopback", `{"cniVersion":"0.3.1","name":"cni-loopback","type":"loopback"}`))).toEqual({ cniVersion: "0.3.1", interfaces: [{ name: "lo", mac: "00:00:00:00:00:00", sandbox: "/run/netns/cni-1" }], dns: {} });
  expect(readFileSync(join(directory, "ip"), "utf8")).toBe("-n ../../../run/netns/cni-1 link set lo up\n");
});
