/**
 * The kubelet's read-only port (KubeletConfiguration readOnlyPort): health, pods, statistics and metrics for everybody, without TLS. Nothing else: no logs, no exec, no configuration.
 *
 * Source: kubernetes v1.36 pkg/kubelet/server/server.go (ListenAndServeKubeletReadOnlyServer)
 */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import { type HttpsServer, httpServer } from "../../../core/net/http-server.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import type { Exec } from "../../os/exec.ts";
import type { KubeletApi } from "../kubelet-api.ts";
import { AnswerError } from "./answer.ts";
import { checkedHealth } from "./healthz.ts";
import { answering, bodyOf, refuseUpgrade, type RequestCounts, targetOf } from "./requests.ts";
import { route } from "./routes.ts";

export interface ReadOnlyServerOptions {
  readonly api: KubeletApi;
  readonly counts: RequestCounts;
  readonly host: string;
  readonly port: number;
  readonly clock: Clock;
  readonly exec: Exec;
  readonly log: Log;
  readonly metrics: Metrics;
}

export function readOnlyServer({ api, counts, host, port, clock, exec, log, metrics }: ReadOnlyServerOptions): HttpsServer {
  const health = checkedHealth(() => api.unhealthyReason());
  const server: HttpsServer = httpServer({
    host, port, portFlag: "--kubelet-arg read-only-port", log, clock,
    handler: answering({
      counts, serverType: "readonly", stopping: () => server.stopping, log,
      async answer(request, _, signal) {
        const { query, parts } = targetOf(request);
        return await route({ api, metrics, health, debugging: false, configz: () => ({}), body: () => bodyOf(request), accept: request.headers.accept, clock, log, exec, localPath: undefined, method: request.method ?? "GET", parts, query, signal });
      },
    }),
    upgrade(request, socket) {
      socket.on("error", () => undefined);
      const ended = counts.began(request, "readonly");
      refuseUpgrade(socket, new AnswerError(405, "Debug endpoints are disabled.\n"), log);
      ended();
    },
  });
  return { ...server, name: "kubelet read-only server", stopping: server.stopping, get connectionCount() { return server.connectionCount; } };
}
