/**
 * Errors the API answers with: a metav1.Status in an Error. Upstream's messages, reasons and codes, word for word, because clients read them.
 *
 *   throw notFound(PODS, "web-1")            404  pods "web-1" not found
 *   throw invalid(POD, "web-1", errors)      422  Pod "web-1" is invalid: spec.replicas: Invalid value: …
 *   if (isConflict(error)) …                 by reason, also through `cause`s
 *
 * Source: kubernetes v1.36 apimachinery/pkg/api/errors/errors.go, apiserver/pkg/endpoints/handlers/{responsewriters,negotiation}/errors.go,
 *         apiserver/pkg/storage/errors.go, apiserver/pkg/storage/etcd3/errors.go
 */
import { errorText } from "./error-text.ts";
import { formatFieldErrorBody, inBrackets, type FieldError } from "./field-error.ts";
import { goQuote } from "./go-quote.ts";
import { formatGroupKind, formatGroupResource, type GroupKind, type GroupResource } from "./gvk.ts";
import type { ListMeta } from "./object-meta.ts";

export type StatusReason =
  | "" | "Unauthorized" | "Forbidden" | "NotFound" | "AlreadyExists" | "Conflict" | "Gone" | "Invalid" | "ServerTimeout" | "StorageReadError" | "Timeout"
  | "TooManyRequests" | "BadRequest" | "MethodNotAllowed" | "NotAcceptable" | "RequestEntityTooLarge" | "UnsupportedMediaType" | "InternalError"
  | "Expired" | "ServiceUnavailable";

export interface StatusCause { readonly reason?: string; readonly message?: string; readonly field?: string }

export interface StatusDetails {
  readonly name?: string; readonly group?: string; readonly kind?: string; readonly uid?: string;
  readonly causes?: readonly StatusCause[]; readonly retryAfterSeconds?: number;
}

export interface Status {
  readonly kind: "Status"; readonly apiVersion: "v1"; readonly metadata: Readonly<ListMeta>;
  readonly status?: "Success" | "Failure"; readonly message?: string; readonly reason?: StatusReason; readonly details?: StatusDetails; readonly code?: number;
}

/** `status` is the body of the answer, `status.code` its HTTP code; `message` is the same text. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  readonly status: Status;
  constructor(status: Status, options?: ErrorOptions) {
    super(status.message ?? "", options);
    this.status = status;
  }
  get code(): number { return this.status.code ?? 500; }
  get reason(): StatusReason { return this.status.reason ?? ""; }
  /** In logs: what the answer says, once. */
  logFields(): Record<string, unknown> { return { message: this.message, code: this.code, reason: this.reason, details: this.status.details }; }
}

interface Failure {
  readonly code: number; readonly reason: StatusReason; readonly message: string;
  readonly details?: StatusDetails; readonly metadata?: ListMeta; readonly cause?: unknown;
}

/** Any failure there is no constructor for. */
export function statusError({ code, reason, message, details, metadata = {}, cause }: Failure): StatusError {
  const status: Status = {
    kind: "Status", apiVersion: "v1", metadata, status: "Failure", message,
    ...(reason === "" ? {} : { reason }), ...(details === undefined ? {} : { details }), code,
  };
  return new StatusError(status, cause === undefined ? undefined : { cause });
}

/** The Status of a delete or another success without an object. */
export function success(details?: StatusDetails): Status {
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", ...(details === undefined ? {} : { details }) };
}

/** Empty strings, zeros and empty lists are not sent. */
function detailsOf(resource: GroupResource, name: string, retryAfterSeconds = 0): StatusDetails {
  return {
    ...(name === "" ? {} : { name }), ...(resource.group === "" ? {} : { group: resource.group }),
    ...(resource.resource === "" ? {} : { kind: resource.resource }), ...retryAfter(retryAfterSeconds),
  };
}

function retryAfter(seconds: number): { readonly retryAfterSeconds?: number } { return seconds === 0 ? {} : { retryAfterSeconds: seconds }; }

export function notFound(resource: GroupResource, name: string): StatusError {
  return statusError({ code: 404, reason: "NotFound", message: `${formatGroupResource(resource)} ${goQuote(name)} not found`, details: detailsOf(resource, name) });
}

