/** What a filter says of a node that cannot take the pod. */
export interface Rejection {
  /** Why the pod cannot run there, in upstream's words. */
  readonly reasons: readonly string[];
  /** Whether removing pods from the node could help. */
  readonly resolvable: boolean;
}

export interface NodeRejection extends Rejection { readonly filter: string }

export function unresolvable(...reasons: string[]): Rejection {
  return { reasons, resolvable: false };
}

export function resolvable(...reasons: string[]): Rejection {
  return { reasons, resolvable: true };
}
