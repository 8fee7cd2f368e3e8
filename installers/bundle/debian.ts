/**
 * Debian packages, from the mirror this machine's apt is configured with, into the cache; nothing is installed.
 *
 * apt runs on directories of its own (lists, cache, status) and with the archive's keyring, so it checks signatures and neither reads nor changes the
 * state of the machine. Every pinned package is checked against its checksum as well. A package that is in the cache needs neither apt nor a network.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, hashOf, readBytes, sha256 } from "./cache.ts";
import { run } from "./run.ts";
import { type Architecture, type Pin, versionOf } from "./versions.ts";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";
const DEBIAN_SUITES = /^(bullseye|bookworm|trixie|forky|sid|oldoldstable|oldstable|stable|testing|unstable)$/;

/** A package as it is in the cache. */
export interface Fetched { readonly pin: Pin; readonly version: string; readonly path: string }

/**
 * The packages of `pins`. A version that the mirror no longer has is an error that names it and what there is now, unless `accept` names the
 * package (or "all"): then the newest of the pin's suite is taken, trusted by the archive's signature alone, and `log` told.
 */
export function fetchPackages(pins: readonly Pin[], architecture: Architecture, { accept, log }: { accept: readonly string[]; log: (message: string) => void }): Fetched[] {
  const directory = cacheDirectory("debs");
  mkdirSync(directory, { recursive: true });
  const wanted = pins.map((pin) => fetchedPath(pin, versionOf(pin, architecture), architecture, directory));
  const missing = wanted.filter(({ path }) => !existsSync(path));
  if (missing.length === 0) return wanted;

  const apt = new Apt(architecture, [...new Set(pins.map(({ suite }) => suite))]);
  apt.update();
  const offered = apt.versions(missing.map(({ pin }) => pin.package));
  const gone = missing.filter(({ pin, version }) => !offered.get(pin.package)?.some((offer) => offer.version === version));
  const refused = gone.filter(({ pin }) => newest(offered, pin) === undefined || (!accept.includes("all") && !accept.includes(pin.package)));
  if (refused.length > 0) throw new Error(goneMessage(refused.map(({ pin, version }) => ({ pin, version, now: newest(offered, pin) ?? "none" })), architecture));

  for (const { pin, version } of gone) log(`${pin.package} ${version} is no longer on the Debian mirror: taking ${newest(offered, pin)}, checked by the archive's signature only`);
  const taken = wanted.map((entry) => (gone.includes(entry) ? fetchedPath(entry.pin, newest(offered, entry.pin) ?? "", architecture, directory) : entry));
  const toLoad = taken.filter(({ path }) => !existsSync(path));
  apt.download(toLoad.map(({ pin, version }) => `${pin.package}=${version}`), directory);
  for (const { pin, version, path } of toLoad) {
    const found = sha256(readBytes(`${path}.new`));
    if (version === versionOf(pin, architecture) && found !== pin.sha256[architecture])
      throw new Error(`${pin.package} ${version} (${architecture}): checksum ${found} instead of ${pin.sha256[architecture]} as pinned in versions.ts`);
    renameSync(`${path}.new`, path);
  }
  return taken;
}

/** CORACLE_ACCEPT_VERSIONS, as `accept` of fetchPackages; undefined if it is not set. */
export function acceptedVersions(): string[] | undefined {
  return process.env["CORACLE_ACCEPT_VERSIONS"]?.split(",").filter((name) => name !== "" && name !== "none");
}

/** What a mirror without our pins is answered with. Exported for its test. */
export function goneMessage(gone: readonly { pin: Pin; version: string; now: string }[], architecture: Architecture): string {
  const lines = gone.map(({ pin, version, now }) => `  ${pin.package} ${version} (${pin.suite}, ${architecture}): the mirror now has ${now}`);
  return [
    `${gone.length} pinned package(s) of installers/bundle/versions.ts are no longer on the Debian mirror:`, ...lines,
    "Pin the new version and its checksum there, or build with what is there now (checked by the archive's signature only):",
    `  CORACLE_ACCEPT_VERSIONS=${gone.map(({ pin }) => pin.package).join(",")}`,
  ].join("\n");
}

