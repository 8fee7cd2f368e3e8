/**
 * Sockets on which questions arrive: UDP and TCP for each address. An address that is not there (yet), or a port that is taken, is tried again at the next update.
 *
 * Datagrams are taken as long as more come, before anybody else has a turn: one that asks without end would hold the whole process. What comes when a slice of time is used up waits for the next;
 * where there is still more a while later, the socket is closed, and a new one takes its place. Beside it another has the same address, so that nobody finds it closed. Who asks takes turns with the
 * others who do, and has no more questions waiting than there is room left for theirs.
 *
 * TCP connections are few, short and bounded, closed when quiet; whoever comes when there are too many takes the place of the first of who has the most, so that none who only holds on keeps others out.
 * Questions of one are answered as answers come, a few at a time, not one after the other: RFC 7766 section 6.2.1.1.
 */
import { createSocket, type RemoteInfo, type Socket as UdpSocket } from "node:dgram";
import { createServer, isIPv6, type Server, type Socket } from "node:net";
import { breather } from "../lifecycle/breather.ts";
import type { Clock } from "../lifecycle/clock.ts";
import { FairPlaces } from "../lifecycle/fair-places.ts";
import { acceptInTurns } from "../net/accept-in-turns.ts";
import type { Log } from "../observe/log.ts";

export interface Address { readonly address: string; readonly port: number }

export interface ListenerDeps {
  readonly clock: Clock;
  readonly log: Log;
  readonly signal: AbortSignal;
  mayAsk(address: string): boolean;
  respond(message: Uint8Array, proto: "udp" | "tcp", from: string): Promise<Uint8Array | undefined>;
}

const CONNECTIONS_MAX = 256;
const QUIET_MS = 10_000;
const QUESTIONS_MAX = 16;
/** Datagrams that wait or are being answered at the same time: most are answered at once, so only forwarded ones add up. */
const DATAGRAMS_MAX = 2000;
/** How long a socket may take datagrams while nobody else's turn comes: what the kernel keeps for us is taken in a few. */
const TAKING_MS_MAX = 50;
/** Of one address, where the system lets several have it. */
const SOCKETS = process.platform === "linux" ? 2 : 1;
/** When a machine boots, the pod network has its address a moment after DNS wants it. */
const ADDRESS_COMES_MS = 30_000;

/** What the kernel reports on our socket when an answer came back undelivered. */
const CLIENT_GONE = ["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH"];

interface Open { readonly udp: Set<UdpSocket>; readonly tcp: Server; readonly connections: Map<Socket, string>; isClosed: boolean }
interface Datagram { readonly message: Uint8Array; readonly from: RemoteInfo; readonly at: Open }

