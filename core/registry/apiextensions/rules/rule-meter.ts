/** How long rules take to be compiled and asked, and objects to be compared with what they were. Source: kubernetes v1.36 apiserver/pkg/cel/metrics/metrics.go */
import type { Clock } from "../../../lifecycle/clock.ts";
import { DEFAULT_BUCKETS, exponential, type Metrics } from "../../../observe/metrics.ts";

export interface RuleMeter {
  /** Of `work`: the rules of one part of a schema. */
  compiled<T>(work: () => T): T;
  /** All rules about one object. */
  evaluated<T>(work: () => T): T;
  /** For the comparisons of one update; `done` tells what they took together. */
  comparisons(): { readonly timed: <T>(work: () => T) => T; done(): void };
}

export const unmeasured: RuleMeter = { compiled: (work) => work(), evaluated: (work) => work(), comparisons: () => ({ timed: (work) => work(), done: () => undefined }) };

/** Source: kubernetes v1.36 apiextensions-apiserver/pkg/apiserver/validation/metrics.go */
const COMPARISON_SECONDS = exponential(0.00001, 4, 10);

export function ruleMeter(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): RuleMeter {
  const timed = (name: string, help: string) => {
    const seconds = metrics.histogram(name, help, DEFAULT_BUCKETS).with({});
    return <T>(work: () => T): T => {
      const startMs = clock.uptimeMs();
      try {
        return work();
      } finally {
        seconds.observe((clock.uptimeMs() - startMs) / 1000);
      }
    };
  };
  const ratcheting = metrics.histogram("apiextensions_apiserver_validation_ratcheting_seconds", "[ALPHA] Time for comparison of old to new for the purposes of CRDValidationRatcheting during an UPDATE in seconds.", COMPARISON_SECONDS).with({});
  function comparisons(): ReturnType<RuleMeter["comparisons"]> {
    let spentMs = 0, isWithin = false; // one asks for another
    return {
      timed(work) {
        if (isWithin) return work();
        const startMs = clock.uptimeMs();
        isWithin = true;
        try {
          return work();
        } finally {
          isWithin = false;
          spentMs += clock.uptimeMs() - startMs;
        }
      },
      done: () => ratcheting.observe(spentMs / 1000),
    };
  }
  return { comparisons, compiled: timed("apiserver_cel_compilation_duration_seconds", "[BETA] CEL compilation time in seconds."), evaluated: timed("apiserver_cel_evaluation_duration_seconds", "[BETA] CEL evaluation time in seconds.") };
}
