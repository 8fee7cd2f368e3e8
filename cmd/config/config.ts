/** The only reader of argv, the environment and config.yaml: all three become one frozen, typed Settings. */
import { readFileSync } from "node:fs";
import { errorText } from "../../core/api/meta/error-text.ts";
import { camelCase, CONFIG_FILE, type Flag, FLAGS, OVERLAYS, PARTS, type Settings, variableOf } from "./flags.ts";
import { readYamlSettings } from "./yaml-settings.ts";

/** Something the user wrote cannot be used. The message names it and says what would do. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
}

interface Sources {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The file's text, undefined if there is none. */
  readonly readFile: (path: string) => string | undefined;
}

type Raw = Map<string, string[]>;

/** Of one name: what flags and variables take the place of, and what is added to whatever counts. */
interface OfFile { readonly values?: readonly string[]; readonly added?: readonly string[] }

/** k3s's name for the server's address, and the installer's. */
const VARIABLE_ALIASES: Readonly<Record<string, string>> = { CORACLE_URL: "server" };

export function loadSettings(command: "server" | "agent" | "simulate", { argv, env, readFile }: Sources): Settings {
  const known = new Map<string, Flag>(FLAGS.filter((flag: Flag) => flag.commands.includes(command)).map((flag) => [flag.name, flag]));
  const fromArgs = readArgs(argv, known, command);
  const fromEnv = readVariables(env, known);
  const path = (fromArgs.get("config") ?? fromEnv.get("config"))?.at(-1);
  const text = readFile(path ?? CONFIG_FILE);
  if (text === undefined && path !== undefined) throw new ConfigError(`--config ${path}: no such file`);
  const fromFile = text === undefined ? new Map<string, OfFile>() : readConfigFile(text, path ?? CONFIG_FILE);

  const settings: Record<string, unknown> = {};
  for (const flag of FLAGS as readonly Flag[]) {
    const { values, added } = fromFile.get(flag.name) ?? {};
    const given = fromArgs.get(flag.name) ?? fromEnv.get(flag.name);
    const all = given === undefined ? [values, added] : [added, given]; // of settings that are said twice the last counts: what is added to the file's own, and what is given to all of the file's
    settings[camelCase(flag.name)] = convert(flag, all.every((some) => some === undefined) ? undefined : all.flatMap((some) => some ?? []));
  }
  const all = Object.freeze(settings) as unknown as Settings;
  for (const part of all.disable) if (!PARTS.includes(part as (typeof PARTS)[number])) throw new ConfigError(`--disable: ${JSON.stringify(part)} is no part of it; there are ${PARTS.join(", ")}`);
  if (!OVERLAYS.includes(all.overlay as (typeof OVERLAYS)[number])) throw new ConfigError(`--overlay must be vxlan, host-gw or none, not ${JSON.stringify(all.overlay)}`);
  return all;
}

function readArgs(argv: readonly string[], known: ReadonlyMap<string, Flag>, command: string): Raw {
  const raw: Raw = new Map();
  for (let i = 0; i < argv.length; i++) {
    const word = argv[i]!;
    const match = /^--?([a-z][a-z-]*)(?:=([\s\S]*))?$/.exec(word);
    const flag = match ? known.get(match[1]!) : undefined;
    if (!flag)
      throw new ConfigError(word.startsWith("-") ? `unknown flag ${word} for "coracle ${command}"; see "coracle ${command} --help"` : `"coracle ${command}" takes flags alone, and ${JSON.stringify(word)} is none; see "coracle ${command} --help"`);
    let value = match![2];
    if (value === undefined) value = flag.type === "boolean" ? "true" : argv[++i];
    if (value === undefined) throw new ConfigError(`--${flag.name} needs a value`);
    if (value === "" && flag.type === "string") continue; // a script's variable that is not set says nothing, here as elsewhere
    raw.set(flag.name, [...(raw.get(flag.name) ?? []), value]);
  }
  return raw;
}

function readVariables(env: Sources["env"], known: ReadonlyMap<string, Flag>): Raw {
  const raw: Raw = new Map();
  for (const name of known.keys()) {
    const value = env[variableOf(name)];
    if (value) raw.set(name, [value]);
  }
  for (const [variable, name] of Object.entries(VARIABLE_ALIASES)) {
    const value = env[variable];
    if (value && known.has(name)) raw.set(name, [value]);
  }
  return raw;
}

