import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { BadName, localPathDirectories } from "./local-path.ts";

test("a directory is made once, and goes with what is in it, but not while something is mounted there", async () => {
  const base = realpathSync(mkdtempSync(join(tmpdir(), "local-path-")));
  const mounted: string[] = [];
  try {
    const directories = localPathDirectories({ root: join(base, "storage"), mounts: { list: () => mounted.map((target) => ({ target })) as never } });
    const path = await directories.make("pvc-1_ns_data-web-0");
    expect(path).toBe(join(base, "storage/pvc-1_ns_data-web-0"));
    expect(statSync(path).mode & 0o777).toBe(0o777);
    mkdirSync(join(path, "deep"));
    writeFileSync(join(path, "deep/file"), "x");
    await directories.make("pvc-1_ns_data-web-0");
    expect(existsSync(join(path, "deep/file"))).toBe(true);
    mounted.push(join(path, "deep"));
    await expect(directories.remove("pvc-1_ns_data-web-0")).rejects.toThrow("still mounted");
    symlinkSync(base, join(base, "link"));
    const linked = localPathDirectories({ root: join(base, "link/storage"), mounts: { list: () => mounted.map((target) => ({ target })) as never } });
    await expect(linked.remove("pvc-1_ns_data-web-0")).rejects.toThrow("still mounted");
    mounted.pop();
    await directories.remove("pvc-1_ns_data-web-0");
    await directories.remove("pvc-1_ns_data-web-0");
    expect(existsSync(path)).toBe(false);
    for (const name of ["", ".", "..", "../x", "a/b", ".hidden", "a_..", "a\0"]) await expect(directories.remove(name)).rejects.toThrow(BadName);
  } finally {
    rmSync(base, { recursive: true });
  }
});
