/**
 * --coordinated-leadership-…: the times of the Lease by which servers that share a datastore agree on who of them elects leaders.
 *
 * Source: kubernetes v1.36 pkg/controlplane/apiserver/options/{options,validation}.go
 */
import type { LeaseTimes } from "../core/client/leader.ts";
import type { ApiServerArgs } from "./apiserver-args.ts";
import { ConfigError } from "./config/config.ts";

const PREFIX = "coordinated-leadership-";

/** Throws ConfigError. */
export function coordinatedLeadership(args: Pick<ApiServerArgs, "durationMs">): LeaseTimes {
  const leaseDurationMs = args.durationMs(`${PREFIX}lease-duration`) ?? 15_000, renewDeadlineMs = args.durationMs(`${PREFIX}renew-deadline`) ?? 10_000, retryPeriodMs = args.durationMs(`${PREFIX}retry-period`) ?? 2_000;
  if (leaseDurationMs <= renewDeadlineMs) throw new ConfigError(`--${PREFIX}lease-duration must be greater than --${PREFIX}renew-deadline`);
  if (renewDeadlineMs <= retryPeriodMs) throw new ConfigError(`--${PREFIX}renew-deadline must be greater than --${PREFIX}retry-period`);
  return { leaseDurationMs, renewDeadlineMs, retryPeriodMs };
}
