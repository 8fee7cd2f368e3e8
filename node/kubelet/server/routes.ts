/** The paths of the kubelet's server, but for those that leave HTTP (upgrades.ts). */
import type { ZPages } from "../../../core/api/codec/zpages.ts";
import { StatusError } from "../../../core/api/meta/status-error.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { expose } from "../../../core/observe/exposition.ts";
import { isOfNode, isOfProbes } from "../../../core/observe/families.ts";
import type { DebugPages } from "../../../core/observe/debug-pages.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { Exec } from "../../os/exec.ts";
import type { ContainerStats, KubeletApi, StatsSummary } from "../kubelet-api.ts";
import { BadName, type LocalPathDirectories } from "../volumes/local-path.ts";
import { type Answer, AnswerError, json, text } from "./answer.ts";
import { containerLogs } from "./container-logs.ts";
import type { CheckedHealth } from "./healthz.ts";
import { resourceMetrics } from "./pod-metrics.ts";
import { hasOptions, logQuery } from "./log-query.ts";
import { systemLogs } from "./system-logs.ts";
import { notUpgraded } from "./upgrades.ts";

/** Whether the node's configuration switches a feature on. */
function isOn(configz: Routed["configz"], gate: string): boolean { return (configz()["featureGates"] as Readonly<Record<string, boolean>> | undefined)?.[gate] === true; }

export interface Routed {
  readonly api: KubeletApi;
  readonly metrics: Metrics;
  readonly health: CheckedHealth;
  /** Whether there are logs, exec, configz and the like. */
  readonly debugging: boolean;
  readonly configz: () => Readonly<Record<string, unknown>>;
  /** Absent: there are none. */
  readonly zpages?: ZPages | undefined;
  /** /debug; absent: there is none. */
  readonly debug?: DebugPages | undefined;
  /** What the request brings. */
  readonly body: () => Promise<string>;
  readonly accept?: string | undefined;
  readonly userAgent?: string | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly exec: Exec;
  /** Absent: this node has no local-path volumes. */
  readonly localPath: LocalPathDirectories | undefined;
  readonly method: string;
  /** Of the path: decoded, without the empty ones. */
  readonly parts: readonly string[];
  readonly query: URLSearchParams;
  readonly signal: AbortSignal;
}

const DEBUGGING: ReadonlySet<string> = new Set(["run", "exec", "attach", "portForward", "containerLogs", "runningpods", "logs"]);
/** Which are as if they had never been, where there is no debugging. */
const BESIDE_IT: ReadonlySet<string> = new Set(["configz", "checkpoint", "flagz", "statusz", "debug"]);

/** Throws the answer to what there is for debugging. */
export function refuseDebugging([root = "", next]: readonly string[]): void {
  if (DEBUGGING.has(root) || (root === "debug" && next === "pprof")) throw new AnswerError(405, "Debug endpoints are disabled.\n");
  if (BESIDE_IT.has(root)) throw new AnswerError(404, "404 page not found\n");
}

/** What cannot be had as it is asked for is told as the API server tells it. */
function zpageOf(path: string, { zpages, accept, userAgent, query }: Routed): Answer | undefined {
  try {
    const page = zpages?.(path, { accept, userAgent, pretty: query.get("pretty") ?? undefined });
    return page && { status: 200, ...page };
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return json(error.status, error.code);
  }
}

/** Throws AnswerError and KubeletApiError. */
export async function route(asked: Routed): Promise<Answer> {
  if (!asked.debugging) refuseDebugging(asked.parts);
  const { api, metrics, clock, method, parts, query, signal } = asked;
  const [root, ...rest] = parts;
  const isGet = method === "GET" || method === "HEAD";
  switch (root) {
    case "healthz": return asked.health.answer(rest, query.has("verbose"));
    case "exec":
    case "attach":
    case "portForward":
      throw notUpgraded(api, asked);
    case "run": {
      if (method !== "POST") throw new AnswerError(405, "405: Method Not Allowed");
      return await run(asked, rest);
    }
    case "debug": return await debug(asked);
    case "localPath": return await localPath(asked, rest);
    case "checkpoint": {
      if (method !== "POST") throw new AnswerError(405, "405: Method Not Allowed");
      const [namespace = "", name = "", container = ""] = rest;
      if (!api.pod({ namespace, name })) throw new AnswerError(404, "pod does not exist");
      const timeout = query.getAll("timeout").at(-1) ?? "0";
      if (!/^\+?\d{1,9}$/.test(timeout)) throw new AnswerError(404, "cannot parse value of timeout parameter");
      return json({ items: [await api.checkpoint({ namespace, name }, container, Number(timeout), signal)] });
    }
  }
  if (root === "stats" && rest[0] === "summary" && rest.length === 1 && (isGet || method === "POST")) return await summary(asked);
  if (!isGet) throw new AnswerError(405, "405: Method Not Allowed");
  switch (root) {
    case "containerLogs": return await containerLogs(api, { namespace: rest[0] ?? "", pod: rest[1] ?? "", container: rest[2] ?? "", query, splits: isOn(asked.configz, "PodLogsQuerySplitStreams"), signal }, clock);
    case "pods": return json(podList(api.pods()));
    case "runningpods": return json(podList(await api.runningPods(signal)));
    case "metrics":
      if (rest.length === 0 || rest[0] === "probes") return { status: 200, mayGzip: true, ...expose(metrics.render(rest.length === 0 ? isOfNode : isOfProbes), asked.accept) };
      if (rest[0] === "slis") return { status: 200, mayGzip: true, ...expose(asked.health.slis(), asked.accept) };
      if (rest[0] === "resource") return { status: 200, mayGzip: true, ...expose(resourceMetrics(await summaryIfKnown(asked)), asked.accept) };
      if (rest[0] === "cadvisor") return { status: 200, mayGzip: true, ...expose(await api.cadvisorMetrics(signal), asked.accept) };
      break;
    case "flagz":
    case "statusz": {
      const page = rest.length === 0 ? zpageOf(`/${root}`, asked) : undefined;
      if (page) return page;
      break;
    }
    case "configz": return json({ kubeletconfig: asked.configz() });
    case "logs":
      if (asked.configz()["enableSystemLogHandler"] === false) return text(405, "logs endpoint is disabled.\n");
      return await logs(asked, rest);
  }
  return text(404, "404 page not found\n");
}

