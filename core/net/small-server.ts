/**
 * A server of HTTP/1.1 without encryption for what is said in a few words and at once, as how somebody is. node's own, with what it does not see to: a client that does not read its answers
 * is not read from (request-turns.ts), one that does nothing is let go of, and there are not more of them than that.
 *
 *   const server = smallServer((request, response) => void response.end("ok"));
 *   server.listen(port, address);              a node:net server, with its errors
 *   server.close(); server.closeAllConnections();
 */
import { createServer, type RequestListener } from "node:http";
import * as net from "node:net";
import { requestTurns } from "./request-turns.ts";

export type SmallServer = net.Server & { closeAllConnections(): void };

const CONNECTIONS_MAX = 1_000;
/** Without a byte in either direction. */
const IDLE_MS = 60_000;

interface Open { underWay: number; next(): void }

export function smallServer(listener: RequestListener): SmallServer {
  const open = new Map<net.Socket, Open>();
  const parsing = createServer({ keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 }, (request, response) => {
    const one = open.get(request.socket);
    if (one) {
      one.underWay++;
      response.once("close", () => {
        one.underWay--;
        one.next();
      });
    }
    listener(request, response);
  });
  const server = net.createServer((socket) => {
    socket.on("error", () => socket.destroy());
    if (open.size >= CONNECTIONS_MAX) return void socket.destroy();
    const one: Open = { underWay: 0, next: () => undefined };
    open.set(socket, one);
    socket.on("close", () => open.delete(socket));
    socket.setTimeout(IDLE_MS, () => socket.destroy());
    parsing.emit("connection", socket);
    one.next = requestTurns(socket, () => one.underWay).next;
  });
  parsing.on("error", (error) => server.emit("error", error));
  return Object.assign(server, { closeAllConnections: () => { for (const socket of open.keys()) socket.destroy(); } });
}
