/** A connection to a port of this machine, over which so many bytes come back a second: all of them together, however many connections there are. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";

const SLICE_MS = 20;

export interface SlowLink extends AsyncDisposable { readonly port: number }

export async function slowLink(to: number, bytesPerSecond: number): Promise<SlowLink> {
  const sockets = new Set<Socket>(), waiting: { readonly to: Socket; bytes: Buffer }[] = [];
  const timer = setInterval(() => {
    for (let left = (bytesPerSecond * SLICE_MS) / 1000; left > 0 && waiting.length > 0; ) {
      const next = waiting[0]!, now = next.bytes.subarray(0, left);
      if (!next.to.destroyed) next.to.write(now);
      left -= now.length;
      next.bytes = next.bytes.subarray(now.length);
      if (next.bytes.length === 0) waiting.shift();
    }
  }, SLICE_MS);
  const server = createServer((client) => {
    const upstream = connect(to, "127.0.0.1");
    client.pipe(upstream);
    upstream.on("data", (bytes: Buffer) => void waiting.push({ to: client, bytes }));
    for (const one of [client, upstream]) {
      sockets.add(one);
      one.on("error", () => undefined).on("close", () => { client.destroy(); upstream.destroy(); });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      clearInterval(timer);
      for (const one of sockets) one.destroy();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
