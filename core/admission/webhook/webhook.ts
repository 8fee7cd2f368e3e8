/**
 * MutatingAdmissionWebhook and ValidatingAdmissionWebhook: others are asked, over HTTPS, before something is written.
 *
 *   configurations ─▶ hooks.ts      in which order
 *   request ────────▶ match.ts      which of them, and as what
 *                     review.ts     the question and its answer
 *                     call.ts       over the wire; dial.ts: to a URL, or to an endpoint of a Service
 *
 * Those that mutate are asked one after the other, each sees what the one before has done; those that validate all at once.
 * A webhook that cannot be asked, or gives no proper answer, counts by its failurePolicy. What it refuses is refused.
 *
 * Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/{generic,mutating,validating}
 */
import type { MutatingWebhookConfiguration, ValidatingWebhookConfiguration } from "../../api/gen/admissionregistration.v1.ts";
import type { Namespace, Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { AdmissionResponse, AdmissionReview } from "../../api/gen/admission.v1.ts";
import type { ConditionMeter, WebhookMeter, WebhookOutcome, WebhookType } from "../admission-metrics.ts";
import { jsonText, parseJson } from "../../api/codec/json.ts";
import { copyOf } from "../../api/meta/copy.ts";
import { formatGvr, gvkOf } from "../../api/meta/gvk.ts";
import { badRequest, forbidden, internalError, StatusError, statusError, timeout } from "../../api/meta/status-error.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { applyJsonPatch } from "../../api/patch/json-patch.ts";
import { isMap, type JsonMap, jsonKindOf } from "../../api/patch/json-value.ts";
import type { Authorizer } from "../../authz/authorizer.ts";
import type { Informer } from "../../client/informer.ts";
import type { Lookup } from "../../client/lookup.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import type { Random } from "../../lifecycle/random.ts";
import type { KeptConnections } from "../../net/kept-connections.ts";
import type { Log } from "../../observe/log.ts";
import { conditionBindingsOf } from "../expressions/bindings.ts";
import { askConditions } from "../expressions/conditions.ts";
import { Decisions } from "../expressions/decisions.ts";
import type { AdmissionPlugin, AdmissionRequest } from "../plugin.ts";
import { ofKind } from "../patched-kind.ts";
import { sameValue } from "../refuse.ts";
import type { Reinvocation } from "../reinvocation.ts";
import { replaceIn, Rounds } from "../rounds.ts";
import { AnswerError, ask } from "./call.ts";
import type { WebhookDialer } from "./dial.ts";
import { type Hook, type HookSource, hookSource } from "./hooks.ts";
import { type Invocation, invocationOf, isExempt, kindOf, matchesNamespace, matchesObject, resourceOf } from "./match.ts";
import type { ObjectVersions } from "./object-versions.ts";
import { checkResponse, decodedReview, PATCH_TYPE, Rejection, rejection, reviewOf, reviewVersionOf } from "./review.ts";
import type { ReviewVersion } from "./review-type.ts";
import type { Self } from "./self.ts";
import type { WebhookUsers } from "./users.ts";

export interface WebhookDeps {
  readonly mutating: Informer<MutatingWebhookConfiguration>;
  readonly validating: Informer<ValidatingWebhookConfiguration>;
  readonly namespaces: Lookup<Namespace>;
  readonly services: Lookup<Service>;
  readonly endpointSlices: Informer<EndpointSlice>;
  readonly versions: ObjectVersions;
  readonly dialer: WebhookDialer;
  /** Who connects to a URL instead, where a proxy leads there. */
  readonly proxyTo?: ((url: URL) => WebhookDialer | undefined) | undefined;
  /** Absent: each question has a connection of its own. */
  readonly kept?: KeptConnections | undefined;
  /** As whom webhooks are asked; absent: nobody in particular. */
  readonly users?: WebhookUsers | undefined;
  /** This server, which webhooks may be behind. */
  readonly self?: Self | undefined;
  /** For conditions that ask what the user may do. */
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  readonly random: Random;
  readonly meter?: WebhookMeter;
  readonly conditionMeter?: ConditionMeter;
  readonly log: Log;
}

/** Source: kubernetes v1.36 apiserver/pkg/admission/handler.go timeToWaitForReady */
const READY_MS = 10_000;
const TIMEOUT_SECONDS = 10;
const NO_SIDE_EFFECTS: readonly (string | undefined)[] = ["None", "NoneOnDryRun"];

/** A webhook that could not be asked, or did not answer as it should: its failurePolicy decides. */
class CallError extends Error {
  override readonly name = "CallError";
  /** Of HTTP. */
  readonly code: number;
  constructor(webhook: string, reason: string, cause?: unknown) {
    super(`failed calling webhook ${JSON.stringify(webhook)}: ${reason}`, { cause });
    this.code = cause instanceof AnswerError ? cause.code : 503;
  }
}

export function mutatingWebhooks(deps: WebhookDeps): AdmissionPlugin {
  const source = hookSource(deps.mutating, deps.clock);
  const key = {};
  return {
    name: "MutatingAdmissionWebhook",
    handles: (request) => wants(source, request),
    async admit(request, reinvocation) {
      await whenReady(source, request, deps);
      await mutate(source.hooks(), request, { ...deps, reinvocation, rounds: reinvocation.note(key, () => new Rounds()) });
    },
  };
}

export function validatingWebhooks(deps: WebhookDeps): AdmissionPlugin {
  const source = hookSource(deps.validating, deps.clock);
  return {
    name: "ValidatingAdmissionWebhook",
    handles: (request) => wants(source, request),
    async validate(request) {
      await whenReady(source, request, deps);
      const invocations: Invocation[] = [];
      for (const hook of source.hooks()) {
        const invocation = await invocationFor(hook, request, { ...deps, mutates: false });
        if (invocation) invocations.push(invocation);
      }
      const outcomes = await Promise.allSettled(invocations.map((invocation, index) => validateBy(invocation, request, { ...deps, index })));
      for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
    },
  };
}

function wants(source: HookSource, request: AdmissionRequest): boolean {
  return (!source.synced || source.hooks().length > 0) && !isExempt(request);
}

/** Throws 403 when the configurations are not known in time. */
async function whenReady(source: HookSource, { group, resource, name, signal }: AdmissionRequest, { clock }: WebhookDeps): Promise<void> {
  if (source.synced) return;
  const enough = new AbortController();
  const either = AbortSignal.any([signal, enough.signal]);
  await Promise.race([source.whenSynced(either).catch(() => undefined), clock.sleep(READY_MS, either)]); // that it ended is told by `synced`
  enough.abort();
  if (!source.synced) throw forbidden({ group, resource }, name, "not yet ready to handle request");
}

/** Undefined: not this webhook's business. */
async function invocationFor(hook: Hook, request: AdmissionRequest, deps: WebhookDeps & { readonly mutates: boolean }): Promise<Invocation | undefined> {
  if (!matchesObject(hook, request)) return undefined;
  const invocation = invocationOf(hook, request, deps.versions);
  if (!invocation || !(await matchesNamespace(hook, request, deps.namespaces))) return undefined;
  if (!hook.webhook.matchConditions?.length) return invocation;
  const review = await questionOf(invocation, request, { ...deps, uid: "" });
  return (await wantedBy(hook, review.request!, request, deps)) ? invocation : undefined;
}

/** Whether its matchConditions hold. Throws 403. */
async function wantedBy({ webhook: { name, failurePolicy }, conditions }: Hook, review: NonNullable<AdmissionReview["request"]>, request: AdmissionRequest, { authorizer, clock, conditionMeter, mutates }: WebhookDeps & { readonly mutates: boolean }): Promise<boolean> {
  const decisions = new Decisions(authorizer);
  const bindings = conditionBindingsOf({ review, request, params: null, decisions });
  const expressions = await conditions();
  const startMs = clock.uptimeMs();
  const outcome = await decisions.settled(() => askConditions({ expressions, variables: new Map(), failurePolicy }, bindings));
  conditionMeter?.asked({ name, kind: "webhook", type: mutates ? "admit" : "validating" }, request.operation, outcome, (clock.uptimeMs() - startMs) / 1000);
  if (outcome.error !== undefined) throw forbidden({ group: request.group, resource: request.resource }, request.name, outcome.error);
  return outcome.hold;
}

/** The request in the version the webhook asks for. Throws 500 if its objects cannot be had in that; of webhooks that mutate it is said twice. */
async function questionOf(invocation: Invocation, request: AdmissionRequest, { versions, uid, version, mutates }: {
  readonly versions: ObjectVersions;
  readonly uid: string;
  readonly version?: ReviewVersion;
  readonly mutates: boolean;
}): Promise<AdmissionReview> {
  const ordered = (object: Readonly<ApiObject> | undefined) => object && versions.inOrder(object);
  const show = async (object: Readonly<ApiObject> | undefined) => object && (await versions.shown(object, invocation.resource, request.signal).catch((error: unknown) => { throw internalError(mutates ? internalError(error) : error); }));
  return reviewOf(request, invocation, { uid, ...(version && { version }), requestKind: kindOf(request, resourceOf(request), versions), shown: { object: ordered(await show(request.object)), oldObject: await show(request.oldObject) } });
}

interface MutateDeps extends WebhookDeps { readonly reinvocation: Reinvocation; readonly rounds: Rounds }

async function mutate(hooks: readonly Hook[], request: AdmissionRequest, deps: MutateDeps): Promise<void> {
  const { reinvocation, rounds } = deps;
  if (reinvocation.isSecond && rounds.isChanged(request.object)) rounds.askAgain();
  for (const [index, hook] of hooks.entries()) {
    const invocation = await invocationFor(hook, request, { ...deps, mutates: true });
    if (!invocation || (reinvocation.isSecond && !rounds.isToBeAsked(hook.uid))) continue;
    const at = `round_${reinvocation.isSecond ? 1 : 0}_index_${index}`;
    const changed = await orIgnored(hook, request, { ...deps, type: "admit" }, () => mutateBy(invocation, request, { ...deps, at })).catch((error: unknown) => {
      noteMutation(hook, request, { changed: false, at });
      throw error;
    });
    noteMutation(hook, request, { changed, at });
    if (changed) {
      rounds.askAgain();
      reinvocation.ask();
    }
    if (hook.webhook.reinvocationPolicy === "IfNeeded") rounds.asked(hook.uid);
  }
  rounds.left(request.object);
}

/** For the audit log. `changed` undefined: it could not be asked, and that was ignored. Source: kubernetes v1.36 apiserver/pkg/admission/plugin/webhook/mutating/dispatcher.go */
function noteMutation({ uid, webhook: { name } }: Hook, request: AdmissionRequest, { changed, at }: { readonly changed: boolean | undefined; readonly at: string }): void {
  if (changed === undefined) request.annotate(`failed-open.mutation.webhook.admission.k8s.io/${at}`, name);
  request.annotate(`mutation.webhook.admission.k8s.io/${at}`, JSON.stringify({ configuration: uid.split("/")[0], webhook: name, mutated: changed === true }));
}

async function validateBy(invocation: Invocation, request: AdmissionRequest, deps: WebhookDeps & { readonly index: number }): Promise<void> {
  const asked = await orIgnored(invocation.hook, request, { ...deps, type: "validating" }, async () => {
    await responseOf(invocation, request, { ...deps, mutates: false });
    return true;
  });
  if (!asked) request.annotate(`failed-open.validating.webhook.admission.k8s.io/round_0_index_${deps.index}`, invocation.hook.webhook.name);
}

/** Throws what the client is to be told; of failures to call, only where they count: else undefined. All is counted. */
async function orIgnored<T>({ webhook: { name, failurePolicy } }: Hook, request: AdmissionRequest, { log, meter, clock, type }: WebhookDeps & { readonly type: WebhookType }, work: () => Promise<T>): Promise<T | undefined> {
  const { signal } = request;
  const startMs = clock.uptimeMs();
  const count = (outcome: WebhookOutcome): void => {
    const tookMs = clock.uptimeMs() - startMs;
    meter?.called(name, type, request, outcome, tookMs);
    request.took?.(type === "admit" ? "mutating-webhook" : "validating-webhook", tookMs);
  };
  try {
    const result = await work();
    count({ code: 200, rejected: false });
    return result;
  } catch (error) {
    if (!(error instanceof CallError)) {
      count(error instanceof Rejection ? { code: error.code, rejected: true, error: "no_error" } : { code: 0, rejected: true, error: "apiserver_internal_error" });
      throw error;
    }
    const closed = failurePolicy !== "Ignore";
    count({ code: error.code, rejected: closed, error: closed && !signal.aborted ? "calling_webhook_error" : undefined });
    if (closed) {
      log.warn("failed calling webhook, failing closed", { webhook: name, error });
      throw internalError(error);
    }
    if (signal.aborted) throw timeout("request did not complete within requested timeout");
    log.warn("failed calling webhook, failing open", { webhook: name, error });
    meter?.failedOpen(name, type);
    return undefined;
  }
}

/** Asks. Throws CallError, or the webhook's refusal. */
async function responseOf(invocation: Invocation, request: AdmissionRequest, deps: WebhookDeps & { readonly mutates: boolean }): Promise<{ readonly response: AdmissionResponse; readonly object: Readonly<ApiObject> | undefined }> {
  const { versions, random, mutates } = deps;
  const { hook: { webhook: { name, sideEffects, clientConfig, admissionReviewVersions, timeoutSeconds = TIMEOUT_SECONDS } } } = invocation;
  const { signal, deadlineMs } = request;
  if (request.dryRun && !NO_SIDE_EFFECTS.includes(sideEffects)) throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
  const uid = random.uuid();
  const version = reviewVersionOf(admissionReviewVersions);
  if (!version) throw new CallError(name, "could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)");
  const review = await questionOf(invocation, request, { versions, uid, version, mutates });
  const span = request.span?.child(`Call ${mutates ? "mutating" : "validating"} webhook`, 1, {
    configuration: invocation.hook.uid.split("/")[0]!, webhook: name, resource: formatGvr(resourceOf(request)), subresource: request.subresource, operation: request.operation, UID: uid,
  });
  const call = span?.child("HTTP POST", 3, { "http.request.method": "POST" });
  const answer = await ask(
    { config: clientConfig, review, timeoutSeconds: withinDeadline(timeoutSeconds, deadlineMs, deps.clock), traceparent: call?.traceparent, signal }, deps,
  ).finally(() => call?.end()).then((told) => decodedReview(told, version)).catch((error: Error) => {
    span?.end();
    throw new CallError(name, `failed to call webhook: ${error.message}`, error);
  });
  span?.event("Request completed");
  span?.end();
  const response = checked(() => checkResponse(answer, { uid, version, mutates }), name);
  for (const [key, value] of Object.entries(response.auditAnnotations ?? {})) request.annotate(`${name}/${key}`, value);
  for (const text of response.warnings ?? []) request.warn(text);
  if (response.allowed !== true) throw rejection(name, response.status);
  return { response, object: (review.request?.object ?? undefined) as Readonly<ApiObject> | undefined };
}

/** What is left until nobody waits any longer, in full seconds, if that is less. */
function withinDeadline(seconds: number, deadlineMs: number | undefined, clock: Clock): number {
  return deadlineMs === undefined ? seconds : Math.min(seconds, Math.max(1, Math.ceil((deadlineMs - clock.uptimeMs()) / 1_000)));
}

function checked<T>(work: () => T, webhook: string): T {
  try {
    return work();
  } catch (error) {
    throw new CallError(webhook, `received invalid webhook response: ${(error as Error).message}`, error);
  }
}

/** Throws 500 if the patch does not apply. */
function patchedOf(object: Readonly<ApiObject>, patch: readonly unknown[]): JsonMap {
  try {
    return ofKind(gvkOf(object), copyOf(applyJsonPatch(object as unknown as JsonMap, patch)), (message) => statusError({ code: 500, reason: "", message }));
  } catch (error) {
    throw error instanceof StatusError && !(error.cause instanceof Error) ? error : internalError(error instanceof StatusError ? error.cause : error);
  }
}

/** Whether the object has changed. */
async function mutateBy(invocation: Invocation, request: AdmissionRequest, deps: WebhookDeps & { readonly at: string; readonly rounds: Rounds }): Promise<boolean> {
  const { hook: { uid, webhook: { name } }, resource } = invocation;
  const { rounds } = deps;
  const { response, object } = await responseOf(invocation, request, { ...deps, mutates: true });
  const patch = decodedPatch(response.patch ?? "", name);
  if (patch.length === 0) return false;
  if (!object || !request.object) throw internalError(new Error(`admission webhook ${JSON.stringify(name)} attempted to modify the object, which is not supported for this operation`));
  if (response.patchType !== PATCH_TYPE) throw new CallError(name, `unsupported patch type ${JSON.stringify(response.patchType)}`);
  const next = await deps.versions.restored(patchedOf(object, patch), resource, resourceOf(request), request.signal).catch((error: unknown) => { throw error instanceof StatusError ? error : internalError(error); });
  const isFirst = rounds.isFirstPatch();
  const changed = !sameValue(request.object, next) || (isFirst && isJustOwned(request));
  replaceIn(request.object, next);
  request.annotateInFull?.(`patch.webhook.admission.k8s.io/${deps.at}`, () => jsonText({ configuration: uid.split("/")[0], webhook: name, patch: patch.map(inKeyOrder), patchType: "JSONPatch" }));
  return changed;
}

/** Times of whose fields they are count in fractions of a second until they have been a text for the first time: that is a change, too. */
function isJustOwned({ operation, object, oldObject }: AdmissionRequest): boolean {
  if (operation === "CONNECT") return false; // nobody owns what a connection is asked for with
  return (object?.metadata.managedFields?.length ?? 0) > 0 && !sameValue(object?.metadata.managedFields, oldObject?.metadata.managedFields);
}

/** An operation as Go writes it, which holds it as a map. */
function inKeyOrder(operation: unknown): unknown {
  return isMap(operation) ? Object.fromEntries(Object.entries(operation).toSorted(([a], [b]) => (a < b ? -1 : 1))) : operation;
}

function decodedPatch(base64: string, webhook: string): readonly unknown[] {
  if (base64 === "") return [];
  try {
    const patch: unknown = parseJson(Buffer.from(base64, "base64").toString()).value;
    if (patch === null) return [];
    if (!Array.isArray(patch)) throw new Error(`json: cannot unmarshal ${jsonKindOf(patch)} into Go value of type jsonpatch.Patch`);
    for (const operation of patch) if (operation !== null && !isMap(operation)) throw new Error(`json: cannot unmarshal ${jsonKindOf(operation)} into Go value of type jsonpatch.Operation`);
    return patch;
  } catch (error) {
    throw new CallError(webhook, `received undecodable patch in webhook response: ${(error as Error).message}`, error);
  }
}