/** A key without a value says nothing, as one that is left out. */
const NULLS: ReadonlySet<string> = new Set(["", "~", "null"]);

function readConfigFile(text: string, path: string): Map<string, OfFile> {
  let document: unknown;
  try {
    document = readYamlSettings(text, { schema: "failsafe" }); // texts as they stand there: a token of digits is no number
  } catch (cause) {
    throw new ConfigError(`${path}: ${errorText(cause)}`, { cause });
  }
  if (document === null || document === undefined || document === "") return new Map();
  if (typeof document !== "object" || Array.isArray(document)) throw new ConfigError(`${path}: must be a map of flag names to values`);
  const names = new Set<string>(FLAGS.map(({ name }) => name));
  const found = new Map<string, OfFile>();
  for (const [key, value] of Object.entries(document)) {
    const name = key.replace(/\+$/, "").replace(/^--?/, "");
    if (!names.has(name)) throw new ConfigError(`${path}: unknown key ${JSON.stringify(key)}`);
    const values: readonly unknown[] = Array.isArray(value) ? value : [value];
    for (const one of values) if (typeof one === "object" && one !== null) throw new ConfigError(`${path}: ${JSON.stringify(key)} must be a text, a number, true, false, or a list of such`);
    const given = values.map((one) => String(one ?? "")).filter((one) => !NULLS.has(one));
    if (given.length === 0) continue;
    const part = key.endsWith("+") ? "added" : "values", before = found.get(name);
    if (before?.[part]) throw new ConfigError(`${path}: ${JSON.stringify(name)} is there twice`); // spelled as a flag, too
    found.set(name, { ...before, [part]: given });
  }
  return found;
}

function convert(flag: Flag, values: readonly string[] | undefined): unknown {
  if (flag.type === "list") return Object.freeze((values ?? []).flatMap((value) => splitList(flag.name, value)));
  const text = values?.at(-1);
  if (text === undefined) return flag.default;
  switch (flag.type) {
    case "string": return text;
    case "integer":
    case "port": {
      const value = Number(text);
      if (!/^\d+$/.test(text) || !Number.isSafeInteger(value)) throw new ConfigError(`--${flag.name} must be a whole number, not ${JSON.stringify(text)}`);
      if (flag.type === "port" && (value < 1 || value > 65_535)) throw new ConfigError(`--${flag.name} must be between 1 and 65535, not ${text}`);
      return value;
    }
    case "boolean":
      if (!/^(true|false)$/i.test(text)) throw new ConfigError(`--${flag.name} must be true or false, not ${JSON.stringify(text)}`);
      return text.toLowerCase() === "true";
  }
}

/** Arguments for other components may contain commas; names and addresses do not. */
function splitList(name: string, value: string): string[] {
  return name.endsWith("-arg") ? [value] : value.split(",").filter((part) => part !== "");
}

/** The text of `path`, undefined if there is no such file. */
export function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as { code?: unknown }).code === "ENOENT") return undefined;
    throw new ConfigError(`${path} cannot be read: ${errorText(error)}`, { cause: error });
  }
}

/** The text of a file that must be there. */
export function requiredText(path: string): string {
  const text = readText(path);
  if (text === undefined) throw new ConfigError(`${path}: no such file`);
  return text;
}

/** What a file given by a setting says. Throws ConfigError that names both. */
export function fromFile<T>(setting: string, path: string, read: (text: string) => T): T {
  const text = readText(path);
  if (text === undefined) throw new ConfigError(`--${setting} ${path}: no such file`);
  try {
    return read(text);
  } catch (cause) {
    throw new ConfigError(`--${setting} ${path}: ${errorText(cause)}`, { cause });
  }
}

export function helpOf(command: "server" | "agent" | "simulate"): string {
  const rows = (FLAGS as readonly Flag[]).filter((flag) => flag.commands.includes(command)).map((flag) => {
    const value = flag.type === "boolean" ? "" : flag.type === "list" ? " VALUE…" : " VALUE";
    const standard = flag.default === undefined || flag.default === false ? "" : ` (default ${String(flag.default)})`;
    return [`  --${flag.name}${value}`, flag.help + standard] as const;
  });
  const width = Math.max(...rows.map(([flag]) => flag.length)) + 2;
  return [`Usage: coracle ${command} [flags]`, "", ...rows.map(([flag, help]) => flag.padEnd(width) + help), "", "Flags can also be given as CORACLE_* variables, or as keys of the config file."].join("\n");
}
