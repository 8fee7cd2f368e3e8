import { expect, test } from "vitest";
import { forbidden, unauthorized } from "../api/meta/status-error.ts";
import { ANONYMOUS, type UserInfo } from "../api/request/user.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { refuse as refuseCredentials } from "../authn/authn.ts";
import { componentHandler } from "./component.ts";
import { FLOW_HEADERS, TooManyRequests } from "./fairness/too-many-requests.ts";
import { apiHandler } from "./handler.ts";
import type { ServerDeps } from "./scope.ts";
import type { ServerRequest } from "./request.ts";

const user = { name: "ann", groups: [] };
const refuse = { authorize: () => ({ decision: "deny", reason: "" }) };
const nobody = { impersonate: () => Promise.reject(forbidden({ group: "", resource: "users" }, "bob", "no")) };

test.each<[who: string, deps: object]>([["authorization", { authorizer: refuse }], ["impersonation", nobody]])("what %s refuses is not to be taken by a browser for what it is not", async (_, deps) => {
  const headers = new Map<string, string>();
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(), ...deps,
  } as unknown as ServerDeps, {});
  const answer = await handler({ method: "GET", path: "/api/v1/pods", query: new URLSearchParams(), header: () => undefined, signal: new AbortController().signal, setHeader: (name: string, value: string) => void headers.set(name, value) } as unknown as ServerRequest);
  expect(answer).toMatchObject({ type: "object", status: 403 });
  expect(headers.get("X-Content-Type-Options")).toBe("nosniff");
});

test("what is to be said of how somebody was known is said with a refusal, too", async () => {
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user, warnings: ["an old token"] }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: refuse, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  } as unknown as ServerDeps, {});
  const answer = await handler({ method: "GET", path: "/api/v1/pods", query: new URLSearchParams(), header: () => undefined, signal: new AbortController().signal, setHeader: () => undefined } as unknown as ServerRequest);
  expect(answer).toMatchObject({ type: "object", status: 403, warnings: ["an old token"] });
});

test("whether something is allowed that could not be found out is answered with a text, and counted as an error", async () => {
  const metrics = metricsRegistry();
  const undecided = { authorize: () => ({ decision: "no-opinion", reason: "", error: "an error on the server (\"<boom>\")" }) };
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: undecided, clock: systemClock, random: systemRandom, log: silentLog, metrics,
  } as unknown as ServerDeps, {});
  const answer = await handler({ method: "GET", path: "/api/v1/pods", query: new URLSearchParams("watch=1&x=2"), wire: { rawQuery: "watch=1&x=2" }, header: () => undefined, signal: new AbortController().signal } as unknown as ServerRequest) as { body: unknown };
  expect(answer).toMatchObject({ type: "raw", status: 500 });
  expect(String(answer.body)).toBe('Internal Server Error: "/api/v1/pods?watch=1&amp;x=2": an error on the server ("&lt;boom&gt;")\n');
  expect(metrics.render()).toContain('authorization_attempts_total{result="error"} 1');
});

test.each<[string, Error, string]>([["what does not hold", refuseCredentials("bad signature"), "error"], ["nothing where something must be", unauthorized(), "failure"]])("%s: shown to authentication, it is counted as such", async (_, refusal, result) => {
  const metrics = metricsRegistry();
  const handler = apiHandler({ authenticator: { authenticate: () => Promise.reject(refusal) }, clock: systemClock, random: systemRandom, log: silentLog, metrics } as unknown as ServerDeps, {});
  await handler({ method: "GET", path: "/api/v1/pods", query: new URLSearchParams(), header: () => undefined, signal: new AbortController().signal } as unknown as ServerRequest);
  expect(metrics.render()).toContain(`authentication_attempts{result="${result}"} 1`);
});

test("what is not served, or refused on the way there, has no series of its own: there is no end of such names", async () => {
  const metrics = metricsRegistry();
  const decided = { authorize: ({ path }: { path: string }) => ({ decision: path.includes("secret") ? "deny" : "allow", reason: "" }) };
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: decided, registry: { find: () => undefined }, paths: [], clock: systemClock, random: systemRandom, log: silentLog, metrics,
  } as unknown as ServerDeps, {});
  const codes = await Promise.all(["/api/v1/guess7", "/apis/guess8.example.com/v1/namespaces/a/things/b", "/api/v1/secret9", "/guess10"].map(async (path) =>
    ((await handler({ method: "GET", path, query: new URLSearchParams(), header: () => undefined, signal: new AbortController().signal } as unknown as ServerRequest)) as { status: number }).status));
  expect(codes).toEqual([404, 404, 403, 404]);
  expect(metrics.render()).not.toMatch(/^apiserver_(request_(?!filter_)|response_)/m);
});

