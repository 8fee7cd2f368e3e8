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
import { aggregate } from "../../../core/api/meta/aggregate.ts";
import { goQuote } from "../../../core/api/meta/go-quote.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import type { Exec, ExecResult } from "../../os/exec.ts";
import { type Answer, text } from "./answer.ts";

interface Deps { readonly logDir: string; readonly enabled: boolean; readonly exec: Exec }

const SERVICE_NAME = /^[a-zA-Z0-9_@][a-zA-Z0-9_@.:-]*$/;
const SERVICE_NAME_MAX = 256;
const SERVICES_MAX = 4;
const TAIL_LINES_MAX = 100_000;
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
  const names = query.getAll("query").filter((name) => name.trim() !== "");
  const problem = problemOf(query, names);
  if (problem) return text(problem.status, `${problem.text}\n`);
  const [file] = names.filter(isFile);
  if (file !== undefined) {
    const found = await pathBelow(logDir, file.replaceAll("\\", "/"));
    return found === undefined ? text(406, `query: Invalid value: ${JSON.stringify([file])}: statat ${file}: no such file or directory\n`) : fileAt(found);
  }
  const journal = await fromJournal({ exec }, query, names, signal);
  if (journal?.isAnswer) return logged(journal.text);
  for (const name of servicesOf(names)) {
    for (const path of [name, `${name}.log`, `${name}/${name}.log`]) {
      const found = await pathBelow(logDir, path);
      if (found !== undefined) return hasOptions(query) ? logged(`\noptions present and query resolved to log files for [${names.join(" ")}]\ntry without specifying options\n`) : fileAt(found);
    }
  }
  if (journal && (await hasUnit({ exec }, names, signal))) return logged(journal.text);
  return logged(names.map((name) => `\nlog not found for ${name}\n`).join(""));
}

function logged(body: string): Answer { return { status: 200, contentType: "text/plain;charset=UTF-8", body, mayGzip: true }; }

/** A hint that a file is meant. */
function isFile(name: string): boolean { return /[/\\]/.test(name); }

const OPTIONS: readonly string[] = ["sinceTime", "untilTime", "tailLines", "pattern", "boot"];

/** They are the journal's to obey: a file is given as it is. */
export function hasOptions(query: URLSearchParams): boolean { return OPTIONS.some((name) => query.get(name)); }

