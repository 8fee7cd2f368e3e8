import { once } from "node:events";
import { rmSync } from "node:fs";
import { createServer } from "node:http";
import { createSecureServer, type ServerHttp2Stream } from "node:http2";
import { createServer as createHttps } from "node:https";
import { createServer as createTcp, type AddressInfo, type Socket } from "node:net";
import { createServer as createTls } from "node:tls";
import { expect, test } from "vitest";
import type { Container, Pod, Probe } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { servingMaterial, testPki } from "../../../test/certificates.ts";
import { P521_SERVER } from "../../../test/p521.ts";
import { type Cri, criClient, CriError } from "../../cri/client.ts";
import { runProbe } from "./prober.ts";

const pod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: {} } as Pod;

async function run(probe: Probe, { container = {}, call }: { container?: Partial<Container>; call?: (request: { cmd: string[] }) => object } = {}): Promise<string> {
  const cri = { call: async (_: string, request: { cmd: string[] }) => call?.(request) ?? {} } as unknown as Cri;
  const facts = { probe, pod, container: { name: "c", ...container }, containerId: "id", podIp: "127.0.0.1" };
  return await runProbe({ cri, clock: systemClock, version: "1.36" }, facts, new AbortController().signal).then(({ result, output }) => `${result}: ${output}`, (error: Error) => `error: ${error.message}`);
}

test("http", async () => {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push([request.url, request.headers.host, request.headers["user-agent"], request.headers.accept, request.headers["x-a"]].join(" "));
    if (request.url === "/far") response.writeHead(302, { location: "http://example.com/" }).end("moved");
    else if (request.url === "/near") response.writeHead(302, { location: "/ok" }).end();
    else if (request.url === "/slow") setTimeout(() => response.end(), 5_000).unref();
    else if (request.url === "/chunks") { response.write("a"); response.end("b"); }
    else response.writeHead(request.url === "/ok" ? 200 : 503).end("body");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const get = (path: string, more: object = {}, timeoutSeconds = 60) => run({ httpGet: { path, port, ...more }, timeoutSeconds });
  try {
    expect(await get("/ok", { httpHeaders: [{ name: "Host", value: "h.example" }, { name: "X-A", value: "1" }] })).toBe("success: body");
    expect(seen).toEqual(["/ok h.example kube-probe/1.36 */* 1"]);
    expect(await get("/chunks")).toBe("success: ab");
    expect(await get("/near")).toBe("success: body");
    expect(await get("/far")).toBe("warning: Probe terminated redirects, Response body: moved");
    expect(await get("/broken")).toBe("failure: HTTP probe failed with statuscode: 503");
    expect(await get("/slow", {}, 0.2)).toBe(`failure: Get "http://127.0.0.1:${port}/slow": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`);
    expect(await run({ httpGet: { port: "web", path: "ok" } }, { container: { ports: [{ name: "web", containerPort: port }] } })).toBe("success: body");
    for (const name of ["nope", "0x50", "8e1", ""]) expect(await run({ httpGet: { port: name } })).toBe(`error: strconv.Atoi: parsing "${name}": invalid syntax`);
    expect(await run({ httpGet: { port: String(port), path: "ok" } })).toBe("success: body");
  } finally {
    server.close();
    server.closeAllConnections();
  }
  expect(await run({ httpGet: { port: 80, host: "127.0.0.9" } })).toBe(`failure: Get "http://127.0.0.9:80/": dial tcp 127.0.0.9:80: connect: connection refused`);
  expect(await get("/ok")).toBe(`failure: Get "http://127.0.0.1:${port}/ok": dial tcp 127.0.0.1:${port}: connect: connection refused`);
});

/** Answers each request with what `answer` makes of its target; everything asked is in `asked`. */
async function asking(answer: (target: string, port: number) => string, ask: (get: (path: string, more?: object) => Promise<string>, port: number) => Promise<void>): Promise<string[]> {
  const asked: string[] = [];
  const server = createTcp((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (data) => { asked.push(String(data)); socket.end(`HTTP/1.1 ${answer(String(data).split(" ")[1]!, port)}\r\nContent-Length: 0\r\n\r\n`); });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    await ask((path, more = {}) => run({ httpGet: { path, port, ...more } }), port);
    return asked.map((text) => text.replaceAll(String(port), "PORT").trimEnd().replaceAll("\r\n", " | "));
  } finally {
    server.close();
  }
}

