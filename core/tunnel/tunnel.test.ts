import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { GrpcError } from "../net/grpc/status.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { tunnelServer } from "./tunnel.ts";

test("an agent that leaves while it is turned away is let go", async () => {
  const tunnel = tunnelServer({
    serverId: "s", serverCount: () => 1, authenticate: () => Promise.reject(new GrpcError("unauthenticated", "who?")), stopping: () => new AbortController().signal,
    clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  });
  const left = Promise.withResolvers<void>();
  const stream = Object.assign(new EventEmitter(), { destroyed: false, respond: () => { throw new Error("The stream has been closed"); }, destroy: () => left.resolve() });
  tunnel.accept({ method: "POST", headers: { "content-type": "application/grpc" }, stream } as never, {} as never, { protocol: "h2", remoteAddress: "10.0.0.1" } as never);
  await left.promise;
  expect(tunnel.sessionOf("edge-1")).toBeUndefined();
});
