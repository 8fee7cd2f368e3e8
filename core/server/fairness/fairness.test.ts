import { expect, test } from "vitest";
import type { FlowSchema, PriorityLevelConfiguration } from "../../api/gen/flowcontrol.v1.ts";
import type { UserInfo } from "../../api/request/user.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { FLOW_SCHEMAS } from "../../client/resources.ts";
import { silentLog } from "../../observe/log.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { apiServer } from "../../../test/api-server.ts";
import { memoryRegistry } from "../../../test/memory-registry.ts";
import type { Selection } from "../../registry/generic/selection.ts";
import type { ServerRequest } from "../request.ts";
import { type RequestInfo, requestInfo } from "../request-info.ts";
import { AUTO_UPDATE, MANDATORY_SCHEMAS, SUGGESTED_LEVELS, SUGGESTED_SCHEMAS } from "./bootstrap-objects.ts";
import { allocate, claimOf, limitsOf, shareSeats } from "./borrowing.ts";
import { Fairness, type FairnessDeps } from "./fairness.ts";
import { flowMetrics } from "./flow-metrics.ts";
import { maxInFlight } from "./max-in-flight.ts";
import { dealHand } from "./shuffle-shard.ts";
import type { Ticket } from "./too-many-requests.ts";
import { act, dangling, fairnessUpkeep } from "./upkeep.ts";
import { planUpkeep } from "./upkeep-plan.ts";
import { estimateWork, ResourceSizes } from "./work-estimate.ts";

/** Time stands still until it is told to go on. */
function stoppedClock(): Clock & { pass(ms: number): void } {
  let now = 0;
  let alarms: { readonly dueMs: number; readonly work: () => void }[] = [];
  return {
    ...systemClock, nowMs: () => now, uptimeMs: () => now,
    after(ms, work) {
      const alarm = { dueMs: now + ms, work };
      alarms.push(alarm);
      return { cancel: () => { alarms = alarms.filter((one) => one !== alarm); } };
    },
    pass(ms) {
      now += ms;
      const due = alarms.filter(({ dueMs }) => dueMs <= now);
      alarms = alarms.filter(({ dueMs }) => dueMs > now);
      for (const { work } of due) work();
    },
  };
}

const info = (path: string, method = "GET", query = ""): RequestInfo => requestInfo(method, path, new URLSearchParams(query));
const user = (name: string, ...groups: string[]): UserInfo => ({ name, groups: [...groups, "system:authenticated"] });
const request = (signal: AbortSignal = new AbortController().signal): ServerRequest => ({ query: new URLSearchParams(), signal }) as unknown as ServerRequest;
const POD = info("/api/v1/namespaces/a/pods/b");

const later = (work: () => void): void => void setImmediate(work);
const turn = (): Promise<void> => new Promise(later);

function server({ seats = 600, schemas = SUGGESTED_SCHEMAS, levels = SUGGESTED_LEVELS, clock = stoppedClock(), requestMs }: { seats?: number; schemas?: readonly FlowSchema[]; levels?: readonly PriorityLevelConfiguration[]; clock?: Clock } & Pick<FairnessDeps, "requestMs"> = {}): Fairness {
  return new Fairness({ requestMs, seats, schemas: () => schemas, levels: () => levels, sizeOf: () => undefined, clock, later });
}

/** One level with `seats` seats and everybody in it. */
function small(seats: number, limitResponse: object, clock: Clock, more: Pick<FairnessDeps, "requestMs"> = {}): Fairness {
  const level = { metadata: { name: "small" }, spec: { type: "Limited", limited: { nominalConcurrencyShares: 1000, limitResponse } } } as unknown as PriorityLevelConfiguration;
  const schema = { metadata: { name: "all" }, spec: { ...SUGGESTED_SCHEMAS.at(-1)!.spec, matchingPrecedence: 2, priorityLevelConfiguration: { name: "small" } } } as unknown as FlowSchema;
  return server({ seats, schemas: [schema], levels: [level], clock, ...more });
}

