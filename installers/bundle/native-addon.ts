/**
 * The native addons, compiled so that they need nothing but a C library on the host, and the modules that load them out of the executable.
 *
 * The prebuilt ones of the npm packages want libstdc++, which a minimal host has not; so for Linux they are compiled from the packages' own sources with
 * libstdc++ and libgcc linked in. The list of LevelDB's sources is that of the package's .gyp files. For Windows its prebuilt addon is taken: it links them already.
 *
 * A compiled executable cannot dlopen what is inside it. Left alone, Bun writes an addon to TMPDIR, which fails where that is noexec or missing. Ours are
 * loaded at their first use (not at import, when no configuration has been read) from a memfd; where the kernel forbids executable memfds, and on Windows, from
 * the directory that the program has put in `globalThis[Symbol.for("coracle.nativeDirectory")]` (cmd/assets.ts: setNativeDirectory), or the system's temporary one.
 */
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { cacheDirectory, hashOf, scratchDirectory } from "./cache.ts";
import { npmPackage } from "./npm.ts";
import { run } from "./run.ts";
import { machineArchitecture, toolchain } from "./toolchain.ts";
import { type Architecture, NPM_PINS } from "./versions.ts";

export type AddonTarget = { readonly platform: "linux"; readonly architecture: Architecture } | { readonly platform: "windows" };

interface Addon {
  readonly package: string;
  /** The module of the package that would look for the addon on disk: ours takes its place. */
  readonly module: RegExp;
  readonly exports: readonly string[];
  readonly sources: readonly string[];
  readonly flags: readonly string[];
  /** Absent: optional, the package does without on Windows. */
  readonly windowsPrebuild?: string;
}

const CFLAGS = ["-O2", "-fPIC", "-pthread", "-std=gnu++17", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", "-w", "-DNDEBUG", "-DBUILDING_NODE_EXTENSION"];
const LINK = ["-shared", "-static-libstdc++", "-static-libgcc", "-pthread", "-Wl,--exclude-libs,ALL", "-Wl,-z,relro,-z,now", "-s"];
const PACKAGES = join(import.meta.dirname, "../../node_modules");

export function addons(): Addon[] {
  return [levelAddon(), msgpackrAddon()];
}

function levelAddon(): Addon {
  const directory = join(PACKAGES, "classic-level");
  const [leveldb, snappy] = [join(directory, "deps/leveldb"), join(directory, "deps/snappy")];
  const gyp = readFileSync(join(leveldb, "leveldb.gyp"), "utf8");
  const base = join(leveldb, `leveldb-${/"ldbversion": "([\d.]+)"/.exec(gyp)?.[1]}`);
  const binding = join(directory, "binding.cc");
  return {
    package: "classic-level", module: /classic-level[/\\]binding\.js$/, exports: matches(readFileSync(binding, "utf8"), /NAPI_EXPORT_FUNCTION\((\w+)\)/g),
    sources: [
      binding, ...matches(gyp, /"leveldb-<\(ldbversion\)\/([^"]+\.cc)"/g).map((name) => join(base, name)),
      ...matches(readFileSync(join(snappy, "snappy.gyp"), "utf8"), /"(snappy\/[^"]+\.cc)"/g).map((name) => join(snappy, name)),
    ],
    flags: [
      "-DNODE_GYP_MODULE_NAME=classic_level", "-DSNAPPY=1", "-DLEVELDB_PLATFORM_POSIX=1", "-DOS_LINUX=1", "-DHAVE_CONFIG_H=1", "-fno-builtin-memcmp",
      ...[join(PACKAGES, "napi-macros"), base, join(base, "include"), join(snappy, "linux"), join(snappy, "snappy")].map((include) => `-I${include}`),
    ],
    windowsPrebuild: "prebuilds/win32-x64/classic-level.node",
  };
}

function msgpackrAddon(): Addon {
  return {
    package: "msgpackr-extract", module: /msgpackr-extract[/\\]index\.js$/, exports: ["extractStrings"], sources: [join(PACKAGES, "msgpackr-extract/src/extract.cpp")],
    flags: ["-DNODE_GYP_MODULE_NAME=extract", "-DNAPI_DISABLE_CPP_EXCEPTIONS", "-O3"],
  };
}

