import { readFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { dialTcp } from "./dial-tcp.ts";

/** Of /proc/net/tcp: the timer that runs for a socket is that of its probes. */
const PROBES = "02";

test.skipIf(process.platform !== "linux")("a peer that vanishes is noticed, also by who only listens", async () => {
  const server = createServer((socket) => void socket.on("error", () => undefined));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const socket = await dialTcp({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, timeoutMs: 60_000 }, { clock, signal: new AbortController().signal });
  try {
    const local = `0100007F:${socket.localPort!.toString(16).toUpperCase().padStart(4, "0")}`;
    const [, , , , , timer] = readFileSync("/proc/self/net/tcp", "utf8").split("\n").map((line) => line.trim().split(/\s+/)).find(([, from]) => from === local)!;
    expect(timer).toMatch(new RegExp(`^${PROBES}:`));
  } finally {
    socket.destroy();
    server.close();
  }
});
