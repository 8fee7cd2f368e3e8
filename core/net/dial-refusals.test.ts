import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { expect, test } from "vitest";
import { withCommonNameOnly } from "../../test/certificates.ts";
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

test("a common name alone makes a certificate for nobody", async () => {
  const own = await withCommonNameOnly("hooks.example.com");
  const server = createTlsServer(own, (socket) => socket.on("error", () => {}));
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  const dial = async (serverName: string) => dialTls(await dialTcp({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, timeoutMs: 5_000 }, { clock: systemClock, signal }), { ca: own.cert, serverName, signal });
  await expect(dial("hooks.example.com")).rejects.toThrow(/^tls: failed to verify certificate: x509: certificate relies on legacy Common Name field, use SANs instead$/);
  await expect(dial("other.example.com")).rejects.toThrow(/: certificate is not valid for any names, but wanted to match other\.example\.com$/);
  server.close();
});
