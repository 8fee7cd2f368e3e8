/** What a clock has written that was wrong: edge devices start with whatever time their hardware makes up, and some of it is far ahead. */

/** No two machines whose clocks are set differ that much. */
const AHEAD_MS_MAX = 86_400_000;

/** Whoever waits until then waits for years. */
export function isFarAhead(ms: number, nowMs: number): boolean { return ms - nowMs > AHEAD_MS_MAX; }
