/**
 * The node component archive, coracle-node-<arch>.tar.zst: what a Linux node needs besides `coracle` itself. node/runtime unpacks it.
 *
 *   bin/       containerd containerd-shim-runc-v2 ctr runc, and launchers (launch.c) of the tools in lib/
 *   cni/       bridge host-local portmap
 *   lib/       kubectl nft ip, their libraries, the loader and C library they run with
 *   images/    pause.tar
 *   share/doc/ Debian's copyright file of every package
 *   manifest.json
 *
 * Two flavours. "quick": Debian's own binaries; containerd, runc and the CNI plugins need glibc 2.34 and libseccomp2 on the host (Debian 12 has both, apt
 * itself needs the latter). "release": these are rebuilt statically (static.ts) and need nothing.
 */
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { join } from "node:path";
import { constants, zstdCompressSync } from "node:zlib";
import { cacheDirectory, hashOf, readBytes, scratchDirectory, sha256, writeWhole } from "./cache.ts";
import { type Fetched, fetchPackages } from "./debian.ts";
import { lowerGlibc } from "./glibc.ts";
import { imageTar } from "./image.ts";
import { run } from "./run.ts";
import { staticComponents } from "./static.ts";
import { tar, type TarEntry } from "./tar.ts";
import { freestanding } from "./toolchain.ts";
import { ARCHITECTURES, type Architecture, LAUNCHED, PAUSE_IMAGE, RUNTIME_PINS, TOOL_PINS, versionOf } from "./versions.ts";

export type Flavour = "quick" | "release";

export interface NodeBundle {
  readonly path: string;
  /** Of the archive's bytes: names the directory it is unpacked to. */
  readonly hash: string;
  readonly flavour: Flavour;
}

interface Options {
  /** Packages that may have moved on, or "all" (debian.ts). By default all for the quick flavour, so that an old checkout can be built; none for a release. */
  readonly accept: readonly string[] | undefined;
  readonly log: (message: string) => void;
}

/** A window of 64 MB: unpacking takes that much memory for a moment; 128 MB would save 5 % more, 16 MB cost 20 %. */
const WINDOW_LOG = 26;
const LEVEL: Record<Flavour, number> = { quick: 9, release: 19 };

/** The archive, from the cache if nothing it is made of has changed. */
export async function nodeBundle(architecture: Architecture, flavour: Flavour, { accept, log }: Options): Promise<NodeBundle> {
  const path = bundlePath(architecture, flavour, accept);
  if (!existsSync(path)) {
    log(`node components for ${architecture} (${flavour})`);
    const pins = flavour === "quick" ? [...RUNTIME_PINS, ...TOOL_PINS] : TOOL_PINS;
    const packages = fetchPackages(pins, architecture, { accept: accepted(flavour, accept), log });
    const entries = [...fromPackages(packages, architecture), ...(flavour === "release" ? staticComponents(architecture, { log }) : []), ...ownEntries(architecture)];
    const archive = tar([...directories(entries), ...entries.sort((a, b) => (a.path < b.path ? -1 : 1)), manifest(architecture, flavour, packages)]);
    const { ZSTD_c_compressionLevel, ZSTD_c_windowLog, ZSTD_c_enableLongDistanceMatching, ZSTD_c_nbWorkers, ZSTD_c_checksumFlag } = constants;
    writeWhole(path, zstdCompressSync(archive, {
      params: { [ZSTD_c_compressionLevel]: LEVEL[flavour], [ZSTD_c_windowLog]: WINDOW_LOG, [ZSTD_c_enableLongDistanceMatching]: 1, [ZSTD_c_nbWorkers]: navigator.hardwareConcurrency, [ZSTD_c_checksumFlag]: 1 },
    }));
  }
  return { path, hash: sha256(readBytes(path)).slice(0, 16), flavour };
}

/** Whether it is at hand without making it. */
export function hasBundle(architecture: Architecture, flavour: Flavour, accept: Options["accept"]): boolean {
  return existsSync(bundlePath(architecture, flavour, accept));
}

function accepted(flavour: Flavour, accept: Options["accept"]): readonly string[] {
  return accept ?? (flavour === "quick" ? ["all"] : []);
}

function bundlePath(architecture: Architecture, flavour: Flavour, accept: Options["accept"]): string {
  const key = hashOf(JSON.stringify([RUNTIME_PINS, TOOL_PINS, LAUNCHED, PAUSE_IMAGE, accepted(flavour, accept), LEVEL[flavour], WINDOW_LOG]), ...sources());
  return cacheDirectory("bundles", `coracle-node-${architecture}-${flavour}-${key}.tar.zst`);
}

/** The files of this folder that decide what is in an archive. */
function sources(): Uint8Array[] {
  return ["launch.c", "pause.c", "image.ts", "tar.ts", "glibc.ts", "static.sh", "node-bundle.ts"].map((name) => readFileSync(join(import.meta.dirname, name)));
}

function fromPackages(packages: readonly Fetched[], architecture: Architecture): TarEntry[] {
  const { triplet, loader } = ARCHITECTURES[architecture];
  return packages.flatMap(({ pin, path }) => {
    using scratch = scratchDirectory("unpack");
    run("dpkg-deb", ["-x", path, scratch.path]);
    const read = (name: string): Buffer => readFileSync(realpathSync(join(scratch.path, name.replace("TRIPLET", triplet).replace("LOADER", loader))));
    const files = Object.entries(pin.files).map(([from, to]): TarEntry => ({ path: to, mode: 0o755, data: to === "bin/runc" ? lowerGlibc(read(from)).program : read(from) }));
    return [...files, { path: `share/doc/${pin.package}/copyright`, data: read(`usr/share/doc/${pin.package}/copyright`) }];
  });
}

/** What is built here: the launchers and the pause image. */
function ownEntries(architecture: Architecture): TarEntry[] {
  const launcher = freestanding("launch.c", architecture);
  const pause = imageTar({
    reference: PAUSE_IMAGE, entrypoint: ["/pause"], user: "65535:65535",
    platforms: [{ architecture, files: [{ path: "pause", mode: 0o755, data: freestanding("pause.c", architecture) }] }],
  });
  return [...LAUNCHED.map((name) => ({ path: `bin/${name}`, mode: 0o755, data: launcher })), { path: "images/pause.tar", data: pause }];
}

function manifest(architecture: Architecture, flavour: Flavour, packages: readonly Fetched[]): TarEntry {
  const versions = Object.fromEntries([...RUNTIME_PINS, ...TOOL_PINS].map((pin) => [pin.package, packages.find((fetched) => fetched.pin === pin)?.version ?? versionOf(pin, architecture)]));
  return { path: "manifest.json", data: Buffer.from(`${JSON.stringify({ architecture, flavour, pauseImage: PAUSE_IMAGE, versions }, undefined, 1)}\n`) };
}

function directories(entries: readonly TarEntry[]): TarEntry[] {
  const names = entries.flatMap(({ path }) => path.split("/").slice(0, -1).map((_, i, parts) => parts.slice(0, i + 1).join("/")));
  return [...new Set(names)].sort().map((path) => ({ path, type: "directory" as const }));
}
