import { expect, test } from "vitest";
import type { FlowSchema, PriorityLevelConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import type { UserInfo } from "../../api/request/user.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import type { RawAnswer } from "../answer.ts";
import type { ServerRequest } from "../request.ts";
import { requestInfo } from "../request-info.ts";
import { SUGGESTED_SCHEMAS } from "./bootstrap-objects.ts";
import { fairnessDebugPaths } from "./debug.ts";
import { Fairness } from "./fairness.ts";

const JANE: UserInfo = { name: "jane", groups: ["system:authenticated"] };
const level = { metadata: { name: "small" }, spec: { type: "Limited", limited: { nominalConcurrencyShares: 1000, limitResponse: { type: "Queue", queuing: { queues: 2, handSize: 1, queueLengthLimit: 4 } } } } } as unknown as PriorityLevelConfiguration;
const schema = { metadata: { name: "all" }, spec: { ...SUGGESTED_SCHEMAS.at(-1)!.spec, matchingPrecedence: 2, priorityLevelConfiguration: { name: "small" } } } as unknown as FlowSchema;

test("the page of requests shows who waits in a queue, and where, before who is served from it", async () => {
  let now = 0;
  const clock = { ...systemClock, nowMs: () => Date.UTC(2026, 0, 1) + now, uptimeMs: () => now };
  const fairness = new Fairness({ seats: 1, schemas: () => [schema], levels: () => [level], sizeOf: () => undefined, clock, later: (work) => void setImmediate(work) });
  const gone = new AbortController();
  const ask = (path: string): unknown => fairness.enter({ query: new URLSearchParams(), signal: gone.signal } as unknown as ServerRequest, requestInfo("GET", path, new URLSearchParams()), JANE);
  const held = ask("/api/v1/pods");
  now = 120;
  const waiting = [ask("/api/v1/nodes"), ask("/api/v1/namespaces/a/secrets/b")].map((entered) => (entered as Promise<unknown>).catch(() => undefined));
  const rows = async (query: string): Promise<string[][]> => {
    const answer = (await fairnessDebugPaths(fairness, clock)({ path: "/debug/api_priority_and_fairness/dump_requests", query: new URLSearchParams(query) } as ServerRequest, JANE)) as RawAnswer;
    return String(answer.body).trim().split("\n").slice(1).map((line) => line.split(",").map((cell) => cell.trim()));
  };
  expect(await rows("")).toEqual([
    ["small", "all", "1", "0", "jane", "2026-01-01T00:00:00.12Z", "1", "0", "0s", "0001-01-01T00:00:00Z"],
    ["small", "all", "1", "1", "jane", "2026-01-01T00:00:00.12Z", "1", "0", "0s", "0001-01-01T00:00:00Z"],
    ["small", "all", "1", "-1", "jane", "2026-01-01T00:00:00Z", "1", "0", "0s", "2026-01-01T00:00:00Z"],
  ]);
  expect((await rows("includeRequestDetails=1"))[1]!.slice(10)).toEqual(["jane", "get", "/api/v1/namespaces/a/secrets/b", "a", "b", "v1", "secrets", ""]);
  gone.abort();
  await Promise.all(waiting);
  expect((await rows("")).map(([, , , place]) => place)).toEqual(["-1"]);
  expect(held).toHaveProperty("done");
});
