/** Exponential back-off: `minMs`, doubled at each failure, at most `maxMs`. Pure: the caller keeps the number of failures. */
export interface BackoffOptions { readonly minMs: number; readonly maxMs: number }

/** Delay before the next try, after `failures` failures in a row (1 or more). */
export function backoffMs(failures: number, { minMs, maxMs }: BackoffOptions): number {
  return Math.min(maxMs, minMs * 2 ** Math.min(failures - 1, 40));
}
