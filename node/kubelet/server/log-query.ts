/**
 * GET /logs/?query=…: what services of this machine have logged, from the journal, or from the log directory; or a file of that.
 *
 * Off unless enableSystemLogQuery says otherwise. Several services may be asked for; a name with a slash is a file. Services of Kubernetes that have no unit
 * of their own here, as the kubelet, have logged where this process does.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet_server_journal.go, kubelet_server_journal_linux.go
 */
import { createReadStream } from "node:fs";
import { realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import type { Exec } from "../../os/exec.ts";
import { type Answer, text } from "./answer.ts";
import { isNotThere } from "./read-log.ts";

interface Deps { readonly logDir: string; readonly enabled: boolean; readonly exec: Exec }

const SERVICE_NAME = /^[a-zA-Z0-9_@][a-zA-Z0-9_@.:-]*$/;
const SERVICE_NAME_MAX = 255;
const SERVICES_MAX = 4;
const JOURNAL_MS = 30_000;
/** Units that other distributions have, and that are parts of this process. */
const WITHIN: ReadonlySet<string> = new Set(["kubelet", "kube-proxy", "kube-apiserver", "kube-controller-manager", "kube-scheduler"]);
/** The unit, and the name of the log file, that this process is installed with. */
const OURS = "coracle";

/** The services that may have logged what is asked of these; their own come first. */
function servicesOf(names: readonly string[]): string[] {
  return [...new Set([...names, ...(names.some((name) => WITHIN.has(name.replace(/\.service$/, ""))) ? [OURS] : [])])];
}

export async function logQuery({ logDir, enabled, exec }: Deps, query: URLSearchParams, signal: AbortSignal): Promise<Answer> {
  if (!enabled) return text(403, "Log query is not enabled on this node\n");
  const names = query.getAll("query");
  const problem = problemOf(query, names);
  if (problem !== undefined) return text(406, `${problem}\n`);
  const [file] = names.filter((name) => name.includes("/"));
  if (file !== undefined) {
    const found = await pathBelow(logDir, file);
    return found === undefined ? text(404, "404 page not found\n") : fileAt(found);
  }
  const fromJournal = await journal({ exec }, query, names, signal);
  if (fromJournal !== undefined) return text(200, fromJournal);
  for (const name of servicesOf(names)) {
    for (const path of [name, `${name}.log`, `${name}/${name}.log`]) {
      const found = await pathBelow(logDir, path);
      if (found !== undefined) return hasOptions(query) ? text(200, `\noptions present and query resolved to log files for [${names.join(" ")}]\ntry without specifying options\n`) : fileAt(found);
    }
  }
  return text(404, `log not found for ${names.join(", ")}\n`);
}

const OPTIONS: readonly string[] = ["sinceTime", "untilTime", "tailLines", "pattern", "boot"];

/** They are the journal's to obey: a file is given as it is. */
function hasOptions(query: URLSearchParams): boolean { return OPTIONS.some((name) => query.get(name)); }

/** What is wrong with it, in upstream's words. */
export function problemOf(query: URLSearchParams, names: readonly string[]): string | undefined {
  const strange = [...query.keys()].find((key) => key !== "query" && !OPTIONS.includes(key));
  if (strange !== undefined) return `unknown option ${strange}`;
  const files = names.filter((name) => name.includes("/"));
  if (names.some((name) => name === "")) return "query: Required value: query cannot be empty";
  const services = names.filter((name) => !name.includes("/"));
  if (files.length > 0 && services.length > 0) return `query: Invalid value: ${JSON.stringify(`[${files.join(" ")}], [${services.join(" ")}]`)}: cannot specify a file and service`;
  if (files.length > 1) return `query: Invalid value: ${JSON.stringify(files)}: cannot specify more than one file`;
  if (files.length === 1 && hasOptions(query)) return `query: Invalid value: ${JSON.stringify(files)}: cannot specify file with options`;
  const bad = services.find((name) => !SERVICE_NAME.test(name) || name.length > SERVICE_NAME_MAX);
  if (bad !== undefined) return `query: Invalid value: "${bad}": input contains unsupported characters`;
  if (services.length > SERVICES_MAX) return `query: Too many: ${services.length}: must have at most ${SERVICES_MAX} items`;
  const tail = query.get("tailLines");
  if (tail !== null && !(/^\d+$/.test(tail) && Number(tail) <= 100_000)) return `tailLines: Invalid value: ${tail}: must be between 0 and 100000, inclusive`;
  const boot = query.get("boot");
  if (boot !== null && !/^-?\d+$/.test(boot)) return `boot: Invalid value: ${boot}: must be a number`;
  if (boot !== null && Number(boot) > 0) return `boot: Invalid value: ${boot}: must be less than 1`;
  for (const name of ["sinceTime", "untilTime"]) if (query.has(name) && Number.isNaN(Date.parse(query.get(name)!))) return `${name}: Invalid value: "${query.get(name)}": invalid time format`;
  if (query.has("sinceTime") && query.has("untilTime") && Date.parse(query.get("sinceTime")!) > Date.parse(query.get("untilTime")!)) return "untilTime: Invalid value: must be after `sinceTime`";
  return undefined;
}

/** Undefined: there is no journal, or nothing in it of these. */
async function journal({ exec }: Pick<Deps, "exec">, query: URLSearchParams, names: readonly string[], signal: AbortSignal): Promise<string | undefined> {
  const time = (name: string): string => new Date(query.get(name)!).toISOString().replace("T", " ").replace(/\.\d+Z$/, "");
  const args = [
    "--utc", "--no-pager", "--output=short-precise", ...(query.has("sinceTime") ? [`--since=${time("sinceTime")}`] : []), ...(query.has("untilTime") ? [`--until=${time("untilTime")}`] : []),
    ...(query.has("tailLines") ? ["--pager-end", `--lines=${query.get("tailLines")}`] : []), ...servicesOf(names).map((name) => `--unit=${name}`), ...(query.has("pattern") ? [`--grep=${query.get("pattern")}`, "--case-sensitive=false"] : []),
    ...(query.has("boot") ? ["--boot", query.get("boot")!] : []),
  ];
  try {
    const { exitCode, stdout } = await exec("journalctl", args, { timeoutMs: JOURNAL_MS, signal });
    return exitCode === 0 && stdout.trim() !== "" && !stdout.startsWith("-- No entries --") ? stdout : undefined;
  } catch (error) {
    if ((error as { code?: string }).code === "not-found") return undefined;
    throw error;
  }
}

/** Never out of the directory, whatever links say. */
async function pathBelow(logDir: string, path: string): Promise<string | undefined> {
  try {
    const root = await realpath(logDir);
    const found = await realpath(join(root, path));
    return found.startsWith(root + sep) && (await stat(found)).isFile() ? found : undefined;
  } catch (error) {
    if (isNotThere(error)) return undefined;
    throw error;
  }
}

function fileAt(path: string): Answer {
  return { status: 200, contentType: "text/plain; charset=utf-8", body: createReadStream(path) };
}
