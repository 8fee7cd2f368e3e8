/**
 * Bootstrap tokens: `abcdef.0123456789abcdef`, kept in Secrets of type bootstrap.kubernetes.io/token in kube-system, with which a machine
 * that has no certificate yet asks for one. Its user is system:bootstrap:<id>, in the group system:bootstrappers and those the Secret names.
 *
 * Source: kubernetes v1.36 plugin/pkg/auth/authenticator/token/bootstrap/bootstrap.go, staging/src/k8s.io/cluster-bootstrap/util
 */
import { timingSafeEqual } from "node:crypto";
import type { Secret } from "../api/gen/core.v1.ts";
import { isDeleting } from "../api/meta/object-meta.ts";
import { parseTime } from "../api/meta/time.ts";
import type { Lookup } from "../client/lookup.ts";
import type { Clock } from "../lifecycle/clock.ts";
import type { Log } from "../observe/log.ts";
import { audienceAgnostic, type TokenAuthenticator } from "./bearer-token.ts";

const TOKEN = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const GROUP_PATTERN = /^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/;
const DEFAULT_GROUP = "system:bootstrappers";
const SECRET_TYPE = "bootstrap.kubernetes.io/token";

export interface BootstrapTokenOptions {
  readonly secrets: Lookup<Secret>;
  readonly apiAudiences: readonly string[];
  readonly clock: Clock;
  readonly log: Log;
}

export function bootstrapTokenAuthenticator({ secrets, apiAudiences, clock, log }: BootstrapTokenOptions): TokenAuthenticator {
  return {
    async authenticateToken(token, audiences, signal) {
      const [, id = "", secretPart = ""] = TOKEN.exec(token) ?? [];
      if (id === "") return undefined;
      const secret = await secrets.find("kube-system", `bootstrap-token-${id}`, signal);
      if (!secret) return undefined;
      const problem = tokenProblem(secret, { id, secretPart, nowMs: clock.nowMs() });
      if (problem !== undefined) {
        log.debug("bootstrap token refused", { secret: secret.metadata.name, problem });
        return undefined;
      }
      return audienceAgnostic(apiAudiences, audiences, { user: { name: `system:bootstrap:${id}`, groups: groupsOf(secret) } });
    },
  };
}

function tokenProblem(secret: Readonly<Secret>, { id, secretPart, nowMs }: { readonly id: string; readonly secretPart: string; readonly nowMs: number }): string | undefined {
  if (isDeleting(secret)) return "is deleted and awaiting removal";
  if (secret.type !== SECRET_TYPE) return `has invalid type, expected ${SECRET_TYPE}.`;
  const kept = Buffer.from(value(secret, "token-secret"));
  const shown = Buffer.from(secretPart);
  if (kept.length !== shown.length || !timingSafeEqual(kept, shown)) return "has invalid value for key token-secret.";
  if (value(secret, "token-id") !== id) return "has invalid value for key token-id.";
  if (bootstrapTokenExpired(secret, nowMs)) return "has expired";
  if (value(secret, "usage-bootstrap-authentication") !== "true") return "not marked usage-bootstrap-authentication=true.";
  const bad = extraGroups(secret).find((group) => !GROUP_PATTERN.test(group));
  return bad === undefined ? undefined : `has invalid value for key auth-extra-groups: bootstrap group "${bad}" is invalid (must match ${GROUP_PATTERN.source})`;
}

/** A time that cannot be read counts as past. */
function bootstrapTokenExpired(secret: Readonly<Secret>, nowMs: number): boolean {
  const expiration = value(secret, "expiration");
  return expiration !== "" && !((parseTime(expiration) ?? 0) > nowMs);
}

function extraGroups(secret: Readonly<Secret>): string[] {
  const text = value(secret, "auth-extra-groups");
  return text === "" ? [] : text.split(",");
}

function groupsOf(secret: Readonly<Secret>): string[] { return [...new Set([DEFAULT_GROUP, ...extraGroups(secret)])].sort(); }

function value(secret: Readonly<Secret>, key: string): string { return Buffer.from(secret.data?.[key] ?? "", "base64").toString("utf8"); }