/** The addon as a file, from the cache or compiled now; undefined where the target does without. */
export async function compileAddon(addon: Addon, target: AddonTarget): Promise<string | undefined> {
  const directory = join(PACKAGES, addon.package);
  if (target.platform === "windows") return addon.windowsPrebuild && join(directory, addon.windowsPrebuild);
  const { version } = JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as { version: string };
  const { architecture } = target;
  const headersVersion = NPM_PINS["node-api-headers"].version;
  const key = hashOf(version, ...CFLAGS, ...addon.flags.filter((flag) => flag.startsWith("-D")), ...LINK, headersVersion, machineArchitecture());
  const path = cacheDirectory("addons", `${addon.package}-${version}-${architecture}-${key}.node`);
  if (existsSync(path)) return path;

  const headers = join(npmPackage("node-api-headers", headersVersion, NPM_PINS["node-api-headers"].integrity), "include");
  using scratch = scratchDirectory("addon");
  const tools = toolchain(architecture);
  const jobs = addon.sources.map((file, i) => ({ file, object: join(scratch.path, `${i}.o`) }));
  await tools.compileEach("c++", jobs.map(({ file, object }) => [...CFLAGS, ...addon.flags, `-I${headers}`, "-c", "-o", object, file]));
  const out = join(scratch.path, "addon.node");
  tools.compile("c++", [...jobs.map(({ object }) => object), ...LINK, "-o", out]);
  mkdirSync(dirname(path), { recursive: true });
  run("cp", [out, path]);
  return path;
}

/** The module in the place of `addon.module`: the addon's functions, each of which loads it when called for the first time. */
export function addonModule(addon: Addon, file: string | undefined, platform: "linux" | "windows"): string {
  if (file === undefined) return `throw new Error(${JSON.stringify(`${addon.package}: no addon for this platform`)});`; // its user has a fallback
  return `
import embedded from ${JSON.stringify(file)} with { type: "file" };
import { closeSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";
import { createHash } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
${platform === "linux" ? `import { dlopen } from "bun:ffi";` : ""}

function fromMemory(bytes, target) {
  const libc = dlopen("libc.so.6", { memfd_create: { args: ["cstring", "u32"], returns: "int" } });
  const fd = libc.symbols.memfd_create(Buffer.from(${JSON.stringify(`${addon.package}\0`)}), 1);
  if (fd < 0) throw new Error("memfd_create failed");
  try {
    for (let done = 0; done < bytes.length;) done += writeSync(fd, bytes, done);
    process.dlopen(target, "/proc/self/fd/" + fd);
  } finally {
    closeSync(fd);
  }
}

// Where everybody may write somebody else may have been before us: what lies there is not loaded.
function ownDirectory(path) {
  mkdirSync(path, { recursive: true, mode: 0o700 });
  const found = lstatSync(path), uid = process.getuid?.();
  return uid === undefined || (found.isDirectory() && found.uid === uid && (found.mode & 0o022) === 0) ? path : mkdtempSync(path + "-");
}

function fromDirectory(bytes, target) {
  const directory = globalThis[Symbol.for("coracle.nativeDirectory")] ?? ownDirectory(join(tmpdir(), "coracle-native-" + (process.getuid?.() ?? 0)));
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, ${JSON.stringify(addon.package)} + "-" + createHash("sha256").update(bytes).digest("hex").slice(0, 16) + ".node");
  if (!existsSync(path)) {
    writeFileSync(path + "." + process.pid, bytes, { mode: 0o500 });
    renameSync(path + "." + process.pid, path);
  }
  process.dlopen(target, path);
}

let loaded;
function load() {
  if (loaded !== undefined) return loaded;
  const bytes = readFileSync(embedded);
  const target = { exports: {} };
  ${platform === "linux" ? "try { fromMemory(bytes, target); } catch { fromDirectory(bytes, target); }" : "fromDirectory(bytes, target);"}
  loaded = target.exports;
  Object.assign(module.exports, loaded);
  return loaded;
}
module.exports = { ${addon.exports.map((name) => `${name}: (...args) => load().${name}(...args)`).join(", ")} };
`;
}

function matches(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([, name]) => name!))];
}
