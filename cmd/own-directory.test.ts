import { chmodSync, chownSync, lstatSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ownDirectory } from "./own-directory.ts";
import { paths } from "./paths.ts";

let dir = "";
beforeEach(() => { dir = mkdtempSync(join(tmpdir(), "own-directory-")); });
afterEach(() => rmSync(dir, { recursive: true }));

const open = (...names: readonly string[]): string => {
  const path = join(dir, ...names);
  mkdirSync(path, { recursive: true });
  for (let at = path; at !== dir; at = dirname(at)) chmodSync(at, 0o777);
  return path;
};
const rights = (path: string): number => statSync(path).mode & 0o777;

test("what is too open is closed: who wrote there before cannot any more, and nobody else reads the store", () => {
  const store = open("server", "db"), copies = open("server", "tls", "copies"), agent = open("agent"), pods = open("agent", "kubelet");
  chmodSync(dir, 0o777);
  ownDirectory(paths(dir));
  expect([store, copies, join(dir, "server"), agent, dir].map((path) => rights(path).toString(8))).toEqual(["700", "700", "700", "755", "755"]);
  expect(rights(pods)).toBe(0o777); // what containers see of it is theirs
});

test("a directory that is not there yet, and one whose links its owner made, are fine", () => {
  ownDirectory(paths(join(dir, "new")));
  const disk = open("disk");
  mkdirSync(join(dir, "data", "server"), { recursive: true });
  symlinkSync(disk, join(dir, "data", "server", "db"));
  ownDirectory(paths(join(dir, "data")));
  expect(lstatSync(join(dir, "data", "server", "db")).isSymbolicLink()).toBe(true);
});

test.skipIf(process.platform === "win32" || process.getuid?.() !== 0).each([["server"], ["server/db"], ["server/tls/copies"], ["agent"], ["native"], ["server/reserve.next"], ["server/db/LOG"]])("nothing begins where %s is somebody else's", (name) => {
  const path = join(dir, name);
  mkdirSync(dirname(path), { recursive: true });
  if (/[.]next$|LOG$/.test(name)) writeFileSync(path, "");
  else mkdirSync(path, { recursive: true });
  chownSync(path, 1234, 1234);
  expect(() => ownDirectory(paths(dir))).toThrow(`${path} belongs to user 1234`);
  chownSync(path, 0, 0);
  ownDirectory(paths(dir));
});

test.skipIf(process.platform === "win32" || process.getuid?.() !== 0)("of a disk that is somebody else's it is told, and what administrators bring may be anybody's", () => {
  for (const name of ["server/manifests", "server/executables", "server/snapshots", "agent/images"]) chownSync(open(...name.split("/")), 1234, 1234);
  writeFileSync(join(dir, "server/manifests/web.yaml"), "");
  for (const path of ["server/manifests/web.yaml", "."]) chownSync(join(dir, path), 1234, 1234);
  expect(ownDirectory(paths(dir))).toEqual({ owner: 1234 });
  chownSync(dir, 0, 0);
  expect(ownDirectory(paths(dir))).toBeUndefined();
});
