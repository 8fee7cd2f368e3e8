import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { expect, test } from "vitest";
import { smallServer } from "./small-server.ts";

test("a client that asks on and on without reading is heard of no more, and is answered all it asked once it reads", async () => {
  let heard = 0;
  const server = smallServer((_, response) => void response.writeHead(200, { "Content-Length": 1_000 }).end(Buffer.alloc(1_000, `${heard++ % 10}`))).listen(0, "127.0.0.1") as ReturnType<typeof smallServer>;
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect(port, "127.0.0.1"), count = 50_000;
  client.pause();
  client.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n".repeat(count));
  let before = -1;
  await expect.poll(() => { const isQuiet = heard > 0 && heard === before; before = heard; return isQuiet; }, { interval: 300, timeout: 20_000 }).toBe(true);
  expect(heard).toBeLessThan(count);
  let got = 0;
  client.on("data", (chunk) => { got += chunk.length; });
  client.resume();
  await expect.poll(() => heard, { timeout: 60_000 }).toBe(count);
  await expect.poll(() => got).toBeGreaterThan(count * 1_000);
  server.close();
  server.closeAllConnections();
  await once(client, "close");
});
