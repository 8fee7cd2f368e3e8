/** What of the build can be wrong without anyone noticing. That it builds and runs is seen by building and running it. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { debianMirror, goneMessage, parseMadison } from "./debian.ts";
import { imageTar } from "./image.ts";
import { run } from "./run.ts";
import { buildDependencies } from "./static.ts";
import { tar } from "./tar.ts";
import { LAUNCHED, RUNTIME_PINS, TOOL_PINS } from "./versions.ts";

const pins = [...RUNTIME_PINS, ...TOOL_PINS];

test("every pin has a checksum per architecture and a reason, and no two make the same file", () => {
  for (const pin of pins) {
    for (const checksum of Object.values(pin.sha256)) expect(checksum, pin.package).toMatch(/^[0-9a-f]{64}$/);
    expect(pin.sha256.amd64, pin.package).not.toBe(pin.sha256.arm64);
    expect(pin.why, pin.package).not.toBe("");
  }
  const made = pins.flatMap(({ files }) => Object.values(files));
  expect(made.toSorted()).toEqual([...new Set(made)].toSorted());
  for (const tool of LAUNCHED) expect(made).toContain(`lib/${tool}`);
});

test.each([
  ["one line", "# comment\ndeb [signed-by=/k.gpg] https://other.example/repo stable non-free\ndeb http://mirror.example/debian bookworm main contrib\n", "http://mirror.example/debian"],
  ["deb822", "Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie trixie-updates\nComponents: main\nSigned-By: /k.gpg\n", "http://mirror.example/debian"],
  ["security first", "Types: deb\nURIs: http://mirror.example/debian-security\nSuites: trixie-security\nComponents: main\n\nTypes: deb\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n", "http://mirror.example/debian"],
  ["disabled", "Types: deb\nEnabled: no\nURIs: http://mirror.example/debian\nSuites: trixie\nComponents: main\n", undefined],
  ["other software", "deb https://other.example/repo nodistro main\n", undefined],
])("the Debian mirror is found in apt's sources: %s", (_, text, mirror) => {
  expect(debianMirror([text])).toBe(mirror);
});

test("a pin that is gone is named, with what there is now and the way on", () => {
  const offers = parseMadison("kubectl | 1.36.5+ds-1 | http://mirror.example/debian sid/main amd64 Packages\n   kubectl | 1.36.5+ds-1 | http://mirror.example/debian forky/main amd64 Packages\n");
  expect(offers.get("kubectl")).toEqual([{ version: "1.36.5+ds-1", suite: "sid" }, { version: "1.36.5+ds-1", suite: "forky" }]);
  const kubectl = pins.find((pin) => pin.package === "kubectl")!;
  expect(goneMessage([{ pin: kubectl, version: "1.36.4+ds-1", now: "1.36.5+ds-1" }], "amd64")).toBe([
    "1 pinned package(s) of installers/bundle/versions.ts are no longer on the Debian mirror:", "  kubectl 1.36.4+ds-1 (forky, amd64): the mirror now has 1.36.5+ds-1",
    "Pin the new version and its checksum there, or build with what is there now (checked by the archive's signature only):", "  CORACLE_ACCEPT_VERSIONS=kubectl",
  ].join("\n"));
});

test("build dependencies are those of the version asked for", () => {
  const text = "Package: x\nVersion: 1\nBuild-Depends: golang-old-dev\n\nPackage: x\nVersion: 2+ds\nBuild-Depends: debhelper-compat (= 13), golang-a-dev (>= 1.2), golang-b-dev <!nocheck> | y, libc-dev\n";
  expect(buildDependencies(text, "2+ds")).toEqual(["golang-a-dev", "golang-b-dev"]);
});

test("tar reads what we write, long names included, and the same image has the same bytes", () => {
  const directory = mkdtempSync(join(tmpdir(), "bundle-"));
  try {
    const long = `${"d/".repeat(60)}${"f".repeat(120)}`;
    writeFileSync(join(directory, "a.tar"), tar([{ path: "dir", type: "directory" }, { path: "dir/file", mode: 0o750, data: Buffer.from("hello") }, { path: "link", type: "symlink", target: "dir/file" }, { path: long, data: Buffer.alloc(600) }]));
    expect(run("tar", ["-tvf", join(directory, "a.tar")]).trim().split("\n").map((line) => line.replace(/\s+/g, " ").replace(/ \S+ \S+ (?=dir|link|d\/)/, " "))).toEqual([
      "drwxr-xr-x 0/0 0 dir/", "-rwxr-x--- 0/0 5 dir/file", "lrwxrwxrwx 0/0 0 link -> dir/file", `-rw-r--r-- 0/0 600 ${long}`,
    ].map((line) => expect.stringContaining(line.replace(/^l\S+ /, ""))));
  } finally {
    rmSync(directory, { recursive: true });
  }
  const image = { reference: "example.com/a:1", platforms: [{ architecture: "amd64", files: [{ path: "a", data: Buffer.from("x") }] }] };
  expect(imageTar(image).equals(imageTar(image))).toBe(true);
});