test("a request is written as Go writes it, and one header is one line", async () => {
  const headers = (...pairs: string[]) => ({ httpHeaders: pairs.map((pair) => { const [name = "", value = ""] = pair.split("="); return { name, value }; }) });
  const asked = await asking(() => "200 OK", async (get, port) => {
    await get("/a", headers("host=h.example", "x-zeta=1", "X-alpha=2", "content-length=5", "x-zeta=3"));
    await get("/b", headers("user-agent=", "accept="));
    await get("/c", headers("User-Agent=me", "User-Agent=you", "Accept=a", "Accept=b", "Connection=close"));
    expect(await get("/d", headers("x-a=a\r\n\r\nPOST / HTTP/1.1"))).toBe(`failure: Get "http://127.0.0.1:${port}/d": net/http: invalid header field value for "X-A"`);
    await get("/e", headers("X-A= ä\tb "));
  });
  expect(asked).toEqual([
    "GET /a HTTP/1.1 | Host: h.example | User-Agent: kube-probe/1.36 | Accept: */* | X-Alpha: 2 | X-Zeta: 1 | X-Zeta: 3 | Connection: close",
    "GET /b HTTP/1.1 | Host: 127.0.0.1:PORT | Connection: close",
    "GET /c HTTP/1.1 | Host: 127.0.0.1:PORT | User-Agent: me | Accept: a | Accept: b | Connection: close",
    "GET /e HTTP/1.1 | Host: 127.0.0.1:PORT | User-Agent: kube-probe/1.36 | Accept: */* | X-A: ä\tb | Connection: close",
  ]);
});

test("a path is asked for as Go writes it: nothing of it is resolved or taken for another server's name", async () => {
  const asked = await asking((target) => (target === "/x/../from" ? "302 F\r\nLocation: to" : "200 OK"), async (get, port) => {
    for (const path of ["/a/./../b", "/a|b\\c d", "/50%", "/%41?q=%zz&r='1'", "http://elsewhere:1/c?d", "//elsewhere/e", "f:g", "?h=i", "/ä"]) await get(path);
    expect(await get("/x/../from")).toBe("success: ");
    expect(await get("/a\u0001")).toBe("success: ");
    expect(await get("/50%/../n", { httpHeaders: [{ name: "x-a", value: "a\nb" }] })).toBe(`failure: Get "http://127.0.0.1:${port}/50%25/../n": net/http: invalid header field value for "X-A"`);
  });
  expect(asked.map((text) => text.split(" ")[1])).toEqual(["/a/./../b", "/a%7Cb%5Cc%20d", "/50%25", "/%41?q=%zz&r=%271%27", "/c?d", "/e", "/f:g", "/?h=i", "/%C3%A4", "/x/../from", "/to", "/a%01"]);
});

test("who is redirected says from where, and names another host only where it was sent by a path", async () => {
  const to: Readonly<Record<string, string>> = { "/path": "/ok", "/whole": "http://127.0.0.1:PORT/ok", "/loop": "/loop" };
  const host = { httpHeaders: [{ name: "Host", value: "h.example" }] };
  const asked = await asking((target, port) => (target === "/none" ? "302 F" : target === "/several" ? "300 M\r\nLocation: /ok" : to[target] ? `302 F\r\nLocation: ${to[target].replace("PORT", String(port))}` : "200 OK"), async (get) => {
    expect(await get("/path", host)).toBe("success: ");
    expect(await get("/whole", host)).toBe("success: ");
    expect(await get("/none")).toBe("warning: Probe terminated redirects, Response body: ");
    expect(await get("/several")).toBe("warning: Probe terminated redirects, Response body: ");
    expect(await get("/loop")).toBe(`failure: Get "/loop": stopped after 10 redirects`);
  });
  expect(asked.slice(1, 4).filter((text) => text.startsWith("GET /ok"))).toEqual([
    "GET /ok HTTP/1.1 | Host: h.example | User-Agent: kube-probe/1.36 | Accept: */* | Referer: http://127.0.0.1:PORT/path | Connection: close",
    "GET /ok HTTP/1.1 | Host: 127.0.0.1:PORT | User-Agent: kube-probe/1.36 | Accept: */* | Referer: http://127.0.0.1:PORT/whole | Connection: close",
  ]);
  expect(asked.slice(4)).toHaveLength(12);
});

