/** How long rules take to be compiled and asked. Source: kubernetes v1.36 apiserver/pkg/cel/metrics/metrics.go */
import type { Clock } from "../../../lifecycle/clock.ts";
import { DEFAULT_BUCKETS, type Metrics } from "../../../observe/metrics.ts";

export interface RuleMeter {
  /** Of `work`: the rules of one part of a schema. */
  compiled<T>(work: () => T): T;
  /** All rules about one object. */
  evaluated<T>(work: () => T): T;
}

export const unmeasured: RuleMeter = { compiled: (work) => work(), evaluated: (work) => work() };

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
  return { compiled: timed("apiserver_cel_compilation_duration_seconds", "[BETA] CEL compilation time in seconds."), evaluated: timed("apiserver_cel_evaluation_duration_seconds", "[BETA] CEL evaluation time in seconds.") };
}
