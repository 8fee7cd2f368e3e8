/** `coracle crictl`: what the node's runtime says, over CRI. A small crictl for looking; kubectl is for doing. */
import { createReadStream } from "node:fs";
import { compareText } from "../core/api/meta/compare-text.ts";
import { systemClock } from "../core/lifecycle/clock.ts";
import { type Cri, CriError, criClient } from "../node/cri/client.ts";
import { withDefaults } from "../node/cri/codec.ts";
import { criMethods } from "../node/cri/facts.ts";
import type { Container, PodSandbox } from "../node/cri/gen/runtime.v1.ts";
import { logLines } from "../node/kubelet/server/log-line.ts";
import { ConfigError } from "./config/config.ts";
import { machineSettings, mustReach, runtimeSocket } from "./tools.ts";

const ANSWER_MS_MAX = 10_000;

type Row = readonly string[];

/** Of each command; others are refused: what is not done must not look done. */
const FLAGS: Readonly<Record<string, Readonly<Record<string, "all" | "quiet">>>> = {
  pods: { "-q": "quiet", "--quiet": "quiet" }, ps: { "-a": "all", "--all": "all", "-q": "quiet", "--quiet": "quiet" }, images: { "-q": "quiet", "--quiet": "quiet" },
};

/** `-aq` is `-a -q`. Throws ConfigError, also for words that a command makes nothing of: all would pass for those that were asked for. */
export function crictlFlags(command: string, words: readonly string[]): ReadonlySet<"all" | "quiet"> {
  const single = words.flatMap((word) => (/^-[a-z]{2,}$/.test(word) ? [...word.slice(1)].map((letter) => `-${letter}`) : [word])).filter((word) => word.startsWith("-"));
  const flags = new Set(single.map((word) => {
    const flag = FLAGS[command]?.[word];
    if (flag === undefined) throw new ConfigError(`crictl ${command}: there is no ${word} here; see: coracle crictl --help`);
    return flag;
  }));
  const names = words.filter((word) => !word.startsWith("-")), extra = names[takesName(command) ? 1 : 0];
  if (extra !== undefined) throw new ConfigError(`crictl ${command} takes ${takesName(command) ? "one name" : "no names"}, and there is ${JSON.stringify(extra)}`);
  return flags;
}

const COMMANDS = {
  pods: "sandboxes of pods; -q: their ids alone",
  ps: "containers; -a: also those that have ended; -q: their ids alone",
  images: "images; -q: their ids alone",
  logs: "CONTAINER: what it has said, also while no server can be reached",
  inspect: "CONTAINER: all about a container",
  inspectp: "POD: all about a sandbox",
  info: "the runtime's own state",
  version: "which runtime it is",
} as const;

function takesName(command: string): boolean { return /^[A-Z]/.test(COMMANDS[command as keyof typeof COMMANDS] ?? ""); }

