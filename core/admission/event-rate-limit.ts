/**
 * EventRateLimit: how many events may be written, by everybody, in a namespace, by a user, or about one object from one source. Of core/v1 alone: what is sent as events.k8s.io/v1 is not counted. Needs a configuration:
 *
 *   apiVersion: eventratelimit.admission.k8s.io/v1alpha1
 *   kind: Configuration
 *   limits: [{type: Namespace, qps: 50, burst: 100, cacheSize: 2000}]
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/eventratelimit
 */
import type { Event } from "../api/gen/core.v1.ts";
import { aggregate } from "../api/meta/aggregate.ts";
import { type FieldError, formatFieldErrors, invalid, notSupported } from "../api/meta/field-error.ts";
import { statusError } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { tokenBucket } from "../lifecycle/token-bucket.ts";
import { fieldsOf } from "../api/codec/strict-fields.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";

const KEYS: Readonly<Record<string, (request: AdmissionRequest) => string>> = {
  Server: () => "",
  Namespace: ({ namespace }) => namespace,
  User: ({ user }) => user.name,
  SourceAndObject({ object }) {
    const { source, involvedObject: about } = object as unknown as Partial<Event>;
    return [source?.component, source?.host, about?.kind, about?.namespace, about?.name, about?.uid, about?.apiVersion].join("");
  },
};
const BUCKETS_MAX = 4_096;

interface Limit { readonly type: string; readonly qps: number; readonly burst: number; readonly cacheSize: number }

/** Throws for a configuration that cannot be. */
export function eventRateLimits(configuration: unknown): readonly Limit[] {
  if (configuration === undefined) return [];
  const fields = fieldsOf(configuration, { kind: "Configuration", apiVersions: ["eventratelimit.admission.k8s.io/v1alpha1"] });
  const problems: FieldError[] = [];
  const limits = fields.objects("limits").map((one): Limit => {
    const limit = { type: one.text("type"), qps: one.number("qps") ?? 0, burst: one.number("burst") ?? 0, cacheSize: one.number("cacheSize") ?? 0 };
    one.end();
    if (!Object.hasOwn(KEYS, limit.type)) problems.push(notSupported(`${one.path}.type`, limit.type, Object.keys(KEYS)));
    if (limit.burst <= 0) problems.push(invalid(`${one.path}.burst`, limit.burst, "must be positive"));
    if (limit.qps <= 0) problems.push(invalid(`${one.path}.qps`, limit.qps, "must be positive"));
    if (limit.type !== "Server" && limit.cacheSize < 0) problems.push(invalid(`${one.path}.cacheSize`, limit.cacheSize, "must not be negative"));
    return limit;
  });
  fields.end();
  if (limits.length === 0) problems.push(invalid("limits", [], "must not be empty"));
  if (problems.length > 0) throw new Error(formatFieldErrors(problems));
  return limits;
}

export function eventRateLimit({ limits, clock }: { readonly limits: readonly Limit[]; readonly clock: Pick<Clock, "uptimeMs"> }): AdmissionPlugin {
  const enforcers = limits.map(({ type, qps, burst, cacheSize }) => ({ type, keyOf: KEYS[type]!, take: buckets({ qps, burst, size: cacheSize || BUCKETS_MAX, clock }) }));
  return {
    name: "EventRateLimit",
    handles: ({ operation, resource, group, subresource }) => (operation === "CREATE" || operation === "UPDATE") && resource === "events" && group === "" && subresource === "", // those of events.k8s.io are of another kind
    validate(request) {
      if (request.dryRun) return;
      const refused = enforcers.flatMap(({ type, keyOf, take }) => {
        const key = keyOf(request);
        return take(key) ? [] : [`limit reached on type ${type} for key ${key}`];
      });
      if (refused.length > 0) throw statusError({ code: 429, reason: "TooManyRequests", message: `Too many requests: ${aggregate(refused)}` });
    },
  };
}

/** Token buckets by key; those not used for longest are forgotten, and full when they come again. */
function buckets({ qps, burst, size, clock }: { readonly qps: number; readonly burst: number; readonly size: number; readonly clock: Pick<Clock, "uptimeMs"> }): (key: string) => boolean {
  const byKey = new Map<string, () => boolean>();
  return (key) => {
    const take = byKey.get(key) ?? tokenBucket({ perSecond: qps, burst, clock });
    byKey.delete(key);
    byKey.set(key, take);
    if (byKey.size > size) byKey.delete(byKey.keys().next().value!);
    return take();
  };
}
