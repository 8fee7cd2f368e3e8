/**
 * How long the node's certificates last: alerts of Kubernetes read it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/certificate/kubelet.go, cmd/kubelet/app/server.go
 */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { readCertificatePems } from "../../../core/pki/pem.ts";
import { parseCertificate } from "../../../core/pki/x509.ts";

interface Options {
  readonly metrics: Metrics;
  readonly clock: Pick<Clock, "nowMs">;
  /** PEM, the leaf first. */
  readonly serving: () => string;
  /** Absent: the node needs none to call the API server. */
  readonly client?: (() => string | undefined) | undefined;
}

export function certificateMetrics({ metrics, clock, serving, client = () => undefined }: Options): void {
  const ends = [serving, client].map(lasting);
  const seconds = (endMs: number): number => Math.trunc((endMs - clock.nowMs()) / 1000);
  const gauge = (name: string, whose: string, end: () => number): void =>
    metrics.gaugeFrom(`kubelet_certificate_manager_${name}_ttl_seconds`, `[ALPHA] Gauge of the ${name === "server" ? "shortest " : ""}TTL (time-to-live) of the Kubelet's ${whose} certificate. The value is in seconds until certificate expiry (negative if already expired). If ${whose} certificate is invalid or unused, the value will be +INF.`, () => [[{}, seconds(end())]]);
  gauge("server", "serving", ends[0]!);
  gauge("client", "client", ends[1]!);
}

const MINUTE = 60, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const ROTATION_SECONDS = [MINUTE, HOUR, 4 * HOUR, DAY, 7 * DAY, 30 * DAY, 90 * DAY, 180 * DAY, 360 * DAY, 1440 * DAY];

/** Each call: the serving certificate has been replaced. `pem`: the one before. */
export function servingRotation({ metrics, clock }: Pick<Options, "metrics" | "clock">): (pem: string) => void {
  const lived = metrics.histogram("kubelet_certificate_manager_server_rotation_seconds", "[ALPHA] Histogram of the number of seconds the previous certificate lived before being rotated.", ROTATION_SECONDS);
  return (pem) => {
    const [leaf] = readCertificatePems(pem);
    if (leaf !== undefined) lived.observe(Math.max(0, (clock.nowMs() - parseCertificate(leaf).notBeforeMs) / 1000));
  };
}

/** Each call: one more could not be renewed. */
export function renewalErrors(metrics: Metrics): Readonly<Record<"client" | "serving", () => void>> {
  const counter = (name: string): (() => void) => {
    const series = metrics.counter(name, "[ALPHA] Counter of certificate renewal errors.").with({});
    return () => series.inc();
  };
  return { client: counter("kubelet_certificate_manager_client_expiration_renew_errors"), serving: counter("kubelet_server_expiration_renew_errors") };
}

/** When it ends, read once for each certificate. */
function lasting(pemOf: () => string | undefined): () => number {
  let read: string | undefined;
  let endMs = Number.POSITIVE_INFINITY;
  return () => {
    const pem = pemOf();
    if (pem !== read) {
      const [leaf] = readCertificatePems(pem ?? "");
      endMs = leaf === undefined ? Number.POSITIVE_INFINITY : parseCertificate(leaf).notAfterMs;
      read = pem;
    }
    return endMs;
  };
}
