/** /debug/api_priority_and_fairness/dump_*: levels, queues and requests as tables. Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/apf_controller_debug.go */
import { formatApiVersion } from "../../api/meta/gvk.ts";
import type { Clock } from "../../lifecycle/clock.ts";
import { raw } from "../answer.ts";
import type { PathHandler } from "../scope.ts";
import type { Fairness } from "./fairness.ts";
import type { Known, Level } from "./level.ts";

const PREFIX = "/debug/api_priority_and_fairness/";
const REQUEST_COLUMNS = ["PriorityLevelName", "FlowSchemaName", "QueueIndex", "RequestIndexInQueue", "FlowDistingsher", "ArriveTime", "InitialSeats", "FinalSeats", "AdditionalLatency", "StartTime"];
const DETAIL_COLUMNS = ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"];

export function fairnessDebugPaths(fairness: Fairness, clock: Clock): PathHandler {
  const pages: Readonly<Record<string, (query: URLSearchParams) => string[][]>> = {
    dump_priority_levels: () => [
      ["PriorityLevelName", "ActiveQueues", "IsIdle", "IsQuiescing", "WaitingRequests", "ExecutingRequests", "DispatchedRequests", "RejectedRequests", "TimedoutRequests", "CancelledRequests"],
      ...levels().map(({ name, queues, executing, counted }) => [
        name, queues.queues.filter(({ waiting }) => waiting.length > 0).length, queues.isIdle && executing.size === 0, false, queues.waiting, executing.size,
        counted.dispatched, counted.rejected, 0, counted.cancelled,
      ].map(String)),
    ],
    dump_queues: () => [
      ["PriorityLevelName", "Index", "PendingRequests", "ExecutingRequests", "SeatsInUse", "NextDispatchR", "InitialSeatsSum", "MaxSeatsSum", "TotalWorkSum"],
      ...levels().flatMap(({ name, queues }) => queues.queues.map(({ index, waiting, executing, seatsInUse, nextDispatchR }) => {
        const seats = waiting.reduce((sum, one) => sum + one.seats, 0);
        return [name, index, waiting.length, executing, seatsInUse, `${nextDispatchR.toFixed(8)}ss`, seats, seats, `${(seats * 0.003).toFixed(8)}ss`].map(String);
      })),
    ],
    dump_requests: (query) => {
      const detailed = (query.get("includeRequestDetails") ?? "") !== "";
      return [[...REQUEST_COLUMNS, ...(detailed ? DETAIL_COLUMNS : [])], ...levels().flatMap((level) => byQueue([...level.waiting, ...level.executing]).map((one) => requestRow(level, one, detailed)))];
    },
  };

  function levels(): Level[] { return [...fairness.levels.values()].sort((a, b) => (a.name < b.name ? -1 : 1)); }

  function requestRow({ name, queues }: Level, { flow, seating, info, user, afterMs }: Known, detailed: boolean): string[] {
    const at = (ms: number): string => goTime(clock.nowMs() - (clock.uptimeMs() - ms));
    const place = placeOf(seating);
    const method = queues.queues.length > 1 ? flow.schema.spec?.distinguisherMethod?.type : undefined; // else nobody need be told apart
    const distinguisher = method === "ByUser" ? user.name : method === "ByNamespace" && info.isResource ? info.namespace : "";
    const row = [name, flow.name, String(seating.queue?.index ?? -1), String(place), distinguisher, at(seating.arrivedMs), String(seating.seats), afterMs > 0 ? "1" : "0", afterMs > 0 ? `${afterMs}ms` : "0s", place < 0 ? at(seating.startedMs) : NOT_STARTED];
    if (!detailed) return row;
    return [...row, user.name, info.verb, info.path, ...(info.isResource ? [info.namespace, info.name, formatApiVersion(info), info.resource, info.subresource] : ["", "", "", "", ""])];
  }

  return ({ path, query }) => {
    const page = path.startsWith(PREFIX) ? path.slice(PREFIX.length) : "";
    return Object.hasOwn(pages, page) ? raw(table(pages[page]!(query))) : undefined;
  };
}

/** Go's time that is none. */
const NOT_STARTED = "0001-01-01T00:00:00Z";

/** Without zeros at the end. */
function goTime(ms: number): string { return new Date(ms).toISOString().replace(/\.?0*Z$/, "Z"); }

/** In its queue; -1: it waits in none. */
function placeOf(seating: Known["seating"]): number { return seating.queue?.waiting.indexOf(seating) ?? -1; }

/** Those of a queue together, who waits before who is served; without one last. */
function byQueue(requests: readonly Known[]): Known[] {
  const last = (index: number): number => (index < 0 ? Number.MAX_SAFE_INTEGER : index);
  return requests.toSorted((a, b) => last(a.seating.queue?.index ?? -1) - last(b.seating.queue?.index ?? -1) || last(placeOf(a.seating)) - last(placeOf(b.seating)));
}

/** Columns end in a comma and begin where the widest before them ends. */
function table(rows: readonly (readonly string[])[]): string {
  const widths: number[] = [];
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 8, cell.length + 2);
  return `${rows.map((row) => row.map((cell, i) => (i === row.length - 1 ? cell : `${cell},`.padEnd(widths[i]!))).join("")).join("\n")}\n`;
}
