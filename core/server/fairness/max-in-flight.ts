/**
 * Without priority and fairness: so many requests that read and so many that write at once, and no more.
 *
 * Source: kubernetes v1.36 apiserver/pkg/server/filters/maxinflight.go
 */
import { GROUP_MASTERS, type UserInfo } from "../../api/request/user.ts";
import type { RequestInfo } from "../request-info.ts";
import type { ServerRequest } from "../request.ts";
import { type Ticket, TooManyRequests } from "./too-many-requests.ts";

/** 0: no limit. */
export interface InFlightLimits { readonly reading: number; readonly writing: number }

const READING: ReadonlySet<string> = new Set(["get", "list", "watch"]);
const FREE: Ticket = { done: () => undefined };

export function isReading(info: RequestInfo): boolean { return READING.has(info.verb); }

export function maxInFlight({ reading, writing }: InFlightLimits): (request: ServerRequest, info: RequestInfo, user: UserInfo) => Ticket {
  const now = { reading: 0, writing: 0 };
  return (_, info, { groups }) => {
    if (info.verb === "watch") return FREE;
    const kind = isReading(info) ? "reading" : "writing";
    const limit = kind === "reading" ? reading : writing;
    if (limit === 0 || (now[kind] >= limit && groups.includes(GROUP_MASTERS))) return FREE;
    if (now[kind] >= limit) throw new TooManyRequests("concurrency-limit", 1);
    now[kind]++;
    return { done: () => void now[kind]-- };
  };
}
