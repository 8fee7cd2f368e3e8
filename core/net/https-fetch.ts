/**
 * One question to an HTTPS server of somebody else's: who issues tokens, or decides on them. Whom to trust and what to show is the caller's to say.
 *
 *   const { status, text } = await httpsFetch({ url, tls: { ca }, timeoutMs: 10_000 }, clock, signal);
 */
import { Readable } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import { dialTcp, hostOf } from "./dial-tcp.ts";
import { ANOTHER_AUTHORITY, dialTls } from "./dial-tls.ts";
import { http1Request } from "./http1-client.ts";
import { fetchTls, type OutboundTls } from "./tls.ts";

export interface HttpsCall {
  readonly url: string;
  /** Absent: GET. */
  readonly post?: { readonly contentType: string; readonly body: string } | undefined;
  readonly token?: string | undefined;
  readonly tls: OutboundTls;
  readonly timeoutMs: number;
  readonly bytesMax?: number;
}

export interface HttpsAnswer {
  readonly status: number;
  readonly text: string;
  readonly contentType?: string | undefined;
  readonly maxAgeSeconds: number;
  /** It has a Retry-After header, in seconds. */
  readonly asksAgain?: true;
}

/** Nothing was asked yet. Perhaps the certificate is to be trusted after all; of what went wrong otherwise `fetch` does not tell more. */
const HANDSHAKE_FAILURES: ReadonlySet<string | undefined> = new Set([...ANOTHER_AUTHORITY, "EPROTO"]);
const BYTES_MAX = 3 * 1024 * 1024;

/** There was no answer in time. */
export class LateError extends Error { override readonly name = "LateError"; }

/** Throws when there is no answer: LateError for a timeout, an Error for a certificate that is not trusted and for an answer that is too long. */
export async function httpsFetch(call: HttpsCall, clock: Clock, signal: AbortSignal): Promise<HttpsAnswer> {
  const { url, post, timeoutMs } = call;
  const late = new AbortController();
  const alarm = clock.after(timeoutMs, () => late.abort(new Error("context deadline exceeded")));
  const quit = AbortSignal.any([signal, late.signal]);
  try {
    const scheme = /^[a-z][a-z0-9+.-]*(?=:)/i.exec(url)?.[0] ?? "";
    if (!/^https?$/i.test(scheme)) throw new Error(`unsupported protocol scheme ${JSON.stringify(scheme)}`); // fetch would read a file
    return await fetched(call, quit).catch((error: NodeJS.ErrnoException) => {
      if (call.tls.ca === undefined || !HANDSHAKE_FAILURES.has(error.code)) throw error;
      return overOwnConnection(call, call.tls.ca, clock, quit);
    });
  } catch (error) {
    const reason = late.signal.aborted ? (late.signal.reason as Error).message : (error as Error).message;
    throw new (late.signal.aborted ? LateError : Error)(`${post ? "Post" : "Get"} ${JSON.stringify(url)}: ${reason}`, { cause: error });
  } finally {
    alarm.cancel();
  }
}

async function fetched({ url, post, tls, bytesMax = BYTES_MAX, token }: HttpsCall, signal: AbortSignal): Promise<HttpsAnswer> {
  const response = await fetch(url, {
    method: post ? "POST" : "GET", signal, redirect: post ? "manual" : "follow", headers: headersOf({ post, token }), ...(post ? { body: post.body } : {}), tls: fetchTls(tls),
  } as RequestInit);
  return { status: response.status, text: await textOf((response.body ?? []) as AsyncIterable<Uint8Array>, bytesMax), contentType: response.headers.get("content-type") ?? undefined, maxAgeSeconds: maxAgeSeconds(response.headers.get("cache-control")), ...asksAgain(response.headers.get("retry-after")) };
}

/** Follows no redirection, and goes through no proxy. */
async function overOwnConnection({ url, post, token, tls: { cert, key, serverName }, timeoutMs, bytesMax = BYTES_MAX }: HttpsCall, ca: string, clock: Clock, signal: AbortSignal): Promise<HttpsAnswer> {
  const whole = new URL(url), { port, host, pathname, search } = whole;
  const target = { host: hostOf(whole), port: Number(port || 443) };
  const connection = await dialTls(await dialTcp({ ...target, timeoutMs }, { clock, signal }), { ca, serverName: serverName ?? target.host, client: cert === undefined || key === undefined ? undefined : { cert, key }, signal });
  const headers = Object.entries({ host, ...headersOf({ post, token }), ...(post ? { "content-length": String(Buffer.byteLength(post.body)) } : {}) });
  const { status, headers: answered, body } = await http1Request(connection, { method: post ? "POST" : "GET", target: `${pathname}${search}`, headers, body: post && Readable.from([Buffer.from(post.body)]) }, signal);
  const header = (wanted: string): string | undefined => answered.find(([name]) => name.toLowerCase() === wanted)?.[1];
  return { status, text: await textOf(body, bytesMax), contentType: header("content-type"), maxAgeSeconds: maxAgeSeconds(header("cache-control")), ...asksAgain(header("retry-after")) };
}

function headersOf({ post, token }: Pick<HttpsCall, "post" | "token">): Readonly<Record<string, string>> {
  return { accept: "application/json", "user-agent": "kube-apiserver", ...(post ? { "content-type": post.contentType } : {}), ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) };
}

function maxAgeSeconds(cacheControl: string | null | undefined): number { return Number(/max-age=(\d+)/.exec(cacheControl ?? "")?.[1] ?? 0); }

function asksAgain(retryAfter: string | null | undefined): { readonly asksAgain?: true } { return /^\d+$/.test(retryAfter ?? "") ? { asksAgain: true } : {}; }

async function textOf(body: AsyncIterable<Uint8Array>, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body) {
    length += chunk.length;
    if (length > bytesMax) throw new Error(`the answer is longer than ${bytesMax} bytes`); // leaving the loop ends the connection
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}
