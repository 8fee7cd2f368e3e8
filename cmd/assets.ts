/**
 * What is embedded in the executable. The build replaces this file by one with the same exports (installers/bundle/build.ts); this one serves runs from source,
 * with what the last build has left.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "..");

export interface NodeBundleAsset {
  /** Readable by Bun.file; not by fs.open, since it may be inside the executable. */
  readonly path: string;
  /** Of its bytes: names what it is unpacked to. */
  readonly hash: string;
}

export interface BuildInfo {
  readonly version: string;
  readonly commit: string;
  readonly dirty: boolean;
  /** RFC 3339, of the commit. */
  readonly date: string;
}

export type InstallScript = "install.sh" | "join.sh" | "service.sh" | "uninstall.sh";

/** The node components of this machine's architecture (node/runtime unpacks them); undefined on Windows, and from source before the first build. */
export function nodeBundle(): NodeBundleAsset | undefined {
  const assets = join(ROOT, "dist/assets.json");
  if (!existsSync(assets)) return undefined;
  const { node } = JSON.parse(readFileSync(assets, "utf8")) as { node?: NodeBundleAsset };
  return node && existsSync(node.path) ? node : undefined;
}

/** The descriptions of API fields for OpenAPI, zstd-compressed JSON; undefined from source until they have been extracted. */
export function descriptionsPath(): string | undefined {
  const path = join(ROOT, "core/api/schema/descriptions.json.zst");
  return existsSync(path) ? path : undefined;
}

/** installers/linux: what installs, and what it brings along. */
export function installScripts(): Readonly<Record<InstallScript, string>> {
  const text = (name: InstallScript): string => readFileSync(join(ROOT, "installers/linux", name), "utf8");
  return { "install.sh": text("install.sh"), "join.sh": text("join.sh"), "service.sh": text("service.sh"), "uninstall.sh": text("uninstall.sh") };
}

export function buildInfo(): BuildInfo {
  const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { version: string };
  return { version, commit: "unknown", dirty: true, date: "1970-01-01T00:00:00Z" };
}

/** Where native addons may be written to when they cannot be loaded from memory: a directory of ours, not mounted noexec. Call it before the store is opened. */
export function setNativeDirectory(path: string): void {
  (globalThis as Record<symbol, unknown>)[Symbol.for("coracle.nativeDirectory")] = path;
}