test("who is told to come again later is counted, of what is served", async () => {
  const metrics = metricsRegistry();
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), fairness: () => { throw new TooManyRequests("queue-full", 1); }, registry: { find: (_: string, __: string, resource: string) => (resource === "pods" ? {} : undefined) },
    clock: systemClock, random: systemRandom, log: silentLog, metrics,
  } as unknown as ServerDeps, {});
  for (const resource of ["pods", "guesses"]) expect(await handler({ method: "GET", path: `/api/v1/${resource}`, query: new URLSearchParams(), header: () => undefined, signal: new AbortController().signal } as unknown as ServerRequest)).toMatchObject({ status: 429 });
  expect(metrics.render()).toMatch(/^apiserver_request_total\{code="429",.*resource="pods"/m);
  expect(metrics.render()).not.toContain("guesses");
});

test("what another server may serve is not there and not missing until it is known who serves what", async () => {
  const aggregation = { synced: false, answer: () => undefined };
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: { authorize: () => ({ decision: "allow", reason: "" }) }, aggregation,
    registry: { find: () => undefined }, paths: [], special: () => undefined, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  } as unknown as ServerDeps, {});
  const ask = async (path: string) => (await handler({ method: "GET", path, query: new URLSearchParams(), header: () => undefined, signal: new AbortController().signal } as unknown as ServerRequest)) as { status: number; object?: object };
  expect(await ask("/apis/custom.metrics.k8s.io/v1beta1/nodes")).toMatchObject({ status: 503, object: { reason: "ServiceUnavailable", message: "the request has been made before all known HTTP paths have been installed, please try again", details: { retryAfterSeconds: 5 } } });
  expect((await ask("/apis/apps/v1/guesses")).status).toBe(404);
  aggregation.synced = true;
  expect((await ask("/apis/custom.metrics.k8s.io/v1beta1/nodes")).status).toBe(404);
});

test("who is answered that it took too long is not told whose turn it took, as upstream answers before it knows", async () => {
  const headers = new Map<string, string>();
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: { authorize: () => ({ decision: "allow", reason: "" }) },
    fairness: ({ setHeader }: ServerRequest) => { for (const name of FLOW_HEADERS) setHeader!(name, "uid"); return { done: () => undefined }; }, aggregation: { answer: () => new Promise(() => undefined) },
    registry: { find: () => undefined }, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  } as unknown as ServerDeps, {});
  const setHeader = (name: string, value: string | undefined): void => void (value === undefined ? headers.delete(name) : headers.set(name, value));
  expect(await handler({ method: "GET", path: "/apis/g/v1/things", query: new URLSearchParams("timeout=50ms"), header: () => undefined, signal: new AbortController().signal, setHeader } as unknown as ServerRequest)).toMatchObject({ status: 504 });
  expect([...headers.keys()]).toEqual(["Audit-Id"]);
});

test.each<[what: string, query: string, held: boolean]>([["a watch", "watch=1", false], ["a list", "", true]])("%s that another server is asked for holds its seat until that has answered: %s", async (_, query, held) => {
  let isHeld = true;
  let asked = (): void => {};
  const isAsked = new Promise<void>((resolve) => (asked = resolve));
  const gone = new AbortController();
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: { authorize: () => ({ decision: "allow", reason: "" }) },
    fairness: () => ({ done: () => { isHeld = false; } }), aggregation: { answer: () => { asked(); return new Promise((_resolve, reject) => gone.signal.addEventListener("abort", () => reject(new Error("gone")))); } },
    registry: { find: () => undefined }, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  } as unknown as ServerDeps, {});
  const answer = handler({ method: "GET", path: "/apis/g/v1/things", query: new URLSearchParams(query), header: () => undefined, signal: gone.signal } as unknown as ServerRequest);
  await isAsked;
  await Promise.resolve();
  expect(isHeld).toBe(held);
  gone.abort();
  await answer;
  expect(isHeld).toBe(false);
});

