/**
 * Whether a caller may: the API server is asked (SubjectAccessReview) for the verb of the method on nodes/<subresource> of this node. The
 * subresource is one of the fine-grained ones where the path has one, and "proxy", which covers everything, after it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/auth.go, cmd/kubelet/app/auth.go
 */
import type { UserInfo } from "../../../core/api/request/user.ts";
import type { Client } from "../../../core/client/client.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { AccessSettings } from "../settings.ts";
import { delegatedMeter } from "./delegated-meter.ts";
import { expiringCache } from "./expiring-cache.ts";

export interface NodeAttributes { readonly verb: string; readonly subresources: readonly string[] }

const VERBS: Readonly<Record<string, string>> = { POST: "create", GET: "get", PUT: "update", PATCH: "patch", DELETE: "delete" };

/** Paths that more than nodes/proxy gives access to. */
const FINE_GRAINED: readonly (readonly [path: string, subresource: string])[] = [["/pods", "pods"], ["/healthz", "healthz"], ["/configz", "configz"], ["/runningpods", "pods"]];
/** Paths that nodes/proxy does not give access to. */
const SEPARATE: readonly (readonly [path: string, subresource: string])[] = [
  ["/stats", "stats"], ["/metrics", "metrics"], ["/logs", "log"], ["/checkpoint", "checkpoint"], ["/statusz", "statusz"], ["/flagz", "configz"],
];

/** Any one of the subresources is enough. */
export function nodeAttributes(method: string, path: string): NodeAttributes {
  const under = ([root]: readonly [string, string]): boolean => path === root || path.startsWith(`${root}/`);
  const fine = FINE_GRAINED.find(under)?.[1];
  const separate = SEPARATE.find(under)?.[1];
  return { verb: VERBS[method] ?? "", subresources: [...(fine ? [fine] : []), separate ?? "proxy"] };
}

const DECISIONS_MAX = 8192;

/** Throws when the API server cannot be asked. */
export type Authorize = (user: UserInfo, attributes: { readonly verb: string; readonly subresource: string }, signal: AbortSignal) => Promise<boolean>;

interface Options {
  readonly client: Client;
  readonly nodeName: string;
  readonly access: Pick<AccessSettings, "authorizes" | "allowedTtlMs" | "deniedTtlMs">;
  readonly clock: Clock;
  readonly metrics?: Metrics | undefined;
}

export function authorization({ client, nodeName, access, clock, metrics }: Options): Authorize {
  if (!access.authorizes) return async () => true;
  const asked = delegatedMeter(metrics, "authz", clock);
  const decisions = expiringCache<boolean>({ clock, entriesMax: DECISIONS_MAX });
  return async (user, { verb, subresource }, signal) => {
    const spec = {
      user: user.name, groups: user.groups, ...(user.uid ? { uid: user.uid } : {}), ...(user.extra ? { extra: user.extra } : {}),
      resourceAttributes: { verb, group: "", version: "v1", resource: "nodes", subresource, name: nodeName },
    };
    const key = JSON.stringify(spec);
    const before = decisions.get(key);
    if (before) return before.value;
    const review = (await asked(() => client.request({
      method: "POST", path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", signal,
      body: { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", metadata: {}, spec },
    }))) as { readonly status?: { readonly allowed?: boolean } };
    const allowed = review.status?.allowed === true;
    decisions.set(key, allowed, allowed ? access.allowedTtlMs : access.deniedTtlMs);
    return allowed;
  };
}
