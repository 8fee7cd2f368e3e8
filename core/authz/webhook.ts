/**
 * Webhook authorization: somebody else is asked with a SubjectAccessReview, and what they say is remembered for a while.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authorizer/webhook/webhook.go
 */
import { createHash } from "node:crypto";
import type { FieldSelectorRequirement, LabelSelectorRequirement } from "../api/gen/meta.v1.ts";
import type { SubjectAccessReviewSpec, SubjectAccessReviewStatus } from "../api/gen/authorization.v1.ts";
import { foreignFailure } from "../api/codec/foreign-answer.ts";
import { aggregate } from "../api/meta/aggregate.ts";
import { parseFieldSelector } from "../api/meta/field-selector.ts";
import { parseLabelSelector } from "../api/meta/label-selector.ts";
import type { Attributes, ResourceAttributes } from "../api/request/attributes.ts";
import { reviewStatus } from "../api/schema/review-status.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { AnswerCache, AnswerError, reviewCall, type ReviewServer } from "../net/review-call.ts";
import type { Log } from "../observe/log.ts";
import { type Counter, DEFAULT_BUCKETS, type Histogram, type Metrics } from "../observe/metrics.ts";
import type { Authorizer, Decision } from "./authorizer.ts";
import type { WebhookSettings } from "./configuration.ts";
import { allMatch } from "./match-conditions.ts";

export interface WebhookAuthorizerDeps {
  readonly name: string;
  readonly settings: WebhookSettings;
  readonly server: ReviewServer;
  readonly clock: Clock;
  readonly log: Log;
  readonly metrics?: WebhookMetrics | undefined;
}

const REVIEW = { group: "authorization.k8s.io", kind: "SubjectAccessReview" };
const CACHED_MAX = 8_192;
/** Of what a caller chooses; what is longer is asked about each time. Whoever is in many groups is no reason for that. */
const CHOSEN_BYTES_MAX = 10_000;
/** Longer questions are remembered by their hash: thousands of them with hundreds of groups each would take much memory. */
const KEY_LENGTH_MAX = 1_000;

/** Source of the buckets: kubernetes v1.36 apiserver/pkg/authorization/cel/metrics.go */
const CONDITION_SECONDS = [0.001, 0.005, 0.01, 0.025, 0.1, 0.2, 0.25];

export interface WebhookMetrics {
  readonly evaluations: Counter; readonly durations: Histogram; readonly failOpen: Counter;
  readonly exclusions: Counter; readonly conditionErrors: Counter; readonly conditionDurations: Histogram;
}

export function webhookMetrics(metrics: Metrics): WebhookMetrics {
  return {
    evaluations: metrics.counter("apiserver_authorization_webhook_evaluations_total", "[ALPHA] Round-trips to authorization webhooks."),
    durations: metrics.histogram("apiserver_authorization_webhook_duration_seconds", "[ALPHA] Request latency in seconds.", DEFAULT_BUCKETS),
    failOpen: metrics.counter("apiserver_authorization_webhook_evaluations_fail_open_total", "[ALPHA] NoOpinion results due to webhook timeout or error."),
    exclusions: metrics.counter("apiserver_authorization_match_condition_exclusions_total", "[ALPHA] Total number of exclusions when an authorization webhook is skipped because match conditions exclude it."),
    conditionErrors: metrics.counter("apiserver_authorization_match_condition_evaluation_errors_total", "[ALPHA] Total number of errors when an authorization webhook encounters a match condition error split by authorizer type and name."),
    conditionDurations: metrics.histogram("apiserver_authorization_match_condition_evaluation_seconds", "[ALPHA] Authorization match condition evaluation time in seconds, split by authorizer type and name.", CONDITION_SECONDS),
  };
}