test.each<[string, RequestInfo, UserInfo, string]>([
  ["an administrator", POD, user("admin", "system:masters"), "exempt"],
  ["a probe", info("/readyz"), { name: "system:anonymous", groups: ["system:unauthenticated"] }, "probes"],
  ["a part of a probe", info("/livez/etcd"), { name: "system:anonymous", groups: ["system:unauthenticated"] }, "probes"],
  ["a node about itself", info("/api/v1/nodes/n1/status", "PATCH"), user("system:node:n1", "system:nodes"), "system-node-high"],
  ["a node about pods", POD, user("system:node:n1", "system:nodes"), "system-nodes"],
  ["a leader's lease", info("/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/l", "PUT"), user("system:kube-scheduler"), "system-leader-election"],
  ["the scheduler", POD, user("system:kube-scheduler"), "kube-scheduler"],
  ["an account of the system", POD, user("system:serviceaccount:kube-system:x", "system:serviceaccounts"), "kube-system-service-accounts"],
  ["an account", POD, user("system:serviceaccount:kube-systemx:x", "system:serviceaccounts"), "service-accounts"],
  ["a user", POD, user("jane"), "global-default"],
])("%s belongs to a flow", (_, asked, who, flow) => {
  const fairness = server();
  (fairness.enter(request(), asked, who) as Ticket).done();
  expect(fairness.flows.filter(({ dispatched }) => dispatched > 0).map(({ name }) => name)).toEqual([flow]);
});

test("flows that cannot be a user's are looked at once for all requests of a connection, until schemas change", () => {
  let looks = 0;
  const of = (name: string, precedence: number): FlowSchema => ({
    metadata: { name }, spec: { matchingPrecedence: precedence, priorityLevelConfiguration: { name: "workload-low" }, rules: [{
      get subjects() { looks++; return [{ kind: "User", user: { name } }]; }, resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true }],
    }] },
  }) as unknown as FlowSchema;
  const schemas = [of("bert", 10), ...SUGGESTED_SCHEMAS];
  const fairness = server({ schemas });
  const ann = user("ann");
  const nameOf = (): string | undefined => {
    const seen: string[] = [];
    void fairness.enter({ ...request(), setHeader: (name, value) => void seen.push(`${name} ${value}`) } as ServerRequest, POD, ann);
    return fairness.flows.find(({ uid }) => seen.includes(`X-Kubernetes-PF-FlowSchema-UID ${uid}`) && uid !== "")?.name;
  };
  nameOf();
  const first = looks;
  nameOf();
  expect([first > 0, looks]).toEqual([true, first]);
  const own = of("ann", 5);
  (own.metadata as { uid: string }).uid = "of ann";
  schemas.push(own);
  fairness.changed();
  expect(nameOf()).toBe("ann");
});

test("before there are objects everybody is in catch-all, with all seats", () => {
  const fairness = server({ schemas: [], levels: [] });
  expect(fairness.flows.map(({ name }) => name)).toEqual(["exempt", "catch-all"]);
  expect(fairness.levels.get("catch-all")!.limits.nominal).toBe(600);
});

test("seats are shared by nominal shares", () => {
  expect(Object.fromEntries([...server().levels.values()].map(({ name, limits }) => [name, [limits.nominal, limits.lower, limits.upper]]))).toEqual({
    "exempt": [0, 0, 600], "catch-all": [13, 13, 613], "system": [74, 50, 674], "node-high": [98, 73, 698], "leader-election": [25, 25, 625],
    "workload-high": [98, 49, 698], "workload-low": [245, 24, 845], "global-default": [49, 24, 649],
  });
});

test("what a level without queues has no seat for is refused; the exempt one has seats for all", async () => {
  const fairness = small(2, { type: "Reject" }, stoppedClock());
  const held = [0, 1].map(() => fairness.enter(request(), POD, user("jane")) as Ticket);
  expect(() => fairness.enter(request(), POD, user("jane"))).toThrow("too many requests: concurrency-limit");
  for (let i = 0; i < 10; i++) void fairness.enter(request(), POD, user("admin", "system:masters"));
  held[0]!.done();
  held[0]!.done(); // once is enough
  await turn();
  expect(fairness.levels.get("small")!.queues.seatsInUse).toBe(1);
});

test("a level without seats serves one at a time, or nobody if it has queues", async () => {
  const ask = (limitResponse: object) => {
    const fairness = small(0, limitResponse, stoppedClock());
    return { seats: fairness.levels.get("small")!.queues.limit, enter: () => fairness.enter(request(), POD, user("jane")) };
  };
  const refusing = ask({ type: "Reject" }), queuing = ask({ type: "Queue", queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } });
  const first = refusing.enter() as Ticket;
  expect([refusing.seats, queuing.seats]).toEqual([0, 0]);
  expect(refusing.enter).toThrow("concurrency-limit");
  first.done();
  await turn();
  expect(refusing.enter).not.toThrow();
  expect(queuing.enter()).toBeInstanceOf(Promise);
  expect(queuing.enter).toThrow("queue-full");
});

