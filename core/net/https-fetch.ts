/**
 * One question to an HTTPS server of somebody else's: who issues tokens, or decides on them. Whom to trust and what to show is the caller's to say.
 *
 *   const { status, text } = await httpsFetch({ url, tls: { ca }, timeoutMs: 10_000 }, clock, signal);
 */
import type { Clock } from "../lifecycle/clock.ts";
import { ANCHORS } from "./tls.ts";

export interface OutboundTls {
  /** PEM. Absent: whom the system trusts. */
  readonly ca?: string | undefined;
  /** PEM: what we show. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
  readonly serverName?: string | undefined;
  readonly insecure?: boolean | undefined;
}

export interface HttpsCall {
  readonly url: string;
  /** Absent: GET. */
  readonly post?: { readonly contentType: string; readonly body: string } | undefined;
  readonly token?: string | undefined;
  readonly tls: OutboundTls;
  readonly timeoutMs: number;
  readonly bytesMax?: number;
}

const BYTES_MAX = 3 * 1024 * 1024;

/** Throws when there is no answer: for a timeout, a certificate that is not trusted, or one that is too long. */
export async function httpsFetch({ url, post, token, tls: { ca, cert, key, serverName, insecure }, timeoutMs, bytesMax = BYTES_MAX }: HttpsCall, clock: Pick<Clock, "after">, signal: AbortSignal): Promise<{ readonly status: number; readonly text: string; readonly maxAgeSeconds: number }> {
  const late = new AbortController();
  const alarm = clock.after(timeoutMs, () => late.abort(new Error("context deadline exceeded")));
  const tls = { ...(ca === undefined ? {} : { ca, ...ANCHORS }), ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }), ...(serverName === undefined ? {} : { serverName }), ...(insecure ? { rejectUnauthorized: false } : {}) };
  try {
    const response = await fetch(url, {
      method: post ? "POST" : "GET", signal: AbortSignal.any([signal, late.signal]), redirect: post ? "manual" : "follow",
      headers: { accept: "application/json", "user-agent": "kube-apiserver", ...(post ? { "content-type": post.contentType } : {}), ...(token === undefined ? {} : { authorization: `Bearer ${token}` }) },
      ...(post ? { body: post.body } : {}), ...(Object.keys(tls).length > 0 ? { tls } : {}),
    } as RequestInit);
    return { status: response.status, text: await textOf(response, bytesMax), maxAgeSeconds: Number(/max-age=(\d+)/.exec(response.headers.get("cache-control") ?? "")?.[1] ?? 0) };
  } catch (error) {
    const reason = late.signal.aborted ? (late.signal.reason as Error).message : (error as Error).message;
    throw new Error(`${post ? "Post" : "Get"} ${JSON.stringify(url)}: ${reason}`, { cause: error });
  } finally {
    alarm.cancel();
  }
}

async function textOf(response: Response, bytesMax: number): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > bytesMax) throw new Error(`the answer is longer than ${bytesMax} bytes`); // leaving the loop ends the connection
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, length).toString();
}
