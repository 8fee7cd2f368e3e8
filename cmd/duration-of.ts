import { parseDurationMs } from "../core/api/meta/duration.ts";

/** What a setting says in Go's words, as 1m30s. Undefined: no duration, or less than none; the caller says what is wanted instead. */
export function durationMsOf(text: string): number | undefined {
  try {
    const ms = parseDurationMs(text);
    return ms >= 0 ? ms : undefined;
  } catch {
    return undefined;
  }
}
