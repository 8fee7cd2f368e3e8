import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, expect, test } from "vitest";
import type { SubjectAccessReviewSpec } from "../api/gen/authorization.v1.ts";
import type { Attributes } from "../api/request/attributes.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { silentLog } from "../observe/log.ts";
import { metricsRegistry } from "../observe/metrics.ts";
import { authorizerUnion, countedAuthorizer, decisionsCounter, superuserAuthorizer } from "./authz.ts";
import type { Authorizer } from "./authorizer.ts";
import { authorizationConfiguration, type WebhookSettings } from "./configuration.ts";
import { matchCondition } from "./match-conditions.ts";
import { evaluateReview } from "./reviews.ts";
import { reviewSpec, webhookAuthorizer, type WebhookMetrics, webhookMetrics } from "./webhook.ts";

const asked: SubjectAccessReviewSpec[] = [];
const sent: string[] = [];
let status: object = { allowed: true, reason: "because" };
let failing = false;
/** Of its answer, beside the status. */
let besides: object = {};
let silent = false;
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => { body += String(chunk); });
  request.on("end", () => {
    const review = JSON.parse(body) as { spec: SubjectAccessReviewSpec };
    asked.push(review.spec);
    sent.push(body);
    if (silent) return;
    if (failing) response.writeHead(400).end("no");
    else response.end(JSON.stringify({ ...review, status, ...besides }));
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => { server.closeAllConnections(); server.close(); });

let uptimeMs = 0;
const clock: Clock = { ...systemClock, uptimeMs: () => uptimeMs, sleep: async () => undefined };
const standard: WebhookSettings = { authorizedMs: 300_000, unauthorizedMs: 30_000, cacheAuthorized: true, cacheUnauthorized: true, timeoutMs: 3_000, version: "v1", failurePolicy: "NoOpinion", kubeconfigFile: "/x", matchConditions: [] };
const webhook = (settings: Partial<WebhookSettings> = {}, metrics?: WebhookMetrics) => webhookAuthorizer({ name: "w", settings: { ...standard, timeoutMs: 60_000, ...settings }, server: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, tls: {} }, clock, log: silentLog, metrics });
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

test("a yes in a review of another kind or version is none", async () => {
  const told: unknown[] = [];
  status = { allowed: true };
  for (const more of [{ kind: "Pod", apiVersion: "v1" }, { kind: "Other" }, { apiVersion: "authorization.k8s.io/v1beta1" }, { apiVersion: "authorization.example.com/v1" }, { kind: "", apiVersion: "" }]) {
    besides = more;
    const { decision, error } = await webhook({ failurePolicy: "Deny" }).authorize(get());
    told.push([decision, error]);
  }
  besides = {};
  const scheme = 'in scheme "k8s.io/client-go/kubernetes/scheme/register.go:82"';
  expect(told).toEqual([
    ["deny", "converting (v1.Pod) to (v1.SubjectAccessReview): unknown conversion"], ["deny", `no kind "Other" is registered for version "authorization.k8s.io/v1" ${scheme}`],
    ["deny", "converting (v1beta1.SubjectAccessReview) to (v1.SubjectAccessReview): unknown conversion"], ["deny", `no kind "SubjectAccessReview" is registered for version "authorization.example.com/v1" ${scheme}`], ["allow", undefined],
  ]);
});

test("what it says of who is in very many groups is remembered, too; what is asked with a name of 10 kB is not", async () => {
  status = { allowed: true };
  const one = webhook(), many = (count: number) => ({ user: { name: "jane", groups: Array.from({ length: count }, (_, i) => `cn=team-${i},ou=groups,dc=example,dc=com`) } });
  asked.length = 0;
  for (const more of [many(400), many(400), many(401), { name: "n".repeat(9_980) }, { name: "n".repeat(9_980) }, { name: "n".repeat(10_000) }, { name: "n".repeat(10_000) }]) await one.authorize(get(more));
  expect(asked.map(({ groups = [], resourceAttributes }) => groups.length + (resourceAttributes?.name?.length ?? 0))).toEqual([400, 401, 9_981, 10_001, 10_001]);
  status = { allowed: false, denied: true, reason: "no" };
});