/** Options alone are a query, too, where there may be any. */
async function logs({ api, configz, exec, query, signal }: Routed, rest: readonly string[]): Promise<Answer> {
  const enabled = configz()["enableSystemLogQuery"] === true;
  return query.has("query") || (enabled && hasOptions(query)) ? await logQuery({ logDir: api.logDir, enabled, exec }, query, signal) : await systemLogs(api.logDir, rest.join("/"));
}

/** Of /debug the two that upstream's kubelet has, unless its configuration switches them off. */
async function debug({ debug: pages, configz, method, parts, query, body, signal }: Routed): Promise<Answer> {
  const path = `/${parts.join("/")}`;
  const isFlags = path === "/debug/flags/v";
  const isEnabled = configz()[isFlags ? "enableDebugFlagsHandler" : "enableProfilingHandler"] !== false;
  if ((isFlags || parts[1] === "pprof") && !isEnabled) return text(405, `${isFlags ? "flags" : "profiling"} endpoint is disabled.\n`);
  if (!isFlags && parts[1] !== "pprof") return text(404, "404 page not found\n");
  if (!isFlags && method !== "GET") throw new AnswerError(405, "405: Method Not Allowed");
  return (await pages?.({ method, path: path === "/debug/pprof" ? "/debug/pprof/" : path, query, body, signal })) ?? text(404, "404 page not found\n");
}

/** POST makes the directory of a volume and says where it is, DELETE removes it. */
async function localPath({ localPath: directories, method }: Routed, [name = "", ...rest]: readonly string[]): Promise<Answer> {
  if (!directories || rest.length > 0) return text(404, "404 page not found\n");
  try {
    if (method === "POST") return json({ path: await directories.make(name) });
    if (method !== "DELETE") throw new AnswerError(405, "405: Method Not Allowed");
    await directories.remove(name);
    return json({});
  } catch (error) {
    if (error instanceof BadName) throw new AnswerError(400, error.message);
    throw error;
  }
}

function podList(items: readonly unknown[]): unknown {
  return { kind: "PodList", apiVersion: "v1", metadata: {}, items };
}

/** POST /run/{namespace}/{pod}[/{uid}]/{container}?cmd=…: output of both streams, as upstream joins them. */
async function run({ api, query, signal }: Routed, [namespace = "", name = "", ...rest]: readonly string[]): Promise<Answer> {
  const [uid, container = ""] = rest.length === 2 ? rest : [undefined, rest[0]];
  if (!api.pod({ namespace, name })) throw new AnswerError(404, "pod does not exist");
  const { stdout, stderr, exitCode } = await api.run({ namespace, name, uid }, container, (query.get("cmd") ?? "").split(" "), signal);
  const output = Buffer.concat([stdout, stderr]);
  if (exitCode !== 0) throw new AnswerError(500, `command '${(query.get("cmd") ?? "")}' exited with ${exitCode}: ${output.toString()}`);
  return { status: 200, contentType: "application/json", body: output };
}

async function summary({ api, log, query, signal }: Routed): Promise<Answer> {
  const asked = query.getAll("only_cpu_and_memory");
  const found = await api.statsSummary(signal).catch((error: Error) => {
    if (signal.aborted) throw error;
    log.warn("what pods use could not be found out", { error });
    throw new AnswerError(500, `Internal Error: ${error.message}`);
  });
  return json(asked.length === 1 && asked[0] === "true" ? cpuAndMemory(found) : found);
}

/** Whoever scrapes learns from a metric that there is nothing else. */
async function summaryIfKnown({ api, log, signal }: Routed): Promise<StatsSummary | undefined> {
  try {
    return await api.statsSummary(signal);
  } catch (error) {
    if (signal.aborted) throw error;
    log.warn("what pods use could not be found out", { error });
    return undefined;
  }
}

type Used = Pick<ContainerStats, "cpu" | "memory" | "swap">;

/** What metrics-server used to ask for. */
function cpuAndMemory({ node, pods }: StatsSummary): unknown {
  const only = ({ cpu, memory, swap }: Used): Used => ({ ...(cpu ? { cpu } : {}), ...(memory ? { memory } : {}), ...(swap ? { swap } : {}) });
  const each = (containers: readonly ContainerStats[]) => containers.map((one) => ({ name: one.name, startTime: one.startTime, ...only(one) }));
  return {
    node: { nodeName: node.nodeName, startTime: node.startTime, ...only(node), systemContainers: each(node.systemContainers ?? []) },
    pods: pods.map((pod) => ({ podRef: pod.podRef, startTime: pod.startTime, ...only(pod), containers: each(pod.containers) })),
  };
}
