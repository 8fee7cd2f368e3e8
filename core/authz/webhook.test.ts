import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import type { SubjectAccessReviewSpec } from "../api/gen/authorization.v1.ts";
import type { Attributes } from "../api/request/attributes.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { authorizationConfiguration, type WebhookSettings } from "./configuration.ts";
import { matchCondition } from "./match-conditions.ts";
import { reviewSpec, webhookAuthorizer } from "./webhook.ts";

const asked: SubjectAccessReviewSpec[] = [];
let status: object = { allowed: true, reason: "because" };
let failing = false;
let silent = false;
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => { body += String(chunk); });
  request.on("end", () => {
    const review = JSON.parse(body) as { spec: SubjectAccessReviewSpec };
    asked.push(review.spec);
    if (silent) return;
    if (failing) response.writeHead(400).end("no");
    else response.end(JSON.stringify({ ...review, status }));
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => { server.closeAllConnections(); server.close(); });

let uptimeMs = 0;
const clock: Clock = { ...systemClock, uptimeMs: () => uptimeMs, sleep: async () => undefined };
const standard: WebhookSettings = { authorizedMs: 300_000, unauthorizedMs: 30_000, cacheAuthorized: true, cacheUnauthorized: true, timeoutMs: 3_000, version: "v1", failurePolicy: "NoOpinion", kubeconfigFile: "/x", matchConditions: [] };
const webhook = (settings: Partial<WebhookSettings> = {}) => webhookAuthorizer({ name: "w", settings: { ...standard, ...settings }, server: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, tls: {} }, clock, log: silentLog });
const get = (more: object = {}): Attributes => ({ isResource: true, verb: "list", group: "", version: "v1", resource: "pods", subresource: "", namespace: "a", name: "", path: "", user: { name: "jane", groups: ["g"] }, ...more }) as Attributes;

test("is asked once and remembered: for long what it allows, not so long what it does not", async () => {
  const one = webhook();
  asked.length = 0;
  expect([await one.authorize(get()), await one.authorize(get()), asked.length]).toEqual([{ decision: "allow", reason: "because" }, { decision: "allow", reason: "because" }, 1]);
  status = { allowed: false };
  expect(await one.authorize(get({ name: "x" }))).toEqual({ decision: "no-opinion", reason: "" });
  uptimeMs += 30_001;
  status = { allowed: false, denied: true, reason: "no" };
  expect([await one.authorize(get({ name: "x" })), (await one.authorize(get())).decision]).toEqual([{ decision: "deny", reason: "no" }, "allow"]);
  expect(asked).toHaveLength(3);
});

test("without an answer its failure policy decides", async () => {
  failing = true;
  expect([(await webhook().authorize(get())).decision, (await webhook({ failurePolicy: "Deny" }).authorize(get())).decision]).toEqual(["no-opinion", "deny"]);
  failing = false;
});

test("who does not answer in time is not asked again", async () => {
  silent = true;
  asked.length = 0;
  expect([(await webhook({ failurePolicy: "Deny", timeoutMs: 50 }).authorize(get())).decision, asked.length]).toEqual(["deny", 1]);
  silent = false;
});

test("conditions say whether it is asked; one that fails is as no answer", async () => {
  const conditions = (...texts: string[]) => webhook({ failurePolicy: "Deny", matchConditions: texts.map(matchCondition) });
  asked.length = 0;
  expect([(await conditions("request.user == 'joe'").authorize(get())).decision, asked.length]).toEqual(["no-opinion", 0]);
  expect((await conditions("has(request.resourceAttributes) && request.resourceAttributes.namespace == 'a'", "'g' in request.groups").authorize(get())).decision).toBe("deny");
  expect(asked).toHaveLength(1);
  expect((await conditions("request.nonResourceAttributes.path == '/x'").authorize(get())).decision).toBe("deny"); // there is no such thing in this request
  expect((await conditions("request.nonResourceAttributes.path == '/x'", "request.user == 'joe'").authorize(get())).decision).toBe("no-opinion");
  expect(asked).toHaveLength(1);
});

test("what is asked: selectors as requirements, others by their path", () => {
  expect(reviewSpec(get({ fieldSelector: "spec.nodeName=n1,status.phase!=Failed", labelSelector: "app in (a,b),!old" })).resourceAttributes).toEqual({
    namespace: "a", verb: "list", group: "", version: "v1", resource: "pods", subresource: "", name: "",
    fieldSelector: { requirements: [{ key: "spec.nodeName", operator: "In", values: ["n1"] }, { key: "status.phase", operator: "NotIn", values: ["Failed"] }] },
    labelSelector: { requirements: [{ key: "app", operator: "In", values: ["a", "b"] }, { key: "old", operator: "DoesNotExist" }] },
  });
  expect(reviewSpec({ isResource: false, verb: "get", path: "/metrics", user: { name: "jane", uid: "1", groups: [], extra: { k: ["v"] } } })).toEqual({ user: "jane", uid: "1", groups: [], extra: { k: ["v"] }, nonResourceAttributes: { path: "/metrics", verb: "get" } });
});

describe("an AuthorizationConfiguration", () => {
  const read = (...authorizers: object[]) => authorizationConfiguration(JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AuthorizationConfiguration", authorizers }));
  const given = { timeout: "3s", subjectAccessReviewVersion: "v1", failurePolicy: "NoOpinion", connectionInfo: { type: "KubeConfigFile", kubeConfigFile: "/x" } };
  const hook = (more: object = {}) => ({ type: "Webhook", name: "w", webhook: { ...given, ...more } });

  test("with upstream's defaults", () => {
    expect(read({ type: "Node", name: "node" }, { type: "RBAC", name: "rbac" }, hook())).toEqual([{ type: "Node", name: "node" }, { type: "RBAC", name: "rbac" }, { type: "Webhook", name: "w", webhook: standard }]);
  });

  test.each<[object[], string]>([
    [[], "authorizers: Required value: at least one authorization mode must be defined"],
    [[{ type: "RBAC", name: "a" }, { type: "RBAC", name: "b" }], 'authorizers[1].type: Duplicate value: "RBAC"'],
    [[{ type: "Magic", name: "a" }], 'authorizers[0].type: Unsupported value: "Magic"'],
    [[{ type: "RBAC", name: "a", webhook: given }], 'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook'],
    [[{ type: "Webhook", name: "w" }], "authorizers[0].webhook: Required value: required when type=Webhook"],
    [[hook({ timeout: "1m" })], "must be > 0s and <= 30s"],
    [[hook({ failurePolicy: undefined })], "authorizers[0].webhook.failurePolicy: Required value"],
    [[hook({ connectionInfo: { type: "KubeConfigFile", kubeConfigFile: "x" } })], "must be an absolute path"],
    [[hook({ matchConditions: [{ expression: "true" }] })], "required if match conditions are specified"],
    [[hook({ matchConditionSubjectAccessReviewVersion: "v1", matchConditions: [{ expression: "request.verb == 'x'" }] })], "undefined field 'verb'"],
    [[hook({ matchConditionSubjectAccessReviewVersion: "v1", matchConditions: [{ expression: "'x'" }] })], "must evaluate to bool"],
  ])("cannot be: %#", (authorizers, told) => expect(() => read(...authorizers)).toThrow(told));
});