const RFC3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}([.,]\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** What is wrong with it, in upstream's words: 400 for what cannot be read, 406 for what is not to be had. `names`: those that are none left out. Pure. */
export function problemOf(query: URLSearchParams, names: readonly string[]): { readonly status: number; readonly text: string } | undefined {
  const unread = unreadable(query, names);
  if (unread.length > 0) return { status: 400, text: aggregate(unread) };
  const refused = refusals(query, names);
  return refused.length > 0 ? { status: 406, text: aggregate(refused) } : undefined;
}

function unreadable(query: URLSearchParams, names: readonly string[]): string[] {
  const asked = query.getAll("query");
  const notTime = (name: string): string[] => (query.get(name) && !(RFC3339.test(query.get(name)!) && !Number.isNaN(Date.parse(query.get(name)!))) ? [`${name}: Invalid value: ${goQuote(query.get(name)!)}: invalid time format`] : []);
  const notInteger = (name: string): string[] => (query.get(name) && !/^[+-]?\d+$/.test(query.get(name)!) ? [`${name}: Invalid value: ${goQuote(query.get(name)!)}: strconv.Atoi: parsing ${goQuote(query.get(name)!)}: invalid syntax`] : []);
  return [
    ...(asked.length > 0 && names.length === 0 ? [`query: Invalid value: ${JSON.stringify(asked)}: query cannot be empty`] : []),
    ...notTime("sinceTime"), ...notTime("untilTime"), ...notInteger("boot"), ...notInteger("tailLines"),
  ];
}

function refusals(query: URLSearchParams, names: readonly string[]): string[] {
  const files = names.filter(isFile);
  const services = names.filter((name) => !isFile(name));
  const [since, until, boot, tail] = ["sinceTime", "untilTime", "boot", "tailLines"].map((name) => query.get(name) || undefined);
  return [
    ...services.flatMap((name) => (name.length > SERVICE_NAME_MAX ? [`query: Invalid value: ${goQuote(name)}: length must be less than ${SERVICE_NAME_MAX}`] : SERVICE_NAME.test(name) ? [] : [`query: Invalid value: ${goQuote(name)}: input contains unsupported characters`])),
    ...(services.length > SERVICES_MAX ? [`query: Too many: ${services.length}: must have at most ${SERVICES_MAX} items`] : []),
    ...(names.length === 0 ? ["query: Required value: cannot be empty with options"]
      : files.length > 0 && services.length > 0 ? [`query: Invalid value: ${JSON.stringify(`[${files.join(" ")}], [${services.join(" ")}]`)}: cannot specify a file and service`]
      : files.length > 1 ? [`query: Invalid value: ${JSON.stringify(files)}: cannot specify more than one file`]
      : files.length === 1 && hasOptions(query) ? [`query: Invalid value: ${JSON.stringify(files)}: cannot specify file with options`] : []),
    ...(since !== undefined && until !== undefined && Date.parse(since) > Date.parse(until) ? [`untilTime: Invalid value: ${JSON.stringify(until)}: must be after \`sinceTime\``] : []),
    ...(boot !== undefined && Number(boot) > 0 ? [`boot: Invalid value: ${Number(boot)}: must be less than 1`] : []),
    ...(tail !== undefined && !(Number(tail) >= 0 && Number(tail) <= TAIL_LINES_MAX) ? [`tailLines: Invalid value: ${Number(tail)}: must be between 0 and ${TAIL_LINES_MAX}, inclusive`] : []),
  ];
}

/** What the journal says, and whether that is something of these services. Undefined: there is no journal. */
async function fromJournal({ exec }: Pick<Deps, "exec">, query: URLSearchParams, names: readonly string[], signal: AbortSignal): Promise<{ readonly text: string; readonly isAnswer: boolean } | undefined> {
  const time = (name: string): string => new Date(query.get(name)!).toISOString().replace("T", " ").replace(/\.\d+Z$/, "");
  const args = [
    "--utc", "--no-pager", "--output=short-precise", ...(query.get("sinceTime") ? [`--since=${time("sinceTime")}`] : []), ...(query.get("untilTime") ? [`--until=${time("untilTime")}`] : []),
    ...(query.get("tailLines") ? ["--pager-end", `--lines=${Number(query.get("tailLines"))}`] : []), ...servicesOf(names).map((name) => `--unit=${name}`), ...(query.get("pattern") ? [`--grep=${query.get("pattern")}`, "--case-sensitive=false"] : []),
    ...(query.get("boot") ? ["--boot", String(Number(query.get("boot")))] : []),
  ];
  const ended = await journalctl({ exec }, args, signal);
  return ended && { text: `${ended.stdout}${ended.stderr}`, isAnswer: ended.exitCode === 0 && ended.stdout.trim() !== "" && !ended.stdout.startsWith("-- No entries --") };
}

/** Whether the journal knows any of these. */
async function hasUnit(deps: Pick<Deps, "exec">, names: readonly string[], signal: AbortSignal): Promise<boolean> {
  const ended = await journalctl(deps, ["--field", "_SYSTEMD_UNIT"], signal);
  const known = new Set(ended?.exitCode === 0 ? ended.stdout.split("\n") : []);
  return servicesOf(names).some((name) => known.has(name) || known.has(`${name}.service`));
}

async function journalctl({ exec }: Pick<Deps, "exec">, args: readonly string[], signal: AbortSignal): Promise<ExecResult | undefined> {
  try {
    return await exec("journalctl", args, { timeoutMs: JOURNAL_MS, signal });
  } catch (error) {
    if ((error as { code?: string }).code === "not-found") return undefined;
    throw error;
  }
}

/** Never out of the directory, whatever links say. */
async function pathBelow(logDir: string, path: string): Promise<string | undefined> {
  const root = await ifThere(realpath(logDir));
  const found = root && await ifThere(realpath(join(root, path)));
  return found?.startsWith(root + sep) && (await ifThere(stat(found)))?.isFile() ? found : undefined;
}

function fileAt(path: string): Answer {
  return { status: 200, contentType: "text/plain; charset=utf-8", body: createReadStream(path) };
}