export function listeners({ clock, log, signal, mayAsk, respond }: ListenerDeps) {
  const open = new Map<string, Open>();
  const failing = new Map<string, { readonly sinceMs: number; isTold: boolean }>();
  const waiting = new Map<string, Datagram[]>(); // by who asks; whose turn is next comes first
  const places = new FairPlaces(DATAGRAMS_MAX);
  const breathe = breather(clock);
  let isAnswering = false;

  async function answer(message: Uint8Array, proto: "udp" | "tcp", from: string): Promise<Uint8Array | undefined> {
    try {
      return await respond(message, proto, from);
    } catch (error) {
      if (!signal.aborted) log.error("a DNS question cannot be answered", { error });
      return undefined;
    }
  }

  function send({ udp }: Open, reply: Uint8Array, to: { readonly address: string; readonly port: number }): void {
    try {
      const [any] = udp;
      if (any) any.send(reply, to.port, to.address, () => undefined); // the client may be gone
      else log.debug("the DNS socket was closed before its answer was there");
    } catch (error) {
      log.debug("the DNS socket was closed before its answer was there", { error });
    }
  }

  function wait(datagram: Datagram): void {
    const { address } = datagram.from;
    const theirs = waiting.get(address);
    if (theirs) theirs.push(datagram);
    else waiting.set(address, [datagram]);
    void answerWaiting();
  }

  /** Each at once while there is time; then others have their turn. */
  async function answerWaiting(): Promise<void> {
    if (isAnswering) return;
    isAnswering = true;
    while (waiting.size > 0) {
      const turn = breathe();
      if (turn) await turn;
      const [address, theirs] = waiting.entries().next().value!;
      const { message, from, at } = theirs.shift()!;
      waiting.delete(address);
      if (theirs.length > 0) waiting.set(address, theirs);
      void answer(message, "udp", address).then((reply) => {
        places.give(address);
        if (reply && !signal.aborted) send(at, reply, from);
      });
    }
    isAnswering = false;
  }

  async function openUdp(at: Open, { address, port }: Address): Promise<void> {
    const udp = createSocket({ type: isIPv6(address) ? "udp6" : "udp4", reusePort: SOCKETS > 1 });
    at.udp.add(udp);
    let sinceMs: number | undefined; // nobody else has had a turn
    udp.on("message", (message, from) => {
      const isTaken = from.port !== 0 && places.has(from.address) && mayAsk(from.address) && places.take(from.address); // port 0: an answer could go nowhere
      if (isTaken) wait({ message: Uint8Array.from(message), from, at });
      if (sinceMs === undefined) setImmediate(() => { sinceMs = undefined; });
      sinceMs ??= clock.uptimeMs();
      if (clock.uptimeMs() - sinceMs >= TAKING_MS_MAX && at.udp.delete(udp)) replace(udp, at, { address, port });
    });
    await new Promise<void>((resolve, reject) => {
      udp.once("error", reject);
      udp.bind(port, address, () => resolve());
    });
    udp.on("error", (error) => failed(at, { address, port }, error));
  }

  function replace(udp: UdpSocket, at: Open, address: Address): void {
    log.debug("a DNS socket has had more questions than can be taken, and is opened again", { ...address });
    openUdp(at, address).catch((error: unknown) => failed(at, address, error as NodeJS.ErrnoException));
    udp.close();
  }

  function failed(at: Open, { address, port }: Address, error: NodeJS.ErrnoException): void {
    if (at.isClosed) return;
    if (error.code !== undefined && CLIENT_GONE.includes(error.code)) {
      log.debug("a client did not wait for its answer", { address, port, error });
      return;
    }
    log.warn("the DNS socket failed, opening it again", { address, port, error });
    close(at);
    open.delete(keyOf({ address, port }));
  }

  async function listen({ address, port }: Address): Promise<Open> {
    const connections = new Map<Socket, string>();
    const tcp = acceptInTurns(createServer({ allowHalfOpen: true }, (socket) => {
      const from = socket.remoteAddress ?? "";
      if (!mayAsk(from)) return void socket.destroy();
      if (connections.size >= CONNECTIONS_MAX) {
        const first = firstOfMost(connections);
        connections.delete(first);
        first.destroy();
      }
      connections.set(socket, from);
      socket.on("close", () => connections.delete(socket));
      socket.on("error", () => socket.destroy());
      serve(socket, from);
    }));
    const one: Open = { udp: new Set(), tcp, connections, isClosed: false };
    try {
      await new Promise<void>((resolve, reject) => { // before the others: there can be but one of these
        tcp.once("error", reject);
        tcp.listen(port, address, () => resolve());
      });
      for (let i = 0; i < SOCKETS; i++) await openUdp(one, { address, port });
    } catch (error) {
      close(one);
      throw error;
    }
    tcp.on("error", (error) => failed(one, { address, port }, error));
    return one;
  }

  async function inTurn(message: Uint8Array, from: string): Promise<Uint8Array | undefined> {
    const turn = breathe();
    if (turn) await turn;
    return await answer(message, "tcp", from);
  }

  function serve(socket: Socket, from: string): void {
    let received = Buffer.alloc(0);
    let asked = 0, unread = false; // the client does not take its answers: no more are made for it
    let isLast = false; // it asks no more, and waits for its answers
    let alarm = clock.after(QUIET_MS, () => socket.destroy());
    const work = (): void => {
      while (!unread && asked < QUESTIONS_MAX && received.length >= 2 && received.length >= received.readUInt16BE(0) + 2 && !socket.destroyed) {
        const length = received.readUInt16BE(0);
        const message = Uint8Array.from(received.subarray(2, length + 2));
        received = received.subarray(length + 2);
        asked++;
        void inTurn(message, from).then((reply) => {
          asked--;
          if (!reply) return void socket.destroy();
          if (socket.writable && !socket.write(Buffer.concat([Uint8Array.of(reply.length >> 8, reply.length & 0xff), reply]))) unread = true;
          work();
        });
      }
      if (isLast && asked === 0 && !unread) socket.end();
    };
    socket.on("close", () => alarm.cancel());
    socket.on("end", () => {
      isLast = true;
      work();
    });
    socket.on("drain", () => {
      unread = false;
      work();
    });
    socket.on("data", (chunk) => {
      alarm.cancel();
      alarm = clock.after(QUIET_MS, () => socket.destroy());
      received = Buffer.concat([received, chunk as Buffer]);
      if (received.length > 2 * 65_537) return void socket.destroy(); // asks faster than it reads
      work();
    });
  }

  function close(one: Open): void {
    one.isClosed = true;
    for (const udp of one.udp) {
      try {
        udp.close();
      } catch (error) {
        log.debug("a DNS socket was closed already", { error });
      }
    }
    one.udp.clear();
    one.tcp.close();
    for (const socket of one.connections.keys()) socket.destroy();
  }

  return {
    /** Returns whether all of them are open. */
    async update(wanted: readonly Address[]): Promise<boolean> {
      const keys = new Map(wanted.map((one) => [keyOf(one), one]));
      for (const [key, one] of open) {
        if (keys.has(key)) continue;
        close(one);
        open.delete(key);
      }
      for (const [key, one] of keys) {
        if (open.has(key)) continue;
        try {
          open.set(key, await listen(one));
          failing.delete(key);
          log.info("DNS is served", { address: one.address, port: one.port });
        } catch (error) {
          const failure = failing.get(key) ?? { sinceMs: clock.uptimeMs(), isTold: false };
          failing.set(key, failure);
          const mayCome = (error as NodeJS.ErrnoException).code === "EADDRNOTAVAIL" && clock.uptimeMs() - failure.sinceMs < ADDRESS_COMES_MS;
          if (!failure.isTold && !mayCome) log.warn("DNS cannot be served yet, trying again", { address: one.address, port: one.port, error });
          failure.isTold ||= !mayCome;
        }
      }
      return open.size === keys.size;
    },
    async close(): Promise<void> {
      for (const one of open.values()) close(one);
      open.clear();
    },
  };
}

function keyOf({ address, port }: Address): string { return `${address} ${port}`; }

/** Oldest first. */
function firstOfMost(connections: ReadonlyMap<Socket, string>): Socket {
  const bySource = Map.groupBy(connections, ([, from]) => from);
  const most = [...bySource.values()].reduce((a, b) => (b.length > a.length ? b : a));
  return most[0]![0];
}
