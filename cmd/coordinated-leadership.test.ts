import { expect, test } from "vitest";
import { apiServerArgs } from "./apiserver-args.ts";
import { coordinatedLeadership } from "./coordinated-leadership.ts";

test("the Lease of who elects leaders lasts longer than its renewal is tried for, and that longer than a try is away from the next", () => {
  const times = (...texts: string[]) => coordinatedLeadership(apiServerArgs(texts.map((text) => `coordinated-leadership-${text}`)));
  expect(times()).toEqual({ leaseDurationMs: 15_000, renewDeadlineMs: 10_000, retryPeriodMs: 2_000 });
  expect(times("lease-duration=5s", "renew-deadline=3s", "retry-period=500ms")).toEqual({ leaseDurationMs: 5_000, renewDeadlineMs: 3_000, retryPeriodMs: 500 });
  expect(() => times("lease-duration=10s")).toThrow("--coordinated-leadership-lease-duration must be greater than --coordinated-leadership-renew-deadline");
  expect(() => times("retry-period=10s")).toThrow("--coordinated-leadership-renew-deadline must be greater than --coordinated-leadership-retry-period");
});
