/**
 * A review sent to a server of somebody else's, which sends it back with its status: whose a token is, whether a request is allowed.
 *
 * Tried again, after a growing pause, as long as the server is busy or breaks off. One that is not there is not waited for: every request that needs its word would wait along.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/webhook/webhook.go, apiserver/pkg/server/options/authentication.go DefaultAuthWebhookRetryBackoff
 */
import type { Clock } from "../lifecycle/clock.ts";
import { httpsFetch, LateError } from "./https-fetch.ts";
import type { OutboundTls } from "./tls.ts";

export interface ReviewServer {
  readonly url: string;
  readonly tls: OutboundTls;
  readonly token?: string | undefined;
}

/** What was answered, and not looked at yet. */
export interface ReviewAnswer { readonly status: number; readonly text: string; readonly contentType: string | undefined }

const PAUSE_MS = 500;
const FACTOR = 1.5;
const TRIES_MAX = 5;
/** Of what was answered, in a log. */
const TOLD_MAX = 200;

/** The server is told how long it has. Throws when nobody answers: AnswerError for who says that he cannot. */
export async function reviewCall({ server: { url, tls, token }, review, timeoutMs, clock }: { readonly server: ReviewServer; readonly review: object; readonly timeoutMs: number; readonly clock: Clock }, signal: AbortSignal): Promise<ReviewAnswer> {
  const asked = `${url}${url.includes("?") ? "&" : "?"}timeout=${timeoutMs % 1_000 === 0 ? `${timeoutMs / 1_000}s` : `${timeoutMs}ms`}`;
  for (let tries = 1, pauseMs = PAUSE_MS; ; tries++, pauseMs *= FACTOR) {
    try {
      const { status, text, contentType, asksAgain } = await httpsFetch({ url: asked, tls, token, timeoutMs, post: { contentType: "application/json", body: JSON.stringify(review) } }, clock, signal);
      if (status >= 200 && status <= 206) return { status, text, contentType };
      throw new AnswerError({ status, text, contentType }, { asksAgain });
    } catch (error) {
      const again = error instanceof AnswerError ? error.again : !(error instanceof LateError) && isBrokenOff(error); // who is late is not asked to be late again
      if (!again || tries >= TRIES_MAX || signal.aborted) throw error;
      await clock.sleep(pauseMs, signal);
    }
  }
}

/** The connection was there, and the other side has ended it. */
function isBrokenOff(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (["ECONNRESET", "EPIPE"].includes(String((at as NodeJS.ErrnoException).code))) return true;
  return false;
}

/** It was answered with something else than a review. */
export class AnswerError extends Error {
  override readonly name = "AnswerError";
  readonly answer: ReviewAnswer;
  /** Whether to ask again: 503 alone is no reason, unless its header says so. */
  readonly again: boolean;
  constructor(answer: ReviewAnswer, { asksAgain = false }: { readonly asksAgain?: boolean | undefined } = {}) {
    const { status, text } = answer;
    super(`${status}: ${text.slice(0, TOLD_MAX)}`);
    this.answer = answer;
    this.again = status === 429 || (status >= 500 && (status !== 503 || asksAgain));
  }
}

/** What was answered, kept for a while and bounded: those asked for longest ago go first. */
export class AnswerCache<T> {
  readonly #entries = new Map<string, { readonly value: T; readonly untilMs: number }>();
  readonly #max: number;
  readonly #clock: Pick<Clock, "uptimeMs">;

  constructor({ max, clock }: { readonly max: number; readonly clock: Pick<Clock, "uptimeMs"> }) {
    this.#max = max;
    this.#clock = clock;
  }

  get(key: string): T | undefined {
    const found = this.#entries.get(key);
    if (!found) return undefined;
    this.#entries.delete(key);
    if (found.untilMs <= this.#clock.uptimeMs()) return undefined;
    this.#entries.set(key, found);
    return found.value;
  }

  set(key: string, value: T, ttlMs: number): void {
    if (ttlMs <= 0) return;
    this.#entries.set(key, { value, untilMs: this.#clock.uptimeMs() + ttlMs });
    if (this.#entries.size > this.#max) this.#entries.delete(this.#entries.keys().next().value!);
  }
}
