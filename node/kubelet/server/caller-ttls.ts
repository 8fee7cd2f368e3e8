/** How long answers of the API server about who calls the kubelet, and whether they may, hold. Source: KubeletConfiguration authentication.webhook, authorization.webhook */
export interface CallerTtls {
  /** Whose token it is, or that it is nobody's. */
  readonly tokenMs: number;
  readonly allowedMs: number;
  readonly deniedMs: number;
}

export const CALLER_TTLS: CallerTtls = { tokenMs: 2 * 60_000, allowedMs: 5 * 60_000, deniedMs: 30_000 };
