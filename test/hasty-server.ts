/** A server that reads nothing: what it says last, and the reset that its close is then, come at one moment. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";

export async function hastyServer(): Promise<{ readonly port: number; readonly peer: Promise<Socket>; [Symbol.asyncDispose](): Promise<void> }> {
  const { promise: peer, resolve } = Promise.withResolvers<Socket>();
  const server = createServer({ pauseOnConnect: true }, resolve).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    peer,
    async [Symbol.asyncDispose]() {
      (await peer).destroy();
      server.close();
    },
  };
}
