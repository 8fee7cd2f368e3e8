/** dist/linux-arm64/coracle under qemu's user mode. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { arm64Emulator } from "./debian.ts";
import { coracle, testProgram } from "./executables.ts";
import { finish, freePort, ok, Running } from "./processes.ts";

const HANDSHAKES_MAX = 5;

describe.skipIf(process.arch !== "x64")("arm64", () => {
  let qemu: readonly string[], arm64: string, x64: string;
  const directory = mkdtempSync(join(tmpdir(), "coracle-arm64-"));
  const dataDir = join(directory, "data"), kubeconfig = join(directory, "kubeconfig");
  const env = { KUBECONFIG: kubeconfig, CORACLE_DATA_DIR: join(directory, "x64") };
  /** kubectl gives a handshake ten seconds, which an emulated server beside clusters does not always keep: nothing has been asked by then, and it is asked again. */
  async function kubectl(args: readonly string[], input?: string): Promise<string> {
    for (let left = HANDSHAKES_MAX; ; left--) {
      const { code, stdout, stderr } = await finish([x64, "kubectl", ...args], { env, ...(input === undefined ? {} : { input }) });
      if (code === 0) return stdout;
      if (left === 0 || !stderr.includes("TLS handshake timeout")) throw new Error(`kubectl ${args.join(" ")}: exit ${code}\n${stdout}${stderr}`);
    }
  }

  beforeAll(() => {
    qemu = arm64Emulator();
    arm64 = coracle("linux-arm64");
    x64 = coracle("linux-x64");
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  test("says which version it is", async () => {
    const own = await ok([x64, "version"]);
    expect(await ok([...qemu, arm64, "version"])).toBe(own);
  });

  test("the store contract holds over LevelDB", async () => {
    const program = testProgram("linux-arm64", "store-contract.ts", ["--alias", `vitest=${join(import.meta.dirname, "contract-runner.ts")}`]);
    const { code, stdout } = await finish([...qemu, program]);
    expect(stdout.trim().split("\n").at(-1), stdout).toMatch(/^linux arm64: [1-9]\d* passed, 0 failed$/);
    expect(code).toBe(0);
  });

  test("its API server serves kubectl: create, list, apply, watch, delete; and its store is sound afterwards", async () => {
    const port = await freePort();
    await using server = new Running([...qemu, arm64, "server", "--disable-agent", "--data-dir", dataDir, "--write-kubeconfig", kubeconfig, "--https-listen-port", String(port), "--bind-address", "127.0.0.1", "--node-name", "arm"], { name: "server" });
    await server.until("ready", async () => (await finish([x64, "kubectl", "get", "--raw", "/readyz"], { env })).stdout === "ok" || undefined);
    expect(JSON.parse(await kubectl(["version", "-o", "json"]))).toMatchObject({ serverVersion: { platform: "linux/arm64" } });

    await kubectl(["create", "configmap", "a", "--from-literal=x=1"]);
    await using watching = new Running([x64, "kubectl", "get", "configmap", "a", "--watch", "--output-watch-events", "-o", "jsonpath={.type} {.object.data.x}{\"\\n\"}", "--request-timeout=600s"], { name: "watch", env });
    const told = (line: string): Promise<true> => watching.until(`told ${line}`, () => watching.output.includes(`${line}\n`) || undefined);
    await told("ADDED 1");
    await kubectl(["apply", "--server-side", "--force-conflicts", "-f", "-"], "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\ndata: {x: \"2\"}\n");
    await kubectl(["create", "deployment", "web", "--image=example.com/web:1", "--replicas=2"]);
    expect(await kubectl(["wait", "--for=create", "pod", "-l", "app=web", "--timeout=300s"])).toContain("condition met"); // controllers run
    expect((await kubectl(["get", "configmaps", "-A", "-o", "name"])).split("\n")).toContain("configmap/a");
    await kubectl(["delete", "configmap", "a"]);
    await told("MODIFIED 2");
    await told("DELETED 2");

    expect(await server.stop(), server.output).toBe(0);
    expect(await ok([...qemu, arm64, "check", "--data-dir", dataDir])).toMatch(/\nnothing is wrong\n$/);
    expect(await ok([x64, "check", "--data-dir", dataDir])).toMatch(/\nnothing is wrong\n$/); // the same on any machine
  });
});
