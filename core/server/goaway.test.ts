import { expect, test } from "vitest";
import { raw } from "./answer.ts";
import { goaway } from "./goaway.ts";
import type { ServerRequest } from "./request.ts";

test("a request is its connection's last as often as was asked for, and answered all the same", async () => {
  let closed = 0;
  const numbers = [0.01, 0.001, 0.0009];
  const request = { takeNoMore: () => closed++ } as unknown as ServerRequest;
  const asked = (chance: number, of = request) => goaway(() => Promise.resolve(raw("x")), { chance, random: { next: () => numbers.shift()! } })(of);
  for (const expected of [0, 0, 1]) {
    expect(await asked(0.001)).toMatchObject({ body: "x" });
    expect(closed).toBe(expected);
  }
  await asked(0);
  await asked(0.001, {} as ServerRequest); // HTTP/1.1
  expect(closed).toBe(1);
});