test.each<[who: string, leaves: "before" | "after"]>([["has gone already", "before"], ["goes then", "after"]])("of what lasts the end is recorded, too, if who asked %s", async (_, leaves) => {
  const stages: string[] = [], gone = new AbortController();
  const nothing = (): void => undefined;
  const record = { annotate: nothing, took: nothing, respond: nothing, recorded: () => Promise.resolve(), stage: (stage: string) => void stages.push(stage) };
  const handler = apiHandler({
    authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: { authorize: () => ({ decision: "allow", reason: "" }) }, audit: { begin: () => record },
    aggregation: { answer: () => { if (leaves === "before") gone.abort(); return Promise.resolve({ type: "raw", status: 200, headers: {}, body: "" }); } },
    registry: { find: () => undefined }, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  } as unknown as ServerDeps, {});
  await handler({ method: "GET", path: "/apis/g/v1/namespaces/a/things/b/log", query: new URLSearchParams(), header: () => undefined, signal: gone.signal } as unknown as ServerRequest);
  gone.abort();
  expect(stages).toEqual(["ResponseStarted", "ResponseComplete"]);
});

test.each(["is not known who asks", "is not yet their turn"])("a turn that comes when its request has been answered, as it took too long while it %s, is given back", async (why) => {
  const slow = Promise.withResolvers<void>(), isKnown = why !== "is not known who asks";
  let taken = 0, verbs = 0;
  const ticket = () => {
    taken++;
    return { done: () => void taken-- };
  };
  const handler = apiHandler({
    authenticator: { authenticate: async () => { if (!isKnown) await slow.promise; return { user }; } }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: { authorize: () => ({ decision: "allow", reason: "" }) },
    fairness: () => (isKnown ? slow.promise.then(ticket) : ticket()), registry: { find: () => undefined }, paths: [() => { verbs++; }], special: () => undefined, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry(),
  } as unknown as ServerDeps, {});
  expect(await handler({ method: "GET", path: "/version", query: new URLSearchParams("timeout=20ms"), header: () => undefined, signal: new AbortController().signal } as unknown as ServerRequest)).toMatchObject({ status: 504 });
  slow.resolve();
  await Bun.sleep(0);
  expect({ taken, verbs }).toEqual({ taken: 0, verbs: 0 });
});

test("a request is known by the name its client gave it, however long that is", async () => {
  const headers = new Map<string, string>(), name = "n".repeat(70);
  const handler = apiHandler({ authenticator: { authenticate: () => Promise.resolve({ user }) }, impersonate: () => Promise.resolve({ user, constraint: "" }), authorizer: refuse, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry() } as unknown as ServerDeps, {});
  await handler({ method: "GET", path: "/api/v1/pods", query: new URLSearchParams(), header: (asked: string) => (asked === "audit-id" ? name : undefined), signal: new AbortController().signal, setHeader: (header: string, value: string) => void headers.set(header, value) } as unknown as ServerRequest);
  expect(headers.get("Audit-Id")).toBe(name);
});

test.each<[who: string, isLast: boolean, user: UserInfo]>([
  ["nobody", true, ANONYMOUS], ["whoever an authenticator counts among strangers", true, { name: "guest", groups: ["system:unauthenticated"] }], ["somebody", false, user],
])("the request of %s is the last one of its connection: %s", async (_, isLast, caller) => {
  let closed = 0;
  const authenticator = { authenticate: () => Promise.resolve({ user: caller }) };
  const request = { method: "GET", path: "/version", query: new URLSearchParams(), header: () => undefined, signal: new AbortController().signal, takeNoMore: () => closed++ } as unknown as ServerRequest;
  await apiHandler({ authenticator, impersonate: () => Promise.resolve({ user: caller, constraint: "" }), authorizer: refuse, clock: systemClock, random: systemRandom, log: silentLog, metrics: metricsRegistry() } as unknown as ServerDeps, {})(request);
  await componentHandler({ authenticator, authorizer: refuse, paths: [], log: silentLog } as unknown as Parameters<typeof componentHandler>[0])(request);
  expect(closed).toBe(isLast ? 2 : 0);
});
