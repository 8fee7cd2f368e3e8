/**
 * The last words of a container: the file at terminationMessagePath, or, when it failed and wrote none and the policy says so, the end of its log.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go (getTerminationMessage), pkg/kubelet/container/runtime.go (limits)
 */
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import type { RuntimeContainer } from "../runtime-pod.ts";

const MESSAGE_BYTES_MAX = 4096;
const LOG_BYTES_MAX = 2048;
const LOG_LINES_MAX = 80;
/** What stands before the content of a line: time, stream, tag. */
const HEAD_BYTES = 64;
/** Runtimes cut longer ones. */
const LINE_BYTES_MAX = 16 * 1024;

export async function terminationMessage(container: RuntimeContainer): Promise<string> {
  const { spec, exitCode, reason, mounts, message, logPath } = container;
  const fallback = spec.terminationMessagePolicy === "FallbackToLogsOnError" && exitCode !== 0 && reason !== "ContainerCannotRun";
  const path = spec.terminationMessagePath && (spec.terminationMessagePath.startsWith("/") ? spec.terminationMessagePath : `/${spec.terminationMessagePath}`);
  const host = path ? mounts.find(({ container_path }) => container_path === path)?.host_path : undefined;
  const written = host === undefined ? "" : await readEnd(host, MESSAGE_BYTES_MAX).then(({ text }) => text, (error: NodeJS.ErrnoException) => (error.code === "ENOENT" ? "" : `Error on reading termination log ${host}: ${error.message}`));
  const words = written !== "" || !fallback ? written : await endOfLog(logPath);
  return [message, words].filter((text) => text !== "").join(": ");
}

async function endOfLog(path: string): Promise<string> {
  try {
    const { text: end, isCut } = await readEnd(path, LOG_BYTES_MAX + LOG_LINES_MAX * HEAD_BYTES + LINE_BYTES_MAX);
    const lines = end.split(/(?<=\n)/);
    const endedCount = lines.length - (end.endsWith("\n") ? 0 : 1);
    if (endedCount > LOG_LINES_MAX) return tail(contentOf(lines.slice(endedCount - LOG_LINES_MAX), LOG_LINES_MAX), LOG_BYTES_MAX);
    const [first = "", ...rest] = lines, whole = contentOf(rest, LOG_LINES_MAX - 1);
    const isEnough = !isCut || Buffer.byteLength(whole) >= LOG_BYTES_MAX;
    return tail(`${contentOf([first], 1) || (isEnough ? "" : first)}${whole}`, LOG_BYTES_MAX); // of a line without end there is only its end
  } catch (error) {
    return `Error on reading termination message from logs: ${(error as Error).message}`;
  }
}

/**
 * Of no more than `linesMax`. A line of the runtime's log is "<time> <stream> <F|P> <content>"; P: the line goes on in the next one. The last one may have no end,
 * as it is being written or the machine went down with it: it is told where there are not enough that have.
 */
function contentOf(lines: readonly string[], linesMax: number): string {
  const read = lines.flatMap((line) => {
    const [, tag, content] = /^\S+ (?:stdout|stderr) ([FP])\S* ?(.*)$/s.exec(line) ?? [];
    return content === undefined ? [] : [tag === "P" && content.endsWith("\n") ? content.slice(0, -1) : content];
  });
  return read.slice(0, linesMax).join("");
}

/** Of a file. A container may have put a pipe there, whose other end would be waited for. */
async function readEnd(path: string, bytesMax: number): Promise<{ readonly text: string; /** There is more before it. */ readonly isCut: boolean }> {
  const file = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    const facts = await file.stat();
    if (!facts.isFile()) throw new Error("is no regular file");
    const { size } = facts;
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, bytesMax)), 0, Math.min(size, bytesMax), Math.max(0, size - bytesMax));
    return { text: buffer.toString("utf8", 0, bytesRead), isCut: size > bytesMax };
  } finally {
    await file.close();
  }
}

function tail(text: string, bytesMax: number): string {
  const bytes = Buffer.from(text);
  return bytes.length <= bytesMax ? text : bytes.subarray(bytes.length - bytesMax).toString("utf8");
}
