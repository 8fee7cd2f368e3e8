/**
 * npm run build                                         → dist/coracle for this machine
 * npm run build -- --target linux-x64|linux-arm64|windows-x64|all   → dist/<target>/coracle[.exe]; may be repeated
 *
 *   --flavour quick|release   node components as Debian built them (the default), or rebuilt statically (node-bundle.ts); without the flag, release if `npm run bundle` has made it
 *   --entry FILE --out FILE   another entry point, another output
 *   --alias NAME=FILE         the module NAME is that file: for test programs; may be repeated
 *
 * CORACLE_ACCEPT_VERSIONS=a,b|all|none   of which Debian packages to take a newer one where the pinned one is gone (debian.ts): all by default, none for a release
 * CORACLE_DEBIAN_MIRROR=URI              the mirror, when apt here is not configured with one
 *
 * What the build does besides bundling cmd/main.ts: it replaces cmd/assets.ts by a module that knows what is embedded; loads native addons out of the executable
 * (native-addon.ts); takes the real undici, of which Bun has a shim that ignores TLS options; fixes process.platform, so that the halves for the other platform drop out.
 */
import { existsSync, mkdirSync, rmSync, statSync } from "node:fs";
import { basename, join, relative, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { BunPlugin } from "bun";
import { writeWhole } from "./cache.ts";
import { addonModule, type AddonTarget, addons, compileAddon } from "./native-addon.ts";
import { acceptedVersions } from "./debian.ts";
import { type Flavour, hasBundle, type NodeBundle, nodeBundle } from "./node-bundle.ts";
import { npmPackage } from "./npm.ts";
import { has, run } from "./run.ts";
import { machineArchitecture } from "./toolchain.ts";
import { ARCHITECTURES, type Architecture } from "./versions.ts";

const ROOT = join(import.meta.dirname, "../..");
/** Which bytecode runs, and in which order: bytecode-order.ts. */
const BYTECODE_ORDER = join(import.meta.dirname, "bytecode-order.txt");
const DESCRIPTIONS = join(ROOT, "core/api/schema/descriptions.json.zst");

const TARGETS = {
  "linux-x64": { bun: "bun-linux-x64", runtime: "@oven/bun-linux-x64", addon: { platform: "linux", architecture: "amd64" }, executable: "coracle" },
  "linux-arm64": { bun: "bun-linux-arm64", runtime: "@oven/bun-linux-aarch64", addon: { platform: "linux", architecture: "arm64" }, executable: "coracle" },
  "windows-x64": { bun: "bun-windows-x64", runtime: "@oven/bun-windows-x64", addon: { platform: "windows" }, executable: "coracle.exe" },
} as const satisfies Record<string, { bun: string; runtime: string; addon: AddonTarget; executable: string }>;
const INSTALL_SCRIPTS = ["install.sh", "join.sh", "service.sh", "uninstall.sh"];
type TargetName = keyof typeof TARGETS;

interface Build {
  readonly target: TargetName;
  readonly entry: string;
  readonly out: string;
  readonly aliases: readonly string[];
  readonly flavour: Flavour | undefined;
  readonly accept: readonly string[] | undefined;
}

async function main(): Promise<void> {
  const { values } = parseArgs({ options: { target: { type: "string", multiple: true }, flavour: { type: "string" }, entry: { type: "string" }, out: { type: "string" }, alias: { type: "string", multiple: true } } });
  const own: TargetName = `linux-${ARCHITECTURES[machineArchitecture()].bun}`;
  const asked = values.target?.flatMap((name) => (name === "all" ? Object.keys(TARGETS) : [name]));
  const unknown = asked?.find((name) => !Object.hasOwn(TARGETS, name));
  if (unknown !== undefined) throw new Error(`unknown target ${unknown}: ${Object.keys(TARGETS).join(", ")} or all`);
  if (values.flavour !== undefined && values.flavour !== "quick" && values.flavour !== "release") throw new Error("--flavour is quick or release");
  const accept = acceptedVersions();
  for (const target of (asked as TargetName[] | undefined) ?? [own]) {
    const out = values.out ?? join(ROOT, "dist", ...(asked ? [target] : []), TARGETS[target].executable);
    await build({ target, entry: resolve(values.entry ?? join(ROOT, "cmd/main.ts")), out: resolve(out), aliases: values.alias ?? [], flavour: values.flavour, accept });
  }
}

async function build({ target, entry, out, aliases, flavour, accept }: Build): Promise<void> {
  const startMs = performance.now();
  const { bun, runtime, addon, executable } = TARGETS[target];
  if (!existsSync(DESCRIPTIONS)) run(process.execPath, [join(ROOT, "core/api/schema/describe.ts")], { directory: ROOT, show: true });
  const node = addon.platform === "linux" ? await nodeBundle(addon.architecture, flavour ?? defaultFlavour(addon.architecture, accept), { accept, log }) : undefined;
  const isOwn = addon.platform === "linux" && addon.architecture === machineArchitecture();
  const version = Bun.version;
  mkdirSync(join(out, ".."), { recursive: true });
  rmSync(out, { force: true }); // it may be running
  const result = await Bun.build({
    entrypoints: [entry],
    minify: { whitespace: true, syntax: true, identifiers: false }, // 0.8 MB for stack traces that can be read
    bytecode: true, format: "esm", sourcemap: "none",
    define: { "process.platform": JSON.stringify(addon.platform === "windows" ? "win32" : "linux") },
    compile: {
      target: bun, outfile: out, bytecodeOrder: BYTECODE_ORDER, autoloadDotenv: false, autoloadBunfig: false,
      ...(!isOwn && { executablePath: join(npmPackage(runtime, version), "bin", addon.platform === "windows" ? "bun.exe" : "bun") }),
    },
    plugins: [...aliases.map(aliasPlugin), assetsPlugin(node), undiciPlugin, await addonsPlugin(addon)],
  });
  if (!result.success) throw new AggregateError(result.logs, `${target} does not build`);
  log(`${relative(process.cwd(), out) || executable}  ${target}, ${megabytes(statSync(out).size)}${node ? `, node components ${node.flavour} ${megabytes(statSync(node.path).size)}` : ""}, ${((performance.now() - startMs) / 1000).toFixed(1)} s`);
  if (isOwn && node) writeWhole(join(ROOT, "dist/assets.json"), JSON.stringify({ node })); // for a run from source
  if (out === join(ROOT, "dist/coracle")) writeWhole(join(ROOT, "dist/sources"), run("sh", [join(import.meta.dirname, "sources.sh")])); // for install.sh
}

function defaultFlavour(architecture: Architecture, accept: readonly string[] | undefined): Flavour {
  return hasBundle(architecture, "release", accept) ? "release" : "quick";
}

/** cmd/assets.ts as it is in the executable. Same exports as the file. */
function assetsPlugin(node: NodeBundle | undefined): BunPlugin {
  const { version } = JSON.parse(run("cat", [join(ROOT, "package.json")])) as { version: string };
  const git = (...args: string[]): string => (has("git") && existsSync(join(ROOT, ".git")) ? run("git", ["-C", ROOT, ...args], { allow: [128] }).trim() : "");
  const commit = git("rev-parse", "HEAD");
  const info = { version, commit: commit || "unknown", dirty: git("status", "--porcelain", "--untracked-files=no") !== "", date: git("show", "-s", "--format=%cI", "HEAD") || "1970-01-01T00:00:00Z" };
  const contents = `
${node ? `import node from ${JSON.stringify(node.path)} with { type: "file" };` : ""}
import text from ${JSON.stringify(DESCRIPTIONS)} with { type: "file" };
${INSTALL_SCRIPTS.map((name, i) => `import script${i} from ${JSON.stringify(join(ROOT, "installers/linux", name))} with { type: "text" };`).join("\n")}
export function installScripts() { return { ${INSTALL_SCRIPTS.map((name, i) => `${JSON.stringify(name)}: script${i}`).join(", ")} }; }
export function nodeBundle() { return ${node ? `{ path: node, hash: ${JSON.stringify(node.hash)} }` : "undefined"}; }
export function descriptionsPath() { return text; }
export function buildInfo() { return ${JSON.stringify(info)}; }
export function setNativeDirectory(path) { globalThis[Symbol.for("coracle.nativeDirectory")] = path; }
`;
  return { name: "assets", setup: (builder) => void builder.onLoad({ filter: /[/\\]cmd[/\\]assets\.ts$/ }, () => ({ contents, loader: "js" })) };
}

const undiciPlugin: BunPlugin = {
  name: "undici",
  setup: (builder) => void builder.onResolve({ filter: /^undici$/ }, () => ({ path: join(ROOT, "node_modules/undici/index.js") })),
};

function aliasPlugin(text: string): BunPlugin {
  const [name = "", file] = text.split("=");
  if (!file) throw new Error(`--alias ${text}: must be NAME=FILE`);
  return { name: `alias ${name}`, setup: (builder) => void builder.onResolve({ filter: new RegExp(`^${RegExp.escape(name)}$`) }, () => ({ path: resolve(file) })) };
}

/** Compiles the addons now: during the build, Bun would not see files that appear. */
async function addonsPlugin(target: AddonTarget): Promise<BunPlugin> {
  const modules: { filter: RegExp; contents: string }[] = [];
  for (const addon of addons()) modules.push({ filter: addon.module, contents: addonModule(addon, await compileAddon(addon, target), target.platform) });
  return {
    name: "addons",
    setup(builder) {
      for (const { filter, contents } of modules) builder.onLoad({ filter }, () => ({ contents, loader: "js" }));
    },
  };
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}

function log(message: string): void {
  console.log(message);
}

try {
  await main();
} catch (error) {
  console.error(`${basename(import.meta.path)}: ${error instanceof Error ? error.message : String(error)}`);
  if (error instanceof AggregateError) for (const part of error.errors) console.error(String(part));
  process.exit(1);
}