export function webhookAuthorizer({ name, settings, server, clock, log, metrics }: WebhookAuthorizerDeps): Authorizer {
  const { version, timeoutMs, failurePolicy, matchConditions, authorizedMs, unauthorizedMs, cacheAuthorized, cacheUnauthorized } = settings;
  const cache = new AnswerCache<SubjectAccessReviewStatus>({ max: CACHED_MAX, clock });
  const asking = new Map<string, Promise<SubjectAccessReviewStatus>>();
  const onError: Decision = { decision: failurePolicy === "Deny" ? "deny" : "no-opinion", reason: "" };

  async function ask(spec: SubjectAccessReviewSpec): Promise<SubjectAccessReviewStatus> {
    const startMs = clock.uptimeMs();
    const review = { kind: "SubjectAccessReview", apiVersion: `authorization.k8s.io/${version}`, metadata: {}, spec: wireForm(spec, version), status: { allowed: false } };
    const measured = (result: string): void => {
      metrics?.evaluations.inc({ name, result });
      metrics?.durations.observe((clock.uptimeMs() - startMs) / 1000, { name, result });
    };
    try {
      const status = reviewStatus<SubjectAccessReviewStatus>({ ...REVIEW, version }, await reviewCall({ server, review, timeoutMs, clock }, new AbortController().signal));
      measured("success");
      return status ?? { allowed: false };
    } catch (error) {
      const result = (error as Error).message.includes("context deadline exceeded") ? "timeout" : "error";
      measured(result);
      if (failurePolicy === "NoOpinion") metrics?.failOpen.inc({ name, result });
      throw error;
    }
  }

  async function statusOf(spec: SubjectAccessReviewSpec): Promise<SubjectAccessReviewStatus> {
    const key = keyOf(spec);
    const known = cache.get(key);
    if (known) return known;
    let pending = asking.get(key);
    if (!pending) asking.set(key, (pending = ask(spec).finally(() => asking.delete(key))));
    const status = await pending;
    if (chosenBytes(spec) < CHOSEN_BYTES_MAX && (status.allowed ? cacheAuthorized : cacheUnauthorized)) cache.set(key, status, status.allowed ? authorizedMs : unauthorizedMs);
    return status;
  }

  /** Throws what a condition throws. */
  function isAsked(spec: SubjectAccessReviewSpec): boolean {
    if (matchConditions.length === 0) return true;
    const labels = { name, type: "Webhook" }, startMs = clock.uptimeMs();
    const { matches, errors } = allMatch(matchConditions, spec);
    metrics?.conditionDurations.observe((clock.uptimeMs() - startMs) / 1000, labels);
    if (errors.length > 0) metrics?.conditionErrors.inc(labels);
    if (matches === false) metrics?.exclusions.inc(labels);
    if (matches === undefined) throw new Error(aggregate(errors));
    return matches;
  }

  return {
    async authorize(attributes) {
      const spec = reviewSpec(attributes);
      try {
        if (!isAsked(spec)) return { decision: "no-opinion", reason: "" };
        const { allowed, denied = false, reason = "" } = await statusOf(spec);
        if (denied) return { decision: "deny", reason, ...(allowed ? { error: "webhook subject access review returned both allow and deny response" } : {}) };
        return { decision: allowed ? "allow" : "no-opinion", reason };
      } catch (error) {
        log.error("a webhook could not be asked whether a request is allowed", { name, error });
        return { ...onError, error: error instanceof AnswerError ? foreignFailure(error.answer) : (error as Error).message };
      }
    },
    rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: true, evaluationError: "webhook authorizer does not support user rule resolution" }),
  };
}

function keyOf(spec: SubjectAccessReviewSpec): string {
  const text = JSON.stringify(spec);
  return text.length <= KEY_LENGTH_MAX ? text : createHash("sha256").update(text).digest("base64");
}

/** Of all but the selectors, which go along with a URL that is not longer. */
function chosenBytes({ resourceAttributes, nonResourceAttributes }: SubjectAccessReviewSpec): number {
  return Object.values({ ...resourceAttributes, ...nonResourceAttributes }).reduce<number>((sum, value) => sum + (typeof value === "string" ? Buffer.byteLength(value) : 0), 0);
}

export function reviewSpec(attributes: Attributes): SubjectAccessReviewSpec {
  const { name, uid, groups, extra } = attributes.user;
  const user = { user: name, ...(uid ? { uid } : {}), groups: [...groups], ...(extra && Object.keys(extra).length > 0 ? { extra: extra as Record<string, string[]> } : {}) };
  if (!attributes.isResource) return { ...user, nonResourceAttributes: { path: attributes.path, verb: attributes.verb } };
  const { namespace, verb, group, version, resource, subresource, name: object } = attributes;
  const [fields, labels] = [fieldRequirements(attributes), labelRequirements(attributes)];
  return {
    ...user,
    resourceAttributes: {
      namespace, verb, group, version, resource, subresource, name: object,
      ...(fields.length > 0 ? { fieldSelector: { requirements: fields } } : {}), ...(labels.length > 0 ? { labelSelector: { requirements: labels } } : {}),
    },
  };
}

/** Without what cannot be read: the question becomes a broader one, never a narrower. */
function fieldRequirements({ fieldSelector = "", requirements }: ResourceAttributes): FieldSelectorRequirement[] {
  if (requirements?.fields) return [...requirements.fields];
  try {
    return parseFieldSelector(fieldSelector).requirements.map(({ field, operator, value }) => ({ key: field, operator: operator === "=" ? "In" : "NotIn", values: [value] }));
  } catch {
    return []; // the registry refuses it
  }
}

function labelRequirements({ labelSelector = "", requirements }: ResourceAttributes): LabelSelectorRequirement[] {
  if (requirements?.labels) return [...requirements.labels];
  const OPERATORS: Readonly<Record<string, LabelSelectorRequirement["operator"]>> = { "=": "In", "==": "In", in: "In", "!=": "NotIn", notin: "NotIn", exists: "Exists", "!": "DoesNotExist" };
  try {
    return parseLabelSelector(labelSelector).requirements.flatMap(({ key, operator, values }) => {
      const found = OPERATORS[operator];
      return found ? [{ key, operator: found, ...(values.length > 0 ? { values: [...values] } : {}) }] : [];
    });
  } catch {
    return []; // the registry refuses it
  }
}

/** As upstream's client writes it: nothing that is empty. v1beta1 names a user's groups in the singular. */
function wireForm({ resourceAttributes, nonResourceAttributes, user, groups = [], extra, uid }: SubjectAccessReviewSpec, version: WebhookSettings["version"]): object {
  const set = (fields: object): object => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== ""));
  return {
    ...(resourceAttributes ? { resourceAttributes: set(resourceAttributes) } : {}), ...(nonResourceAttributes ? { nonResourceAttributes: set(nonResourceAttributes) } : {}),
    ...set({ user }), ...(groups.length > 0 ? { [version === "v1" ? "groups" : "group"]: groups } : {}), ...set({ extra, uid }),
  };
}
