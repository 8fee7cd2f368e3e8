/**
 * One health check over gRPC (grpc.health.v1.Health/Check), as a probe makes it. Here because this folder is the node's that speaks gRPC.
 * The messages are upstream's: users find them in events.
 *
 * API:    https://github.com/grpc/grpc/blob/master/doc/health-checking.md
 * Source: kubernetes v1.36 pkg/probe/grpc/grpc.go
 */
import { Client, credentials, Metadata, type ServiceError, status } from "@grpc/grpc-js";
import "../../core/net/unasked-streams.ts";

export interface HealthCheck {
  readonly host: string;
  readonly port: number;
  readonly service: string;
  readonly timeoutMs: number;
  readonly userAgent: string;
  readonly nowMs: () => number;
}

export interface Health { readonly healthy: boolean; readonly message: string }

const STATUS_NAMES: readonly string[] = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];

export async function checkGrpcHealth({ host, port, service, timeoutMs, userAgent, nowMs }: HealthCheck): Promise<Health> {
  const address = host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
  const client = new Client(`${host.includes(":") ? "ipv6" : "ipv4"}:${address}`, credentials.createInsecure(), { "grpc.primary_user_agent": userAgent, "grpc.enable_http_proxy": 0, "grpc.enable_retries": 0 });
  const deadline = nowMs() + timeoutMs;
  const seconds = goDuration(timeoutMs);
  try {
    const connected = await new Promise<boolean>((resolve) => client.waitForReady(deadline, (error) => resolve(error === undefined)));
    if (!connected) return { healthy: false, message: `timeout: failed to connect service "${address}" within ${seconds}: context deadline exceeded` };
    const answer = await new Promise<number | ServiceError>((resolve) => client.makeUnaryRequest("/grpc.health.v1.Health/Check", encodeRequest, decodeStatus, { service }, new Metadata(), { deadline }, (error, value) => resolve(error ?? value ?? 0)));
    if (typeof answer === "number") return answer === 1 ? { healthy: true, message: "service healthy" } : { healthy: false, message: `service unhealthy (responded with "${STATUS_NAMES[answer] ?? answer}")` };
    if (answer.code === status.UNIMPLEMENTED) return { healthy: false, message: `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${answer.details}` };
    if (answer.code === status.DEADLINE_EXCEEDED) return { healthy: false, message: `timeout: health rpc did not complete within ${seconds}` };
    return { healthy: false, message: `error: health rpc probe failed: rpc error: code = ${goCode(answer.code)} desc = ${answer.details}` };
  } finally {
    client.close();
  }
}

/** As Go prints it: 1.5s, 1m30s. */
function goDuration(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  return `${minutes >= 60 ? `${Math.floor(minutes / 60)}h` : ""}${minutes > 0 ? `${minutes % 60}m` : ""}${(ms % 60_000) / 1000}s`;
}

/** RESOURCE_EXHAUSTED is ResourceExhausted in Go, which spells one of them its own way. */
function goCode(code: status): string {
  return code === status.CANCELLED ? "Canceled" : (status[code] ?? "UNKNOWN").toLowerCase().replace(/(^|_)([a-z])/g, (_, __, letter: string) => letter.toUpperCase());
}

/** HealthCheckRequest { string service = 1 } */
function encodeRequest({ service }: { readonly service: string }): Buffer {
  const bytes = Buffer.from(service);
  if (bytes.length === 0) return bytes;
  const length: number[] = [];
  for (let rest = bytes.length; ; rest >>= 7) {
    length.push(rest > 0x7f ? (rest & 0x7f) | 0x80 : rest);
    if (rest <= 0x7f) break;
  }
  return Buffer.concat([Buffer.from([0x0a, ...length]), bytes]);
}

/** HealthCheckResponse { ServingStatus status = 1 }: its values fit one byte. */
function decodeStatus(bytes: Buffer): number {
  return bytes[0] === 0x08 ? bytes[1] ?? 0 : 0;
}
