/** A proxy that is asked to CONNECT: goes where it is told by `routes`, "host:port" for "host:port", and remembers what it was asked for. Over TLS if it has a certificate. */
import { createServer, type IncomingMessage } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import type { Duplex } from "node:stream";

export interface ConnectProxy extends AsyncDisposable {
  readonly port: number;
  readonly asked: { readonly target: string; readonly authorization: string | undefined }[];
}

export async function connectProxy({ routes, refusal, certificate }: { readonly routes: Readonly<Record<string, string>>; readonly refusal?: string; readonly certificate?: { readonly cert: string; readonly key: string } }): Promise<ConnectProxy> {
  const asked: ConnectProxy["asked"] = [], sockets = new Set<Duplex>();
  const server = certificate ? createHttpsServer(certificate) : createServer();
  server.on("connect", (request: IncomingMessage, client: Duplex) => {
    const target = request.url ?? "";
    asked.push({ target, authorization: request.headers["proxy-authorization"] });
    if (refusal !== undefined) return void client.end(`HTTP/1.1 ${refusal}\r\nContent-Length: 0\r\n\r\n`);
    const [host = "", port = ""] = (routes[target] ?? target).split(":");
    const upstream = connect({ host, port: Number(port) }, () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.pipe(client).pipe(upstream);
    });
    for (const one of [client, upstream]) {
      sockets.add(one);
      one.on("error", () => undefined).on("close", () => { client.destroy(); upstream.destroy(); });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port, asked,
    [Symbol.asyncDispose]: async () => {
      for (const one of sockets) one.destroy();
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
