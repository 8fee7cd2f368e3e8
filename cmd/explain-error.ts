/** An error for people: what we were doing, and why it failed, without a stack, and nothing twice. */
const DEPTH_MAX = 8;

/** What to do, by the system's code, where nobody who knows more has said it. */
const REMEDIES: Readonly<Record<string, string>> = {
  ENOSPC: "free some space on this file system, or files where it has no room for another one (df, df -i)",
  EDQUOT: "free some space, or raise the quota",
  EROFS: "the disk may be failing: the system's log tells (dmesg); check it and mount it again, or use another one",
  EIO: "the disk may be failing: the system's log tells (dmesg); check it, or use another one",
};

/** Of a signal that ends what takes too long; its own words tell nobody who has not answered. */
const LATE = { name: "TimeoutError", text: "there was no answer in time", remedy: "try again; the server's /readyz tells how it is: while its disk does not answer (etcd failed) what is written waits" };

export function explainError(error: unknown): string {
  const lines: string[] = [];
  let remedy: string | undefined;
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < DEPTH_MAX; at = at instanceof AggregateError ? at.errors[0] : at.cause, depth++) {
    const line = told(at);
    if (hasRemedy(at)) remedy = "";
    remedy ??= at.name === LATE.name ? LATE.remedy : REMEDIES[(at as NodeJS.ErrnoException).code ?? ""];
    if (!lines.some((before) => before.includes(line))) lines.push(line);
  }
  return lines.length > 0 ? lines.join("\n  because: ") + (remedy ? `\n  what to do: ${remedy}` : "") : String(error);
}

function hasRemedy(error: Error): boolean { return typeof (error as { fields?: { remedy?: unknown } }).fields?.remedy === "string"; }

/** A store says what is wrong and what to do in its fields. */
function told(error: Error): string {
  const { path, reason, remedy } = (error as { fields?: { path?: unknown; reason?: unknown; remedy?: unknown } }).fields ?? {};
  return (typeof remedy === "string" ? `${String(path)}: ${String(reason)}; ${remedy}` : error.name === LATE.name ? LATE.text : error.message).trim();
}