test("without an answer its failure policy decides", async () => {
  failing = true;
  const error = "the server rejected our request for an unknown reason";
  expect([await webhook().authorize(get()), await webhook({ failurePolicy: "Deny" }).authorize(get())]).toEqual([{ decision: "no-opinion", reason: "", error }, { decision: "deny", reason: "", error }]);
  failing = false;
});

test("yes and no at once is no, and an error", async () => {
  status = { allowed: true, denied: true, reason: "both" };
  expect(await webhook().authorize(get())).toEqual({ decision: "deny", reason: "both", error: "webhook subject access review returned both allow and deny response" });
  status = { allowed: false, denied: true, reason: "no" };
});

test("what it says is read as Go reads it: null is nothing, and \"false\" is no answer", async () => {
  status = { allowed: true, denied: null, reason: null };
  expect(await webhook().authorize(get({ name: "nulls" }))).toEqual({ decision: "allow", reason: "" });
  status = { allowed: "false" };
  expect(await webhook().authorize(get({ name: "texts" }))).toEqual({ decision: "no-opinion", reason: "", error: "json: cannot unmarshal string into Go struct field SubjectAccessReviewStatus.status.allowed of type bool" });
  status = { allowed: false, denied: true, reason: "no" };
});

test("is sent what upstream's client sends: nothing that is empty, and groups by the name of the version", async () => {
  sent.length = 0;
  for (const version of ["v1", "v1beta1"] as const) await webhook({ version }).authorize(get());
  const resourceAttributes = { namespace: "a", verb: "list", version: "v1", resource: "pods" };
  expect(sent.map((text) => JSON.stringify(JSON.parse(text)))).toEqual([
    JSON.stringify({ kind: "SubjectAccessReview", apiVersion: "authorization.k8s.io/v1", metadata: {}, spec: { resourceAttributes, user: "jane", groups: ["g"] }, status: { allowed: false } }),
    JSON.stringify({ kind: "SubjectAccessReview", apiVersion: "authorization.k8s.io/v1beta1", metadata: {}, spec: { resourceAttributes, user: "jane", group: ["g"] }, status: { allowed: false } }),
  ]);
});

test("what one of several could not say is told unless another allows it", async () => {
  failing = true;
  const [failed, yes] = [webhook(), { ...superuserAuthorizer, authorize: () => ({ decision: "allow" as const, reason: "" }) }];
  expect([await authorizerUnion([failed, superuserAuthorizer]).authorize(get()), await authorizerUnion([failed, yes]).authorize(get())]).toEqual([{ decision: "no-opinion", reason: "", error: "the server rejected our request for an unknown reason" }, { decision: "allow", reason: "" }]);
  const review = { apiVersion: "authorization.k8s.io/v1", kind: "SubjectAccessReview", spec: { user: "jane", nonResourceAttributes: { path: "/x", verb: "get" } } };
  expect(await evaluateReview("SubjectAccessReview", review as never, failed, { user: { name: "x", groups: [] } })).toMatchObject({ status: { allowed: false, evaluationError: "the server rejected our request for an unknown reason" } });
  failing = false;
});

test("decisions are counted by who made them", () => {
  const metrics = metricsRegistry();
  const one = countedAuthorizer(superuserAuthorizer, { type: "Test", name: "t", decisions: decisionsCounter(metrics) });
  for (const groups of [["system:masters"], ["system:masters"], []]) void one.authorize(get({ user: { name: "x", groups } }));
  expect(metrics.render().split("\n").filter((line) => line.startsWith("apiserver_authorization_decisions_total{"))).toEqual(['apiserver_authorization_decisions_total{decision="allowed",name="t",type="Test"} 2']);
});

