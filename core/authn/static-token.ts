/** Tokens known from the configuration, such as the one nodes join with. Compared in constant time, through a hash, so that length tells nothing either. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { UserInfo } from "../api/request/user.ts";
import { audienceAgnostic, type TokenAuthenticator } from "./bearer-token.ts";

export interface StaticToken { readonly token: string; readonly user: UserInfo }

export function staticTokenAuthenticator(tokens: readonly StaticToken[], apiAudiences: readonly string[]): TokenAuthenticator {
  const known = tokens.map(({ token, user }) => ({ hash: sha256(token), user }));
  return {
    async authenticateToken(token, audiences) {
      const hash = sha256(token);
      const found = known.filter((one) => timingSafeEqual(one.hash, hash))[0]; // looks at all of them, always
      return found && audienceAgnostic(apiAudiences, audiences, { user: found.user });
    },
  };
}

function sha256(text: string): Buffer { return createHash("sha256").update(text).digest(); }
