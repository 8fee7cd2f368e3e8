/** An error for people: what we were doing, and why it failed, without a stack, and nothing twice. */
const DEPTH_MAX = 8;

export function explainError(error: unknown): string {
  const lines: string[] = [];
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < DEPTH_MAX; at = at instanceof AggregateError ? at.errors[0] : at.cause, depth++) {
    const line = told(at);
    if (!lines.some((before) => before.includes(line))) lines.push(line);
  }
  return lines.length > 0 ? lines.join("\n  because: ") : String(error);
}

/** A store says what is wrong and what to do in its fields. */
function told(error: Error): string {
  const { path, reason, remedy } = (error as { fields?: { path?: unknown; reason?: unknown; remedy?: unknown } }).fields ?? {};
  return (typeof remedy === "string" ? `${String(path)}: ${String(reason)}; ${remedy}` : error.message).trim();
}
