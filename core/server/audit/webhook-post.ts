/** POSTs lists of audit events to where a kubeconfig says. */
import { stringify } from "../../api/codec/json.ts";
import { fetchTls, type OutboundTls } from "../../net/tls.ts";

export interface WebhookTarget extends OutboundTls {
  readonly url: string;
  readonly token?: string | undefined;
}

/** Of an answer, which says nothing: longer ones cost their connection. */
const SKIPPED_BYTES_MAX = 1024 * 1024;

/** Source: apiserver/plugin/pkg/audit/webhook, the client's own timeout */
const TIMEOUT_MS = 30_000;

/** `target` is asked each time: credentials are renewed. */
export function webhookPost(target: () => WebhookTarget): (list: object, signal: AbortSignal) => Promise<void> {
  return async (list, signal) => {
    const { url, token, ...tls } = target();
    const response = await fetch(url, {
      method: "POST", body: stringify(list), signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      headers: { "content-type": "application/json", accept: "application/json", "user-agent": "kube-apiserver-audit", ...(token ? { authorization: `Bearer ${token}` } : {}) },
      ...(url.startsWith("https:") ? { tls: fetchTls(tls) } : {}),
    } as BunFetchRequestInit);
    await skipped(response);
    if (!response.ok) throw new Error(`the audit webhook answered ${response.status}`);
  };
}

/** Read to its end, so that the connection can be used again. */
async function skipped({ body }: Response): Promise<void> {
  let length = 0;
  for await (const chunk of (body ?? []) as AsyncIterable<Uint8Array>) {
    length += chunk.length;
    if (length > SKIPPED_BYTES_MAX) return; // leaving the loop ends the connection
  }
}
