/**
 * A server that does not accept who we are (401: revoked, expired) is told of once, by us, instead of by each of the many parts that ask it.
 *
 *   const { log, heard } = refusals({ log, clock });
 *   … heard(httpTransport(…)) …                  parts get this transport, and this log
 *
 * While it lasts it is said again every ten minutes, so that it stands at the end of every log; what the parts say about it goes to the debug level.
 */
import { isUnauthorized } from "../api/meta/status-error.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { GrpcError } from "../net/grpc/status.ts";
import type { Log } from "../observe/log.ts";
import type { Transport } from "./transport.ts";

const AGAIN_MS = 600_000;

interface Refusals {
  /** The one given, but for what others make of a refusal. */
  readonly log: Log;
  heard(transport: Transport): Transport;
}

export function refusals({ log, clock }: { readonly log: Log; readonly clock: Pick<Clock, "uptimeMs"> }): Refusals {
  let saidMs: number | undefined;

  function refused(error: unknown): void {
    if (!isUnauthorized(error)) return;
    const nowMs = clock.uptimeMs();
    if (saidMs !== undefined && nowMs - saidMs < AGAIN_MS) return;
    saidMs = nowMs;
    log.error("the API server does not accept this node", { reason: (error as Error).message });
  }

  function accepted(): void {
    if (saidMs === undefined) return;
    saidMs = undefined;
    log.info("the API server accepts this node again");
  }

  return {
    log: quietened(log),
    heard: (transport) => ({
      async call(request) {
        try {
          const answer = await transport.call(request);
          accepted();
          return answer;
        } catch (error) {
          refused(error);
          throw error;
        }
      },
      async *watch(request) {
        try {
          for await (const event of transport.watch(request)) {
            accepted();
            yield event;
          }
        } catch (error) {
          refused(error);
          throw error;
        }
      },
    }),
  };
}

/** What went wrong only because of a refusal is said at the debug level. */
function quietened(log: Log): Log {
  const level = (loud: "warn" | "error") => (message: string, fields?: Record<string, unknown>): void => log[isRefusal(fields?.["error"]) ? "debug" : loud](message, fields);
  return { debug: log.debug, info: log.info, warn: level("warn"), error: level("error"), with: (fields) => quietened(log.with(fields)) };
}

function isRefusal(error: unknown): boolean { return isUnauthorized(error) || (error instanceof GrpcError && error.code === "unauthenticated"); }