export function alreadyExists(resource: GroupResource, name: string): StatusError {
  return statusError({ code: 409, reason: "AlreadyExists", message: `${formatGroupResource(resource)} ${goQuote(name)} already exists`, details: detailsOf(resource, name) });
}

/** generateName found no free name. */
export function generateNameConflict(resource: GroupResource, name: string, retryAfterSeconds = 1): StatusError {
  const message = `${formatGroupResource(resource)} ${goQuote(name)} already exists, the server was not able to generate a unique name for the object`;
  return statusError({ code: 409, reason: "AlreadyExists", message, details: detailsOf(resource, name, retryAfterSeconds) });
}

/** The detail of a lost compare-then-write. */
const OBJECT_MODIFIED = "the object has been modified; please apply your changes to the latest version and try again";

export function conflict(resource: GroupResource, name: string, detail: string = OBJECT_MODIFIED): StatusError {
  const message = `Operation cannot be fulfilled on ${formatGroupResource(resource)} ${goQuote(name)}: ${detail}`;
  return statusError({ code: 409, reason: "Conflict", message, details: detailsOf(resource, name) });
}

/** Server-side apply met fields of other managers: one cause each. */
export function applyConflict(message: string, causes: readonly StatusCause[]): StatusError {
  return statusError({ code: 409, reason: "Conflict", message, details: causes.length > 0 ? { causes } : {} });
}

/** Characters of errors told in one answer. An error may show the whole of a list, and each item of it have one: of 2 MB there would be gigabytes to tell. */
const ERRORS_LENGTH_MAX = 16 * 1024 * 1024;

/** Errors beyond what an answer holds are not told; the first always is. */
export function invalid(kind: GroupKind, name: string, errors: Iterable<FieldError>): StatusError {
  const causes: StatusCause[] = [], texts = new Set<string>();
  let length = 0;
  for (const error of errors) {
    const message = formatFieldErrorBody(error);
    length += error.field.length + message.length;
    if (length > ERRORS_LENGTH_MAX && causes.length > 0) break;
    causes.push({ reason: error.type, message, ...(error.field === "" ? {} : { field: error.field }) });
    texts.add(`${error.field}: ${message}`);
  }
  const subject = `${formatGroupKind(kind)} ${goQuote(name)} is invalid`;
  const details = { ...detailsOf({ group: kind.group, resource: kind.kind }, name), ...(causes.length > 0 ? { causes } : {}) };
  return statusError({ code: 422, reason: "Invalid", message: causes.length > 0 ? `${subject}: ${inBrackets([...texts])}` : subject, details });
}

export function badRequest(message: string, cause?: unknown): StatusError { return statusError({ code: 400, reason: "BadRequest", message, cause }); }

export function unauthorized(message = "Unauthorized"): StatusError { return statusError({ code: 401, reason: "Unauthorized", message }); }

/** Refused for a reason of the server's own (admission, quota, registry). For authorization see `notAllowed`. */
export function forbidden(resource: GroupResource, name: string, detail: string, causes: readonly StatusCause[] = []): StatusError {
  const subject = formatGroupResource(resource);
  const message = subject === "" ? `forbidden: ${detail}` : name === "" ? `${subject} is forbidden: ${detail}` : `${subject} ${goQuote(name)} is forbidden: ${detail}`;
  return statusError({ code: 403, reason: "Forbidden", message, details: { ...detailsOf(resource, name), ...(causes.length > 0 ? { causes } : {}) } });
}

/** Who wanted to do what. A request that is not for a resource has `path` and no resource. */
export interface Attempt {
  readonly user: string; readonly verb: string;
  readonly group?: string; readonly resource?: string; readonly subresource?: string; readonly namespace?: string; readonly name?: string;
  readonly path?: string | undefined;
}

/** The authorizer said no. `reason` is what it added, if anything. */
export function notAllowed(attempt: Attempt, reason = ""): StatusError {
  const told = escapeHtml(describeAttempt(attempt));
  return forbidden({ group: attempt.group ?? "", resource: attempt.resource ?? "" }, attempt.name ?? "", reason === "" ? told : `${told}: ${reason}`);
}

function describeAttempt({ user, verb, group = "", resource = "", subresource = "", namespace = "", path }: Attempt): string {
  const who = `User ${goQuote(user)} cannot ${verb}`;
  if (path !== undefined && resource === "") return `${who} path ${goQuote(path)}`;
  const what = `resource ${goQuote(subresource === "" ? resource : `${resource}/${subresource}`)} in API group ${goQuote(group)}`;
  return namespace === "" ? `${who} ${what} at the cluster scope` : `${who} ${what} in the namespace ${goQuote(namespace)}`;
}

