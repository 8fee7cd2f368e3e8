/**
 * Who is calling: all ways to prove it, tried in upstream's order.
 *
 *   front proxy headers → client certificate → bearer token → anonymous
 *
 * The first to recognize the caller decides, and adds system:authenticated. If none does, but one was shown credentials that do not
 * hold, the answer is 401; only who shows nothing is anonymous. Details go to the log, never to the caller.
 *
 * Source: kubernetes v1.36 pkg/kubeapiserver/authenticator/config.go
 */
import { StatusError, statusError, unauthorized } from "../api/meta/status-error.ts";
import { ANONYMOUS, GROUP_AUTHENTICATED, type UserInfo } from "../api/request/user.ts";
import type { Log } from "../observe/log.ts";
import type { Authenticated, Authenticator } from "./authenticator.ts";

export interface AuthenticatorChainOptions {
  readonly authenticators: readonly Authenticator[];
  /** Whether callers without credentials get in, to be judged by authorization, and to which paths only; none: everywhere. Upstream's default: everywhere. */
  readonly anonymous: () => { readonly enabled: boolean; readonly paths: readonly string[] };
  readonly log: Log;
}

export function authenticatorChain({ authenticators, anonymous, log }: AuthenticatorChainOptions): Authenticator {
  const authenticated = new WeakMap<UserInfo, UserInfo>(); // who is the same object for all requests of a connection is so with the group, too: others know him by it

  function withAuthenticatedGroup(found: Authenticated): Authenticated {
    const { user } = found;
    if (isAnonymous(user) || user.groups.includes(GROUP_AUTHENTICATED)) return found;
    let known = authenticated.get(user);
    if (!known) authenticated.set(user, (known = { ...user, groups: [...user.groups, GROUP_AUTHENTICATED] }));
    return { ...found, user: known };
  }

  return {
    async authenticate(credentials, signal) {
      let refusal: unknown;
      for (const authenticator of authenticators) {
        try {
          const found = await authenticator.authenticate(credentials, signal);
          if (found) return withAuthenticatedGroup(found);
        } catch (error) {
          refusal = error;
          log.debug("credentials refused", { remoteAddress: credentials.remoteAddress, error });
        }
      }
      const { enabled, paths } = anonymous();
      if (refusal instanceof StatusError && refusal.message !== "Unauthorized") throw refusal; // a caller who is known, and is to know why
      if (refusal !== undefined) throw refuse(refusalDetail(refusal));
      if (!enabled || (paths.length > 0 && !paths.includes(credentials.path ?? ""))) throw unauthorized();
      return isSpaced(credentials.header("authorization")) ? { user: ANONYMOUS, warnings: [SPACED] } : { user: ANONYMOUS };
    },
  };
}

const SPACED = "the provided Authorization header contains extra space before the bearer token, and is ignored";

/** A token after two spaces is none: its owner, who is nobody then, is to know why. */
function isSpaced(authorization = ""): boolean { return /^bearer {2}/i.test(authorization.trim()); }

export function isAnonymous({ name, groups }: UserInfo): boolean { return name === ANONYMOUS.name || groups.includes(ANONYMOUS.groups[0]!); }

/** The 401 a client sees, with what it must not see as its cause. */
export function refuse(detail: string): StatusError {
  return statusError({ code: 401, reason: "Unauthorized", message: "Unauthorized", cause: new Error(detail) });
}

/** The detail given to `refuse`. */
export function refusalDetail(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? error.cause.message : error.message;
}
