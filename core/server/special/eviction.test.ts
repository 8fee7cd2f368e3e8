import { afterAll, beforeEach, expect, test } from "vitest";
import { apiServer, type ApiServer } from "../../../test/api-server.ts";

let api: ApiServer | undefined;
const PODS = "/api/v1/namespaces/a/pods";
const BUDGETS = "/apis/policy/v1/namespaces/a/poddisruptionbudgets";

beforeEach(async () => {
  await api?.[Symbol.asyncDispose]();
  api = await apiServer();
});
afterAll(() => api?.[Symbol.asyncDispose]());

async function pod(name: string, { phase = "Running", ready = true }: { phase?: string; ready?: boolean } = {}): Promise<void> {
  const { body } = await api!.ask("POST", PODS, { body: { metadata: { name, labels: { app: "db" } }, spec: { nodeName: "n", containers: [{ name: "c", image: "x" }] } } });
  await api!.ask("PUT", `${PODS}/${name}/status`, { body: { ...body, status: { phase, conditions: [{ type: "Ready", status: ready ? "True" : "False" }] } } });
}

async function budget(name: string, status: object, spec: object = {}): Promise<void> {
  const { body } = await api!.ask("POST", BUDGETS, { body: { metadata: { name }, spec: { minAvailable: 1, selector: { matchLabels: { app: "db" } }, ...spec } } });
  await api!.ask("PUT", `${BUDGETS}/${name}/status`, { body: { ...body, status: { observedGeneration: 1, expectedPods: 2, ...status } } });
}

const evict = (name: string, extra: object = {}, query: Record<string, string> = {}) =>
  api!.ask("POST", `${PODS}/${name}/eviction`, { query, body: { apiVersion: "policy/v1", kind: "Eviction", metadata: { name }, ...extra } });
const statusOf = async (name: string) => (await api!.ask("GET", `${BUDGETS}/${name}`)).body.status;

