/**
 * From when to when certificates hold, on devices whose clock cannot be trusted.
 *
 * Many edge devices have no battery-backed clock: they start in 1970, or at their last shutdown, and jump once the network answers.
 *   - NotBefore of what we issue for ourselves is the Unix epoch. It would protect nothing (who can backdate needs the CA's key), and
 *     any later date could lie ahead of a peer's clock; so a cluster whose clocks all say 1970 still trusts itself.
 *   - NotAfter counts from the clock or from the day this program was released, whichever is later: a certificate made at "1970" does
 *     not expire the moment the clock is set.
 *   - Leaves are checked at every start and every minute; one that the present clock does not accept is replaced on the spot.
 *   - A CA is never replaced by itself, whatever the clock says: that would cut off every node. It is reported instead.
 */
const DAY_MS = 24 * 60 * 60 * 1000;
/** A hundred years: upstream's kubeadm and k3s have ten, but a clock that says 2038, or 2099, would end a cluster of theirs, and after ten years in a shed nobody is there who replaces a CA. */
export const CA_LIFETIME_MS = 36_500 * DAY_MS;
export const LEAF_LIFETIME_MS = 365 * DAY_MS;
/** Upstream's kubeadm and k3s renew at 120 to 90 days: enough for a device that is off for a season. */
export const RENEW_BEFORE_MS = 90 * DAY_MS;
const NOT_BEFORE_MS = 0;

export interface Validity { readonly notBeforeMs: number; readonly notAfterMs: number }

/** `releasedMs`: a moment that is certainly past. */
export function validityFor(lifetimeMs: number, { nowMs, releasedMs }: { readonly nowMs: number; readonly releasedMs: number }): Validity {
  return { notBeforeMs: NOT_BEFORE_MS, notAfterMs: Math.max(nowMs, releasedMs) + lifetimeMs };
}

export function needsRenewal({ notBeforeMs, notAfterMs }: Validity, nowMs: number): boolean {
  return nowMs < notBeforeMs || nowMs > notAfterMs - RENEW_BEFORE_MS;
}