test("who is refused waits longer while many are, also after the clock was set back", () => {
  const clock = stoppedClock();
  let aheadMs = 1e12;
  const fairness = small(1, { type: "Reject" }, { ...clock, nowMs: () => clock.nowMs() + aheadMs });
  void fairness.enter(request(), POD, user("jane"));
  const refused = (): unknown => {
    try {
      return fairness.enter(request(), POD, user("jane"));
    } catch (error) {
      return (error as { retryAfter?: number }).retryAfter;
    }
  };
  const afterSeconds = (seconds: number): unknown => {
    let told: unknown;
    for (let i = 0; i < seconds * 40; i++, clock.pass(25)) told = refused();
    return told;
  };
  expect(afterSeconds(10)).toBe(8);
  aheadMs = 0;
  expect(afterSeconds(40)).toBe(32);
});

test("who waits is served in turn, whoever came first with however many; who waits too long is refused", async () => {
  const clock = stoppedClock();
  const fairness = small(1, { type: "Queue", queuing: { queues: 64, handSize: 6, queueLengthLimit: 4 } }, clock);
  const order: string[] = [];
  const waiting: Promise<void>[] = [];
  const ask = (name: string, signal?: AbortSignal): void => {
    const entered = fairness.enter(request(signal), POD, user(name));
    waiting.push(Promise.resolve(entered).then((ticket) => {
      order.push(name);
      clock.pass(10);
      ticket.done();
    }, (error: Error) => void order.push(`${name}: ${error.message}`)));
  };
  const first = fairness.enter(request(), POD, user("elephant")) as Ticket;
  const gone = new AbortController();
  for (let i = 0; i < 6; i++) ask("elephant");
  ask("mouse");
  ask("leaver", gone.signal);
  gone.abort();
  clock.pass(5);
  first.done();
  await Promise.all(waiting);
  expect(order.filter((one) => one.includes(":")).sort()).toEqual(["leaver: too many requests: cancelled"]);
  expect(order.filter((one) => !one.includes(":")).indexOf("mouse")).toBeLessThan(4);

  await turn();
  const holder = fairness.enter(request(), POD, user("elephant")) as Ticket;
  ask("mouse");
  clock.pass(15_000);
  await waiting.at(-1);
  expect(order.at(-1)).toBe("mouse: too many requests: time-out");
  holder.done();
});

/** Clients that ask again once they are answered, over connections that are looked at once a turn. Counts what each user got, until `ms` have been worked for. */
async function closedLoop(fairness: Fairness, clock: ReturnType<typeof stoppedClock>, { ms, users }: { readonly ms: number; readonly users: readonly { readonly name: string; readonly clients: number; readonly costMs: number }[] }): Promise<Record<string, number>> {
  const served: Record<string, number> = {};
  let arriving: (() => Promise<void>)[] = [];
  const client = (name: string, costMs: number) => async (): Promise<void> => {
    const entered = fairness.enter(request(), POD, user(name));
    const ticket = entered instanceof Promise ? await entered : entered; // one that need not wait is served before the next is looked at
    served[name] = (served[name] ?? 0) + 1;
    clock.pass(costMs);
    ticket.done();
    arriving.push(client(name, costMs));
  };
  for (const { name, clients, costMs } of users) for (let i = 0; i < clients; i++) arriving.push(client(name, costMs));
  while (clock.uptimeMs() < ms) {
    const come = arriving;
    arriving = [];
    for (const one of come) void one();
    await turn();
  }
  return served;
}

/** A level of one seat for each of them, and no other. */
function each(names: readonly string[], seats: number, clock: Clock): Fairness {
  const levels = names.map((name) => ({ metadata: { name }, spec: { type: "Limited", limited: { nominalConcurrencyShares: 1000, limitResponse: { type: "Queue", queuing: { queues: 100, handSize: 1, queueLengthLimit: 50 } } } } }) as unknown as PriorityLevelConfiguration);
  const schemas = names.map((name) => ({ metadata: { name }, spec: { matchingPrecedence: 2, priorityLevelConfiguration: { name }, distinguisherMethod: { type: "ByUser" }, rules: [{ subjects: [{ kind: "User", user: { name } }], resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true }] }] } }) as unknown as FlowSchema);
  return server({ seats: seats * names.length, schemas, levels, clock });
}

test("a level that many ask gets no more of this process than one that few ask, though each request is done before the next is looked at", async () => {
  const clock = stoppedClock();
  const fairness = each(["elephant", "mouse"], 1, clock);
  expect([...fairness.levels.values()].map(({ queues }) => queues.limit)).toEqual(expect.arrayContaining([1, 1]));
  const { elephant, mouse } = await closedLoop(fairness, clock, { ms: 400, users: [{ name: "elephant", clients: 50, costMs: 0.25 }, { name: "mouse", clients: 3, costMs: 0.25 }] });
  expect(elephant! / mouse!).toBeGreaterThan(0.8);
  expect(elephant! / mouse!).toBeLessThan(1.25);
});

