/** Bytes that nobody meant, over sockets: servers that answer so, and clients that ask so. Whoever is at the other end may fail, but not with an error that nobody handles. */
import * as net from "node:net";
import * as tls from "node:tls";
import { Chance, garbledBytes } from "./chance.ts";

const ROUND_MS = 60;
const AT_ONCE = 8;

/** The errors that nobody handled until it is disposed of. */
export function unhandled(): { readonly errors: readonly string[]; [Symbol.dispose](): void } {
  const errors: string[] = [];
  const note = (error: unknown): void => { errors.push(error instanceof Error ? `${error.stack ?? error.message}` : String(error)); };
  process.on("uncaughtException", note).on("unhandledRejection", note);
  return { errors, [Symbol.dispose]: () => void process.off("uncaughtException", note).off("unhandledRejection", note) };
}

/** `cases` of them, some at a time, each with choices of its own. */
export async function rounds(seed: number, cases: number, one: (chance: Chance) => Promise<void>): Promise<void> {
  for (let i = 0; i < cases; i += AT_ONCE) await Promise.all(Array.from({ length: AT_ONCE }, (_, k) => one(new Chance(seed + i + k))));
  await Bun.sleep(ROUND_MS); // what comes late
}

/** A few are as they were. */
export function garbledSeed(chance: Chance, seeds: readonly Uint8Array[]): Uint8Array {
  const seed = chance.one(seeds);
  return chance.is(0.15) ? seed : garbledBytes(chance, seed);
}

/** In two pieces; then it ends, resets, goes away or stays. */
function write(socket: net.Socket, bytes: Uint8Array, chance: Chance): void {
  const cut = chance.below(bytes.length + 1), how = chance.below(4);
  socket.write(bytes.subarray(0, cut));
  setTimeout(() => {
    if (socket.destroyed) return;
    socket.write(bytes.subarray(cut));
    if (how === 0) socket.end();
    else if (how === 1) socket.resetAndDestroy();
    else if (how === 2) socket.destroy();
  }, chance.below(4));
}

/** A server that answers each client with these bytes; `ask` may fail, and is not waited for for long. */
export async function askHostile(chance: Chance, { bytes, identity }: { readonly bytes: Uint8Array; readonly identity?: { readonly key: string; readonly cert: string } | undefined }, ask: (port: number, signal: AbortSignal) => Promise<unknown>): Promise<void> {
  const sockets = new Set<net.Socket>();
  const onSocket = (socket: net.Socket): void => {
    sockets.add(socket.on("error", () => undefined));
    if (chance.is(0.2)) write(socket, bytes, chance);
    else socket.once("data", () => write(socket, bytes, chance));
  };
  const server = identity && chance.is(0.7) ? tls.createServer(identity, onSocket).on("tlsClientError", () => undefined) : net.createServer(onSocket);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", () => resolve()));
  const late = new AbortController();
  await Promise.race([ask((server.address() as net.AddressInfo).port, late.signal).catch(() => undefined), Bun.sleep(ROUND_MS)]);
  late.abort(new Error("late"));
  server.close();
  for (const socket of sockets) socket.destroy();
}

/** A client that sends these bytes once it is connected. Resolves when it is over. */
export async function sendHostile(chance: Chance, bytes: Uint8Array, connect: () => net.Socket, ready: "connect" | "secureConnect"): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const socket = connect();
  const late = setTimeout(() => socket.destroy(), ROUND_MS);
  socket.on("error", () => undefined).on("data", () => undefined).on("close", () => resolve()).once(ready, () => write(socket, bytes, chance));
  await promise;
  clearTimeout(late);
}

export function h2Frame(type: number, flags: number, stream: number, payload: Uint8Array | readonly number[] | string = []): Buffer {
  const body = typeof payload === "string" ? Buffer.from(payload) : Buffer.from(payload);
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}
