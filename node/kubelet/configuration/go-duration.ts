/** Durations as Go writes them: 1h30m, 1.5s, 100ms. */
const UNITS_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1_000, ms: 1, us: 1e-3, µs: 1e-3, ns: 1e-6 };

/** In milliseconds. Throws an Error with Go's words. */
export function parseGoDuration(text: string): number {
  if (text === "0") return 0;
  const match = /^([-+]?)((?:\d+(?:\.\d*)?(?:h|ms|us|µs|ns|m|s))+)$/.exec(text);
  if (!match) throw new Error(`time: invalid duration "${text}"`);
  const total = [...match[2]!.matchAll(/(\d+(?:\.\d*)?)(h|ms|us|µs|ns|m|s)/g)].reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS_MS[unit!]!, 0);
  return match[1] === "-" ? -total : total;
}

/** As Go prints it: 5m0s, 100ms, 1.5s. */
export function formatGoDuration(ms: number): string {
  if (ms === 0) return "0s";
  if (Math.abs(ms) < 1000) return `${ms}ms`;
  const [hours, minutes, seconds] = [Math.floor(ms / 3_600_000), Math.floor((ms % 3_600_000) / 60_000), Number(((ms % 60_000) / 1000).toFixed(9))];
  return `${hours > 0 ? `${hours}h` : ""}${hours > 0 || minutes > 0 ? `${minutes}m` : ""}${seconds}s`;
}