test("of levels with as many seats one with long requests gets as much of this process as one with short ones, not as many", async () => {
  const clock = stoppedClock();
  const { long, short } = await closedLoop(each(["long", "short"], 4, clock), clock, { ms: 2000, users: [{ name: "long", clients: 40, costMs: 5 }, { name: "short", clients: 40, costMs: 0.5 }] });
  expect((long! * 5) / (short! * 0.5)).toBeGreaterThan(0.8);
  expect((long! * 5) / (short! * 0.5)).toBeLessThan(1.25);
});

test("what waits is served however much there is of what needs no seat", async () => {
  const clock = stoppedClock();
  const fairness = each(["mouse"], 40, clock);
  const exempt = { name: "root", groups: ["system:masters", "system:authenticated"] };
  let asked = 0;
  const busy = (): void => {
    for (let i = 0; i < 64; i++, asked++) {
      const ticket = fairness.enter(request(), POD, exempt) as Ticket;
      clock.pass(0.5);
      ticket.done();
    }
    if (clock.uptimeMs() < 4000) later(busy);
  };
  later(busy);
  const { mouse } = await closedLoop(fairness, clock, { ms: 4000, users: [{ name: "mouse", clients: 80, costMs: 0.5 }] });
  expect(mouse! / asked).toBeGreaterThan(0.5);
  expect(mouse! / asked).toBeLessThan(2);
});

test("a request that takes many seats is served though seats of others, who are done, are not given back yet", async () => {
  const clock = stoppedClock();
  const levels = ["lender", "borrower"].map((name) => ({ metadata: { name }, spec: { type: "Limited", limited: { nominalConcurrencyShares: 1000, lendablePercent: 90, limitResponse: { type: "Queue", queuing: { queues: 8, handSize: 1, queueLengthLimit: 500 } } } } }) as unknown as PriorityLevelConfiguration);
  const schemas = levels.map(({ metadata: { name } }) => ({ metadata: { name }, spec: { ...SUGGESTED_SCHEMAS.at(-1)!.spec, rules: [{ subjects: [{ kind: "User", user: { name } }], resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], namespaces: ["*"], clusterScope: true }] }], matchingPrecedence: 2, priorityLevelConfiguration: { name } } }) as unknown as FlowSchema);
  const fairness = new Fairness({ seats: 400, schemas: () => schemas, levels: () => levels, sizeOf: () => ({ objects: 1000, bytesEach: () => 10_000, watchers: 0 }), clock, later });
  const borrowed = Array.from({ length: 400 }, () => fairness.enter(request(), POD, user("borrower")));
  clock.pass(10_000);
  fairness.adjust();
  expect([borrowed.length, fairness.levels.get("lender")!.queues.limit]).toEqual([400, 20]);
  for (let i = 0; i < 10; i++) (fairness.enter(request(), POD, user("lender")) as Ticket).done();
  let isServed = false;
  void Promise.resolve(fairness.enter({ ...request(), query: new URLSearchParams("limit=500&continue=x") } as ServerRequest, info("/api/v1/pods"), user("lender"))).then((ticket) => { isServed = true; ticket.done(); });
  for (let i = 0; i < 4; i++) await turn();
  expect(isServed).toBe(true);
});

test("who has seats enough waits for no turn, and none is looked for", async () => {
  const clock = stoppedClock();
  let looks = 0;
  const fairness = new Fairness({ seats: 600, schemas: () => SUGGESTED_SCHEMAS, levels: () => SUGGESTED_LEVELS, sizeOf: () => undefined, clock, later: (work) => { looks++; later(work); } });
  const half = Math.floor(fairness.levels.get("global-default")!.queues.limit / 2);
  for (let i = 0; i < half; i++) (fairness.enter(request(), POD, user("jane")) as Ticket).done();
  expect(looks).toBe(0);
  (fairness.enter(request(), POD, user("jane")) as Ticket).done();
  expect([looks, fairness.levels.get("global-default")!.queues.seatsInUse]).toEqual([1, half + 1]);
  await turn();
  expect(fairness.levels.get("global-default")!.queues.seatsInUse).toBe(0);
});

