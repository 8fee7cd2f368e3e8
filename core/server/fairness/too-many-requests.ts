/** There is no seat, and none to wait for. Source: kubernetes v1.36 apiserver/pkg/server/filters/maxinflight.go tooManyRequests */
import { raw, type RawAnswer } from "../answer.ts";

export class TooManyRequests extends Error {
  override readonly name = "TooManyRequests";
  readonly reason: string;
  /** Seconds. */
  readonly retryAfter: number;
  constructor(reason: string, retryAfter: number) {
    super(`too many requests: ${reason}`);
    this.reason = reason;
    this.retryAfter = retryAfter;
  }
  get answer(): RawAnswer {
    return raw("Too many requests, please try again later.\n", "text/plain; charset=utf-8", 429, { "retry-after": String(this.retryAfter), "x-content-type-options": "nosniff" });
  }
}

/** What tells a client whose turn it took. */
export const FLOW_HEADERS = ["X-Kubernetes-PF-FlowSchema-UID", "X-Kubernetes-PF-PriorityLevel-UID"] as const;

/** What a request holds while it is served. */
export interface Ticket { done(): void }
