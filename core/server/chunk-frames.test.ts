import { expect, test } from "vitest";
import { ChunkFrames } from "./chunk-frames.ts";

test("a chunk is made once for all that are sent the same bytes; of large ones few are kept", () => {
  const frames = new ChunkFrames(), small = Buffer.from("abc"), large = Array.from({ length: 3 }, () => Buffer.alloc(5_000_000));
  const made = frames.of(small);
  expect(made.toString()).toBe("3\r\nabc\r\n");
  expect(frames.of(small)).toBe(made);
  const [first, second] = [frames.of(large[0]!), frames.of(large[1]!)];
  expect(frames.of(large[1]!)).toBe(second);
  expect(frames.of(large[0]!)).not.toBe(first);
  expect(frames.of(small)).not.toBe(made);
});
