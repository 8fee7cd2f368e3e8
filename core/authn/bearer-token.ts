/**
 * Bearer tokens: taken from the Authorization header, or from a WebSocket's subprotocols, and shown to everyone who knows a kind of token.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/authentication/request/{bearertoken,websocket}
 */
import { headerText } from "../api/request/header-text.ts";
import type { Authenticated, Authenticator, Credentials } from "./authenticator.ts";
import { refuse } from "./authn.ts";

export interface TokenAuthenticator {
  /** Who the token stands for; undefined when it is not of this kind. Throws 401 when it is, but does not hold. `audiences`: one of them must be the token's. */
  authenticateToken(token: string, audiences: readonly string[], signal: AbortSignal): Promise<Authenticated | undefined>;
}

/** The first that recognizes the token decides. Throws what the first of those said that know its kind, if nobody recognizes it. */
export function tokenUnion(authenticators: readonly TokenAuthenticator[]): TokenAuthenticator {
  return {
    async authenticateToken(token, audiences, signal) {
      const refusals: unknown[] = [];
      for (const authenticator of authenticators) {
        try {
          const found = await authenticator.authenticateToken(token, audiences, signal);
          if (found) return found;
        } catch (error) {
          refusals.push(error);
        }
      }
      if (refusals.length > 0) throw refusals[0];
      return undefined;
    },
  };
}

/** `audiences`: the API server's own. */
export function bearerTokenAuthenticator(tokens: TokenAuthenticator, audiences: readonly string[]): Authenticator {
  return {
    async authenticate(credentials, signal) {
      const token = bearerToken(headerText(credentials.header("authorization") ?? "")) ?? webSocketToken(credentials);
      if (token === undefined) return undefined;
      const found = await tokens.authenticateToken(token, audiences, signal);
      if (!found) throw refuse("invalid bearer token");
      return found;
    },
  };
}

function bearerToken(authorization: string): string | undefined {
  const [scheme = "", token = ""] = authorization.trim().split(" ", 2);
  return scheme.toLowerCase() === "bearer" && token !== "" ? token : undefined;
}

export const WEBSOCKET_TOKEN_PREFIX = "base64url.bearer.authorization.k8s.io.";

/** Browsers cannot set headers on a WebSocket: the token comes as one of the protocols they offer, beside at least one real one. */
function webSocketToken({ webSocketProtocols }: Credentials): string | undefined {
  const tokens = webSocketProtocols.filter((protocol) => protocol.startsWith(WEBSOCKET_TOKEN_PREFIX));
  const [first] = tokens;
  if (first === undefined) return undefined;
  if (tokens.length > 1) throw refuse("multiple base64.bearer.authorization tokens specified");
  const encoded = first.slice(WEBSOCKET_TOKEN_PREFIX.length);
  if (!/^[A-Za-z0-9_-]*$/.test(encoded) || encoded.length % 4 === 1) throw refuse("invalid base64.bearer.authorization token encoding");
  const token = Buffer.from(encoded, "base64url").toString("utf8");
  if (token.includes("\ufffd")) throw refuse("invalid base64.bearer.authorization token");
  if (token === "") return undefined;
  if (webSocketProtocols.length === 1) throw refuse("missing additional subprotocol");
  return token;
}

/** Whether it is the API server that a token is to be for: whose is for nothing else is not looked at otherwise. */
export function isForApi(apiAudiences: readonly string[], wanted: readonly string[]): boolean { return wanted.length === 0 || apiAudiences.some((audience) => wanted.includes(audience)); }

/** For tokens that are good for the API server and nothing else: valid for whichever of its audiences were asked for. */
export function audienceAgnostic(apiAudiences: readonly string[], wanted: readonly string[], found: Authenticated): Authenticated | undefined {
  if (!isForApi(apiAudiences, wanted)) return undefined;
  return wanted.length === 0 ? found : { ...found, audiences: apiAudiences.filter((audience) => wanted.includes(audience)) };
}
