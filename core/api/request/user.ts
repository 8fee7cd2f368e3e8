/** Who is calling. */
export interface UserInfo {
  readonly name: string;
  readonly uid?: string | undefined;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>> | undefined;
}

export const ANONYMOUS: UserInfo = { name: "system:anonymous", groups: ["system:unauthenticated"] };
export const GROUP_AUTHENTICATED = "system:authenticated";
export const GROUP_MASTERS = "system:masters";
export const GROUP_NODES = "system:nodes";
export const GROUP_SERVICE_ACCOUNTS = "system:serviceaccounts";
/**
 * The group of a node whose certificate does not hold now, instead of system:nodes: it was off, or out of reach, for longer than that, or got it while clocks were ahead. It may ask for
 * another one, and nothing else; who has such a certificate's key had all this while it held, and is kept out by revocation, not by time.
 */
export const GROUP_EXPIRED_NODES = "coracle:expired-nodes";

/** system:serviceaccount:<namespace>:<name> with its groups. */
export function serviceAccountUser(namespace: string, name: string, extra: { readonly uid?: string; readonly extra?: UserInfo["extra"] } = {}): UserInfo {
  return {
    name: `system:serviceaccount:${namespace}:${name}`,
    groups: [GROUP_SERVICE_ACCOUNTS, `${GROUP_SERVICE_ACCOUNTS}:${namespace}`, GROUP_AUTHENTICATED],
    uid: extra.uid,
    extra: extra.extra,
  };
}