test("who does not answer in time is not asked again", async () => {
  silent = true;
  asked.length = 0;
  expect([(await webhook({ failurePolicy: "Deny", timeoutMs: 1_000 }).authorize(get())).decision, asked.length]).toEqual(["deny", 1]);
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

test("conditions see the values of every requirement, be there none", () => {
  const holds = (text: string, selectors: object) => matchCondition(text).matches(reviewSpec(get(selectors)));
  const LABELS = "request.resourceAttributes.labelSelector";
  expect(holds(`${LABELS}.requirements.all(r, r.values.size() == (r.key == 'app' ? 2 : 0))`, { labelSelector: "app in (a,b),!old,new" })).toBe(true);
  expect(holds(`has(${LABELS}) || has(request.resourceAttributes.fieldSelector)`, {})).toBe(false);
});

test("conditions are counted: how long they take, whom they leave out, and that one fails; several that fail are told of together", async () => {
  const metrics = metricsRegistry(), counted = webhookMetrics(metrics);
  const conditions = (...texts: string[]) => webhook({ failurePolicy: "NoOpinion", matchConditions: texts.map(matchCondition) }, counted).authorize(get());
  const [wrong, other] = ["request.nonResourceAttributes.path == '/x'", "request.nonResourceAttributes.path == '/y'"];
  await conditions("request.user == 'joe'");
  await conditions(wrong, "request.user == 'joe'");
  expect((await conditions(wrong, other)).error).toMatch(/^\[cel evaluation error: expression '.*\/x'' resulted in error: .*, cel evaluation error: .*\]$/);
  const lines = metrics.render().split("\n").filter((line) => /match_condition_(exclusions_total|evaluation_errors_total|evaluation_seconds_count)\{/.test(line));
  expect(lines.map((line) => line.replace("apiserver_authorization_match_condition_", "").replace(/\{.*\}/, "")).sort()).toEqual(["evaluation_errors_total 2", "evaluation_seconds_count 3", "exclusions_total 2"]);
  expect(lines[0]).toContain('type="Webhook"');
});

test("what is asked: selectors as requirements, others by their path", () => {
  expect(reviewSpec(get({ fieldSelector: "spec.nodeName=n1,status.phase!=Failed", labelSelector: "app in (a,b),!old" })).resourceAttributes).toEqual({
    namespace: "a", verb: "list", group: "", version: "v1", resource: "pods", subresource: "", name: "",
    fieldSelector: { requirements: [{ key: "spec.nodeName", operator: "In", values: ["n1"] }, { key: "status.phase", operator: "NotIn", values: ["Failed"] }] },
    labelSelector: { requirements: [{ key: "app", operator: "In", values: ["a", "b"] }, { key: "old", operator: "DoesNotExist" }] },
  });
  expect(reviewSpec({ isResource: false, verb: "get", path: "/metrics", user: { name: "jane", uid: "1", groups: [], extra: { k: ["v"] } } })).toEqual({ user: "jane", uid: "1", groups: [], extra: { k: ["v"] }, nonResourceAttributes: { path: "/metrics", verb: "get" } });
});

test("what a review asks about reaches a webhook in the review's order, what a selector says in a selector's", async () => {
  const seen: unknown[] = [];
  const authorizer: Authorizer = { authorize: async (attributes) => (seen.push(reviewSpec(attributes).resourceAttributes), { decision: "allow", reason: "" }), rulesFor: async () => { throw new Error("not asked"); } };
  const fields = [{ key: "spec.nodeName", operator: "In", values: ["n"] }, { key: "metadata.name", operator: "NotIn", values: ["b"] }];
  const labels = [{ key: "test", operator: "In", values: ["b", "a"] }, { key: "allow", operator: "Exists" }];
  const ask = (fieldSelector: object, labelSelector: object) => evaluateReview("SelfSubjectAccessReview", { apiVersion: "authorization.k8s.io/v1", kind: "SelfSubjectAccessReview", metadata: {}, spec: { resourceAttributes: { verb: "list", resource: "pods", fieldSelector, labelSelector } } } as never, authorizer, { user: { name: "x", groups: [] } });
  await ask({ requirements: [...fields, { key: "x", operator: "Unknown" }] }, { requirements: [...labels, { key: "x", operator: "Unknown" }] });
  await ask({ rawSelector: "spec.nodeName=n,metadata.name!=b" }, { rawSelector: "test in (b,a),allow" });
  expect(seen).toMatchObject([
    { fieldSelector: { requirements: fields }, labelSelector: { requirements: labels } },
    { fieldSelector: { requirements: [fields[1], fields[0]] }, labelSelector: { requirements: [{ key: "allow" }, { key: "test", values: ["a", "b"] }] } },
  ]);
});

describe("an AuthorizationConfiguration", () => {
  const read = (...authorizers: object[]) => authorizationConfiguration(JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AuthorizationConfiguration", authorizers }), { fileProblem: (path) => (path === "/gone" ? "error loading file: stat /gone: no such file or directory" : undefined) });
  const given = { timeout: "3s", subjectAccessReviewVersion: "v1", failurePolicy: "NoOpinion", connectionInfo: { type: "KubeConfigFile", kubeConfigFile: "/x" } };
  const hook = (more: object = {}) => ({ type: "Webhook", name: "w", webhook: { ...given, ...more } });

  test("with upstream's defaults", () => {
    expect(read({ type: "Node", name: "node" }, { type: "RBAC", name: "rbac" }, hook())).toEqual([{ type: "Node", name: "node" }, { type: "RBAC", name: "rbac" }, { type: "Webhook", name: "w", webhook: standard }]);
  });

  test.each<[object[], string | RegExp]>([
    [[], "authorizers: Required value: at least one authorization mode must be defined"],
    [[{ type: "RBAC", name: "a" }, { type: "RBAC", name: "b" }], 'authorizers[1].type: Duplicate value: "RBAC"'],
    [[{ type: "Magic", name: "a" }], 'authorizers[0].type: Unsupported value: "Magic"'],
    [[{ type: "RBAC", name: "rbac", webhook: given }], 'authorizers[0].webhook: Invalid value: "non-null": may only be specified when type=Webhook'],
    [[{ type: "Webhook", name: "w" }], "authorizers[0].webhook: Required value: required when type=Webhook"],
    [[hook({ timeout: "1m" })], "must be > 0s and <= 30s"],
    [[hook({ failurePolicy: undefined })], "authorizers[0].failurePolicy: Required value"],
    [[hook({ connectionInfo: { type: "KubeConfigFile", kubeConfigFile: "x" } })], "must be an absolute path"],
    [[{ type: "X", name: "one" }, { ...hook({ connectionInfo: { type: "Magic", kubeConfigFile: "" } }), name: "one" }], /^\[authorizers\[0\]\.type: Unsupported value: "X": [^\[]*, authorizers\[1\]\.connectionInfo\.type: Unsupported value: \{"Type":"Magic","KubeConfigFile":""\}: [^\[]*\]$/],
    [[hook({ connectionInfo: { type: "InClusterConfig", kubeConfigFile: "" } })], 'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "": can only be set when type=KubeConfigFile'],
    [[hook({ matchConditions: [{ expression: "true" }] })], "required if match conditions are specified"],
    [[hook({ matchConditionSubjectAccessReviewVersion: "v1", matchConditions: [{ expression: "request.verb == 'x'" }] })], "undefined field 'verb'"],
    [[hook({ matchConditionSubjectAccessReviewVersion: "v1", matchConditions: [{ expression: "'x'" }] })], "must evaluate to bool but got string"],
    [[hook({ timeout: "0s", authorizedTTL: "0s", unauthorizedTTL: "-1m", connectionInfo: { type: "Magic" } })], '[authorizers[0].timeout: Required value, authorizers[0].unauthorizedTTL: Invalid value: "-1m0s": must be > 0s, authorizers[0].connectionInfo.type: Unsupported value: {"Type":"Magic","KubeConfigFile":null}: supported values: "InClusterConfig", "KubeConfigFile"]'],
    [[hook({ connectionInfo: { type: "KubeConfigFile", kubeConfigFile: "/gone" } })], 'authorizers[0].connectionInfo.kubeConfigFile: Invalid value: "/gone": error loading file: stat /gone: no such file or directory'],
    [[{ type: "Node", name: "nodes" }], "expected name node for authorizer Node instead of nodes"],
  ])("cannot be: %#", (authorizers, told) => expect(() => read(...authorizers)).toThrow(told));

  test("what the file named at first stays, but for webhooks", () => {
    const again = (...authorizers: object[]) => () => authorizationConfiguration(JSON.stringify({ apiVersion: "apiserver.config.k8s.io/v1", kind: "AuthorizationConfiguration", authorizers }), { required: ["RBAC", "Webhook", "Node"] });
    expect(again(hook())).toThrow("missing required types: [Node RBAC]");
    expect(again({ type: "RBAC", name: "r" }, hook())).toThrow("[expected name rbac for authorizer RBAC instead of r, missing required types: [Node]]");
    expect(again({ type: "RBAC", name: "rbac" }, { type: "Node", name: "node" })).not.toThrow();
  });
});
