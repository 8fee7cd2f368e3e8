import { mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import type { Mounts } from "../os/mount.ts";
import { type ContainerRuntimeDeps, type ContainerRuntimeOptions, containerRuntime } from "./runtime.ts";

test.skipIf(process.platform !== "linux")("a data directory from which nothing can be run is said to be one, instead of programs that may not be started, for ever", async () => {
  const dataDir = mkdtempSync(join(realpathSync(tmpdir()), "runtime-"));
  const mounts = { list: () => [{ target: dataDir, options: ["rw", "noexec"], fsType: "ext4", source: "/dev/sda", superOptions: [] }] } as Partial<Mounts> as Mounts;
  const runtime = containerRuntime({ dataDir, asset: { hash: "" } } as ContainerRuntimeOptions, { mounts, clock: systemClock, log: silentLog } as Partial<ContainerRuntimeDeps> as ContainerRuntimeDeps);
  await expect(runtime.run(new AbortController().signal, () => undefined)).rejects.toThrow(`${dataDir}/agent is on a file system that is mounted noexec, and nothing can be run from there: mount ${dataDir} with exec, or have the data somewhere else (--data-dir)`);
  rmSync(dataDir, { recursive: true });
});
