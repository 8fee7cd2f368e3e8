import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { checkGrpcHealth } from "./grpc-health.ts";

/** Answers by the name of the service it is asked about. */
async function startServer(): Promise<{ port: number; stop: () => void }> {
  const server = new Server();
  const check = (call: ServerUnaryCall<{ service: string }, number>, done: sendUnaryData<number>): void => {
    if (call.request.service === "silent") return;
    if (call.request.service === "unknown") return done({ code: status.NOT_FOUND, details: "no such service" });
    done(null, call.request.service === "down" ? 2 : 1);
  };
  server.addService({ Check: {
    path: "/grpc.health.v1.Health/Check", requestStream: false, responseStream: false, requestSerialize: () => Buffer.alloc(0), requestDeserialize: (bytes: Buffer) => ({ service: bytes.toString("utf8", 2) }),
    responseSerialize: (value: number) => Buffer.from([0x08, value]), responseDeserialize: (bytes: Buffer) => bytes[1] ?? 0,
  } }, { Check: check });
  const port = await new Promise<number>((resolve, reject) => server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) => (error ? reject(error) : resolve(bound))));
  return { port, stop: () => server.forceShutdown() };
}

test("what a server says of itself", async () => {
  const { port, stop } = await startServer();
  const check = (service: string, at = port) => checkGrpcHealth({ host: "127.0.0.1", port: at, service, timeoutMs: 500, userAgent: "kube-probe/1.36", nowMs: Date.now });
  try {
    expect(await check("")).toEqual({ healthy: true, message: "service healthy" });
    expect(await check("down")).toEqual({ healthy: false, message: `service unhealthy (responded with "NOT_SERVING")` });
    expect(await check("silent")).toEqual({ healthy: false, message: "timeout: health rpc did not complete within 0.5s" });
    expect((await check("unknown")).message).toContain("error: health rpc probe failed");
    expect((await check("", 1)).message).toContain(`timeout: failed to connect service "127.0.0.1:1" within 0.5s`);
  } finally {
    stop();
  }
});
