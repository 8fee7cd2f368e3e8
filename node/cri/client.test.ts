import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ServerWritableStream, type sendUnaryData, type ServerUnaryCall, Server, ServerCredentials, status } from "@grpc/grpc-js";
import { expect, test } from "vitest";
import { lateStreams } from "../../test/late-streams.ts";
import { criClient, CriError, isCriNotFound } from "./client.ts";
import { decode, encode } from "./codec.ts";
import { criMethods } from "./facts.ts";
import type { Methods } from "./gen/runtime.v1.ts";
import { rpcClient } from "./rpc-client.ts";

const PREFACE_BYTES = 24;

type Answer = (request: Record<string, unknown>) => object;

/** A runtime that answers what the test says; methods it was not told about are not implemented. */
async function startRuntime(socket: string, answers: Record<string, Answer>) {
  const server = new Server();
  const methods = criMethods();
  const names = [...methods].filter(([name]) => name in answers);
  const definition = Object.fromEntries(names.map(([name, { path, request, response, stream }]) => [name, {
    path, requestStream: false, responseStream: stream,
    requestSerialize: (value: object) => encode(request, value), requestDeserialize: (bytes: Buffer) => decode(request, bytes),
    responseSerialize: (value: object) => encode(response, value), responseDeserialize: (bytes: Buffer) => decode(response, bytes),
  }]));
  server.addService(definition, Object.fromEntries(names.map(([name, { stream }]) => [name, stream
    ? (call: ServerWritableStream<object, object>) => call.write(answers[name]!({}))
    : (call: ServerUnaryCall<Record<string, unknown>, object>, done: sendUnaryData<object>) => {
        try { done(null, answers[name]!(call.request)); } catch (error) { done(error as Error, null); }
      }])));
  await new Promise<void>((resolve, reject) => server.bindAsync(`unix:${socket}`, ServerCredentials.createInsecure(), (error) => (error ? reject(error) : resolve())));
  return { [Symbol.dispose]: () => server.forceShutdown() };
}

test("calls, errors, limits, events, and a runtime that comes back", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cri-"));
  const socket = join(directory, "c.sock");
  const cri = criClient({ socket, nowMs: Date.now });
  const answers: Record<string, Answer> = {
    "RuntimeService/Version": () => ({ runtime_name: "fake", runtime_version: "1" }),
    "RuntimeService/StopContainer": ({ container_id }) => { throw Object.assign(new Error(), { code: status.NOT_FOUND, details: `no container ${container_id}` }); },
    "RuntimeService/GetContainerEvents": () => ({ container_id: "c1", container_event_type: "CONTAINER_STOPPED_EVENT" }),
  };
  try {
    await expect(cri.call("RuntimeService/Version", {}, { timeoutMs: 100 })).rejects.toMatchObject({ code: "DeadlineExceeded", detail: "context deadline exceeded" });
    {
      using _ = await startRuntime(socket, answers);
      expect(await cri.call("RuntimeService/Version", {})).toEqual({ runtime_name: "fake", runtime_version: "1" });
      const failure = await cri.call("RuntimeService/StopContainer", { container_id: "c9" }).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(CriError);
      expect((failure as CriError).message).toBe("rpc error: code = NotFound desc = no container c9");
      expect(isCriNotFound(failure)).toBe(true);
      await expect(cri.call("RuntimeService/ListContainers", {})).rejects.toMatchObject({ code: "Unimplemented" });
      await expect(cri.call("RuntimeService/Version", {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "Canceled" });
      const stop = new AbortController();
      for await (const event of cri.events(stop.signal)) {
        expect(event).toEqual({ container_id: "c1", container_event_type: "CONTAINER_STOPPED_EVENT" });
        stop.abort();
      }
    }
    rmSync(socket, { force: true });
    using _ = await startRuntime(socket, answers);
    expect(await cri.call("RuntimeService/Version", {}, { timeoutMs: 60_000 })).toMatchObject({ runtime_name: "fake" });
  } finally {
    cri.close();
    rmSync(directory, { recursive: true });
  }
});

test("a connection that has no numbers left for calls is left for another one, and what is told on it goes on", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cri-")), socket = join(directory, "c.sock"), stop = new AbortController();
  const cri = criClient({ socket, nowMs: Date.now });
  try {
    using _runtime = await startRuntime(socket, { "RuntimeService/Version": () => ({ runtime_name: "fake" }), "RuntimeService/GetContainerEvents": () => ({ container_id: "c1" }) });
    using _late = lateStreams(3);
    const told: unknown[] = [];
    const events = (async () => { for await (const event of cri.events(stop.signal)) told.push(event); })();
    await expect.poll(() => told.length).toBe(1);
    let over = false;
    void events.finally(() => { over = true; });
    for (let i = 0; i < 8; i++) expect(await cri.call("RuntimeService/Version", {})).toMatchObject({ runtime_name: "fake" });
    expect(over).toBe(false);
    stop.abort();
    await events;
  } finally {
    cri.close();
    rmSync(directory, { recursive: true });
  }
});

