import { rmSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { Duplex } from "node:stream";
import { createServer as createTlsServer, TLSSocket } from "node:tls";
import { afterAll, beforeAll, expect, test } from "vitest";
import { servingMaterial, testPki } from "../../test/certificates.ts";
import { dialTls } from "./dial-tls.ts";

let pki: Awaited<ReturnType<typeof testPki>>;
beforeAll(async () => { pki = await testPki(); });
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));

const ROOM = 64 * 1024, PIECE = 64 * 1024, PIECES = 64;

/** What the tunnel gives: no socket. `hold`: it takes nothing any more, until it is let go. */
class Line extends Duplex {
  readonly #to: Duplex;
  #held: (() => void) | undefined;
  #holds = false;

  constructor(to: Duplex) {
    super({ writableHighWaterMark: ROOM });
    this.#to = to.on("data", (bytes) => void this.push(bytes)).on("close", () => void this.push(null));
  }

  hold(): void { this.#holds = true; }
  letGo(): void {
    this.#holds = false;
    this.#held?.();
  }

  override _read(): void {}
  override _write(bytes: Buffer, _: BufferEncoding, done: () => void): void {
    const write = (): void => void this.#to.write(bytes, () => done());
    if (this.#holds) this.#held = write;
    else write();
  }
  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#to.destroy();
    done(error);
  }
}

test("what is written through TLS over a connection that takes nothing waits where it is written, and arrives when it goes on", async () => {
  const server = createTlsServer(servingMaterial(pki)), { promise, resolve } = Promise.withResolvers<number>();
  server.on("secureConnection", (socket) => {
    let bytes = 0;
    socket.on("error", () => undefined).on("data", ({ length }: Buffer) => { if ((bytes += length) === PIECES * PIECE) resolve(bytes); });
  });
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  const line = new Line(connect((server.address() as AddressInfo).port, "127.0.0.1"));
  const socket = await dialTls(line, { ca: pki.authority("server-ca").bundlePem, serverName: "localhost", signal: AbortSignal.timeout(60_000) });
  line.hold();
  let written = 0;
  const send = (): void => { while (written < PIECES) if ((written++, !socket.write(Buffer.alloc(PIECE)))) return; };
  socket.on("drain", send);
  send();
  await Bun.sleep(100); // whoever drains does so at once
  expect([written, line.writableLength < 2 * ROOM]).toEqual([1, true]);
  line.letGo();
  expect(await promise).toBe(PIECES * PIECE);
  socket.destroy();
  server.close();
});

test("a connection that ends while it takes nothing ends what waits", async () => {
  const server = createServer((raw) => void new TLSSocket(raw, { isServer: true, ...servingMaterial(pki) }).on("error", () => undefined));
  await new Promise<void>((ready) => void server.listen(0, "127.0.0.1", ready));
  const line = new Line(connect((server.address() as AddressInfo).port, "127.0.0.1"));
  const socket = await dialTls(line, { ca: pki.authority("server-ca").bundlePem, serverName: "localhost", signal: AbortSignal.timeout(60_000) });
  const closed = new Promise((resolve) => socket.on("error", () => undefined).on("close", resolve));
  line.hold();
  socket.write(Buffer.alloc(2 * PIECE));
  line.destroy();
  await closed;
  server.close();
});
