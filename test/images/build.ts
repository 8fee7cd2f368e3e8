/**
 * Images for tests, built offline from Debian packages: `bun test/images/build.ts DIRECTORY` writes them as OCI archives.
 *
 *   busybox.tar   docker.io/library/busybox:1     a shell, a web server, wget, nslookup: static
 *   redis.tar     docker.io/library/redis:8       redis-server and redis-cli with the libraries they need
 */
import { existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "../../installers/bundle/cache.ts";
import { Apt } from "../../installers/bundle/debian.ts";
import { type Image, imageTar } from "../../installers/bundle/image.ts";
import { run } from "../../installers/bundle/run.ts";
import type { TarEntry } from "../../installers/bundle/tar.ts";

const ARCHITECTURE = process.arch === "arm64" ? "arm64" : "amd64";
/** bookworm's static busybox has a wget that crashes. */
const SUITE = "trixie";
const NOT_NEEDED = /^(usr\/share\/(doc|man|locale|info|bash-completion|lintian|bug|gcc|gdb|perl|zoneinfo|icu)|usr\/lib\/(systemd|udev|init|tmpfiles\.d)|var\/(cache|lib\/(dpkg|apt))|etc\/(init\.d|default|apt))\b/;

function unpack(packages: readonly string[], directory: string): void {
  const apt = new Apt(ARCHITECTURE, [SUITE]);
  apt.update();
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  for (const deb of apt.downloadClosure(packages)) run("sh", ["-c", `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --keep-directory-symlink`, "sh", deb, directory]);
  apt.clean();
}

function* entriesOf(directory: string, below = ""): Iterable<TarEntry> {
  for (const name of readdirSync(join(directory, below)).sort()) {
    const path = below === "" ? name : `${below}/${name}`;
    if (NOT_NEEDED.test(path)) continue;
    const stat = lstatSync(join(directory, path));
    if (stat.isSymbolicLink()) yield { path, type: "symlink", target: readlinkSync(join(directory, path)) };
    else if (stat.isDirectory()) {
      yield { path, type: "directory", mode: stat.mode & 0o7777 };
      yield* entriesOf(directory, path);
    } else if (stat.isFile()) yield { path, type: "file", mode: stat.mode & 0o7777, data: readFileSync(join(directory, path)) };
  }
}

const BASE: readonly TarEntry[] = [
  { path: "etc/passwd", type: "file", mode: 0o644, data: Buffer.from("root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n") },
  { path: "etc/group", type: "file", mode: 0o644, data: Buffer.from("root:x:0:\nnogroup:x:65534:\n") },
];

function busybox(): Image {
  const directory = join(cacheDirectory("test-images"), "busybox");
  unpack(["busybox-static"], directory);
  const program = join(directory, "usr/bin/busybox");
  const applets = run(program, ["--list"]).trim().split("\n").filter((name) => name !== "busybox");
  const directories = ["bin", "etc", "root", "tmp", "var", "www"].map((path): TarEntry => ({ path, type: "directory", mode: path === "tmp" ? 0o1777 : 0o755 }));
  return {
    reference: "docker.io/library/busybox:1", command: ["sh"], environment: ["PATH=/bin"],
    platforms: [{
      architecture: ARCHITECTURE,
      files: [...directories, ...BASE, { path: "bin/busybox", type: "file", mode: 0o755, data: readFileSync(program) }, ...applets.map((name): TarEntry => ({ path: `bin/${name}`, type: "symlink", target: "busybox" }))],
    }],
  };
}

function redis(): Image {
  const directory = join(cacheDirectory("test-images"), "redis");
  unpack(["redis-server", "redis-tools", "dash"], directory);
  const files = [...entriesOf(directory)].filter(({ path }) => path !== "etc/passwd" && path !== "etc/group");
  const merged = ["bin", "sbin", "lib", "lib64"].filter((name) => !files.some(({ path }) => path === name)).map((name): TarEntry => ({ path: name, type: "symlink", target: `usr/${name}` }));
  return {
    reference: "docker.io/library/redis:8", command: ["redis-server", "--protected-mode", "no"], environment: ["PATH=/usr/bin:/bin"],
    platforms: [{ architecture: ARCHITECTURE, files: [...merged, ...files, { path: "data", type: "directory", mode: 0o777 }, ...BASE] }],
  };
}

const into = process.argv[2];
if (!into) throw new Error("usage: bun test/images/build.ts DIRECTORY");
mkdirSync(into, { recursive: true });
for (const [name, make] of [["busybox", busybox], ["redis", redis]] as const) {
  const path = join(into, `${name}.tar`);
  if (!existsSync(path)) writeFileSync(path, imageTar(make()));
  console.log(path);
}
