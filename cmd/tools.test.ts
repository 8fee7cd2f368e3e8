import { chmodSync, mkdirSync, mkdtempSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cacheDirectory, runtimeSocket } from "./tools.ts";

const uid = process.getuid!();
const homeless = (): string => { throw new Error("ENOENT: no such file or directory, uv_os_homedir"); };

test.each([
  [{ XDG_CACHE_HOME: "/c", HOME: "/h" }, "/c/coracle"], [{ HOME: "/h" }, "/h/.cache/coracle"], [{ XDG_CACHE_HOME: "", HOME: "" }, "/from/passwd/.cache/coracle"], [{}, "/from/passwd/.cache/coracle"],
])("of a user with %j the programs are in %s", (env, expected) => {
  expect(cacheDirectory(env, { home: () => "/from/passwd", temporary: "/nowhere", uid })).toBe(expected);
});

test("who has no home runs nothing that somebody else has put into the directory for all", () => {
  const temporary = mkdtempSync(join(tmpdir(), "tools-")), own = join(temporary, `coracle-cache-${uid}`);
  const asked = () => cacheDirectory({}, { home: homeless, temporary, uid });
  expect(asked()).toBe(own);
  expect(statSync(own).mode & 0o777).toBe(0o700);
  expect(asked()).toBe(own);
  chmodSync(own, 0o777);
  expect(asked).toThrow(`${own} is not this user's alone`);
  const theirs = join(temporary, "coracle-cache-4711");
  mkdirSync(theirs, { mode: 0o700 });
  expect(() => cacheDirectory({}, { home: homeless, temporary, uid: 4711 })).toThrow("is not this user's alone");
  symlinkSync(theirs, join(temporary, "coracle-cache-4712"));
  expect(() => cacheDirectory({}, { home: homeless, temporary, uid: 4712 })).toThrow("is not this user's alone");
});

test("the runtime is asked where the node has it: on Windows at its own pipe", () => {
  const at = (platform: NodeJS.Platform, containerRuntimeEndpoint?: string) => runtimeSocket({ dataDir: "/data", containerRuntimeEndpoint }, platform);
  expect([at("linux"), at("win32"), at("linux", "unix:///run/x.sock"), at("win32", "npipe:////./pipe/other")]).toEqual(["/data/agent/run/containerd.sock", "npipe:////./pipe/containerd-containerd", "/run/x.sock", "npipe:////./pipe/other"]);
});
