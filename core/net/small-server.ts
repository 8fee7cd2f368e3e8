/**
 * A server of HTTP/1.1 without encryption for what is said in a few words and at once, as how somebody is. node's own, with what it does not see to: a client that does not read its answers
 * is not read from (request-turns.ts), and whoever comes when there are too many takes the place of who came first: nobody has long to ask here.
 *
 *   const server = smallServer((request, response) => void response.end("ok"));
 *   server.listen(port, address);              a node:net server, with its errors
 *   server.close(); server.closeAllConnections();
 */
import { createServer, type RequestListener } from "node:http";
import * as net from "node:net";
import { acceptInTurns } from "./accept-in-turns.ts";
import { requestTurns } from "./request-turns.ts";

export type SmallServer = net.Server & { closeAllConnections(): void };

const CONNECTIONS_MAX = 1_000;
/** Probes find peers that vanished without a word. */
const KEEP_ALIVE_MS = 30_000;

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
  const server = acceptInTurns(net.createServer((socket) => {
    socket.on("error", () => socket.destroy());
    const [first] = open.keys();
    if (first && open.size >= CONNECTIONS_MAX) {
      open.delete(first);
      first.destroy();
    }
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    const one: Open = { underWay: 0, next: () => undefined };
    open.set(socket, one);
    socket.on("close", () => open.delete(socket));
    parsing.emit("connection", socket);
    one.next = requestTurns(socket, () => one.underWay).next;
  }));
  parsing.on("error", (error) => server.emit("error", error));
  return Object.assign(server, { closeAllConnections: () => { for (const socket of open.keys()) socket.destroy(); } });
}