test("a budget is spent, then refuses", async () => {
  await pod("db-0");
  await pod("db-1");
  await budget("db", { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
  expect((await evict("db-0")).body).toMatchObject({ kind: "Status", status: "Success" });
  const gone = (await api!.ask("GET", `${PODS}/db-0`)).body;
  expect(gone.metadata.deletionGracePeriodSeconds).toBe(30);
  expect(gone.status.conditions).toContainEqual(expect.objectContaining({ type: "DisruptionTarget", status: "True", reason: "EvictionByEvictionAPI", message: "Eviction API: evicting" }));
  expect(await statusOf("db")).toMatchObject({ disruptionsAllowed: 0, disruptedPods: { "db-0": expect.any(String) }, conditions: [{ type: "DisruptionAllowed", status: "False", reason: "InsufficientPods" }] });

  const { code, body } = await evict("db-1");
  expect([code, body.reason, body.message]).toEqual([429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget."]);
  expect(body.details.causes).toEqual([{ reason: "DisruptionBudget", message: "The disruption budget db does not allow evicting pods currently" }]);
});

test("the condition of a pod that was to go already stays where it is, and whose generation it is of", async () => {
  await pod("db-0");
  const { body } = await api!.ask("GET", `${PODS}/db-0`);
  await api!.ask("PUT", `${PODS}/db-0/status`, { body: { ...body, status: { ...body.status, conditions: [{ type: "DisruptionTarget", status: "False", observedGeneration: 1 }, { type: "Ready", status: "True" }] } } });
  await evict("db-0");
  expect((await api!.ask("GET", `${PODS}/db-0`)).body.status.conditions).toMatchObject([{ type: "DisruptionTarget", status: "True", observedGeneration: 1 }, { type: "Ready" }]);
});

test("a budget's conditions keep their places when it is spent", async () => {
  await pod("db-0");
  const allowed = { type: "DisruptionAllowed", status: "True", reason: "SufficientPods", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" };
  await budget("db", { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1, conditions: [allowed, { ...allowed, type: "Other" }] });
  await evict("db-0");
  expect((await statusOf("db")).conditions).toMatchObject([{ type: "DisruptionAllowed", status: "False" }, { type: "Other", status: "True" }]);
});

test("what an eviction takes from a budget is the server's, whoever evicts", async () => {
  await pod("db-0");
  await budget("db", { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
  await evict("db-0");
  const { managedFields } = (await api!.ask("GET", `${BUDGETS}/db`)).body.metadata;
  const { fieldsV1, ...entry } = managedFields.find(({ manager }: { manager: string }) => manager === "kube-apiserver");
  expect(entry).toMatchObject({ operation: "Update", apiVersion: "policy/v1", subresource: "status" });
  expect(Object.keys(fieldsV1["f:status"]).toSorted()).toEqual(["f:conditions", "f:disruptedPods", "f:disruptionsAllowed"]);
});

test.each<[what: string, status: object, cause: string]>([
  ["too few healthy pods", { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 }, "The disruption budget db needs 1 healthy pods and has 1 currently"],
  ["a budget nobody has looked at", { observedGeneration: 0, disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0 }, "The disruption budget db is still being processed by the server."],
  ["a budget that cannot be worked out", { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, conditions: [{ type: "DisruptionAllowed", status: "False", reason: "SyncFailed", message: "found no controllers", lastTransitionTime: "2026-01-01T00:00:00Z" }] },
    "The disruption budget db does not allow evicting pods currently because it failed sync: found no controllers"],
])("%s refuses", async (_, status, cause) => {
  await pod("db-0");
  await budget("db", status);
  const { code, body } = await evict("db-0");
  expect([code, body.details.causes]).toEqual([429, [{ reason: "DisruptionBudget", message: cause }]]);
  expect((await api!.ask("GET", `${PODS}/db-0`)).body.metadata.deletionTimestamp).toBeUndefined();
});

test.each<[what: string, pod: { phase?: string; ready?: boolean }, budget: object, spec: object, code: number]>([
  ["that has ended protects nothing", { phase: "Succeeded", ready: false }, {}, {}, 201],
  ["that has not started protects nothing", { phase: "Pending", ready: false }, {}, {}, 201],
  ["that is not ready goes while enough others are", { ready: false }, { currentHealthy: 1, desiredHealthy: 1 }, {}, 201],
  ["that is not ready stays while too few others are", { ready: false }, { currentHealthy: 0, desiredHealthy: 1 }, {}, 429],
  ["that is not ready goes if the budget says so", { ready: false }, { currentHealthy: 0, desiredHealthy: 1 }, { unhealthyPodEvictionPolicy: "AlwaysAllow" }, 201],
])("a pod %s", async (_, described, status, spec, code) => {
  await pod("db-0", described);
  await budget("db", { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, ...status }, spec);
  expect((await evict("db-0")).code).toBe(code);
  expect((await statusOf("db")).disruptedPods).toBeUndefined();
});

test("a dry run asks the budget and spends nothing", async () => {
  await pod("db-0");
  await budget("db", { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
  expect((await evict("db-0", { deleteOptions: { dryRun: ["All"] } })).code).toBe(201);
  expect((await evict("db-0", {}, { dryRun: "All" })).code).toBe(201);
  expect((await statusOf("db")).disruptionsAllowed).toBe(1);
  expect((await api!.ask("GET", `${PODS}/db-0`)).body.metadata.deletionTimestamp).toBeUndefined();
});

test("what is asked for is what goes, under one budget at most", async () => {
  await pod("db-0");
  expect((await evict("db-0", { metadata: { name: "db-1" } })).body.message).toBe("name in URL does not match name in Eviction object");
  expect((await evict("db-0", { deleteOptions: { preconditions: { uid: "other" } } })).code).toBe(409);
  await budget("one", { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
  await budget("two", { disruptionsAllowed: 1, currentHealthy: 2, desiredHealthy: 1 });
  expect((await evict("db-0")).body).toMatchObject({ code: 500, message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support." });
  expect((await evict("absent")).code).toBe(404);
});

test.each<[what: string, deleteOptions: object, query: Record<string, string>, code: number, message: string]>([
  ["with another policy than there are", { propagationPolicy: "x" }, {}, 422, 'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "x": supported values: "Foreground", "Background", "Orphan", "nil"'],
  ["as another rehearsal than there is", { dryRun: ["x"] }, {}, 422, 'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"'],
  ["whatever cannot be read", { ignoreStoreReadErrorWithClusterBreakingPotential: true }, {}, 422, 'Eviction.policy "db-0" is invalid: deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential: Invalid value: true: can not be set for pod eviction, try after removing the option'],
  ["as two rehearsals", { dryRun: ["x"] }, { dryRun: "All" }, 500, "Non-matching dry-run options in request and content: [All] and [x]"],
  ["of no object", { preconditions: { uid: "" } }, {}, 409, 'Operation cannot be fulfilled on Pod "db-0": the UID in the precondition () does not match the UID in record'],
])("an eviction %s is refused", async (_, deleteOptions, query, code, message) => {
  await pod("db-0", { phase: "Pending" });
  const told = await evict("db-0", { deleteOptions }, query);
  expect([told.code, told.body.message.slice(0, message.length)]).toEqual([code, message]);
});

test("policy/v1beta1 has the same evictions", async () => {
  await pod("db-0");
  expect((await evict("db-0", { apiVersion: "policy/v1beta1" })).code).toBe(201);
  expect((await evict("db-0", { apiVersion: "policy/v2" })).code).toBe(400);
});

test("admission sees an eviction as one of policy/v1, with whose fields they are and what the request says of a rehearsal", async () => {
  const seen: { apiVersion: string; metadata: { managedFields?: object[] } }[] = [];
  await using own = await apiServer({ admit: ({ subresource, object }) => void (subresource === "eviction" && seen.push(object as never)) });
  await own.ask("POST", PODS, { body: { metadata: { name: "db-0" }, spec: { containers: [{ name: "c", image: "x" }] } } });
  await own.ask("POST", `${PODS}/db-0/eviction`, { query: { dryRun: "All" }, body: { apiVersion: "policy/v1beta1", kind: "Eviction", metadata: { name: "db-0" }, deleteOptions: { gracePeriodSeconds: 1 } } });
  expect(seen).toMatchObject([{ apiVersion: "policy/v1", deleteOptions: { dryRun: ["All"] }, metadata: { managedFields: [{ apiVersion: "policy/v1", subresource: "eviction", fieldsV1: { "f:deleteOptions": { "f:gracePeriodSeconds": {} } } }] } }]);
});
