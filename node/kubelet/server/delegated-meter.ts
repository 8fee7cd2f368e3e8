/**
 * Counts what the API server is asked about callers, and how long it takes, by the code of its answer.
 *
 * Source: kubernetes v1.36 apiserver/pkg/{authentication/authenticatorfactory,authorization/authorizerfactory}/metrics.go
 */
import { StatusError } from "../../../core/api/meta/status-error.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";

const SECONDS = [0.25, 0.5, 0.7, 1, 1.5, 3, 5, 10];

/** Of an answer that makes the review. */
const CREATED = "201";

/** Without metrics: nothing is counted. */
export function delegatedMeter(metrics: Metrics | undefined, what: "authn" | "authz", clock: Pick<Clock, "uptimeMs">): <T>(ask: () => Promise<T>) => Promise<T> {
  const requests = metrics?.counter(`apiserver_delegated_${what}_request_total`, "[ALPHA] Number of HTTP requests partitioned by status code.");
  const durations = metrics?.histogram(`apiserver_delegated_${what}_request_duration_seconds`, "[ALPHA] Request latency in seconds. Broken down by status code.", SECONDS);
  return async (ask) => {
    const beganMs = clock.uptimeMs();
    const told = (code: string): void => {
      requests?.inc({ code });
      durations?.observe((clock.uptimeMs() - beganMs) / 1000, { code });
    };
    try {
      const answer = await ask();
      told(CREATED);
      return answer;
    } catch (error) {
      told(error instanceof StatusError ? String(error.status.code) : "<error>");
      throw error;
    }
  };
}