test("a queue holds so many and no more", () => {
  const clock = stoppedClock();
  const fairness = small(1, { type: "Queue", queuing: { queues: 1, handSize: 1, queueLengthLimit: 2 } }, clock);
  for (let i = 0; i < 3; i++) void fairness.enter(request(), info("/api/v1/namespaces/a/pods/b", "PUT"), user("jane"));
  clock.pass(2);
  expect(() => fairness.enter(request(), POD, user("jane"))).toThrow("too many requests: queue-full");
  const metrics = metricsRegistry();
  flowMetrics(metrics, fairness);
  const text = metrics.render();
  for (const line of [
    'apiserver_flowcontrol_current_inqueue_requests{flow_schema="all",priority_level="small"} 2', 'apiserver_flowcontrol_current_executing_seats{flow_schema="all",priority_level="small"} 1',
    'apiserver_flowcontrol_priority_level_request_utilization_sum{phase="waiting",priority_level="small"} 2000000', 'apiserver_flowcontrol_priority_level_request_utilization_sum{phase="executing",priority_level="small"} 2000000',
    'apiserver_flowcontrol_read_vs_write_current_requests_sum{phase="executing",request_kind="mutating"} 2000000',
    'apiserver_flowcontrol_watch_count_samples_count{flow_schema="all",priority_level="small"} 3',
    'apiserver_flowcontrol_rejected_requests_total{flow_schema="all",priority_level="small",reason="queue-full"} 1', 'apiserver_flowcontrol_nominal_limit_seats{priority_level="small"} 1',
  ]) expect(text).toContain(line);
  clock.pass(1_000);
  expect(metrics.render()).toContain('apiserver_current_inqueue_requests{request_kind="mutating"} 2\napiserver_current_inqueue_requests{request_kind="readOnly"} 0');
});

