import { expect, test } from "vitest";
import { forbidden } from "../api/meta/status-error.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { systemRandom } from "../lifecycle/random.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
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
