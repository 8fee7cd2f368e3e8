import { expect, test } from "vitest";
import { ArrivedBytes } from "./arrived-bytes.ts";

test.each(["\n\n", "\r\n\r\n", "\n\r\n"])("the end of a head is found wherever it is cut: %j", (end) => {
  const text = `HTTP/1.1 200 OK${end[0] === "\r" ? "\r\n" : "\n"}a: b${end}rest`;
  for (let pieces = 1; pieces <= text.length; pieces++) {
    const arrived = new ArrivedBytes(), size = Math.ceil(text.length / pieces);
    for (let at = 0; at < text.length && arrived.headEnd < 0; at += size) arrived.add(Buffer.from(text.slice(at, at + size)));
    const found = arrived.headEnd, all = arrived.take();
    expect([all.toString("latin1", 0, found), text.startsWith(all.toString())]).toEqual([text.slice(0, -4), true]);
  }
});

test("what was taken stays as it was, and what comes then is another beginning", () => {
  const arrived = new ArrivedBytes();
  for (const part of ["a", "b\n", "\n", "c"]) arrived.add(Buffer.from(part));
  expect(arrived.headEnd).toBe(4);
  const all = arrived.take();
  arrived.add(all.subarray(4));
  for (let i = 0; i < 100; i++) arrived.add(Buffer.from("d"));
  expect([all.toString(), arrived.bytes.toString(), arrived.headEnd]).toEqual(["ab\n\nc", `c${"d".repeat(100)}`, -1]);
});

test("who sends byte by byte costs what the bytes weigh: it took minutes where each was looked at with all before it", () => {
  const arrived = new ArrivedBytes(), one = Buffer.from("x");
  arrived.add(Buffer.from("a:\n".repeat(200_000)));
  let found = 0;
  for (let i = 0; i < 100_000; i++) {
    arrived.add(one);
    if (arrived.headEnd >= 0) found++;
  }
  expect([found, arrived.take().length]).toEqual([0, 700_000]);
});
