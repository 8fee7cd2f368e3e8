/**
 * /healthz of the kubelet: on its own port, to those who may ask (with the sync loop's health), and to everybody on this machine at 127.0.0.1:10248 (that it runs at all).
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go, cmd/kubelet/app/server.go
 */
import { aborted } from "../../../core/lifecycle/aborted.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Runnable } from "../../../core/lifecycle/run-all.ts";
import { smallServer } from "../../../core/net/small-server.ts";
import type { Log } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { isOfSlis, sliCounts } from "../../../core/observe/slis.ts";
import { type Answer, text } from "./answer.ts";

/** `problem`: undefined when all is well. */
export interface HealthCheck {
  readonly name: string;
  readonly problem: string | undefined;
}

const PING: HealthCheck = { name: "ping", problem: undefined };
/** A kubelet whose plugins could not register would have ended. */
const DEVICE_PLUGINS: HealthCheck = { name: "device-plugin", problem: undefined };
/** Upstream's, between two attempts to listen. */
const RETRY_MS = 5_000;

/** The answer to /healthz/<rest>. */
export function healthz(checks: readonly HealthCheck[], rest: readonly string[], verbose: boolean): Answer {
  if (rest.length > 0) {
    const found = checks.find(({ name }) => name === rest[0]);
    if (!found) return text(404, "404 page not found\n");
    return found.problem === undefined ? text(200, "ok") : text(500, `internal server error: ${found.problem}\n`);
  }
  const lines = checks.map(({ name, problem }) => (problem === undefined ? `[+]${name} ok\n` : `[-]${name} failed: reason withheld\n`)).join("");
  if (checks.some(({ problem }) => problem !== undefined)) return text(500, `${lines}healthz check failed\n`);
  return text(200, verbose ? `${lines}healthz check passed\n` : "ok");
}

/** /healthz of the kubelet's own port, and what its checks found, as /metrics/slis tells it. */
export interface CheckedHealth {
  answer(rest: readonly string[], verbose: boolean): Answer;
  slis(): string;
}

/** `problem`: why pods are not seen to, undefined if they are. */
export function checkedHealth(problem: () => string | undefined): CheckedHealth {
  const slis = metricsRegistry();
  const count = sliCounts(slis);
  const check = (): readonly HealthCheck[] => [PING, { name: "log", problem: undefined }, { name: "syncloop", problem: problem() }, DEVICE_PLUGINS];
  const counted = (): readonly HealthCheck[] => {
    const checks = check();
    for (const one of checks) count("healthz", one.name, one.problem === undefined);
    return checks;
  };
  return {
    answer: (rest, verbose) => healthz(rest.length === 0 ? counted() : check(), rest, verbose),
    slis() {
      counted(); // nobody may have asked for long
      return slis.render(isOfSlis);
    },
  };
}

/** Serves it without encryption or questions. A port that somebody else has is asked for again and again: nothing of the node depends on it. Port 0: nowhere. */
export function healthzServer({ address, port, clock, log }: { readonly address: string; readonly port: number; readonly clock: Clock; readonly log: Log }): Runnable {
  return {
    name: "kubelet healthz",
    async run(signal, ready) {
      ready();
      if (port === 0) return await aborted(signal);
      for (let told = false; !signal.aborted; told = true) {
        const problem = await serve(address, port, signal);
        if (signal.aborted) return;
        if (!told) log.warn("the kubelet's healthz is not served", { address, port, error: problem });
        await clock.sleep(RETRY_MS, signal);
      }
    },
  };
}

/** Until `signal` aborts, or with what is wrong. */
async function serve(address: string, port: number, signal: AbortSignal): Promise<Error | undefined> {
  const server = smallServer((request, response) => {
    const [path = "", query = ""] = (request.url ?? "/").split("?"); // not as a URL: it need not be one
    const [root, ...rest] = path.split("/").filter((part) => part !== "");
    const { status, contentType, body } = root === "healthz" ? healthz([PING], rest, new URLSearchParams(query).has("verbose")) : text(404, "404 page not found\n");
    response.writeHead(status, { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" }).end(body as string);
  });
  const failed = Promise.withResolvers<Error>();
  server.on("error", failed.resolve);
  server.listen(port, address);
  try {
    return await Promise.race([failed.promise, aborted(signal).then(() => undefined)]);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}
