/** Debian packages unpacked into directories of their own in the cache, each made once. apt checks the archive's signature. */
import { existsSync, mkdirSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, hashOf, scratchDirectory } from "../../installers/bundle/cache.ts";
import { Apt } from "../../installers/bundle/debian.ts";
import { run } from "../../installers/bundle/run.ts";
import type { Architecture } from "../../installers/bundle/versions.ts";

const SUITE = "trixie";

interface Root {
  readonly name: string;
  readonly architecture: Architecture;
  readonly packages: readonly string[];
  /** Paths that are not kept: most of these packages is for other uses. */
  readonly without?: readonly string[];
  /** Last touches, on the new directory. */
  readonly finish?: (directory: string) => void;
}

function ensureRoot({ name, architecture, packages, without = [], finish }: Root): string {
  const directory = cacheDirectory("platforms", `${name}-${hashOf(SUITE, architecture, ...packages, ...without, String(finish))}`);
  if (existsSync(directory)) return directory;
  const apt = new Apt(architecture, [SUITE]);
  apt.update();
  using scratch = scratchDirectory(`platforms-${name}`);
  const temporary = `${directory}.${process.pid}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  mkdirSync(temporary, { recursive: true });
  apt.download(packages, scratch.path);
  for (const deb of new Bun.Glob("*.deb.new").scanSync(scratch.path))
    run("sh", ["-c", 'dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" $3', "sh", join(scratch.path, deb), temporary, without.map((path) => `--exclude=./${path}`).join(" ")]);
  for (const lib of ["lib", "lib64"]) if (existsSync(join(temporary, "usr", lib))) symlinkSync(`usr/${lib}`, join(temporary, lib));
  finish?.(temporary);
  renameSync(temporary, directory);
  return directory;
}

/** How to run arm64 programs: put this in front of them. */
export function arm64Emulator(): readonly string[] {
  const qemu = ensureRoot({ name: "qemu", architecture: "amd64", packages: ["qemu-user"], without: ["usr/share", "usr/bin/qemu-[b-z]*", "usr/bin/qemu-arm*", "usr/bin/qemu-alpha", "usr/bin/qemu-amd64"] });
  const root = ensureRoot({ name: "libc", architecture: "arm64", packages: ["libc6"], without: ["usr/share", "usr/lib/aarch64-linux-gnu/gconv"] });
  return [join(qemu, "usr/bin/qemu-aarch64"), "-L", root];
}

/** Graphics, sound, browsers and old C libraries: half of wine. */
const NOT_FOR_SERVERS = ["d3d*", "d2d*", "wined3d*", "opengl*", "glu32*", "ddraw*", "dx*", "d*x8.dll", "xa*", "x3d*", "mshtml*", "jscript*", "ieframe*", "wmp*", "quartz*", "mf*", "winedbg*", "*.msstyles", "msvc[pr][1-9]*", "mfc*", "vcomp*", "concrt*", "msxml*", "windowscodecs*"];

/** A root directory with wine in it, to chroot into: it wants a newer C library than the machine may have. */
export function wineRoot(): string {
  return ensureRoot({
    name: "wine", architecture: "amd64", packages: ["wine64", "libwine", "libc6", "libgcc-s1", "libunwind8", "liblzma5", "libz-mingw-w64"],
    without: ["usr/share/doc", "usr/share/man", "usr/lib/x86_64-linux-gnu/wine/i386-windows", "usr/lib/x86_64-linux-gnu/gconv", ...NOT_FOR_SERVERS.map((name) => `usr/lib/x86_64-linux-gnu/wine/x86_64-windows/${name}`)],
    finish: finishWine,
  });
}

function finishWine(directory: string): void {
  const wine = join(directory, "usr/lib/wine");
  rmSync(join(wine, "wineserver")); // a shell script, and there is no shell
  renameSync(join(wine, "wineserver64"), join(wine, "wineserver"));
  run("cp", [join(directory, "usr/x86_64-w64-mingw32/lib/zlib1.dll"), join(directory, "usr/lib/x86_64-linux-gnu/wine/x86_64-windows")]);
  for (const empty of ["proc", "dev", "tmp", "root", "prefix", "programs", "here"]) mkdirSync(join(directory, empty));
  run("cp", ["/etc/hosts", join(directory, "etc/hosts")]);
}

if (import.meta.main) console.log([...arm64Emulator(), wineRoot()].join("\n"));
