import { connect } from "node:net";
import { expect, test } from "vitest";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { fieldReader } from "../../core/net/http1-head.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import { hastyServer } from "../../test/hasty-server.ts";
import { Splice, type SpliceClient, type SpliceDeps, type Splicing } from "./splice.ts";

test("who refuses an upload and closes, most of it unread, while more of it comes is heard", async () => {
  await using server = await hastyServer();
  const connection = connect(server.port, "127.0.0.1"), ready = Promise.withResolvers<void>(), over = Promise.withResolvers<{ readonly status: number }>();
  const client: SpliceClient = { write: () => true, pause: () => undefined, resume: () => undefined, closes: true, ready: ready.resolve, over: over.resolve };
  const what = { head: { method: "POST", target: "/", minor: 1, fields: [], framing: 1_000, length: "1000", host: "x", named: undefined }, asked: { authority: "x" }, plan: { endpoints: [{}], target: "/", host: "x", edits: [] }, caller: { remoteAddress: "" } };
  const upstreams = { begin: () => undefined, end: () => undefined, acquire: async () => ({ connection, release: () => undefined }) };
  const deps = { router: { pick: () => ({}) }, upstreams, readFields: fieldReader(), date: () => "", clock, log };
  const splice = new Splice(what as unknown as Splicing, client, deps as unknown as SpliceDeps);
  void splice.run();
  await ready.promise;
  const peer = await server.peer;
  while (connection.writableLength > 0) await new Promise(setImmediate); // the head is there
  peer.write("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", () => {
    peer.destroy();
    splice.take(Buffer.from("more"));
  });
  expect((await over.promise).status).toBe(413);
});
