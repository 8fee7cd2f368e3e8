/** What the probes last found out, by the id of the container: a restarted container starts without results. */
export type ProbeKind = "startup" | "liveness" | "readiness";
export type ProbeResult = "success" | "failure" | "unknown";

export interface ProbeResults {
  startup(containerId: string): ProbeResult | undefined;
  liveness(containerId: string): ProbeResult | undefined;
  readiness(containerId: string): ProbeResult | undefined;
  /** Whether this container has a probe of that kind at work: without one it counts as passed. */
  probes(podUid: string, containerName: string, kind: ProbeKind): boolean;
}

export const NO_PROBES: ProbeResults = { startup: () => undefined, liveness: () => undefined, readiness: () => undefined, probes: () => false };
