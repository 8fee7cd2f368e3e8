/**
 * Durations as Go writes and reads them: `1h30m0s`, `1.5h`, `300ms`, `-2us`. Exact, in nanoseconds.
 *
 * Source: Go's time.ParseDuration and Duration.String, which metav1.Duration uses.
 */
const NS_PER_MINUTE = 60_000_000_000n;
const NS_PER: ReadonlyMap<string, bigint> = new Map([
  ["ns", 1n], ["us", 1_000n], ["\u00b5s", 1_000n], ["\u03bcs", 1_000n], ["ms", 1_000_000n], ["s", 1_000_000_000n], ["m", NS_PER_MINUTE], ["h", 60n * NS_PER_MINUTE],
]);
/** Durations are int64 nanoseconds: ±292 years. */
const NS_END = 2n ** 63n;

/** Throws Go's texts: `time: invalid duration "x"`, `time: missing unit in duration "5"`, `time: unknown unit "d" in duration "5d"`. */
export function parseDurationNs(text: string): bigint {
  const negative = text.startsWith("-");
  let rest = negative || text.startsWith("+") ? text.slice(1) : text;
  if (rest === "0") return 0n;
  if (rest === "") throw invalid(text);
  let total = 0n;
  while (rest !== "") {
    const [matched, whole = "", fraction = ""] = /^(\d*)(?:\.(\d*))?/.exec(rest)!;
    if (whole === "" && fraction === "") throw invalid(text);
    const count = withinInt64(whole, text);
    rest = rest.slice(matched.length);
    const unit = /^[^.0-9]*/.exec(rest)![0];
    if (unit === "") throw new Error(`time: missing unit in duration ${quote(text)}`);
    const ns = NS_PER.get(unit);
    if (ns === undefined) throw new Error(`time: unknown unit ${quote(unit)} in duration ${quote(text)}`);
    total += count * ns + partOf(ns, fraction);
    if (total > NS_END) throw invalid(text);
    rest = rest.slice(unit.length);
  }
  if (!negative && total === NS_END) throw invalid(text);
  return negative ? -total : total;
}

/** More digits than an int64 has are not looked at: they are not a duration but an attack on BigInt. */
function withinInt64(digits: string, text: string): bigint {
  const plain = digits.replace(/^0+/, "");
  const value = plain.length > 19 ? undefined : BigInt(plain || "0");
  if (value === undefined || value > NS_END) throw invalid(text);
  return value;
}

/** A fraction of a unit, as exact as Go has it: in a float, of as many digits as an int64 holds. */
function partOf(ns: bigint, fraction: string): bigint {
  let kept = BigInt(fraction.slice(0, 18) || "0"), digits = Math.min(fraction.length, 18);
  const next = fraction.length > 18 ? kept * 10n + BigInt(fraction[18]!) : NS_END + 1n;
  if (next <= NS_END) { kept = next; digits = 19; }
  return kept === 0n ? 0n : BigInt(Math.trunc(Number(kept) * (Number(ns) / 10 ** digits)));
}

function invalid(text: string): Error { return new Error(`time: invalid duration ${quote(text)}`); }

/** As package time quotes, which knows of bytes alone. */
function quote(text: string): string {
  const bytes = Buffer.from(text).toString("latin1");
  return `"${bytes.replace(/["\\]|[^\x20-\x7f]/g, (byte) => (byte === "\"" || byte === "\\" ? `\\${byte}` : ESCAPES[byte.charCodeAt(0)]!))}"`;
}

/** By byte: there may be a million of them. */
const ESCAPES: readonly string[] = Array.from({ length: 256 }, (_, byte) => `\\x${byte.toString(16).padStart(2, "0")}`);

/** For timers: fractions of a millisecond stay. */
export function parseDurationMs(text: string): number { return Number(parseDurationNs(text)) / 1e6; }

/** `1h30m0s`, `1.5s`, `300ms`, `0s`: Go's canonical form. */
export function formatDurationNs(ns: bigint): string {
  if (ns === 0n) return "0s";
  if (ns < 0n) return `-${formatDurationNs(-ns)}`;
  if (ns < 1_000n) return `${ns}ns`;
  if (ns < 1_000_000n) return `${decimal(ns, 3)}\u00b5s`;
  if (ns < 1_000_000_000n) return `${decimal(ns, 6)}ms`;
  const minutes = ns / NS_PER_MINUTE;
  const seconds = `${decimal(ns % NS_PER_MINUTE, 9)}s`;
  if (minutes === 0n) return seconds;
  return minutes < 60n ? `${minutes}m${seconds}` : `${minutes / 60n}h${minutes % 60n}m${seconds}`;
}

export function formatDurationMs(ms: number): string { return formatDurationNs(BigInt(Math.round(ms * 1e6))); }

/** value / 10^places without trailing zeros. */
function decimal(value: bigint, places: number): string {
  const digits = value.toString().padStart(places + 1, "0");
  const fraction = digits.slice(-places).replace(/0+$/, "");
  const whole = digits.slice(0, -places);
  return fraction === "" ? whole : `${whole}.${fraction}`;
}
