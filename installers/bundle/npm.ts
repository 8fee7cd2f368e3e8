/** npm packages outside node_modules, by `npm pack`, checked against a known integrity, unpacked into the cache. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, scratchDirectory } from "./cache.ts";
import { run } from "./run.ts";

const ROOT = join(import.meta.dirname, "../..");

/** The directory the package is unpacked in. `integrity` absent: what package-lock.json says. */
export function npmPackage(name: string, version: string, integrity = lockedIntegrity(name, version)): string {
  const directory = cacheDirectory("npm", `${name.replace("/", "+")}@${version}`);
  if (existsSync(directory)) return directory;
  using scratch = scratchDirectory("npm");
  run("npm", ["pack", "--silent", `${name}@${version}`], { directory: scratch.path, env: { npm_config_ignore_scripts: "true" } });
  const [archive] = [...new Bun.Glob("*.tgz").scanSync(scratch.path)].map((file) => join(scratch.path, file));
  if (archive === undefined) throw new Error(`npm pack ${name}@${version} left no archive`);
  const found = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  if (found !== integrity) throw new Error(`${name}@${version}: integrity ${found} instead of ${integrity}`);
  run("tar", ["-xzf", archive, "-C", scratch.path]);
  mkdirSync(cacheDirectory("npm"), { recursive: true });
  renameSync(join(scratch.path, "package"), directory);
  return directory;
}

function lockedIntegrity(name: string, version: string): string {
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as { packages: Record<string, { version?: string; integrity?: string }> };
  const entry = lock.packages[`node_modules/${name}`];
  if (entry?.version !== version || entry.integrity === undefined) throw new Error(`${name}@${version} is not in package-lock.json`);
  return entry.integrity;
}
