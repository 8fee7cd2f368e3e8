/**
 * The release flavour of the container runtime: containerd, its shim, ctr, runc and the CNI plugins, rebuilt statically from Debian's golang-*-dev packages.
 *
 * A throw-away root of Debian packages (about 3.5 GB) is unpacked in the cache, the Go compiler of that root runs in a chroot inside a private mount namespace,
 * for either architecture. Needs root and some minutes; the seven programs are cached by the versions of what they were built from, the root is removed.
 * The source packages' own archives are sometimes missing from mirrors, so the sources are those of the -dev packages; only the CNI plugins, which have none,
 * come from their orig tarball.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, hashOf, scratchDirectory } from "./cache.ts";
import { Apt } from "./debian.ts";
import { run } from "./run.ts";
import type { TarEntry } from "./tar.ts";
import { machineArchitecture } from "./toolchain.ts";
import { ARCHITECTURES, type Architecture, RUNTIME_PINS, versionOf } from "./versions.ts";

const PROGRAMS: Readonly<Record<string, string>> = {
  containerd: "bin/containerd", "containerd-shim-runc-v2": "bin/containerd-shim-runc-v2", ctr: "bin/ctr", runc: "bin/runc",
  bridge: "cni/bridge", "host-local": "cni/host-local", portmap: "cni/portmap",
};
const SUITE = "forky";
const CNI_SOURCE = "golang-github-containernetworking-plugins";
const CNI_PATH = "github.com/containernetworking/plugins";

/** The programs, from the cache or built now. */
export function staticComponents(architecture: Architecture, { log }: { log: (message: string) => void }): TarEntry[] {
  const directory = staticDirectory(architecture);
  if (!existsSync(directory)) build(architecture, directory, log);
  return Object.entries(PROGRAMS).map(([name, path]) => ({ path, mode: 0o755, data: readFileSync(join(directory, name)) }));
}

function staticDirectory(architecture: Architecture): string {
  const versions = RUNTIME_PINS.map((pin) => `${pin.package}=${versionOf(pin, architecture)}`);
  return cacheDirectory("static", `${architecture}-${hashOf(...versions, readFileSync(join(import.meta.dirname, "static.sh")))}`);
}

function build(architecture: Architecture, out: string, log: (message: string) => void): void {
  if (process.getuid?.() !== 0) throw new Error("the release flavour is built in a chroot: run it as root, or build the quick flavour");
  const host = machineArchitecture();
  const crossing = architecture !== host;
  const triplet = ARCHITECTURES[architecture].triplet;
  using scratch = scratchDirectory("static");
  const root = join(scratch.path, "root");
  for (const part of ["src", "out", "proc", "dev", "tmp"]) mkdirSync(join(root, part), { recursive: true });

  const apt = new Apt(host, [SUITE], { sources: true, ...(crossing && { foreign: [architecture] }) });
  apt.update();
  for (const pin of RUNTIME_PINS) {
    const [now] = apt.versions([pin.package]).get(pin.package) ?? [];
    if (now?.version !== versionOf(pin, architecture)) throw new Error(`${pin.package} ${versionOf(pin, architecture)} of installers/bundle/versions.ts: ${SUITE} now has ${now?.version ?? "none"}, and its -dev packages with it. Pin that version`);
  }
  log(`static rebuild for ${architecture}: packages`);
  const development = RUNTIME_PINS.flatMap((pin) => buildDependencies(apt.query("apt-cache", ["showsrc", pin.source]), versionOf(pin, host)));
  const compilers = ["gcc", "libc6-dev", "pkgconf", "libseccomp-dev", ...(crossing ? [`gcc-${ARCHITECTURES[architecture].crossCompiler}`, `libc6-dev-${architecture}-cross`] : [])];
  const packages = apt.downloadClosure(["base-files", "bash", "coreutils", "golang-go", "golang-github-opencontainers-runc-dev", "golang-github-containerd-containerd-dev", ...compilers, ...new Set(development)]);
  if (crossing) { // the foreign libseccomp.a without all that it would pull in
    apt.query("apt-get", ["-qq", "download", `libseccomp-dev:${architecture}`], apt.archives);
    packages.push(...readdirSync(apt.archives).filter((name) => name.startsWith("libseccomp-dev_") && name.endsWith(`_${architecture}.deb`)).map((name) => join(apt.archives, name)));
  }
  packages.sort((a, b) => Number(b.includes("/base-files_")) - Number(a.includes("/base-files_"))); // its /usr-merge links first
  for (const path of packages) run("sh", ["-c", `dpkg-deb --fsys-tarfile "$1" | tar -x -C "$2" --keep-directory-symlink`, "sh", path, root]);
  apt.clean();

  apt.query("apt-get", ["-qq", "source", "--download-only", CNI_SOURCE], scratch.path);
  const orig = readdirSync(scratch.path).find((name) => name.startsWith(`${CNI_SOURCE}_`) && name.includes(".orig.tar"));
  if (orig === undefined) throw new Error(`the mirror has no source archive of ${CNI_SOURCE}`);
  const cni = join(root, "src/cni/src", CNI_PATH);
  mkdirSync(cni, { recursive: true });
  run("tar", ["-xf", join(scratch.path, orig), "-C", cni, "--strip-components", "1"]);

  log(`static rebuild for ${architecture}: compiling`);
  run("cp", [join(import.meta.dirname, "static.sh"), join(root, "src/static.sh")]);
  const go = readdirSync(join(root, "usr/lib")).find((name) => /^go-\d/.test(name));
  const variables = {
    PATH: `/usr/lib/${go}/bin:/usr/bin:/bin`, HOME: "/tmp", GOCACHE: "/tmp/go", GO111MODULE: "off", GOPATH: "/src/cni:/usr/share/gocode", GOTOOLCHAIN: "local", GOARCH: architecture,
    ...Object.fromEntries(RUNTIME_PINS.map((pin, i) => [["CONTAINERD_VERSION", "RUNC_VERSION", "CNI_VERSION"][i]!, versionOf(pin, architecture)])),
    ...(crossing && { CC: `${triplet}-gcc`, PKG_CONFIG_LIBDIR: `/usr/lib/${triplet}/pkgconfig`, CGO_LDFLAGS: `-L/usr/lib/${triplet}` }),
  };
  const script = `mount -t proc proc "$1/proc"; mount --bind /dev "$1/dev"; root=$1; shift; exec chroot "$root" /usr/bin/env -i "$@" /bin/bash /src/static.sh`;
  run("unshare", ["--mount", "--propagation", "private", "sh", "-ec", script, "sh", root, ...Object.entries(variables).map(([name, value]) => `${name}=${value}`)]);

  mkdirSync(cacheDirectory("static"), { recursive: true });
  const temporary = `${out}.${process.pid}.tmp`;
  rmSync(temporary, { recursive: true, force: true });
  run("cp", ["-r", join(root, "out"), temporary]);
  run("mv", [temporary, out]);
}

/** golang-*-dev packages that the source package of that version names as build dependencies. */
export function buildDependencies(showsrc: string, version: string): string[] {
  const stanza = showsrc.split(/\n\s*\n/).find((text) => new RegExp(`^Version: ${RegExp.escape(version)}$`, "m").test(text)) ?? "";
  const field = /^Build-Depends: (.*)$/m.exec(stanza)?.[1] ?? "";
  return field.split(",").map((item) => item.trim().split(/[\s(<[|:]/)[0] ?? "").filter((name) => /^golang-.*-dev$/.test(name));
}
