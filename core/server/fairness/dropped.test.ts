import { expect, test } from "vitest";
import { DroppedRequests } from "./dropped.ts";

test("who is refused is told to wait twice as long while many are, and a second less each second when few are", () => {
  const dropped = new DroppedRequests();
  const told: number[] = [];
  const second = (at: number, requests: number): void => {
    for (let i = 0; i < requests; i++) dropped.record(at * 1000);
    told.push(dropped.retryAfter);
  };
  for (let at = 100; at < 110; at++) second(at, 30);
  expect(told).toEqual([1, 2, 2, 4, 4, 4, 4, 8, 8, 8]);
  told.length = 0;
  for (const at of [140, 141, 142, 143, 144, 145, 146, 147]) second(at, 1);
  expect(told).toEqual([7, 6, 5, 4, 4, 4, 4, 4]);
});