/** What a client sent must not come back as markup. */
function escapeHtml(text: string): string { return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;"); }

/** `action` is the verb as upstream passes it: "create", "patch", "delete" … */
export function methodNotSupported(resource: GroupResource, action: string): StatusError {
  const message = `${action} is not supported on resources of kind ${goQuote(formatGroupResource(resource))}`;
  return statusError({ code: 405, reason: "MethodNotAllowed", message, details: detailsOf(resource, "") });
}

/** History is compacted: list again. `continueToken` lets a paged list go on, inconsistently. */
export function resourceExpired(message: string, continueToken?: string): StatusError {
  return statusError({ code: 410, reason: "Expired", message, ...(continueToken === undefined ? {} : { metadata: { continue: continueToken } }) });
}

export function resourceVersionTooOld(requested: bigint | number | string, oldest: bigint | number | string): StatusError {
  return resourceExpired(`too old resource version: ${requested} (${oldest})`);
}

export const LIST_EXPIRED = "The resourceVersion for the provided list is too old.";
/** With the token that goes on at the newest revision. */
export const CONTINUE_INCONSISTENT =
  "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, " +
  "or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an " +
  "inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";

/** The client asked for a revision we have not reached. */
export function resourceVersionTooLarge(requested: bigint | number | string, current: bigint | number | string, retryAfterSeconds = 1): StatusError {
  return statusError({
    code: 504, reason: "Timeout", message: `Timeout: Too large resource version: ${requested}, current: ${current}`,
    details: { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }], ...retryAfter(retryAfterSeconds) },
  });
}

/** Gave up on the request; it may still complete. */
export function timeout(detail: string, retryAfterSeconds = 0): StatusError {
  return statusError({ code: 504, reason: "Timeout", message: `Timeout: ${detail}`, details: retryAfter(retryAfterSeconds) });
}

export function tooManyRequests(message: string, retryAfterSeconds = 0, causes: readonly StatusCause[] = []): StatusError {
  const details = { ...(causes.length > 0 ? { causes } : {}), ...retryAfter(retryAfterSeconds) };
  return statusError({ code: 429, reason: "TooManyRequests", message, details });
}

export function serviceUnavailable(message: string): StatusError { return statusError({ code: 503, reason: "ServiceUnavailable", message }); }

export function requestEntityTooLarge(detail: string): StatusError {
  return statusError({ code: 413, reason: "RequestEntityTooLarge", message: `Request entity too large: ${detail}` });
}

/** The body is longer than the server reads: 3 MiB unless configured. */
export function bodyTooLarge(bytesMax = 3 * 1024 * 1024): StatusError { return requestEntityTooLarge(`limit is ${bytesMax}`); }

