/**
 * What the server or agent that is installed on this machine was told, for the commands beside it: kubectl, ctr, crictl, images, token, check.
 *
 * installers/linux/install.sh leaves the command line in /etc/coracle/coracle.args and the variables in coracle.env, which root may read, and where data and kubeconfig
 * are in `installed`, which all may. What the caller says, in flags or variables, goes before all of it.
 */
import { dirname, join } from "node:path";
import { ConfigError, loadSettings } from "./config.ts";
import { CONFIG_FILE, type Settings, variableOf } from "./flags.ts";
import { withOwnAddresses } from "./ranges.ts";

interface Sources {
  readonly argv?: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Throws ConfigError where there is a file that cannot be read. */
  readonly readFile: (path: string) => string | undefined;
}

const ETC = dirname(CONFIG_FILE);
/** Names of `installed` as flags. */
const STATE_FLAGS: Readonly<Record<string, string>> = { data_dir: "data-dir", kubeconfig: "write-kubeconfig" };

export function installedSettings({ argv = [], env, readFile }: Sources): Settings {
  const told = withoutAccess(() => {
    const [command, ...flags] = shellWords(readFile(join(ETC, "coracle.args")) ?? "");
    return { command: command === "agent" ? "agent" as const : "server" as const, flags, variables: assignments(readFile(join(ETC, "coracle.env")) ?? "") };
  }) ?? { command: "server" as const, flags: stateFlags(readFile(join(ETC, "installed")) ?? ""), variables: {} };
  return withOwnAddresses(loadSettings(told.command, { argv: [...overridable(told.flags, env), ...argv], env: { ...told.variables, ...env }, readFile }));
}

/** Undefined where the caller may not read. */
function withoutAccess<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    const { code } = (error instanceof ConfigError ? error.cause : undefined) as { code?: unknown } ?? {};
    if (code === "EACCES") return undefined;
    throw error;
  }
}

/** Flags of the installation that the caller's variables say nothing about: flags would go before variables. */
function overridable(flags: readonly string[], env: Sources["env"]): string[] {
  const kept: string[] = [];
  let keep = true;
  for (const word of flags) {
    const name = /^--?([a-z][a-z-]*)/.exec(word)?.[1];
    if (name !== undefined) keep = !env[variableOf(name)];
    if (keep) kept.push(word);
  }
  return kept;
}

function stateFlags(text: string): string[] {
  return Object.entries(assignments(text)).flatMap(([name, value]) => (STATE_FLAGS[name] === undefined ? [] : [`--${STATE_FLAGS[name]}=${value}`]));
}

/** Lines NAME='value', as sh and systemd read them. */
function assignments(text: string): Record<string, string> {
  return Object.fromEntries(text.split("\n").flatMap((line) => {
    const [word = ""] = shellWords(line);
    const equals = word.indexOf("=");
    return equals <= 0 ? [] : [[word.slice(0, equals), word.slice(equals + 1)]];
  }));
}

/** Words as sh splits and unquotes them; nothing is expanded. */
export function shellWords(text: string): string[] {
  return [...text.matchAll(/(?:'[^']*'|"(?:\\[\s\S]|[^"\\])*"|\\[\s\S]|[^\s'"\\])+/g)].map(([word]) =>
    word.replace(/'([^']*)'|"((?:\\[\s\S]|[^"\\])*)"|\\([\s\S])/g, (_, single?: string, double?: string, escaped?: string) => single ?? double?.replace(/\\(["\\$`])/g, "$1") ?? escaped ?? ""));
}