test.each<[string, string, string]>([
  ["no answer at all", "", "EOF"],
  ["no HTTP", "SSH-2.0-OpenSSH\r\n", `net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0-OpenSSH"`],
  ["a head without end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(70_000)}`, "net/http: server response headers exceeded 65536 bytes; aborted"],
  ["a promise without end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(20_000), "net/http: server response exceeded 262144 bytes; aborted"],
  ["a length that is none", "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", `net/http: HTTP/1.x transport connection broken: bad Content-Length "x"`],
  ["a line without end", "z".repeat(70_000), "net/http: server response headers exceeded 65536 bytes; aborted"],
])("%s is a failure, and nothing worse", async (_, answer, message) => {
  const server = createTcp((socket) => { socket.on("error", () => undefined); socket.once("data", () => socket.end(answer)); });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    expect(await run({ httpGet: { port } })).toBe(`failure: Get "http://127.0.0.1:${port}/": ${message}`);
    if (answer.startsWith("SSH")) return;
    expect(await run({ httpGet: { port, scheme: "HTTPS" } })).toMatch(/^failure: Get "https:\/\/127\.0\.0\.1:\d+\/": /);
  } finally {
    server.close();
  }
});

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
test.each<[string, string, string]>([
  ["a body that ends early", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour", "error: unexpected EOF"],
  ["a status of failure makes no difference", "HTTP/1.1 500 No\r\nContent-Length: 9\r\n\r\nfour", "error: unexpected EOF"],
  ["a chunk that ends early", `${CHUNKED}9\r\nfour`, "error: unexpected EOF"],
  ["chunks that do not end", `${CHUNKED}4\r\nfour\r\n`, "error: unexpected EOF"],
  ["no empty line behind them", `${CHUNKED}4\r\nfour\r\n0\r\n`, "error: unexpected EOF"],
  ["a chunk without a size", `${CHUNKED}\r\nfour`, "error: empty hex number for chunk length"],
  ["a chunk of a size that is none", `${CHUNKED}-4\r\nfour\r\n`, "error: invalid byte in chunk length"],
  ["a chunk of more than there is", `${CHUNKED}${"f".repeat(17)}\r\n`, "error: http chunk length too large"],
  ["a chunk longer than it says", `${CHUNKED}2\r\nfour\r\n0\r\n\r\n`, "error: malformed chunked encoding"],
  ["a chunk's line without a carriage return", `${CHUNKED}4\nfour\r\n0\r\n\r\n`, "error: chunked line ends with bare LF"],
  ["a chunk's line without end", `${CHUNKED}4;${"x".repeat(5_000)}`, "error: header line too long"],
  ["extensions and trailers", `${CHUNKED}4 ;a=b\r\nfour\r\n0\r\nX: y\r\n\r\n`, "success: four"],
  ["what is wrong behind the first 10 kB", `${CHUNKED}2800\r\n${"x".repeat(0x2800)}\r\nnone`, `success: ${"x".repeat(0x2800)}`],
  ["no length, no chunks", "HTTP/1.1 200 OK\r\n\r\nfour", "success: four"],
  ["less than what was promised, in a redirect that is followed nowhere", "HTTP/1.1 302 F\r\nLocation: http://example.com/\r\nContent-Length: 9\r\n\r\nfour", "error: unexpected EOF"],
])("%s", async (_, answer, verdict) => {
  const server = createTcp((socket) => { socket.on("error", () => undefined); socket.once("data", () => socket.end(answer)); });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  expect(await run({ httpGet: { port: (server.address() as AddressInfo).port } })).toBe(verdict);
  server.close();
});

test("a body that comes too slowly", async () => {
  const server = createTcp((socket) => { socket.on("error", () => undefined); socket.once("data", () => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nfour")); });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  expect(await run({ httpGet: { port: (server.address() as AddressInfo).port }, timeoutSeconds: 2 })).toBe("error: context deadline exceeded (Client.Timeout or context cancellation while reading body)");
  server.close();
});

test("an answer that comes by the byte is read whole", async () => {
  const text = `HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(50)}Content-Length: 150\r\n\r\n${"x".repeat(150)}`;
  const server = createTcp((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", async () => { for (const character of text) await new Promise((resolve) => socket.write(character, resolve)); }); // and the connection stays
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  expect(await run({ httpGet: { port: (server.address() as AddressInfo).port }, timeoutSeconds: 60 })).toBe(`success: ${"x".repeat(150)}`);
  server.close();
});

test("a connection that is reset says between whom", async () => {
  const server = createTcp((socket) => { socket.on("error", () => undefined); socket.once("data", () => socket.resetAndDestroy()); });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    expect((await run({ httpGet: { port } })).replace(/:\d+->/, ":PORT->")).toBe(`failure: Get "http://127.0.0.1:${port}/": read tcp 127.0.0.1:PORT->127.0.0.1:${port}: read: connection reset by peer`);
  } finally {
    server.close();
  }
});

test("a shell that speaks HTTP is enough", async () => {
  const server = createTcp((socket) => { socket.on("error", () => undefined); socket.once("data", () => socket.end("HTTP/1.0 200 OK\nContent-Length: 3\n\nfine")); });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  expect(await run({ httpGet: { port: (server.address() as AddressInfo).port } })).toMatch(/^success: fin/);
  server.close();
});

test("a server that would rather speak HTTP/2 is spoken to so, and one that only does HTTP/1.1 so", async () => {
  const pki = await testPki();
  const seen: string[] = [];
  const server = createSecureServer({ ...servingMaterial(pki) });
  server.on("stream", (stream: ServerHttp2Stream, { ":path": path, ":authority": authority, ":scheme": scheme, "user-agent": agent, accept, "x-a": a, connection }) => {
    stream.on("error", () => undefined);
    if (path !== "/near") seen.push([path, authority, scheme, agent, accept, a, connection].join(" "));
    if (path === "/near") { stream.respond({ ":status": 302, location: "/ok?a=b" }); stream.end(); }
    else if (path === "/half") { stream.respond({ ":status": 200 }); stream.write("half"); }
    else if (path !== "/slow") { stream.respond({ ":status": path === "/broken" ? 500 : 200 }); stream.end(path === "/long" ? "x".repeat(20_000) : "body"); }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const get = (path: string, more: object = {}, timeoutSeconds = 60) => run({ httpGet: { path, port, scheme: "HTTPS", ...more }, timeoutSeconds });
  try {
    expect(await get("/near", { httpHeaders: [{ name: "Host", value: "h.example" }, { name: "X-A", value: "1" }, { name: "Connection", value: "close" }] })).toBe("success: body");
    expect(await get("/long")).toBe(`success: ${"x".repeat(10_240)}`);
    expect(await get("/broken", { httpHeaders: [{ name: "User-Agent", value: "" }] })).toBe("failure: HTTP probe failed with statuscode: 500");
    expect(seen).toEqual(["/ok?a=b h.example https kube-probe/1.36 */* 1 ", `/long 127.0.0.1:${port} https kube-probe/1.36 */*  `, `/broken 127.0.0.1:${port} https  */*  `]);
    expect(await get("/slow", {}, 0.2)).toBe(`failure: Get "https://127.0.0.1:${port}/slow": context deadline exceeded (Client.Timeout exceeded while awaiting headers)`);
    expect(await get("/half", {}, 2)).toBe("error: context deadline exceeded (Client.Timeout or context cancellation while reading body)");
    expect(await get("/ok", { httpHeaders: [{ name: "Connection", value: "Upgrade" }] })).toBe(`failure: Get "https://127.0.0.1:${port}/ok": http2: invalid Connection request header: ["Upgrade"]`);
    expect(await get("/ok", { httpHeaders: [{ name: "Authorization", value: "a" }, { name: "Authorization", value: "b" }, { name: "X-A", value: "1" }, { name: "X-A", value: "2" }] })).toBe("success: body");
    expect(seen.at(-1)).toBe(`/ok 127.0.0.1:${port} https kube-probe/1.36 */* 1, 2 `);
    expect(await get("/ok", { httpHeaders: [{ name: "X A", value: "1" }] })).toMatch(/^failure: Get "https:\S+": http2: Header name must be a valid HTTP token/);
    const older = createHttps(servingMaterial(pki), (request, response) => response.end(request.httpVersion));
    await new Promise<void>((resolve) => older.listen(0, "127.0.0.1", resolve));
    expect(await run({ httpGet: { port: (older.address() as AddressInfo).port, scheme: "HTTPS" } })).toBe("success: 1.1");
    older.close();
  } finally {
    server.close();
    rmSync(pki.dir, { recursive: true, force: true });
  }
});

test.each<[string, (socket: Socket) => void, string]>([
  ["a stream that is reset", (socket) => socket.write(frame(3, 1, [0, 0, 0, 2])), "stream error: stream ID 1; INTERNAL_ERROR; received from peer"],
  ["a connection that is given up", (socket) => socket.write(frame(7, 0, [0, 0, 0, 0, 0, 0, 0, 11, 104, 105])), `http2: server sent GOAWAY and closed the connection; LastStreamID=0, ErrCode=ENHANCE_YOUR_CALM, debug="hi"`],
  ["a connection that ends", (socket) => socket.end(), "unexpected EOF"],
])("%s is told in Go's words over HTTP/2", async (_, answer, message) => {
  const pki = await testPki();
  const server = createTls({ ...servingMaterial(pki), ALPNProtocols: ["h2"] }, (socket) => {
    socket.on("error", () => undefined);
    socket.write(frame(4, 0, []));
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    expect(await run({ httpGet: { port, scheme: "HTTPS" }, timeoutSeconds: 60 })).toBe(`failure: Get "https://127.0.0.1:${port}/": ${message}`);
  } finally {
    server.close();
    rmSync(pki.dir, { recursive: true, force: true });
  }
});

/** Of HTTP/2, without flags. */
function frame(type: number, stream: number, payload: readonly number[]): Uint8Array {
  return Uint8Array.from([0, 0, payload.length, type, 0, 0, 0, 0, stream, ...payload]);
}

test("HTTPS where there is only HTTP is told so", async () => {
  const server = createServer((_, response) => response.end("x"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  expect(await run({ httpGet: { port, scheme: "HTTPS" } })).toBe(`failure: Get "https://127.0.0.1:${port}/": http: server gave HTTP response to HTTPS client`);
  server.close();
});

test("tcp", async () => {
  const server = createTcp();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  expect(await run({ tcpSocket: { port } })).toBe("success: ");
  server.close();
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await run({ tcpSocket: { port } })).toBe(`failure: dial tcp 127.0.0.1:${port}: connect: connection refused`);
  expect(await run({ tcpSocket: { port, host: "nowhere.invalid" }, timeoutSeconds: 10 })).toBe("failure: dial tcp: lookup nowhere.invalid: no such host");
});

/** The thread that would hear of it has other things to do. */
function beBusy(ms: number): void {
  for (const untilMs = performance.now() + ms; performance.now() < untilMs;);
}

test("an answer in time counts, also where the node was too busy to hear it in time", async () => {
  const server = createTcp((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => { socket.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"); beBusy(400); });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  try {
    expect(await run({ httpGet: { port }, timeoutSeconds: 0.2 })).toBe("success: ok");
    const connecting = run({ tcpSocket: { port }, timeoutSeconds: 0.2 });
    beBusy(400);
    expect(await connecting).toBe("success: ");
  } finally {
    server.close();
  }
});

test("exec", async () => {
  const bytes = (text: string) => Buffer.from(text);
  const probe: Probe = { exec: { command: ["test", "$(A)"] } };
  expect(await run(probe, { container: { env: [{ name: "A", value: "x" }] }, call: ({ cmd }) => ({ stdout: bytes(cmd.join(" ")) }) })).toBe("success: test x");
  const echo = (env: Container["env"]) => run({ exec: { command: ["$(A)", "$(B)", "$$(A)"] } }, { container: { env }, call: ({ cmd }) => ({ stdout: bytes(JSON.stringify(cmd)) }) });
  expect(await echo([{ name: "A", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }])).toBe('success: ["","$(B)","$(A)"]');
  expect(await run(probe, { call: () => ({ exit_code: 1, stdout: bytes("o"), stderr: bytes("e") }) })).toBe("failure: oe");
  const late = () => { throw new CriError({ method: "", code: "DeadlineExceeded", detail: "" }); };
  expect(await run({ ...probe, timeoutSeconds: 90 }, { call: late })).toBe(`failure: command timed out: "test $(A)" timed out after 1m30s`);
  let tries = 0;
  const broken = () => { tries++; throw new CriError({ method: "", code: "Unavailable", detail: "down" }); };
  expect([await run(probe, { call: broken }), tries]).toEqual(["error: rpc error: code = Unavailable desc = down", 3]);
});

test("a runtime that is not there, as while it is started anew, is no verdict on what its containers do", async () => {
  const cri = criClient({ socket: "/nowhere/containerd.sock", nowMs: Date.now });
  const facts = { probe: { exec: { command: ["true"] }, timeoutSeconds: 1 }, pod, container: { name: "c" }, containerId: "id", podIp: "" };
  try {
    await expect(runProbe({ cri, clock: systemClock, version: "1.36" }, facts, new AbortController().signal)).rejects.toThrow("rpc error: code = Unavailable");
  } finally {
    cri.close();
  }
});

test("https of a certificate of P-521, with no newer TLS than 1.2", async () => {
  await using server = createHttps(P521_SERVER, (_, response) => response.end("yes"));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  expect(await run({ httpGet: { scheme: "HTTPS", port: (server.address() as AddressInfo).port }, timeoutSeconds: 60 })).toBe("success: yes");
});
