/**
 * One question to a webhook: POST of a review, and the review that comes back.
 *
 * Errors read as Go's HTTP client prints them: Post "https://hook.ns.svc:443/path?timeout=10s": context deadline exceeded
 *
 * Source: kubernetes v1.36 client-go/rest/request.go, apimachinery/pkg/api/errors NewGenericServerResponse
 */
import { Readable } from "node:stream";
import type { WebhookClientConfig } from "../../api/gen/admissionregistration.v1.ts";
import { encodeJson, parseJson } from "../../api/codec/json.ts";
import { serverSaid } from "../../api/meta/generic-response.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { askKept, type Held } from "../../net/kept-connections.ts";
import { addressOf, type DialDeps } from "./dial.ts";

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

/** Throws an Error that says why there is no answer. */
export async function ask({ config, review, timeoutSeconds, traceparent, signal }: Question, deps: CallDeps): Promise<unknown> {
  const address = addressOf(config, deps);
  const query = `?timeout=${timeoutSeconds}s`;
  const late = new AbortController();
  const alarm = deps.clock.after(timeoutSeconds * 1000, () => late.abort());
  const either = AbortSignal.any([signal, late.signal]);
  try {
    const { status, text } = await exchange({ target: address.path + query, host: address.host, connect: (fresh) => address.connect(either, fresh), body: encodeJson(review), traceparent }, either).catch((cause: Error) => {
      const why = late.signal.aborted ? "context deadline exceeded" : signal.aborted ? "context canceled" : cause.message;
      throw new Error(`Post ${JSON.stringify(address.url + query)}: ${why}`, { cause });
    });
    if (status < 200 || status > 206) throw new AnswerError(status, text);
    return parsed(text);
  } finally {
    alarm.cancel();
  }
}

/** The webhook's server answered, and said that it could not. */
export class AnswerError extends Error {
  override readonly name = "AnswerError";
  readonly code: number;
  constructor(code: number, text: string) {
    super(serverSaid(code, text));
    this.code = code;
  }
}

interface Exchange { readonly target: string; readonly host: string; connect(fresh: boolean): Promise<Held>; readonly body: Uint8Array; readonly traceparent: string | undefined }

async function exchange({ target, host, connect, body, traceparent }: Exchange, signal: AbortSignal): Promise<{ readonly status: number; readonly text: string }> {
  const headers = [["Host", host], ["User-Agent", "kube-apiserver-admission"], ["Content-Length", String(body.length)], ["Accept", "application/json, */*"], ["Content-Type", "application/json"], ...(traceparent ? [["Traceparent", traceparent] as const] : [])] as const;
  const response = await askKept(connect, () => ({ method: "POST", target, headers, body: Readable.from([Buffer.from(body)]) }), signal);
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > ANSWER_BYTES_MAX) throw new Error(`response body is longer than ${ANSWER_BYTES_MAX} bytes`); // leaving the loop closes the connection
    chunks.push(chunk);
  }
  return { status: response.status, text: Buffer.concat(chunks, length).toString() };
}

function parsed(text: string): unknown {
  try {
    return parseJson(text).value;
  } catch (cause) {
    throw new Error(`couldn't get version/kind; json parse error: ${(cause as Error).message}`, { cause });
  }
}
