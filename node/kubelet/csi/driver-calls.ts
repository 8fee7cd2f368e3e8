/** How long CSI drivers take, by what they are asked and what came of it. Source: kubernetes v1.36 pkg/volume/csi/csi_metrics.go, pkg/volume/util/metrics.go */
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Metrics } from "../../../core/observe/metrics.ts";
import { RpcError } from "../../cri/rpc-client.ts";

const SECONDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 25, 50, 120, 300, 600];

/** Returns what `call` does, counted. `method` as Node/NodeStageVolume. */
export type MeteredCall = <T>(driver: string, method: string, call: () => Promise<T>) => Promise<T>;

export function driverCallMeter(metrics: Metrics, clock: Pick<Clock, "uptimeMs">): MeteredCall {
  const seconds = metrics.histogram("csi_operations_seconds", "[ALPHA] Container Storage Interface operation duration with gRPC error code status total", SECONDS);
  return async (driver_name, method, call) => {
    const startMs = clock.uptimeMs();
    let grpc_status_code = "OK";
    try {
      return await call();
    } catch (error) {
      grpc_status_code = error instanceof RpcError ? error.code : "unknown-non-grpc";
      throw error;
    } finally {
      seconds.observe((clock.uptimeMs() - startMs) / 1000, { driver_name, grpc_status_code, method_name: `/csi.v1.${method}`, migrated: "false" });
    }
  };
}
