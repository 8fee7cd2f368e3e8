/** `coracle version`, and the numbers the API server and the kubelet tell of themselves. */
import type { VersionInfo } from "../core/server/health.ts";
import { buildInfo } from "./assets.ts";
import { ConfigError } from "./config/config.ts";

/** The level of the API we serve. */
export const KUBERNETES_VERSION = { major: "1", minor: "36", patch: "0" };

/** Semver with our name as build metadata, as k3s and others have it: tools that parse it see v1.36. */
export function gitVersion(): string {
  const { major, minor, patch } = KUBERNETES_VERSION;
  return `v${major}.${minor}.${patch}+coracle${buildInfo().version}`;
}

/** As the documents of the API have it. */
export function apiVersion(): string { return `${KUBERNETES_VERSION.major}.${KUBERNETES_VERSION.minor}`; }

export function versionInfo(): VersionInfo {
  const { commit, dirty, date } = buildInfo();
  return {
    major: KUBERNETES_VERSION.major, minor: KUBERNETES_VERSION.minor, gitVersion: gitVersion(), gitCommit: commit, gitTreeState: dirty ? "dirty" : "clean",
    buildDate: new Date(date).toISOString().replace(/\.\d+Z$/, "Z"), goVersion: `bun${Bun.version}`, compiler: "bun", platform: `${process.platform === "win32" ? "windows" : process.platform}/${process.arch === "x64" ? "amd64" : process.arch}`,
  };
}

export async function version(argv: readonly string[]): Promise<number> {
  if (argv.includes("--help") || argv.includes("-h")) {
    console.log("Usage: coracle version");
    return 0;
  }
  if (argv.length > 0) throw new ConfigError(`"coracle version" takes nothing, and there is ${JSON.stringify(argv[0])}`);
  const { version: own, commit } = buildInfo();
  console.log(`coracle ${own} (${commit.slice(0, 12)})\nKubernetes ${gitVersion()}\nBun ${Bun.version}`);
  return 0;
}

/** Of this program: a moment that is certainly past, whatever the clock says. */
export function releasedMs(): number { return Date.parse(buildInfo().date); }