test("flows are counted from their first request on, those that wait for nothing as having waited for no time", async () => {
  const clock = stoppedClock();
  const fairness = small(1, { type: "Queue", queuing: { queues: 1, handSize: 1, queueLengthLimit: 1 } }, clock);
  const metrics = metricsRegistry();
  flowMetrics(metrics, fairness);
  const counts = (): readonly string[] => metrics.render().split("\n").filter((line) => /^apiserver_flowcontrol_/.test(line) && line.includes("flow_schema=") && !/_(bucket|sum)\{/.test(line)).map((line) => line.slice("apiserver_flowcontrol_".length).replace('flow_schema="all",priority_level="small"', "…")).sort();
  expect(counts()).toEqual([]);

  const first = fairness.enter(request(), POD, user("jane")) as Ticket;
  expect(counts()).toEqual([
    "current_executing_requests{…} 1", "current_executing_seats{…} 1", "current_inqueue_requests{…} 0", "current_inqueue_seats{…} 0", "dispatched_requests_total{…} 1",
    "request_queue_length_after_enqueue_count{…} 1", 'request_wait_duration_seconds_count{execute="true",…} 1', "work_estimated_seats_count{…} 1",
  ]);

  void fairness.enter(request(), POD, user("jane"));
  expect(() => fairness.enter(request(), POD, user("jane"))).toThrow("queue-full");
  first.done();
  await turn();
  expect(counts()).not.toContainEqual(expect.stringContaining("no_accommodation")); // of what is too wide alone
  expect(counts()).toEqual(expect.arrayContaining([
    'request_execution_seconds_count{…,type="regular"} 1', "request_queue_length_after_enqueue_count{…} 2", 'request_wait_duration_seconds_count{execute="false",…} 1',
  ]));
});

test("a hand is of different cards of the deck, and evenly dealt", () => {
  const seen = new Array<number>(16).fill(0);
  for (let i = 0; i < 4000; i++) {
    const hand = dealHand(Bun.hash.wyhash(String(i)), 16, 4);
    expect(new Set(hand).size).toBe(4);
    for (const card of hand) seen[card]!++;
  }
  expect(Math.min(...seen)).toBeGreaterThan(850);
  expect(Math.max(...seen)).toBeLessThan(1150);
});

test("seats go where they are wanted, within each level's bounds", () => {
  const { seats } = allocate(100, [{ lower: 10, upper: 100, target: 5 }, { lower: 0, upper: 30, target: 90 }, { lower: 0, upper: 100, target: 60 }]);
  expect(seats.map(Math.round)).toEqual([10, 30, 60]);
  expect(allocate(10, [{ lower: 10, upper: 20, target: 1 }, { lower: 5, upper: 20, target: 9 }]).seats).toEqual([10, 5]);
  expect(limitsOf({ type: "Limited", limited: { nominalConcurrencyShares: 1, lendablePercent: 50, borrowingLimitPercent: 25, limitResponse: { type: "Reject" } } }, 100, 10)).toEqual({ nominal: 10, lower: 5, upper: 13 });
});

test.each<[what: string, exempt: number, wanted: readonly number[], seats: readonly number[]]>([
  ["more than there is: each other level has what it does not lend", 970, [970, 970, 970], [120, 60, 30]],
  ["so much that what others claim is short by half", 870 - (180 + 330 + 30), [970, 970, 970], [180, 330, 30]],
  ["what one lends that wants nothing", 870 - (240 + 60 + 30), [970, 1, 970], [240, 60, 30]],
  ["nothing: all have the same share of what they want", 0, [400, 1, 30], [710, 107, 53]],
])("the exempt level takes %s", (_, exempt, wanted, seats) => {
  const levels = [{ nominal: 240, lower: 120, upper: 1110 }, { nominal: 600, lower: 60, upper: 1470 }, { nominal: 30, lower: 30, upper: 900 }];
  const found = shareSeats({ nominal: 870, exempt, claims: levels.map((limits, i) => claimOf(limits, wanted[i]!, wanted[i]!)) }).seats;
  expect(found).toEqual(seats);
});

test("what the exempt level takes is measured, and taken from the others; what was borrowed stays so when an object changes", () => {
  const clock = stoppedClock();
  const fairness = server({ clock });
  const limits = () => Object.fromEntries([...fairness.levels].map(([name, { queues }]) => [name, queues.limit]));
  const idle = limits();
  for (let i = 0; i < 400; i++) void fairness.enter(request(), POD, user("admin", "system:masters"));
  clock.pass(10_000);
  fairness.adjust();
  expect([fairness.levels.get("exempt")!.peak, limits()["exempt"]]).toEqual([400, 400]);
  expect(limits()["workload-low"]).toBeLessThan(idle["workload-low"]!);
  const before = limits();
  clock.pass(1);
  fairness.changed();
  expect(limits()).toEqual(before);
});

test("after ten busy seconds a level has borrowed from one that is idle", () => {
  const clock = stoppedClock();
  const fairness = server({ clock });
  for (let i = 0; i < 200; i++) void fairness.enter(request(), POD, user(`u${i}`));
  clock.pass(10_000);
  fairness.adjust();
  expect(fairness.levels.get("global-default")!.queues.limit).toBeGreaterThan(150);
  expect(fairness.levels.get("workload-low")!.queues.limit).toBeLessThan(245);
  const sum = [...fairness.levels.values()].reduce((total, { queues }) => total + queues.limit, 0);
  expect(Math.abs(sum - 602)).toBeLessThan(8);
});

test.each<[string, RequestInfo, string, number, number, number?]>([
  ["a get", POD, "", 1, 0],
  ["a list", info("/api/v1/pods"), "", 9, 0],
  ["a list of big objects that are in memory", info("/api/v1/secrets"), "resourceVersion=0", 10, 0],
  ["a page of a list", info("/api/v1/pods"), "limit=100", 2, 0],
  ["a page of a list as it was", info("/api/v1/pods"), "limit=100&continue=x", 2, 0],
  ["a page of some of a list as it was", info("/api/v1/pods"), "limit=100&resourceVersion=5&labelSelector=a", 5, 0],
  ["a list of big objects as it was", info("/api/v1/secrets"), "resourceVersion=5&resourceVersionMatch=Exact", 36, 0],
  ["a list of one", info("/api/v1/pods", "GET", "fieldSelector=metadata.name=a"), "", 1, 0],
  ["a list of a big one", info("/api/v1/secrets", "GET", "fieldSelector=metadata.name=a"), "", 2, 0],
  ["a watch with what is there, though not as a list", info("/api/v1/pods", "GET", "watch=1"), "watch=1&sendInitialEvents=false", 9, 0],
  ["a watch with what is there", info("/api/v1/pods", "GET", "watch=1"), "watch=1", 9, 0],
  ["a watch from a version", info("/api/v1/pods", "GET", "watch=1"), "watch=1&resourceVersion=7", 1, 0],
  ["a write that many watch", info("/api/v1/namespaces/a/pods", "POST"), "", 1, 15, 25],
  ["a lease that many watch", info("/apis/coordination.k8s.io/v1/namespaces/a/leases/b", "PUT"), "", 1, 15, 25],
  ["a list of leases", info("/apis/coordination.k8s.io/v1/leases"), "limit=1", 2, 0],
  ["a token", info("/api/v1/namespaces/a/serviceaccounts/b/token", "POST"), "", 1, 0],
])("the work of %s", (_, asked, query, seats, afterMs, watchers) => {
  expect(estimateWork(asked, new URLSearchParams(query), ({ resource }) => ({ objects: 450, bytesEach: () => (resource === "pods" ? 2_000 : 200_000), watchers: 25 }), 36)).toEqual({ seats, afterMs, watchers });
});

test("how large objects are is found out from a few of them, once a minute", () => {
  const clock = stoppedClock();
  let looked = 0;
  const object = (length: number) => ({ get jsonLength() { looked++; return length; }, object: {} }) as never;
  const cache = { size: 160, values: () => Array.from({ length: 160 }, (_, i) => object(i % 20 === 0 ? 1000 : 3000)), listenersOf: () => 0 };
  const sizes = new ResourceSizes(clock);
  const each = (): number => sizes.of({ storeOf: () => ({ cache, keyOf: () => "" }) as never }, POD as never)!.bytesEach();
  expect([each(), each(), looked]).toEqual([2000, 2000, 16]);
  clock.pass(60_000);
  expect([each(), looked]).toEqual([2000, 32]);
});

test("who has little time waits for a quarter of it, and may ask again", async () => {
  const clock = stoppedClock();
  const fairness = small(1, { type: "Queue", queuing: { queues: 4, handSize: 1, queueLengthLimit: 4 } }, clock);
  void fairness.enter(request(), POD, user("holder"));
  const entered = fairness.enter({ ...request(), query: new URLSearchParams("timeout=5s") } as ServerRequest, POD, user("leader")) as Promise<Ticket>;
  const end = entered.catch((error: Error) => error.message);
  clock.pass(1_250);
  expect(await end).toBe("too many requests: time-out");
});

test.each<[requestMs: number, waitMs: number]>([[120_000, 30_000], [300_000, 60_000]])("where answers are waited for longer, so are turns, up to a minute: %i ms, %i ms", async (requestMs, waitMs) => {
  const clock = stoppedClock();
  const fairness = small(1, { type: "Queue", queuing: { queues: 4, handSize: 1, queueLengthLimit: 4 } }, clock, { requestMs });
  void fairness.enter(request(), POD, user("holder"));
  let told = "";
  const end = (fairness.enter(request(), POD, user("leader")) as Promise<Ticket>).catch((error: Error) => { told = error.message; });
  clock.pass(waitMs - 1);
  await Bun.sleep(0);
  expect(told).toBe("");
  clock.pass(1);
  await end;
  expect(told).toBe("too many requests: time-out");
});

test("a thousand nodes that watch what is their own make no write cost more; who watches everything does", async () => {
  const registry = await memoryRegistry();
  const watch = (resource: string, selection: Selection) => {
    const store = registry.storeOf("", resource)!;
    store.cache.listen(() => {}, store.topicOf(selection));
  };
  for (let i = 0; i < 1000; i++) {
    watch("pods", { namespace: "", nodeName: `n${i}` });
    watch("nodes", { namespace: "", name: `n${i}` });
    watch("secrets", { namespace: "a", name: `s${i}` });
  }
  const sizes = new ResourceSizes(systemClock);
  const afterMs = (path: string, method: string): number => estimateWork(info(path, method), new URLSearchParams(), (asked) => sizes.of(registry, asked), 10).afterMs;
  const writes = [["/api/v1/namespaces/a/pods/b/status", "PATCH"], ["/api/v1/namespaces/a/pods", "POST"], ["/api/v1/nodes/n1/status", "PATCH"], ["/api/v1/namespaces/a/secrets/s1", "PUT"]] as const;
  expect(writes.map(([path, method]) => afterMs(path, method))).toEqual([0, 0, 0, 0]);
  for (let i = 0; i < 15; i++) for (const namespace of ["", "a", "other"]) for (const resource of ["pods", "nodes", "secrets"]) if (namespace === "" || resource !== "nodes") watch(resource, { namespace });
  expect(writes.map(([path, method]) => afterMs(path, method))).toEqual([15, 15, 10, 20]);
});

test("objects are kept up: missing ones made, ours corrected, users' left alone, those marked as ours and unknown taken away", () => {
  const done = (object: FlowSchema, change: object, annotation: string | undefined, generation: number): FlowSchema =>
    ({ ...object, metadata: { ...object.metadata, generation, annotations: annotation === undefined ? undefined : { [AUTO_UPDATE]: annotation } }, spec: { ...object.spec, ...change } }) as unknown as FlowSchema;
  const [nodes, high, probes, election, manager] = SUGGESTED_SCHEMAS as [FlowSchema, FlowSchema, FlowSchema, FlowSchema, FlowSchema];
  const existing = [
    ...MANDATORY_SCHEMAS.map((one) => done(one, {}, "false", 3)), done(nodes, { matchingPrecedence: 7 }, "true", 2), done(high, { matchingPrecedence: 7 }, "false", 2), done(probes, { matchingPrecedence: 7 }, undefined, 1),
    done(election, { matchingPrecedence: 7 }, undefined, 2), done({ ...manager, metadata: { ...manager.metadata, name: "old" } }, {}, "true", 1), done({ ...manager, metadata: { ...manager.metadata, name: "mine" } }, {}, undefined, 1),
  ];
  const actions = planUpkeep(existing, MANDATORY_SCHEMAS, SUGGESTED_SCHEMAS);
  expect(actions.map((one) => (one.type === "delete" ? `delete ${one.name}` : `${one.type} ${one.object.metadata.name} ${one.object.metadata.annotations?.[AUTO_UPDATE]} ${one.object.spec!.matchingPrecedence}`))).toEqual([
    "update exempt true 1", "update catch-all true 10000", "update system-nodes true 500", "update probes true 2", "update system-leader-election false 7",
    "create kube-controller-manager true 800", "create kube-scheduler true 800", "create kube-system-service-accounts true 900", "create service-accounts true 9000", "create global-default true 9900", "delete old",
  ]);
});

test("a schema whose level is missing dangles, and says so once", () => {
  const [schema] = SUGGESTED_SCHEMAS as [FlowSchema];
  const told = dangling(schema, new Set());
  expect(told).toEqual({ type: "Dangling", status: "True", reason: "NotFound", message: 'This FlowSchema references the PriorityLevelConfiguration object named "system" but there is no such object' });
  expect(dangling({ ...schema, status: { conditions: [told as never] } }, new Set())).toBeUndefined();
  expect(dangling(schema, new Set(["system"]))?.reason).toBe("Found");
});

test("what could not be told of a schema is told later, though nothing has changed", async () => {
  const [schema] = SUGGESTED_SCHEMAS as [FlowSchema];
  const none = { list: () => [], onChange: () => () => undefined, whenSynced: () => Promise.resolve() };
  const end = new AbortController();
  let told = 0;
  const apply = (): Promise<unknown> => {
    if (++told === 1) return Promise.reject(new Error("the store does not answer"));
    end.abort();
    return Promise.resolve();
  };
  const clock = { ...systemClock, async *every() {}, sleep: () => Promise.resolve(), after: (_: number, work: () => void) => { later(work); return { cancel: () => undefined }; } };
  const upkeep = fairnessUpkeep({ fairness: server(), schemas: { ...none, list: () => [schema] }, levels: none, schemaClient: { apply }, levelClient: {}, clock, log: silentLog } as unknown as Parameters<typeof fairnessUpkeep>[0]);
  await upkeep.run(end.signal, () => undefined);
  expect(told).toBe(2);
});

test("without it so many requests read and so many write at once, whoever sends them; administrators and watches always do", () => {
  const enter = maxInFlight({ reading: 2, writing: 1 });
  const anybody = user("anybody");
  const ask = (one: RequestInfo, who = anybody): Ticket => enter(request(), one, who);
  const write = info("/api/v1/namespaces/a/pods", "POST");
  const first = ask(POD);
  ask(info("/readyz"));
  expect(() => ask(POD)).toThrow("too many requests: concurrency-limit");
  for (const free of [info("/api/v1/pods", "GET", "watch=true")]) expect(() => ask(free)).not.toThrow();
  expect(() => ask(POD, user("admin", "system:masters"))).not.toThrow();
  const head = ask(info("/readyz", "HEAD")); // of what is no resource it is a verb of its own, and none that reads
  expect(() => ask(write)).toThrow("too many requests: concurrency-limit");
  head.done();
  ask(write);
  const refused = (() => { try { return ask(write); } catch (error) { return error; } })();
  expect(refused).toMatchObject({ retryAfter: 1, answer: expect.objectContaining({ status: 429 }) });
  first.done();
  expect(() => ask(POD)).not.toThrow();
  const unlimited = maxInFlight({ reading: 0, writing: 0 });
  for (let i = 0; i < 1000; i++) expect(() => unlimited(request(), write, anybody)).not.toThrow();
});

test("the objects a server is born with are those of upstream's producer", async () => {
  await using api = await apiServer();
  const client = api.client.resource(FLOW_SCHEMAS), { signal } = api;
  const [object] = SUGGESTED_SCHEMAS;
  await act(client, { type: "create", object: object! }, signal);
  const made = await client.get(object!, { signal });
  await act(client, { type: "update", object: { ...made, spec: { ...made.spec!, matchingPrecedence: 7 } } }, signal);
  expect((await client.get(object!, { signal })).metadata.managedFields?.map(({ manager }) => manager)).toEqual(["api-priority-and-fairness-config-producer-v1"]);
});
