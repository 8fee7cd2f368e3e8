/** dra_*: how long claims of pods take, and what their drivers do of it. Source: kubernetes v1.36 pkg/kubelet/metrics/metrics.go, pkg/kubelet/cm/dra/plugin/dra_plugin.go */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { RpcError } from "../../cri/rpc-client.ts";

export interface ClaimMetrics {
  /** The drivers of each claim that is prepared. */
  inUse(claims: () => readonly (readonly string[])[]): void;
  /** All claims of a pod. */
  operation<T>(name: "PrepareResources" | "UnprepareResources", work: () => Promise<T>): Promise<T>;
  /** One call of a driver. `method`: as gRPC has it. */
  call<T>(driver: string, method: string, work: () => Promise<T>): Promise<T>;
}

/** From 0.1 s to 40 s, each so many times the one before. A call has 45 s. */
const BUCKETS = Array.from({ length: 15 }, (_, i) => 0.1 * 400 ** (i / 14));

export function claimMetrics({ metrics, clock }: { readonly metrics: Metrics; readonly clock: Clock }): ClaimMetrics {
  const operations = metrics.histogram(
    "dra_operations_duration_seconds",
    "[ALPHA] Latency histogram in seconds for the duration of handling all ResourceClaims referenced by a pod when the pod starts or stops. Identified by the name of the operation (PrepareResources or UnprepareResources) and separated by the success of the operation. The number of failed operations is provided through the histogram's overall count.",
    BUCKETS,
  );
  const calls = metrics.histogram("dra_grpc_operations_duration_seconds", "[ALPHA] Duration in seconds of the DRA gRPC operations", BUCKETS);

  async function timed<T>(work: () => Promise<T>, told: (seconds: number, error: unknown) => void): Promise<T> {
    const startMs = clock.uptimeMs();
    const seconds = (): number => (clock.uptimeMs() - startMs) / 1000;
    try {
      const result = await work();
      told(seconds(), undefined);
      return result;
    } catch (error) {
      told(seconds(), error);
      throw error;
    }
  }

  return {
    inUse: (claims) => metrics.gaugeFrom("dra_resource_claims_in_use", "[ALPHA] The number of ResourceClaims that are currently in use on the node, by driver name (driver_name label value) and across all drivers (special value <any> for driver_name). Note that the sum of all by-driver counts is not the total number of in-use ResourceClaims because the same ResourceClaim might use devices from different drivers. Instead, use the count for the <any> driver_name.", () => {
      const all = claims();
      return [["<any>", all] as const, ...Map.groupBy(all.flat(), (driver) => driver)].map(([driver, { length }]) => [{ driver_name: driver }, length] as const);
    }),
    operation: (name, work) => timed(work, (seconds, error) => operations.observe(seconds, { operation_name: name, is_error: String(error !== undefined) })),
    call: (driver, method, work) => timed(work, (seconds, error) => calls.observe(seconds, { driver_name: driver, method_name: method, grpc_status_code: error === undefined ? "OK" : error instanceof RpcError ? error.code : "Unknown" })),
  };
}
