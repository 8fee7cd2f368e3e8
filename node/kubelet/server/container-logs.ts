/**
 * GET /containerLogs/{namespace}/{pod}/{container}
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/server.go getContainerLogs, pkg/kubelet/kuberuntime/logs
 */
import { Readable } from "node:stream";
import { parseTime } from "../../../core/api/meta/time.ts";
import { isTrue } from "../../../core/api/request/query.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { ifThere } from "../../../core/lifecycle/if-there.ts";
import { KubeletApiError, type KubeletApi, type LogFile } from "../kubelet-api.ts";
import { type Answer, text } from "./answer.ts";
import { openLog, readLog, type ReadLogOptions } from "./read-log.ts";

interface Request {
  readonly namespace: string;
  readonly pod: string;
  readonly container: string;
  readonly query: URLSearchParams;
  /** One stream alone may be asked for: PodLogsQuerySplitStreams is switched on. */
  readonly splits?: boolean;
  readonly signal: AbortSignal;
}

/** A container that was just started writes its first line soon. */
const APPEAR_MS = 100;

export async function containerLogs(api: KubeletApi, { namespace, pod, container, query, splits = false, signal }: Request, clock: Clock): Promise<Answer> {
  if (pod === "") return text(400, '{"message": "Missing podID."}');
  if (container === "") return text(400, '{"message": "Missing container name."}');
  if (namespace === "") return text(400, '{"message": "Missing podNamespace."}');
  const options = parseOptions(query, clock.nowMs());
  if (typeof options === "string") return text(options.startsWith('{"message": "Invalid') ? 422 : 400, options);
  const found = api.pod({ namespace, name: pod });
  if (!found) return text(404, `pod "${pod}" does not exist`);
  const { containers, initContainers = [], ephemeralContainers = [] } = found.spec;
  if (![...containers, ...initContainers, ...ephemeralContainers].some(({ name }) => name === container)) return text(404, `container "${container}" not found in pod "${pod}"`);
  if (options.stream !== "All" && !splits) return text(400, `unable to return the given log stream: "${options.stream}". Please enable PodLogsQuerySplitStreams feature gate in kubelet`);

  const opened = await openLogOf(() => api.logFile({ namespace, name: pod, uid: found.metadata.uid }, container, { previous: isTrue(query.get("previous")) }), options, clock, signal);
  if (typeof opened === "string") return text(200, opened);
  const { file, handle } = opened;
  const body = Readable.from(readLog(file.path, handle, options, { running: () => file.running(), clock, signal }), { objectMode: false });
  body.once("close", () => void handle.close()); // also if nobody has begun to read, because the client has gone meanwhile: the engine throws when it finds a file that nobody has closed, and the process ends
  return { status: 200, contentType: "text/plain", body };
}

/** Or what is told in its place. Of standard error alone nothing has been begun that would have to go on. */
async function openLogOf(find: () => LogFile, { follow = false, stream }: ReadLogOptions, clock: Clock, signal: AbortSignal) {
  try {
    const file = find();
    return { file, handle: await openWhenThere(file, follow, clock, signal) };
  } catch (error) {
    if (error instanceof KubeletApiError && error.code === "no-log" && stream !== "Stderr") return error.message;
    throw error;
  }
}

async function openWhenThere({ path, running }: LogFile, follow: boolean, clock: Clock, signal: AbortSignal) {
  for (;;) {
    const opened = await ifThere(openLog(path));
    if (opened) return opened;
    if (!follow || !running() || signal.aborted) throw new KubeletApiError("no-log", `failed to try resolving symlinks in path "${path}": lstat ${path}: no such file or directory`);
    await clock.sleep(APPEAR_MS, signal);
  }
}

/** Or the body of the refusal. The first of several values counts. */
function parseOptions(query: URLSearchParams, nowMs: number): ReadLogOptions | string {
  // old clients say "tail", and "all" for no limit: that goes before what new ones say
  const tail = query.get("tail") || query.get("tailLines");
  const [tailLines, limitBytes, sinceSeconds] = [query.get("tail") === "all" ? undefined : integer(tail), integer(query.get("limitBytes")), integer(query.get("sinceSeconds"))];
  const given = query.get("sinceTime");
  const sinceMs = given === null || given === "" || given === "null" ? undefined : parseTime(given) ?? Number.NaN;
  if ([tailLines, limitBytes, sinceSeconds, sinceMs].some(Number.isNaN)) return '{"message": "Unable to decode query."}';
  const stream = STREAMS.find((one) => one === (query.get("stream") ?? "All"));
  const isWrong = stream === undefined || (stream !== "All" && tailLines !== undefined);
  if (isWrong || (tailLines ?? 0) < 0 || (limitBytes ?? 1) < 1 || (sinceSeconds ?? 1) < 1 || (sinceSeconds !== undefined && given !== null)) return '{"message": "Invalid request."}';
  return {
    stream, tailLines, limitBytes, timestamps: isTrue(query.get("timestamps")), follow: isTrue(query.get("follow")),
    sinceMs: sinceSeconds !== undefined ? nowMs - sinceSeconds * 1000 : sinceMs,
  };
}

const STREAMS = ["All", "Stdout", "Stderr"] as const;

/** NaN: it is none. Source: kubernetes v1.36 apimachinery/pkg/runtime/conversion.go */
function integer(value: string | null): number | undefined {
  return value === null ? undefined : /^[+-]?\d{1,18}$/.test(value) ? Number(value) : Number.NaN;
}
