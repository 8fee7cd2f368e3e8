import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { silentLog } from "../../core/observe/log.ts";
import { Forwarder } from "./forward.ts";

test("a client that is gone just when it is to be told of a failure ends its own request, and nothing else", async () => {
  const counted: unknown[] = [];
  const router = { plan: () => ({ type: "fail", status: 404 }) };
  const forwarder = new Forwarder({ router, upstreams: {}, h2Upstreams: {}, requests: { inc: (labels: unknown) => void counted.push(labels) }, seconds: { observe: () => undefined }, clock: systemClock, log: silentLog } as never);
  let isDestroyed = false;
  const gone = (): never => { throw new Error("The stream has been destroyed"); };
  const stream = Object.assign(new EventEmitter(), { respond: gone, destroy: () => { isDestroyed = true; } });
  const response = Object.assign(new EventEmitter(), { headersSent: false, statusCode: 200, writeHead: gone, stream });
  for (const type of ["text/plain", "application/grpc"]) {
    isDestroyed = false;
    await forwarder.handle({ method: "POST", url: "/", httpVersionMajor: 2, headers: { ":authority": "h", "content-type": type } } as never, response as never, { remoteAddress: "10.0.0.1", secure: false, door: 80, port: 80 });
    expect(isDestroyed).toBe(true);
  }
  expect(counted).toHaveLength(2);
});
