/** Builds the executables under test, as `npm run build` does. */
import { existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "../../installers/bundle/cache.ts";
import { run } from "../../installers/bundle/run.ts";

const HERE = import.meta.dirname;
const ROOT = join(HERE, "../..");

type Target = "linux-x64" | "linux-arm64" | "windows-x64";

/** The product: dist/<target>/coracle[.exe]; this machine's own is dist/coracle if that is of these sources. CORACLE_PREBUILT=1: whatever is there is tested. */
export function coracle(target: Target): string {
  if (target === `linux-${process.arch}` && isBuilt()) return join(ROOT, "dist/coracle");
  const path = join(ROOT, "dist", target, target === "windows-x64" ? "coracle.exe" : "coracle");
  if (process.env["CORACLE_PREBUILT"] !== "1") build(["--target", target]);
  statSync(path);
  return path;
}

/** dist/coracle is there, and of the sources as they are now: installers/bundle/build.ts notes which. */
function isBuilt(): boolean {
  const note = join(ROOT, "dist/sources");
  return existsSync(join(ROOT, "dist/coracle")) && existsSync(note) && readFileSync(note, "utf8") === run("sh", [join(ROOT, "installers/bundle/sources.sh")]);
}

/** A program of this folder for another machine. */
export function testProgram(target: Target, entry: string, options: readonly string[] = []): string {
  const directory = cacheDirectory("platforms", "programs", target);
  mkdirSync(directory, { recursive: true });
  const path = join(directory, entry.replace(/\.ts$/, target === "windows-x64" ? ".exe" : ""));
  build(["--target", target, "--entry", join(HERE, entry), "--out", path, ...options]);
  return path;
}

function build(args: readonly string[]): void {
  run(join(ROOT, "node_modules/.bin/bun"), [join(ROOT, "installers/bundle/build.ts"), ...args], { directory: ROOT });
}
