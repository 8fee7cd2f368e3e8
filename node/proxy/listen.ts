/** Where the proxy tells how it is: small servers without encryption. */
import type { RequestListener } from "node:http";
import type { Clock } from "../../core/lifecycle/clock.ts";
import { smallServer } from "../../core/net/small-server.ts";
import type { Log } from "../../core/observe/log.ts";

/** A port that somebody else has, perhaps the process before us, is asked for again after this long. Source: kubernetes v1.36 cmd/kube-proxy/app/server.go serveHealthz, serveMetrics */
const RETRY_MS = 5_000;

/** Returns what ends it. Nothing of the node depends on it: a port that cannot be had is told once. */
export function listen({ address, port }: { readonly address: string; readonly port: number }, listener: RequestListener, { clock, log }: { readonly clock: Pick<Clock, "after">; readonly log: Log }): () => void {
  const server = smallServer(listener);
  let isTold = false;
  let hasEnded = false;
  let again: { cancel(): void } | undefined;
  server.on("error", (error) => {
    if (!isTold) log.warn("the proxy's health is not served, tried again until it is", { address, port, error });
    isTold = true;
    if (!hasEnded) again = clock.after(RETRY_MS, () => { if (!server.listening) server.listen(port, address); }); // what failed may have been one connection
  });
  server.listen(port, address);
  return () => {
    hasEnded = true;
    again?.cancel();
    server.close();
    server.closeAllConnections();
  };
}
