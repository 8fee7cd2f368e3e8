/**
 * How long a machine takes to become a node that is ready, when it becomes one for the first time: from its start to ours, to the first try to register it, to its
 * object, to its first Ready. Measured in uptime: the clock of a machine that starts may be set on the way.
 *
 * Source: kubernetes v1.36 pkg/kubelet/util/node_startup_latency_tracker.go
 */
import type { Metrics } from "../../../core/observe/metrics.ts";

export interface StartupLatency {
  registering(): void;
  /** A new object was made for it. */
  registered(): void;
  ready(): void;
}

interface Deps {
  readonly metrics: Metrics;
  readonly clock: { uptimeMs(): number };
  /** How long the machine is up now. */
  readonly machineSeconds: number;
}

export function startupLatency({ metrics, clock, machineSeconds }: Deps): StartupLatency {
  const gauge = (part: string, help: string): { set(value: number): void } => {
    const made = metrics.gauge(`kubelet_node_startup_${part}duration_seconds`, `[ALPHA] Duration in seconds of node startup ${help}.`);
    made.set(0);
    return made;
  };
  const shown = {
    preKubelet: gauge("pre_kubelet_", "before kubelet starts"), preRegistration: gauge("pre_registration_", "before registration"),
    registration: gauge("registration_", "during registration"), postRegistration: gauge("post_registration_", "after registration"), all: gauge("", "in total"),
  };
  const beganMs = clock.uptimeMs();
  const since = (ms: number): number => (clock.uptimeMs() - ms) / 1000;
  let triedMs: number | undefined;
  let registeredMs: number | undefined;
  let isReady = false;

  return {
    registering: () => void (triedMs ??= clock.uptimeMs()),
    registered() {
      if (triedMs === undefined || registeredMs !== undefined) return;
      registeredMs = clock.uptimeMs();
      shown.preKubelet.set(machineSeconds);
      shown.preRegistration.set((triedMs - beganMs) / 1000);
      shown.registration.set(since(triedMs));
    },
    ready() {
      if (registeredMs === undefined || isReady) return;
      isReady = true;
      shown.postRegistration.set(since(registeredMs));
      shown.all.set(machineSeconds + since(beganMs));
    },
  };
}
