// Written by node/cri/generate.ts from dra-health-facts.txt.
// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53.
export type HealthStatus = "UNKNOWN" | "HEALTHY" | "UNHEALTHY";
export interface NodeWatchResourcesRequest {
}
export interface DeviceIdentifier {
  pool_name?: string | undefined;
  device_name?: string | undefined;
}
export interface DeviceHealth {
  device?: DeviceIdentifier | undefined;
  health?: HealthStatus | undefined;
  last_updated_time?: number | undefined;
  health_check_timeout_seconds?: number | undefined;
  message?: string | undefined;
}
export interface NodeWatchResourcesResponse {
  devices?: DeviceHealth[] | undefined;
}
export interface Methods {
  "DRAResourceHealth/NodeWatchResources": { request: NodeWatchResourcesRequest; response: NodeWatchResourcesResponse; stream: true };
}