function fetchedPath(pin: Pin, version: string, architecture: Architecture, directory: string): Fetched {
  return { pin, version, path: join(directory, `${pin.package}_${version.replaceAll(":", "%3a")}_${architecture}.deb`) };
}

function newest(offered: ReadonlyMap<string, readonly Offer[]>, pin: Pin): string | undefined {
  return offered.get(pin.package)?.find(({ suite }) => suite === pin.suite)?.version;
}

interface Offer { readonly version: string; readonly suite: string }

/** apt on directories of its own. */
export class Apt {
  readonly #directory: string;
  readonly #options: readonly string[];

  constructor(architecture: Architecture, suites: readonly string[], { foreign = [], sources = false }: { foreign?: readonly Architecture[]; sources?: boolean } = {}) {
    const mirror = process.env["CORACLE_DEBIAN_MIRROR"] || debianMirror(configuredSources());
    if (mirror === undefined) throw new Error("apt on this machine is not configured with a Debian mirror (/etc/apt/sources.list, sources.list.d): name one with CORACLE_DEBIAN_MIRROR=<URI>");
    if (!existsSync(KEYRING)) throw new Error(`${KEYRING} is missing: install debian-archive-keyring, packages cannot be trusted without it`);
    const all = [architecture, ...foreign];
    const lines = suites.flatMap((suite) => [
      `deb [signed-by=${KEYRING} arch=${all.join(",")}] ${mirror} ${suite} main`, ...(sources ? [`deb-src [signed-by=${KEYRING}] ${mirror} ${suite} main`] : []),
    ]).join("\n");
    this.#directory = cacheDirectory("apt", hashOf(lines));
    for (const part of ["lists/partial", "cache/archives/partial"]) mkdirSync(join(this.#directory, part), { recursive: true });
    writeFileSync(join(this.#directory, "status"), "");
    writeFileSync(join(this.#directory, "sources.list"), `${lines}\n`);
    this.#options = Object.entries({
      "Dir::Etc::sourcelist": join(this.#directory, "sources.list"), "Dir::Etc::sourceparts": "/dev/null", "Dir::Etc::preferences": "/dev/null", "Dir::Etc::preferencesparts": "/dev/null",
      "Dir::State": this.#directory, "Dir::State::lists": join(this.#directory, "lists"), "Dir::State::status": join(this.#directory, "status"), "Dir::Cache": join(this.#directory, "cache"),
      "Dir::Cache::pkgcache": "pkgcache.bin", "Dir::Cache::srcpkgcache": "srcpkgcache.bin", "APT::Architecture": architecture, "Acquire::Languages": "none", "APT::Default-Release": "",
      "Acquire::Check-Valid-Until": "false", // a mirror that stands still is fine: the pins decide what is taken, not its date
      ...(process.getuid?.() === 0 && { "APT::Sandbox::User": "root" }),
    }).flatMap(([key, value]) => ["-o", `${key}=${value}`]).concat(foreign.flatMap((other) => ["-o", `APT::Architectures::=${other}`]));
  }

  /** Where `install` puts packages. */
  get archives(): string {
    return join(this.#directory, "cache/archives");
  }

  update(): void {
    this.#run("apt-get", ["-qq", "update"]);
  }

  /** What the mirror offers, newest first. */
  versions(packages: readonly string[]): Map<string, Offer[]> {
    return parseMadison(this.#run("apt-cache", ["madison", ...packages], [100]));
  }

  /** Puts `name=version`s into `directory` as <package>_<version>_<arch>.deb.new. */
  download(packages: readonly string[], directory: string): void {
    const into = join(directory, `partial-${process.pid}`);
    mkdirSync(into, { recursive: true });
    this.#run("apt-get", ["-qq", "download", ...packages], [], into);
    for (const name of readdirSync(into)) renameSync(join(into, name), join(directory, `${name}.new`));
    run("rmdir", [into]);
  }

  /** Downloads packages and all they depend on, as if for an empty machine; returns the paths. The caller calls `clean` when it has unpacked them. */
  downloadClosure(packages: readonly string[]): string[] {
    this.clean();
    this.#run("apt-get", ["-qq", "-y", "--no-install-recommends", "--download-only", "install", ...packages]);
    return readdirSync(this.archives).filter((name) => name.endsWith(".deb")).map((name) => join(this.archives, name));
  }

  /** Empties `archives`: these can be a gigabyte. */
  clean(): void {
    this.#run("apt-get", ["clean"]);
    mkdirSync(join(this.archives, "partial"), { recursive: true });
  }

  /** Raw access for the release build: `apt-cache showsrc`, `apt-get source`. */
  query(command: "apt-cache" | "apt-get", args: readonly string[], directory?: string): string {
    return this.#run(command, args, [100], directory);
  }

  #run(command: string, args: readonly string[], allow: readonly number[] = [], directory?: string): string {
    return run(command, [...this.#options, ...args], { allow, env: { LC_ALL: "C", DEBIAN_FRONTEND: "noninteractive" }, ...(directory !== undefined && { directory }) });
  }
}

/** `apt-cache madison`: package | version | "<uri> <suite>/<component> <arch> Packages". */
export function parseMadison(text: string): Map<string, Offer[]> {
  const offers = new Map<string, Offer[]>();
  for (const line of text.split("\n")) {
    const [name, version, where] = line.split("|").map((part) => part.trim());
    const suite = /\s(\S+?)\/\S+ \S+ Packages$/.exec(where ?? "")?.[1];
    if (name && version && suite) offers.set(name, [...(offers.get(name) ?? []), { version, suite }]);
  }
  return offers;
}

function configuredSources(): string[] {
  const parts = "/etc/apt/sources.list.d";
  const paths = ["/etc/apt/sources.list", ...(existsSync(parts) ? readdirSync(parts).filter((name) => /\.(list|sources)$/.test(name)).sort().map((name) => join(parts, name)) : [])];
  return paths.filter((path) => existsSync(path)).map((path) => readFileSync(path, "utf8"));
}

/** The first Debian archive in apt's sources, of either format (sources.list(5)). Security and update suites are other archives. */
export function debianMirror(sources: readonly string[]): string | undefined {
  for (const text of sources) {
    const isDeb822 = /^Types:/m.test(text);
    const entries = isDeb822 ? text.split(/\n\s*\n/).map(deb822Entry) : text.split("\n").map(oneLineEntry);
    const uri = entries.find((entry) => entry?.suites.some((suite) => DEBIAN_SUITES.test(suite)) && entry.components.includes("main"))?.uri;
    if (uri !== undefined) return uri;
  }
  return undefined;
}

interface SourceEntry { readonly uri: string; readonly suites: readonly string[]; readonly components: readonly string[] }

function deb822Entry(stanza: string): SourceEntry | undefined {
  const field = (name: string): string[] => (new RegExp(`^${name}:[ \\t]*(.*(?:\\n[ \\t].*)*)`, "mi").exec(stanza)?.[1] ?? "").split(/\s+/).filter((word) => word !== "");
  const [uri] = field("URIs");
  if (uri === undefined || !field("Types").includes("deb") || field("Enabled")[0] === "no") return undefined;
  return { uri, suites: field("Suites"), components: field("Components") };
}

function oneLineEntry(line: string): SourceEntry | undefined {
  const [, uri, suite, components] = /^deb\s+(?:\[[^\]]*\]\s+)?(\S+)\s+(\S+)\s+([^#]*)/.exec(line.trim()) ?? [];
  return uri !== undefined && suite !== undefined ? { uri, suites: [suite], components: (components ?? "").split(/\s+/) } : undefined;
}