export function unsupportedMediaType(accepted: readonly string[]): StatusError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(", ")}`;
  return statusError({ code: 415, reason: "UnsupportedMediaType", message });
}

/** `target` when a conversion (Table, PartialObjectMetadata) was asked for, as `meta.k8s.io/v1, Kind=Table` is written by `formatGvk`. */
export function notAcceptable(accepted: readonly string[], target?: string): StatusError {
  const when = target === undefined ? "" : ` when converting to ${target}`;
  return statusError({ code: 406, reason: "NotAcceptable", message: `only the following media types are accepted${when}: ${accepted.join(", ")}` });
}

export function methodNotAllowed(): StatusError {
  return statusError({ code: 405, reason: "MethodNotAllowed", message: "the server does not allow this method on the requested resource", details: {} });
}

/** What upstream's router says before a handler of a built-in resource is asked. Source: github.com/emicklei/go-restful v3 curly.go, jsr311.go detectRoute */
export function routerUnsupported(): StatusError { return statusError({ code: 415, reason: "UnsupportedMediaType", message: "415: Unsupported Media Type", details: {} }); }

/** See routerUnsupported. */
export function routerNotAcceptable(available: readonly string[]): StatusError {
  return statusError({ code: 406, reason: "NotAcceptable", message: `406: Not Acceptable\n\nAvailable representations: ${available.join(", ")}`, details: {} });
}

export function internalError(cause: unknown): StatusError {
  const message = errorText(cause);
  return statusError({ code: 500, reason: "InternalError", message: `Internal error occurred: ${message}`, details: { causes: [{ message }] }, cause });
}

/** The body for anything thrown: what is no StatusError becomes a 500 without a reason, as upstream does it. */
export function statusOf(error: unknown): Status {
  const found = findStatusError(error);
  if (found) return found.status;
  return statusError({ code: 500, reason: "", message: errorText(error) }).status;
}

function findStatusError(error: unknown): StatusError | undefined {
  for (let at = error, depth = 0; at instanceof Error && depth < CAUSES_MAX; at = at.cause, depth++) if (at instanceof StatusError) return at;
  return undefined;
}

/** Longer chains of causes than this are loops. */
const CAUSES_MAX = 16;

const REASONS_BY_CODE: Readonly<Partial<Record<number, StatusReason>>> = {
  400: "BadRequest", 401: "Unauthorized", 403: "Forbidden", 404: "NotFound", 405: "MethodNotAllowed", 406: "NotAcceptable", 409: "Conflict", 410: "Gone",
  413: "RequestEntityTooLarge", 415: "UnsupportedMediaType", 422: "Invalid", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout",
};

/** The reason of an error, of the StatusError it was caused by, or "" — a Status without a reason is known by its code. */
export function reasonOf(error: unknown): StatusReason {
  const found = findStatusError(error);
  if (!found) return "";
  return found.reason === "" ? REASONS_BY_CODE[found.code] ?? "" : found.reason;
}

export function isNotFound(error: unknown): boolean { return reasonOf(error) === "NotFound"; }
/** There is no object of this name: a server that serves its resource has said so. That nobody serves the resource says nothing of the object. */
export function isObjectNotFound(error: unknown, name: string): boolean {
  const details = findStatusError(error)?.status.details;
  return isNotFound(error) && details?.name === name && !details.causes?.some(({ reason }) => reason === "UnexpectedServerResponse");
}
/** What a server says that does not serve a resource. */
export const NOT_SERVED = "the server could not find the requested resource";
/** There is no such object, or no such resource: the server has not said of what it speaks. */
export function isNotFoundOfNobody(error: unknown): boolean {
  const status = findStatusError(error)?.status;
  return isNotFound(error) && !status?.details?.name && !status?.message?.startsWith(NOT_SERVED) && !hasCause(error, "UnexpectedServerResponse");
}
export function isAlreadyExists(error: unknown): boolean { return reasonOf(error) === "AlreadyExists"; }
export function isConflict(error: unknown): boolean { return reasonOf(error) === "Conflict"; }
export function isInvalid(error: unknown): boolean { return reasonOf(error) === "Invalid"; }
/** A patch that says which object it is for met another of its name. */
export function isAnotherUid(error: unknown): boolean { return isInvalid(error) && (findStatusError(error)?.status.details?.causes?.some(({ field }) => field === "metadata.uid") ?? false); }
export function isUnauthorized(error: unknown): boolean { return reasonOf(error) === "Unauthorized"; }
export function isForbidden(error: unknown): boolean { return reasonOf(error) === "Forbidden"; }
export function isTooManyRequests(error: unknown): boolean { return reasonOf(error) === "TooManyRequests"; }
/** The watch or list must start again from the newest state. */
export function isExpired(error: unknown): boolean { const reason = reasonOf(error); return reason === "Expired" || reason === "Gone"; }
export function hasCause(error: unknown, reason: string): boolean {
  return findStatusError(error)?.status.details?.causes?.some((cause) => cause.reason === reason) ?? false;
}
/** Refused in a namespace on its way out: nothing to tell the user, and no use trying again. */
export function isNamespaceTerminating(error: unknown): boolean { return hasCause(error, "NamespaceTerminating"); }
/** The server has not reached the version that was asked for. */
export function isTooLarge(error: unknown): boolean { return hasCause(error, "ResourceVersionTooLarge"); }
/** Seconds the server asked us to wait, if it did. */
export function suggestedDelaySeconds(error: unknown): number | undefined {
  const found = findStatusError(error);
  const seconds = found?.status.details?.retryAfterSeconds ?? 0;
  return found !== undefined && (seconds > 0 || found.reason === "ServerTimeout") ? seconds : undefined;
}
