/** dist/windows-x64/coracle.exe under wine, beside a server of this machine's own. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { FLAGS } from "../../cmd/config/flags.ts";
import { coracle, testProgram } from "./executables.ts";
import { finish, freePort, ok, Running } from "./processes.ts";
import { openWindows, type Windows } from "./wine.ts";

const PIPE = "\\\\.\\pipe\\containerd-containerd";
const POD = (name: string, extra: object): string => JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default" }, spec: { automountServiceAccountToken: false, containers: [{ name: "app", image: "example.com/app:1" }], ...extra } });
const FOR_WINDOWS = { os: { name: "windows" }, nodeSelector: { "kubernetes.io/os": "windows" }, tolerations: [{ key: "os", value: "windows", effect: "NoSchedule" }] };

describe.skipIf(process.arch !== "x64" || process.getuid?.() !== 0)("Windows", () => {
  let windows: Windows, x64: string, server: Running, token: string, url: string;
  const directory = mkdtempSync(join(tmpdir(), "coracle-windows-server-"));
  const env = { KUBECONFIG: join(directory, "kubeconfig"), CORACLE_DATA_DIR: join(directory, "x64") };
  const kubectl = (args: readonly string[], input?: string): Promise<string> => ok([x64, "kubectl", ...args], { env, ...(input === undefined ? {} : { input }) });
  /** Undefined while kubectl has no answer that `holds`. */
  const look = async (args: readonly string[], holds: (answer: string) => boolean): Promise<string | undefined> => {
    const { code, stdout } = await finish([x64, "kubectl", ...args], { env });
    return code === 0 && holds(stdout) ? stdout : undefined;
  };
  const isReady = (name: string): Promise<string | undefined> => look(["get", "node", name, "-o", 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'], (status) => status === "True");

  beforeAll(async () => {
    x64 = coracle("linux-x64");
    windows = await openWindows({ programs: [coracle("windows-x64"), testProgram("windows-x64", "fake-runtime.ts")] });
    const port = await freePort();
    url = `https://127.0.0.1:${port}`;
    server = new Running([x64, "server", "--disable-agent", "--data-dir", join(directory, "data"), "--write-kubeconfig", env.KUBECONFIG, "--https-listen-port", String(port), "--bind-address", "127.0.0.1", "--advertise-address", "127.0.0.1", "--node-name", "server"], { name: "server" });
    await server.until("ready", () => look(["get", "--raw", "/readyz"], (answer) => answer === "ok"));
    token = readFileSync(join(directory, "data/server/token"), "utf8").trim();
  });
  afterAll(async () => {
    await server?.stop();
    await windows?.[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  test("says which version it is", async () => {
    const { code, stdout } = await windows.run("coracle.exe", ["version"]);
    expect([code, stdout]).toEqual([0, await ok([x64, "version"])]);
  });

  test("joins, registers as what it is, becomes Ready, runs a Windows pod and no Linux pod", async () => {
    await using runtime = windows.start("fake-runtime.exe", [PIPE, "example.com/app:1"]);
    await runtime.until("serving", () => runtime.output.includes("serving"));
    await using agent = windows.start("coracle.exe", ["agent", "--server", url, "--token", token, "--node-name", "win-1", "--kubelet-port", String(await freePort()), "--kubelet-arg", "eviction-hard=memory.available<100Mi" /* how full this machine is does not matter */]);
    await agent.until("Ready", () => isReady("win-1"));

    const { metadata, spec, status } = JSON.parse(await kubectl(["get", "node", "win-1", "-o", "json"])) as { metadata: { labels: Record<string, string> }; spec: { taints: object[] }; status: { nodeInfo: Record<string, string> } };
    expect(metadata.labels).toMatchObject({ "kubernetes.io/os": "windows", "kubernetes.io/arch": "amd64", "node.kubernetes.io/windows-build": expect.stringMatching(/^10\.0\.\d{5}$/) });
    expect(spec.taints).toContainEqual({ key: "os", value: "windows", effect: "NoSchedule" });
    expect(status.nodeInfo).toMatchObject({ operatingSystem: "windows", kernelVersion: expect.stringMatching(/^10\.0\./), containerRuntimeVersion: "memory://1" });

    await kubectl(["apply", "-f", "-"], POD("linux", {}));
    await kubectl(["apply", "-f", "-"], POD("win", FOR_WINDOWS));
    await agent.until("a running pod", () => look(["get", "pod", "win", "-o", "jsonpath={.status.phase}"], (phase) => phase === "Running"));
    expect(await kubectl(["get", "pod", "win", "-o", "jsonpath={.spec.nodeName}"])).toBe("win-1");
    expect(runtime.output).toMatch(/RunPodSandbox win\r?\nCreateContainer app\r?\nStartContainer app/);
    await agent.until("the Linux pod refused", () => look(["get", "pod", "linux", "-o", "jsonpath={.status.conditions[0].message}"], (message) => message.includes("untolerated taint")));
    await kubectl(["delete", "pod", "win", "--timeout=300s"]);
    expect(runtime.output).toContain("StopContainer app");
  });

  test("runs under the service manager, and stops when it is told to", async () => {
    mkdirSync(windows.pathOf("C:\\etc\\coracle"), { recursive: true });
    writeFileSync(windows.pathOf("C:\\etc\\coracle\\config.yaml"), `server: ${url}\ntoken: ${JSON.stringify(token)}\nnode-name: win-2\ndata-dir: C:\\var\\lib\\service\nkubelet-port: ${await freePort()}\nkubelet-arg: [shutdown-grace-period=20s, shutdown-grace-period-critical-pods=5s]\n`);
    await using runtime = windows.start("fake-runtime.exe", [PIPE]);
    await runtime.until("serving", () => runtime.output.includes("serving"));
    const state = async (): Promise<string> => /STATE\s+: \d\s+(\w+)/.exec((await windows.run("sc.exe", ["query", "coracle"])).stdout)?.[1] ?? "";
    await windows.run("sc.exe", ["create", "coracle", "binPath=", "C:\\programs\\coracle.exe agent --windows-service"]);
    try {
      await windows.run("sc.exe", ["start", "coracle"]);
      await runtime.until("Ready", () => isReady("win-2"));
      expect(await state()).toBe("RUNNING");
      await windows.run("sc.exe", ["stop", "coracle"]);
      await runtime.until("stopped", async () => (await state()) === "STOPPED");
      const log = readFileSync(windows.pathOf("C:\\var\\lib\\service\\agent\\coracle.log"), "utf8");
      expect(log).not.toContain("may not wait for its pods"); // the service manager has been told how long
      expect(log).toMatch(/"reason":"the service manager","msg":"coracle agent has ended"\}\n$/);
    } finally {
      await windows.run("sc.exe", ["delete", "coracle"]);
    }
  });

  test("looks over a store that Linux has written", async () => {
    await server.stop();
    cpSync(join(directory, "data/server/db"), join(windows.here, "data/server/db"), { recursive: true });
    const { code, stdout } = await windows.run("coracle.exe", ["check", "--data-dir", "C:\\here\\data"]);
    expect([code, stdout], stdout).toEqual([0, expect.stringMatching(/\nnothing is wrong\n$/)]);
  });
});

test("the installer's settings are the agent's flags", () => {
  const script = readFileSync(join(import.meta.dirname, "../../installers/windows/install.ps1"), "utf8");
  const given = /\$given = \[ordered\]@\{(.*)\}/.exec(script)?.[1] ?? "";
  const names = [...given.matchAll(/'([a-z-]+)' = \$/g)].map(([, name]) => name);
  expect(names).toEqual(expect.arrayContaining(["server", "token", "kubelet-port"]));
  const known: string[] = FLAGS.filter(({ commands }) => (commands as readonly string[]).includes("agent")).map(({ name }) => name);
  for (const name of [...names, "windows-service"]) expect(known).toContain(name);
});
