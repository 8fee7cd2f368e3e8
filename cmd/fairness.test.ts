import { expect, test } from "vitest";
import { apiServerArgs } from "./apiserver-args.ts";
import { requestTimes } from "./fairness.ts";

test("how long requests and watches may take is what is set, and no time at all is none", () => {
  const times = (...args: string[]) => requestTimes(apiServerArgs(args));
  expect([times(), times("request-timeout=5m", "min-request-timeout=300")]).toEqual([{ requestMs: undefined, watchMsMin: undefined }, { requestMs: 300_000, watchMsMin: 300_000 }]);
  for (const one of ["request-timeout=0s", "min-request-timeout=0"]) expect(() => times(one)).toThrow("must be longer than that");
});
