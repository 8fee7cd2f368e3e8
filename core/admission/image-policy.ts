/**
 * ImagePolicyWebhook: somebody else is asked whether a pod's images may run. Needs a configuration:
 *
 *   imagePolicy:
 *     kubeConfigFile: /etc/image-policy.yaml       # whom to ask
 *     allowTTL: 50                                 # seconds for which a yes, and a no, is remembered; -1: not at all
 *     denyTTL: 50
 *     defaultAllow: false                          # without an answer
 *
 * Source: kubernetes v1.36 plugin/pkg/admission/imagepolicy
 */
import { foreignFailure, readForeign } from "../api/codec/foreign-answer.ts";
import { fieldsOf } from "../api/codec/strict-fields.ts";
import type { Pod } from "../api/gen/core.v1.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { isMap } from "../api/patch/json-value.ts";
import { AnswerCache, AnswerError, reviewCall, type ReviewServer } from "../net/review-call.ts";
import type { AdmissionPlugin, AdmissionRequest } from "./plugin.ts";
import { refusal } from "./refuse.ts";
import { isText, isTruth, member } from "./typed-member.ts";

export interface ImagePolicy { readonly kubeconfigFile: string; readonly allowMs: number; readonly denyMs: number; readonly defaultAllow: boolean }

interface ImageReviewStatus { readonly allowed?: boolean; readonly reason?: string; readonly auditAnnotations?: Readonly<Record<string, string>> }

const AUDIT_PREFIX = "imagepolicywebhook.image-policy.k8s.io/";
const ANNOTATION = ".image-policy.k8s.io/";
const ALLOW_SECONDS = 300;
const DENY_SECONDS = 30;
const TTL_SECONDS_MAX = 1_800;
const CACHED_MAX = 1_024;
const TIMEOUT_MS = 30_000;

/** Undefined: there is none. Throws for one that cannot be. */
export function imagePolicy(configuration: unknown): ImagePolicy | undefined {
  if (configuration === undefined) return undefined;
  const fields = fieldsOf({ apiVersion: "v1", kind: "ImagePolicy", ...(configuration as object) }, { kind: "ImagePolicy", apiVersions: ["v1"] }).object("imagePolicy");
  const ttlMs = (name: string, standardSeconds: number): number => {
    const seconds = fields.number(name) ?? 0;
    if (seconds === -1) return 0;
    if (seconds < 0 || seconds > TTL_SECONDS_MAX) throw new Error(`${name}: valid value is between 1s and 30m0s, got ${seconds}s`);
    return (seconds || standardSeconds) * 1_000;
  };
  const settings = { kubeconfigFile: fields.text("kubeConfigFile"), allowMs: ttlMs("allowTTL", ALLOW_SECONDS), denyMs: ttlMs("denyTTL", DENY_SECONDS), defaultAllow: fields.boolean("defaultAllow") ?? false };
  fields.any("retryBackoff"); // pauses are as everywhere
  fields.end();
  if (settings.kubeconfigFile === "") throw new Error("imagePolicy.kubeConfigFile: Required value");
  return settings;
}

const TYPE = { kind: "ImageReview", apiVersion: "imagepolicy.k8s.io/v1alpha1" } as const;

/** Throws an Error for what is no such review, or says its yes otherwise than with a boolean. */
function statusOf(answer: unknown): ImageReviewStatus {
  const told = (answer ?? {}) as Readonly<Record<string, unknown>>;
  for (const name of ["kind", "apiVersion"] as const) if ((told[name] || TYPE[name]) !== TYPE[name]) throw new Error(`expected ${TYPE.kind} of ${TYPE.apiVersion}, got ${String(told["kind"])} of ${String(told["apiVersion"])}`);
  const status = member(told["status"], isMap, "ImageReview.status", "v1alpha1.ImageReviewStatus") ?? {};
  const notes = member(status["auditAnnotations"], isMap, "ImageReviewStatus.status.auditAnnotations", "map[string]string") ?? {};
  const auditAnnotations = Object.fromEntries(Object.entries(notes).map(([name, note]) => [name, member(note, isText, "ImageReviewStatus.status.auditAnnotations", "string") ?? ""]));
  const reason = member(status["reason"], isText, "ImageReviewStatus.status.reason", "string");
  return { allowed: member(status["allowed"], isTruth, "ImageReviewStatus.status.allowed", "bool") ?? false, auditAnnotations, ...(reason === undefined ? {} : { reason }) };
}

export function imagePolicyWebhook({ settings, server, clock }: { readonly settings: ImagePolicy; readonly server: ReviewServer; readonly clock: Clock }): AdmissionPlugin {
  const cache = new AnswerCache<ImageReviewStatus>({ max: CACHED_MAX, clock });

  async function ask(spec: object, request: AdmissionRequest): Promise<ImageReviewStatus> {
    const key = JSON.stringify(spec);
    const known = cache.get(key);
    if (known) return known;
    try {
      const review = { ...TYPE, metadata: {}, spec };
      const status = statusOf(readForeign(await reviewCall({ server, review, timeoutMs: TIMEOUT_MS, clock }, request.signal)));
      cache.set(key, status, status.allowed ? settings.allowMs : settings.denyMs);
      return status;
    } catch (error) {
      if (!settings.defaultAllow) throw refusal(request, error instanceof AnswerError ? foreignFailure(error.answer) : error);
      request.annotate(`${AUDIT_PREFIX}failed-open`, "true");
      return { allowed: true };
    }
  }

  return {
    name: "ImagePolicyWebhook",
    handles: ({ operation, group, resource, subresource }) => (operation === "CREATE" || operation === "UPDATE") && group === "" && resource === "pods" && (subresource === "" || subresource === "ephemeralcontainers"),
    async validate(request) {
      const { metadata, spec } = request.object as Pod;
      const containers = request.subresource === "" ? [...(spec.containers ?? []), ...(spec.initContainers ?? [])] : spec.ephemeralContainers ?? [];
      const annotations = Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([name]) => name.includes(ANNOTATION)));
      const { allowed = false, reason, auditAnnotations = {} } = await ask({
        containers: containers.map(({ image }) => ({ image })), ...(Object.keys(annotations).length > 0 ? { annotations } : {}), namespace: request.namespace,
      }, request);
      for (const [name, value] of Object.entries(auditAnnotations)) request.annotate(AUDIT_PREFIX + name, value);
      if (!allowed) throw refusal(request, reason ? `image policy webhook backend denied one or more images: ${reason}` : "one or more images rejected by webhook backend");
    },
  };
}
