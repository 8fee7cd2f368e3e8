/** How often callers act as somebody else, and are refused. Source: kubernetes v1.36 apiserver/pkg/endpoints/filters/impersonation/metrics/metrics.go */
import type { Clock } from "../lifecycle/clock.ts";
import { doubling, type Metrics } from "../observe/metrics.ts";
import type { Authorizer } from "./authorizer.ts";
import type { Impersonated } from "./impersonate.ts";

const SECONDS = doubling(0.001, 15);

export interface ImpersonationMeter {
  /** Counts what `act` comes to. */
  measured(act: () => Promise<Impersonated>): Promise<Impersonated>;
  /** Counts what is asked of it on the way. */
  asked(authorizer: Authorizer): Authorizer;
}

export function impersonationMeter(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): ImpersonationMeter {
  const attempts = metrics.counter("apiserver_impersonation_attempts_total", "[ALPHA] Total number of impersonation attempts split by mode and decision.");
  const durations = metrics.histogram("apiserver_impersonation_attempts_duration_seconds", "[ALPHA] Latency of impersonation attempts in seconds split by mode and decision.", SECONDS);
  const questions = metrics.counter("apiserver_impersonation_authorization_attempts_total", "[ALPHA] Total number of authorization checks made by the impersonation handler split by mode and decision.");
  const answers = metrics.histogram("apiserver_impersonation_authorization_attempts_duration_seconds", "[ALPHA] Latency of authorization checks made by the impersonation handler in seconds split by mode and decision.", SECONDS);
  return {
    asked: (authorizer) => ({
      ...authorizer,
      async authorize(attributes) {
        const startMs = clock.uptimeMs();
        const found = await authorizer.authorize(attributes);
        const labels = { decision: found.decision === "allow" ? "allowed" : "denied", mode: modeOf(attributes.verb) };
        questions.inc(labels);
        answers.observe((clock.uptimeMs() - startMs) / 1000, labels);
        return found;
      },
    }),
    async measured(act) {
      const startMs = clock.uptimeMs();
      const count = (mode: string, decision: "allowed" | "denied"): void => {
        attempts.inc({ decision, mode });
        durations.observe((clock.uptimeMs() - startMs) / 1000, { decision, mode });
      };
      try {
        const found = await act();
        count(modeOf(found.constraint), "allowed");
        return found;
      } catch (error) {
        count("", "denied");
        throw error;
      }
    },
  };
}

/** impersonate, impersonate:mode, impersonate-on:mode:verb. */
function modeOf(verb: string): string { return verb.split(":")[1] ?? "legacy"; }
