/**
 * One question to a webhook: POST of a review, and the review that comes back.
 *
 * Errors read as Go's HTTP client prints them: Post "https://hook.ns.svc:443/path?timeout=10s": context deadline exceeded
 *
 * Other than upstream it goes nowhere a webhook sends it to: whoever may write configurations could look at what only this server reaches.
 *
 * Source: kubernetes v1.36 client-go/rest/request.go, apimachinery/pkg/api/errors NewGenericServerResponse
 */
import { Readable } from "node:stream";
import { gunzipSync } from "node:zlib";
import type { WebhookClientConfig } from "../../api/gen/admissionregistration.v1.ts";
import { type ForeignAnswer, foreignFailure, readForeign } from "../../api/codec/foreign-answer.ts";
import { encodeJson } from "../../api/codec/json.ts";
import { internalError } from "../../api/meta/status-error.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { askKept, type Held } from "../../net/kept-connections.ts";
import { addressOf, type DialDeps } from "./dial.ts";
import type { Self } from "./self.ts";

export interface CallDeps extends DialDeps { readonly clock: Clock }

export interface Question {
  readonly config: WebhookClientConfig;
  readonly review: unknown;
  readonly timeoutSeconds: number;
  /** Of the trace this call is a part of. */
  readonly traceparent?: string | undefined;
  readonly signal: AbortSignal;
}

/** An answer holds at most a patch of an object, in base64: an object is at most 3 MiB. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;

/** How often a webhook is asked again that asks for time. Source: kubernetes v1.36 client-go/rest/request.go maxRetries */
const RETRIES_MAX = 10;

const GZIP_HEADER_BYTES = 10;

/** Throws an Error that says why there is no answer. */
export async function ask({ config, review, timeoutSeconds, traceparent, signal }: Question, deps: CallDeps): Promise<unknown> {
  const address = addressOf(config, deps);
  const query = `?timeout=${timeoutSeconds}s`;
  const late = new AbortController();
  const alarm = deps.clock.after(timeoutSeconds * 1000, () => late.abort());
  const either = AbortSignal.any([signal, late.signal]);
  const body = encodeJson(review);
  try {
    for (let retries = 0; ; retries++) {
      const { status, contentType, retryAfterSeconds, text } = await exchange(
        { target: address.path + query, host: address.host, self: address.self, connect: (fresh) => address.connect(either, fresh), body, authorization: address.authorization, traceparent },
        either,
      ).catch(unanswered);
      const problem = contentType === undefined ? undefined : mediaTypeProblem(contentType);
      if (problem !== undefined) throw internalError(new Error(`mime: ${problem}`));
      if (status >= 200 && status <= 206) return readForeign({ status, text, contentType });
      if (retryAfterSeconds === undefined || retries === RETRIES_MAX || (status !== 429 && status < 500)) throw new AnswerError({ status, text, contentType });
      await deps.clock.sleep(Math.min(retryAfterSeconds, timeoutSeconds) * 1000, either); // a timer of more than 24 days would fire at once
    }
  } finally {
    alarm.cancel();
  }

  function unanswered(cause: Error): never {
    const why = late.signal.aborted ? "context deadline exceeded" : signal.aborted ? "context canceled" : cause.message;
    if (cause instanceof UnreadError) throw new Error(`unexpected error when reading response body. Please retry. Original error: ${why}`, { cause });
    throw new Error(`Post ${JSON.stringify(address.url + query)}: ${why}`, { cause });
  }
}

/** The webhook's server answered, and said that it could not. */
export class AnswerError extends Error {
  override readonly name = "AnswerError";
  readonly code: number;
  constructor(answer: ForeignAnswer) {
    super(foreignFailure(answer));
    this.code = answer.status;
  }
}

const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]";
const MEDIA_TYPE = new RegExp(`^(${TOKEN}*)(?:(/)(${TOKEN}*))?(.*)$`, "s");
const PARAMETERS = new RegExp(`^(?:\\s*;\\s*${TOKEN}+=(?:${TOKEN}+|"(?:[^"\\\\]|\\\\.)*"))*\\s*(?:;\\s*)?$`, "s");