test("a call that the runtime cancels is one that took too long if its time is up, and canceled otherwise", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cri-")), socket = join(directory, "c.sock"), startMs = Date.now();
  let passedMs = 0, takesMs = 0;
  const runtime = createServer((connection) => {
    let bytes = Buffer.alloc(0), isOpen = false;
    const say = (frame: readonly number[]): void => void connection.write(Buffer.from(frame));
    connection.on("error", () => undefined).on("data", (more: Buffer) => {
      bytes = Buffer.concat([bytes, more]);
      if (!isOpen && bytes.length >= PREFACE_BYTES) {
        isOpen = true;
        bytes = bytes.subarray(PREFACE_BYTES);
        say([0, 0, 0, 4, 0, 0, 0, 0, 0]); // SETTINGS
      }
      for (; isOpen && bytes.length >= 9 && bytes.length >= 9 + bytes.readUIntBE(0, 3); bytes = bytes.subarray(9 + bytes.readUIntBE(0, 3))) {
        const [type, flags] = [bytes[3], bytes[4]!];
        if (type === 4 && flags === 0) say([0, 0, 0, 4, 1, 0, 0, 0, 0]); // its acknowledgement
        if (type !== 0 || (flags & 1) === 0) continue;
        passedMs += takesMs;
        say([0, 0, 4, 3, 0, ...bytes.subarray(5, 9), 0, 0, 0, 8]); // RST_STREAM with CANCEL, as Go's servers send it at the time limit they are told of
      }
    });
  });
  await new Promise<void>((done) => void runtime.listen(socket, done));
  const cri = criClient({ socket, nowMs: () => startMs + passedMs });
  try {
    await expect(cri.call("RuntimeService/Version", {}, { timeoutMs: 60_000 })).rejects.toMatchObject({ code: "Canceled" });
    takesMs = 60_000;
    await expect(cri.call("RuntimeService/Version", {}, { timeoutMs: 60_000 })).rejects.toMatchObject({ code: "DeadlineExceeded", detail: "context deadline exceeded" });
  } finally {
    cri.close();
    runtime.close();
    rmSync(directory, { recursive: true });
  }
});

test("images may be somebody else's to look after", async () => {
  const directory = mkdtempSync(join(tmpdir(), "cri-"));
  const [socket, imageSocket] = [join(directory, "c.sock"), join(directory, "i.sock")];
  const cri = criClient({ socket, imageSocket, nowMs: Date.now });
  const asked: string[] = [];
  const noting = (what: string): Answer => () => {
    asked.push(what);
    return {};
  };
  const answering = (who: string): Record<string, Answer> => ({
    "RuntimeService/Version": noting(`${who} version`), "ImageService/ListImages": noting(`${who} images`), "ImageService/ImageFsInfo": noting(`${who} disk`),
  });
  try {
    using _runtime = await startRuntime(socket, answering("runtime"));
    using _images = await startRuntime(imageSocket, answering("images"));
    await cri.call("RuntimeService/Version", {});
    await cri.call("ImageService/ListImages", {});
    await cri.call("ImageService/ImageFsInfo", {});
    expect(asked).toEqual(["runtime version", "images images", "images disk"]);
  } finally {
    cri.close();
    rmSync(directory, { recursive: true });
  }
});

test("what no one answers is told in Go's words, the same each time: a time in them made each failure another event", async () => {
  const directory = mkdtempSync(join(tmpdir(), "rpc-"));
  const [absent, silent, garbled] = ["absent", "silent", "garbled"].map((name) => join(directory, name)) as [string, string, string];
  const servers = await Promise.all([[silent, ""], [garbled, "x".repeat(1000)]].map(async ([path, text]) => {
    const server = createServer((socket) => void socket.on("error", () => undefined).write(text!));
    await new Promise<void>((resolve) => void server.listen(path, resolve));
    return server;
  }));
  const said = async (socket: string, timeoutMs: number): Promise<string> => {
    const client = rpcClient<Methods>({ socket, methods: criMethods(), nowMs: Date.now });
    try {
      return await client.call("RuntimeService/Version", {}, { timeoutMs }).then(() => "answered", (error: Error) => error.message);
    } finally {
      client.close();
    }
  };
  expect(await said(absent, 5_000)).toBe(`rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix ${absent}: connect: no such file or directory"`);
  expect(await said(silent, 100)).toBe("rpc error: code = DeadlineExceeded desc = context deadline exceeded");
  expect(await said(garbled, 5_000)).toMatch(/^rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: [^0-9]*"$/);
  for (const server of servers) server.close();
  rmSync(directory, { recursive: true });
});
