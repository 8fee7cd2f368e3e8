/**
 * What the cluster knows of a node whose machine is not to come back: stolen, lost, sold. One entry for each node name in the ConfigMap
 * kube-system/coracle-revoked-nodes, written by `coracle node revoke`:
 *
 *   since         from when on
 *   machines      which machines may not join again: core/pki/machine-key.ts; emptied by `coracle node allow`
 *   certificates  SHA-256 of those client certificates of the name that were issued since, to a machine that may join, and when they end
 *
 * All other certificates of the name are refused (core/authn/revoked-nodes.ts): nobody has a list of what was ever issued, and none is needed.
 */

export interface Revocation {
  readonly since: string;
  readonly machines: readonly string[];
  readonly certificates: Readonly<Record<string, string>>;
}

/** Undefined: nothing is said of the node. What cannot be read lets nobody in. */
export function readRevocation(text: string | undefined): Revocation | undefined {
  if (text === undefined) return undefined;
  try {
    const { since = "", machines = [], certificates = {} } = JSON.parse(text) as Partial<Revocation>;
    return { since: String(since), machines: Array.isArray(machines) ? machines.map(String) : [], certificates: { ...certificates } };
  } catch {
    return { since: "", machines: [], certificates: {} };
  }
}

export function formatRevocation(revocation: Revocation): string { return JSON.stringify(revocation); }

/** Nothing issued until now holds any more. */
export function revoked(before: Revocation | undefined, { machine, now }: { readonly machine: string | undefined; readonly now: string }): Revocation {
  return { since: now, machines: [...new Set([...(before?.machines ?? []), ...(machine === undefined ? [] : [machine])])], certificates: {} };
}

/** Any machine may join under the name again, with a token; old certificates stay refused. */
export function allowed(before: Revocation): Revocation { return { ...before, machines: [] }; }

/** With a certificate that was issued since, without those that have ended. */
export function withCertificate(before: Revocation, { fingerprint, until, now }: { readonly fingerprint: string; readonly until: string; readonly now: string }): Revocation {
  const living = Object.entries(before.certificates).filter(([, end]) => end > now);
  return { ...before, certificates: { ...Object.fromEntries(living), [fingerprint]: until } };
}
