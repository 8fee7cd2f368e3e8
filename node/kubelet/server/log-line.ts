/**
 * One line of a container's log as runtimes write it:
 *
 *   2016-10-06T00:17:09.669794202Z stdout F a whole line          P instead of F: the line goes on in the next one
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/cri-client/pkg/logs/logs.go
 */
export interface LogLine {
  /** As written, without trailing zeros perhaps. */
  readonly time: string;
  readonly stream: "stdout" | "stderr";
  /** With its line feed, unless the line goes on. */
  readonly content: Buffer;
}

const SPACE = 32, LINE_FEED = 10;

/** `bytes` is a line with its line feed, if it has one. Undefined: it is not in that form. */
export function parseLogLine(bytes: Buffer): LogLine | undefined {
  const afterTime = bytes.indexOf(SPACE);
  const afterStream = bytes.indexOf(SPACE, afterTime + 1);
  const afterTags = bytes.indexOf(SPACE, afterStream + 1);
  if (afterTime < 0 || afterStream < 0 || afterTags < 0) return undefined;
  const time = bytes.toString("latin1", 0, afterTime);
  const stream = bytes.toString("latin1", afterTime + 1, afterStream);
  if ((stream !== "stdout" && stream !== "stderr") || !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/.test(time)) return undefined;
  const partial = bytes.toString("latin1", afterStream + 1, afterTags).split(":")[0] === "P";
  const end = partial && bytes[bytes.length - 1] === LINE_FEED ? bytes.length - 1 : bytes.length;
  return { time, stream, content: bytes.subarray(afterTags + 1, end) };
}

/** The lines of a log that is read piece by piece; what is not in that form is passed over. A container may write carriage returns: lines end with a line feed alone. */
export async function* logLines(pieces: AsyncIterable<Buffer>): AsyncGenerator<LogLine> {
  let rest: Buffer = Buffer.alloc(0);
  for await (const piece of pieces) {
    const bytes = Buffer.concat([rest, piece]);
    let start = 0;
    for (let end = bytes.indexOf(LINE_FEED); end >= 0; end = bytes.indexOf(LINE_FEED, start)) {
      const line = parseLogLine(bytes.subarray(start, end + 1));
      if (line) yield line;
      start = end + 1;
    }
    rest = bytes.subarray(start);
  }
  const last = parseLogLine(rest);
  if (last) yield last;
}

/** Milliseconds since the epoch. */
export function logTimeMs(time: string): number {
  return Date.parse(time.replace(/\.(\d{3})\d*/, ".$1"));
}

/** With nine digits of a second, as --timestamps shows it. */
export function fixedLogTime(time: string): string {
  const match = /^([^.Z+-]*-\d\d-[^.Z+-]*)(?:\.(\d+))?(.*)$/.exec(time);
  return match ? `${match[1]}.${(match[2] ?? "").padEnd(9, "0")}${match[3]}` : time;
}
