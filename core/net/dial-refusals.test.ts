import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { systemClock } from "../lifecycle/clock.ts";
import { dialTcp } from "./dial-tcp.ts";
import { dialTls } from "./dial-tls.ts";

const { signal } = new AbortController();

// Two dots: no server for names is asked, which there may be none of.
test("a name nobody knows is told as Go tells it", async () => {
  await expect(dialTcp({ host: "no-such-host..invalid", port: 443, timeoutMs: 20_000 }, { clock: systemClock, signal })).rejects.toThrow("dial tcp: lookup no-such-host..invalid: no such host");
});

test("who hangs up on a handshake has ended", async () => {
  const server = createServer((socket) => void socket.once("data", () => socket.end()));
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  const connection = await dialTcp({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, timeoutMs: 60_000 }, { clock: systemClock, signal });
  await expect(dialTls(connection, { ca: undefined, serverName: "127.0.0.1", signal })).rejects.toThrow(/^EOF$/);
  server.close();
});

test.each([["HTTP", "HTTP/1.1 400 Bad Request\r\n\r\n"], ["SSH", "SSH-2.0-OpenSSH_9.9\r\n"]])("who answers a handshake in %s does not speak TLS", async (_name, answer) => {
  const server = createServer((socket) => void socket.once("data", () => socket.end(answer)));
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  const connection = await dialTcp({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, timeoutMs: 60_000 }, { clock: systemClock, signal });
  await expect(dialTls(connection, { ca: undefined, serverName: "127.0.0.1", signal })).rejects.toThrow(/^tls: first record does not look like a TLS handshake$/);
  server.close();
});
