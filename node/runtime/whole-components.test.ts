import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { zstdCompressSync } from "node:zlib";
import { afterAll, expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { execOk } from "../os/exec.ts";
import { unpackBundle } from "./unpack.ts";
import { wholeComponents } from "./whole-components.ts";

const directory = mkdtempSync(join(tmpdir(), "components-"));
afterAll(() => rmSync(directory, { recursive: true }));

test("components are looked at a while after the start and once a day; containerd is started anew where it was damaged itself; who cannot use them has them looked at once", async () => {
  mkdirSync(join(directory, "from/bin"), { recursive: true });
  for (const name of ["containerd", "runc"]) writeFileSync(join(directory, "from/bin", name), name, { mode: 0o755 });
  await execOk("tar", ["-C", join(directory, "from"), "-cf", join(directory, "from.tar"), "bin"]);
  const asset = { path: join(directory, "from.tar.zst"), hash: "some" }, agentDir = join(directory, "agent");
  writeFileSync(asset.path, zstdCompressSync(readFileSync(join(directory, "from.tar"))));
  await unpackBundle({ asset, agentDir, log: silentLog });
  const tool = (name: string): string => join(agentDir, "current/bin", name);

  const stop = new AbortController(), slept: number[] = [];
  const damage = ["runc", "containerd"]; // before each look
  let restarts = 0;
  const clock = { ...systemClock, async sleep(ms: number) {
    if (ms < 60_000) return;
    slept.push(ms);
    const name = damage.shift();
    if (name === undefined) stop.abort();
    else writeFileSync(tool(name), name.replace("c", "d"));
  } };
  const components = wholeComponents({ asset, agentDir, log: silentLog }, { clock, log: silentLog, restart: async () => void restarts++ });
  await components.keep(stop.signal);
  expect([slept, restarts, ["runc", "containerd"].map((name) => readFileSync(tool(name), "utf8"))]).toEqual([[120_000, 86_400_000, 86_400_000], 1, ["runc", "containerd"]]);
  writeFileSync(tool("runc"), "rund");
  await Promise.all([components.mend(new AbortController().signal), components.mend(new AbortController().signal)]);
  expect(readFileSync(tool("runc"), "utf8")).toBe("runc");
});