export async function crictl(argv: readonly string[]): Promise<number> {
  const [command = "", ...rest] = argv;
  const asksHelp = command === "help" || argv.some((word) => word === "--help" || word === "-h");
  if (!Object.hasOwn(COMMANDS, command) || asksHelp) {
    console.log(["Usage: coracle crictl COMMAND", "", ...Object.entries(COMMANDS).map(([name, help]) => `  ${name.padEnd(10)}${help}`)].join("\n"));
    return asksHelp ? 0 : 2;
  }
  const flags = crictlFlags(command, rest);
  if (takesName(command) && rest.length === 0) throw new ConfigError(`crictl ${command}: of which? see: coracle crictl ${command === "inspectp" ? "pods" : "ps -a"}`);
  const call = { timeoutMs: ANSWER_MS_MAX };
  const tell = flags.has("quiet") ? printIds : print;
  const socket = runtimeSocket(machineSettings());
  mustReach(socket);
  const cri = criClient({ socket, nowMs: systemClock.nowMs });
  try {
    switch (command as keyof typeof COMMANDS) {
      case "pods": {
        const items = newestFirst((await cri.call("RuntimeService/ListPodSandbox", {}, call)).items);
        tell(items.map(({ id = "" }) => id), [["POD ID", "STATE", "NAME", "NAMESPACE", "ATTEMPT"], ...items.map(podRow)]);
        break;
      }
      case "ps": {
        const filter = flags.has("all") ? {} : { filter: { state: { state: "CONTAINER_RUNNING" as const } } };
        const containers = newestFirst((await cri.call("RuntimeService/ListContainers", filter, call)).containers);
        tell(containers.map(({ id = "" }) => id), [["CONTAINER", "IMAGE", "STATE", "NAME", "ATTEMPT", "POD ID", "POD"], ...containers.map(containerRow)]);
        break;
      }
      case "images": {
        const images = ((await cri.call("ImageService/ListImages", {}, call)).images ?? []).toSorted((a, b) => compareText(a.repo_tags?.[0] ?? "", b.repo_tags?.[0] ?? ""));
        tell(images.map(({ id = "" }) => id), [
          ["IMAGE", "IMAGE ID", "SIZE"],
          ...images.flatMap(({ repo_tags = [], id = "", size = 0 }) => (repo_tags.length > 0 ? repo_tags : ["<none>"]).map((tag) => [tag, short(id), humanSize(Number(size))])),
        ]);
        break;
      }
      case "logs": {
        const { status } = await cri.call("RuntimeService/ContainerStatus", { container_id: rest[0] ?? "" }, call);
        await printLog(status?.log_path ?? "");
        break;
      }
      case "inspect": return await show(cri, "RuntimeService/ContainerStatus", { container_id: rest[0] ?? "", verbose: true });
      case "inspectp": return await show(cri, "RuntimeService/PodSandboxStatus", { pod_sandbox_id: rest[0] ?? "", verbose: true });
      case "info": return await show(cri, "RuntimeService/Status", { verbose: true });
      case "version": return await show(cri, "RuntimeService/Version", {});
    }
  } catch (error) {
    if (!(error instanceof CriError) || (error.code !== "DeadlineExceeded" && error.code !== "Unavailable")) throw error;
    throw new Error(`no container runtime answers at ${socket}. Is Coracle running on this machine, and are you root?`, { cause: error });
  } finally {
    cri.close();
  }
  return 0;
}

function podRow({ id = "", state = "SANDBOX_READY", metadata }: PodSandbox): Row {
  return [short(id), state === "SANDBOX_READY" ? "Ready" : "NotReady", metadata?.name ?? "", metadata?.namespace ?? "", String(metadata?.attempt ?? 0)];
}

function containerRow({ id = "", image, state = "CONTAINER_CREATED", metadata, pod_sandbox_id = "", labels }: Container): Row {
  return [short(id), short(image?.image ?? ""), state.replace("CONTAINER_", "").toLowerCase(), metadata?.name ?? "", String(metadata?.attempt ?? 0), short(pod_sandbox_id), labels?.["io.kubernetes.pod.name"] ?? ""];
}

async function printLog(path: string): Promise<void> {
  for await (const { stream, content } of logLines(createReadStream(path))) process[stream].write(content);
}

function short(id: string): string {
  return id.replace(/^sha256:/, "").slice(0, /^(sha256:)?[0-9a-f]{64}$/.test(id) ? 13 : undefined);
}

function printIds(ids: readonly string[]): void {
  for (const id of ids) console.log(id);
}

function print(_ids: readonly string[], rows: readonly Row[]): void {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  for (const row of rows) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join("   ").trimEnd());
}

async function show<M extends Parameters<Cri["call"]>[0]>(cri: Cri, method: M, request: Parameters<Cri["call"]>[1]): Promise<number> {
  const answer = await cri.call(method, request as never, { timeoutMs: ANSWER_MS_MAX });
  console.log(JSON.stringify(withDefaults(criMethods().get(method)!.response, answer), (_, inner: unknown) => (inner instanceof Uint8Array ? Buffer.from(inner).toString() : inner), 2));
  return 0;
}

function newestFirst<T extends { readonly created_at?: number | undefined }>(items: readonly T[] = []): T[] { return items.toSorted((a, b) => (b.created_at ?? 0) - (a.created_at ?? 0)); }

/** 3.34kB, 58.7MB, 169MB: three digits. Pure. */
export function humanSize(bytes: number): string {
  let size = bytes, unit = 0;
  for (; size >= 1000 && unit < UNITS.length - 1; unit++) size /= 1000;
  return `${Number(size.toPrecision(3))}${UNITS[unit]}`;
}

const UNITS: readonly string[] = ["B", "kB", "MB", "GB", "TB"];
