import { Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData, status } from "@grpc/grpc-js";
import { type AddressInfo, createServer } from "node:net";
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
  const check = (service: string, { at = port, timeoutMs = 60_000 } = {}) => checkGrpcHealth({ host: "127.0.0.1", port: at, service, timeoutMs, userAgent: "kube-probe/1.36", nowMs: Date.now });
  try {
    expect(await check("")).toEqual({ healthy: true, message: "service healthy" });
    expect(await check("down")).toEqual({ healthy: false, message: `service unhealthy (responded with "NOT_SERVING")` });
    expect(await check("silent", { timeoutMs: 3_000 })).toEqual({ healthy: false, message: "timeout: health rpc did not complete within 3s" });
    expect((await check("unknown")).message).toBe("error: health rpc probe failed: rpc error: code = NotFound desc = no such service");
    expect((await check("", { at: 1, timeoutMs: 500 })).message).toContain(`timeout: failed to connect service "127.0.0.1:1" within 0.5s`);
    const late = await checkGrpcHealth({ host: "127.0.0.1", port: 1, service: "", timeoutMs: 90_000, userAgent: "kube-probe/1.36", nowMs: () => Date.now() - 89_700 });
    expect(late.message).toContain(`timeout: failed to connect service "127.0.0.1:1" within 1m30s`);
  } finally {
    stop();
  }
});

test("whatever answers instead, it is a failure and nothing worse", async () => {
  const preface = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]); // an empty SETTINGS frame
  for (const answer of [Buffer.alloc(0), Buffer.from("HTTP/1.1 400 Bad Request\r\n\r\n"), Buffer.concat([preface, Buffer.alloc(5_000, 0xff)]), Buffer.alloc(100_000, 0x41)]) {
    const server = createServer((socket) => { socket.on("error", () => undefined); socket.end(answer); });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { healthy } = await checkGrpcHealth({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, service: "", timeoutMs: 300, userAgent: "kube-probe/1.36", nowMs: Date.now });
    expect(healthy).toBe(false);
    server.close();
  }
});
