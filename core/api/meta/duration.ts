/**
 * Durations as Go writes and reads them: `1h30m0s`, `1.5h`, `300ms`, `-2us`. Exact, in nanoseconds.
 *
 * Source: Go's time.ParseDuration and Duration.String, which metav1.Duration uses.
 */
import { goQuote } from "./go-quote.ts";

const NS_PER: Readonly<Record<string, bigint>> = {
  ns: 1n, us: 1_000n, "\u00b5s": 1_000n, "\u03bcs": 1_000n, ms: 1_000_000n, s: 1_000_000_000n, m: 60_000_000_000n, h: 3_600_000_000_000n,
};
/** Durations are int64 nanoseconds: ±292 years. */
const NS_MAX = 2n ** 63n - 1n;
/** More digits than this are not a duration but an attack on BigInt. */
const DIGITS_MAX = 64;

/** Throws Go's texts: `time: invalid duration "x"`, `time: missing unit in duration "5"`, `time: unknown unit "d" in duration "5d"`. */
export function parseDurationNs(text: string): bigint {
  const negative = text.startsWith("-");
  let rest = negative || text.startsWith("+") ? text.slice(1) : text;
  if (rest === "0") return 0n;
  if (rest === "") throw invalid(text);
  let total = 0n;
  while (rest !== "") {
    const number = /^(\d*)(?:\.(\d*))?/.exec(rest)!;
    const [matched, whole = "", fraction = ""] = number;
    if (whole === "" && fraction === "") throw invalid(text);
    if (matched.length > DIGITS_MAX) throw invalid(text);
    rest = rest.slice(matched.length);
    const unit = /^[^.0-9]*/.exec(rest)![0];
    if (unit === "") throw new Error(`time: missing unit in duration ${goQuote(text)}`);
    const ns = NS_PER[unit];
    if (ns === undefined) throw new Error(`time: unknown unit ${goQuote(unit)} in duration ${goQuote(text)}`);
    total += BigInt(whole || "0") * ns + (BigInt(fraction || "0") * ns) / 10n ** BigInt(fraction.length);
    if (total > NS_MAX + (negative ? 1n : 0n)) throw invalid(text);
    rest = rest.slice(unit.length);
  }
  return negative ? -total : total;
}

function invalid(text: string): Error { return new Error(`time: invalid duration ${goQuote(text)}`); }

/** For timers: fractions of a millisecond stay. */
export function parseDurationMs(text: string): number { return Number(parseDurationNs(text)) / 1e6; }

/** `1h30m0s`, `1.5s`, `300ms`, `0s`: Go's canonical form. */
export function formatDurationNs(ns: bigint): string {
  if (ns === 0n) return "0s";
  if (ns < 0n) return `-${formatDurationNs(-ns)}`;
  if (ns < 1_000n) return `${ns}ns`;
  if (ns < 1_000_000n) return `${decimal(ns, 3)}\u00b5s`;
  if (ns < 1_000_000_000n) return `${decimal(ns, 6)}ms`;
  const minutes = ns / NS_PER["m"]!;
  const seconds = `${decimal(ns % NS_PER["m"]!, 9)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

/** value / 10^places without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  const whole = digits.slice(0, -places);
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