/** What is wrong with a Content-Type. Source: Go mime.ParseMediaType */
function mediaTypeProblem(text: string): string | undefined {
  const end = text.indexOf(";");
  const [, type, slash, subtype, rest] = MEDIA_TYPE.exec((end < 0 ? text : text.slice(0, end)).trim())!;
  if (type === "") return "no media type";
  if (slash === undefined) return rest === "" ? parameterProblem(end < 0 ? "" : text.slice(end)) : "expected slash after first token";
  if (subtype === "") return "expected token after slash";
  return rest === "" ? parameterProblem(end < 0 ? "" : text.slice(end)) : "unexpected content after media subtype";
}

function parameterProblem(text: string): string | undefined { return PARAMETERS.test(text) ? undefined : "invalid media parameter"; }

interface Answer { readonly status: number; readonly contentType: string | undefined; readonly retryAfterSeconds: number | undefined; readonly text: string }
interface Exchange {
  readonly target: string;
  readonly host: string;
  readonly self: Self | undefined;
  connect(fresh: boolean): Promise<Held>;
  readonly body: Uint8Array;
  readonly authorization: string | undefined;
  readonly traceparent: string | undefined;
}

async function exchange(asked: Exchange, signal: AbortSignal): Promise<Answer> {
  if (asked.self) return await ownAnswer(asked.self, asked, signal);
  const { target, host, connect, body, authorization, traceparent } = asked;
  const headers = [
    ["Host", host], ["User-Agent", "kube-apiserver-admission"], ["Content-Length", String(body.length)], ["Accept", "application/json, */*"],
    ["Content-Type", "application/json"], ...(authorization ? [["Authorization", authorization] as const] : []),
    ...(traceparent ? [["Traceparent", traceparent] as const] : []), ["Accept-Encoding", "gzip"],
  ] as const;
  const response = await askKept(connect, () => ({ method: "POST", target, headers, body: Readable.from([Buffer.from(body)]) }), signal);
  const header = (wanted: string): string | undefined => response.headers.find(([name]) => name.toLowerCase() === wanted)?.[1];
  const retryAfter = header("retry-after") ?? "";
  const content = await read(response.body as AsyncIterable<Buffer>, header("content-encoding") === "gzip").catch((cause: Error) => {
    throw new UnreadError(cause.message, { cause });
  });
  return { status: response.status, contentType: header("content-type"), retryAfterSeconds: /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined, text: content.toString() };
}

async function ownAnswer(self: Self, { target, body, traceparent }: Exchange, signal: AbortSignal): Promise<Answer> {
  const [path = "", query = ""] = target.split("?");
  const headers = [
    ["user-agent", "kube-apiserver-admission"], ["accept", "application/json, */*"], ["content-type", "application/json"], ["content-length", String(body.length)],
    ...(traceparent ? [["traceparent", traceparent] as const] : []),
  ] as const;
  const answer = await self({ path, query, headers, body, signal });
  return { status: answer.status, contentType: answer.contentType, retryAfterSeconds: undefined, text: Buffer.from(answer.body).toString() };
}

/** The webhook's server began to answer, and did not come to an end. */
class UnreadError extends Error { override readonly name = "UnreadError"; }

async function read(body: AsyncIterable<Buffer>, isZipped: boolean): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) throw new Error(`response body is longer than ${ANSWER_BYTES_MAX} bytes`); // leaving the loop closes the connection
    chunks.push(chunk);
  }
  const bytes = Buffer.concat(chunks, length);
  return isZipped ? unzipped(bytes) : bytes;
}

function unzipped(bytes: Buffer): Buffer {
  try {
    return gunzipSync(bytes, { maxOutputLength: ANSWER_BYTES_MAX });
  } catch (cause) {
    throw new Error(bytes.length < GZIP_HEADER_BYTES || (cause as NodeJS.ErrnoException).code === "Z_BUF_ERROR" ? "unexpected EOF" : "gzip: invalid header", { cause });
  }
}
