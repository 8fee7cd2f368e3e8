import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import { forbidden, statusError } from "../../api/meta/status-error.ts";
import { CONFIG_MAPS, NAMESPACES, PODS, SECRETS, SERVICE_ACCOUNTS } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { rootCaController } from "../rootca/rootca.ts";
import { serviceAccountController } from "../serviceaccount/serviceaccount.ts";
import { serviceAccountTokensController } from "../serviceaccount/serviceaccount-tokens.ts";
import { tokenCleanerController } from "../serviceaccount/token-cleaner.ts";
import { namespaceController } from "./namespace.ts";

/** The five seconds that a deleted Namespace is left alone are over. */
const later = { ...systemClock, nowMs: () => systemClock.nowMs() + 5000 };
const rootCa = () => "CA";
const ns = (name: string) => ({ apiVersion: "v1", kind: "Namespace", metadata: { name }, spec: {} });

test("a new Namespace is furnished, and what is taken away comes back", () =>
  withControllers((deps) => [serviceAccountController(deps), rootCaController({ ...deps, rootCa })], async (api, call) => {
    await api.client.resource(NAMESPACES).create(ns("apps"), call);
    const account = await eventually(() => api.all(SERVICE_ACCOUNTS)[0], (one) => one?.metadata.name === "default");
    const map = await eventually(() => api.all(CONFIG_MAPS)[0], (one) => one?.data?.["ca.crt"] === "CA");
    expect(map?.metadata).toMatchObject({ name: "kube-root-ca.crt", namespace: "apps" });
    await api.client.resource(SERVICE_ACCOUNTS).delete(account!, {}, call);
    await api.client.resource(CONFIG_MAPS).update({ ...map!, data: { "ca.crt": "forged" } }, call);
    await eventually(() => api.all(SERVICE_ACCOUNTS)[0]?.metadata.uid, (uid) => uid !== undefined && uid !== account?.metadata.uid);
    await eventually(() => api.all(CONFIG_MAPS)[0]?.data?.["ca.crt"], (ca) => ca === "CA");
  }));

test("a deleted Namespace is left as it is for five seconds: kubectl delete of a manifest that begins with it finds the rest", () => {
  const deletedMs = Date.parse("2026-01-01T00:00:00Z");
  let looks = 0; // at the clock: the first one is at once, the others five seconds later
  const looksBefore: number[] = []; // each request that concerns the content
  return withControllers((deps) => [namespaceController({ ...deps, clock: { ...deps.clock, nowMs: () => deletedMs + (looks++ === 0 ? 4999 : 5000) } })], async (api, call) => {
    const [namespaces, maps] = [api.client.resource(NAMESPACES), api.client.resource(CONFIG_MAPS)];
    await namespaces.create(ns("apps"), call);
    await maps.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "apps" } }, call);
    api.fail = ({ path }) => void (path.endsWith("/configmaps") && looksBefore.push(looks));
    await namespaces.delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => api.all(NAMESPACES), (all) => all.length === 0);
    expect(Math.min(...looksBefore)).toBe(2);
  }, { api: fakeApi({ clock: { ...systemClock, nowMs: () => deletedMs } }) });
});

test("a clock that is put back a year does not keep a deleted Namespace for one", () => {
  const before = { ...systemClock, nowMs: () => systemClock.nowMs() - 365 * 86_400_000 };
  return withControllers((deps) => [namespaceController({ ...deps, clock: before })], async (api, call) => {
    const namespaces = api.client.resource(NAMESPACES);
    await namespaces.create(ns("apps"), call);
    await namespaces.delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => api.all(NAMESPACES), (all) => all.length === 0);
  });
});

test("a deleted Namespace is emptied, pods first, and then gone; nothing else is touched", () =>
  withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    const [namespaces, maps, pods] = [api.client.resource(NAMESPACES), api.client.resource(CONFIG_MAPS), api.client.resource(PODS)];
    await namespaces.create(ns("apps"), call);
    await namespaces.create(ns("other"), call);
    for (const namespace of ["apps", "other"]) await maps.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace, ...(namespace === "apps" ? { finalizers: ["example.com/keep"] } : {}) } }, call);
    const pod = await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "apps" }, spec: { nodeName: "n", containers: [], terminationGracePeriodSeconds: (2n ** 63n - 1n) as unknown as number } }, call); // no double holds it
    await namespaces.delete({ metadata: { name: "apps" } }, {}, call);
    const gone = await eventually(() => api.all(PODS)[0], (one) => one?.metadata.deletionTimestamp !== undefined);
    await eventually(() => api.all(NAMESPACES).find(({ metadata }) => metadata.name === "apps")?.status?.conditions?.length, (n) => n === 5);
    expect(api.all(CONFIG_MAPS).every(({ metadata }) => metadata.deletionTimestamp === undefined)).toBe(true);

    await pods.delete(pod, { gracePeriodSeconds: 0 }, call); // as the kubelet does
    expect(gone).toBeDefined();
    const conditions = await eventually(() => api.all(NAMESPACES).find(({ metadata }) => metadata.name === "apps")?.status?.conditions, (all) => all?.some(({ reason }) => reason === "SomeFinalizersRemain") === true);
    expect(Object.fromEntries(conditions!.map(({ reason, message }) => [reason, message]))).toMatchObject({
      ResourcesDiscovered: "All resources successfully discovered", SomeResourcesRemain: "Some resources are remaining: configmaps. has 1 resource instances",
      SomeFinalizersRemain: "Some content in the namespace has finalizers remaining: example.com/keep in 1 resource instances",
    });
    await maps.patch(api.all(CONFIG_MAPS).find(({ metadata }) => metadata.namespace === "apps")!, "application/merge-patch+json", { metadata: { finalizers: null } }, call);
    await namespaces.patch({ metadata: { name: "apps" } }, "application/merge-patch+json", { metadata: { labels: { look: "now" } } }, call); // else it would look again in 8 s
    await eventually(() => api.all(NAMESPACES).map(({ metadata }) => metadata.name), (names) => names.join() === "other");
    expect(api.all(CONFIG_MAPS).map(({ metadata }) => metadata.namespace)).toEqual(["other"]);
  }));

test("a deleted Namespace is not looked at again after each of its pods, but once the last is gone", () =>
  withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    const [namespaces, pods] = [api.client.resource(NAMESPACES), api.client.resource(PODS)];
    let sweeps = 0;
    api.fail = ({ method, path }) => void (method === "DELETE" && path === "/api/v1/namespaces/apps/pods" && sweeps++);
    await namespaces.create(ns("apps"), call);
    for (let i = 0; i < 12; i++) await pods.create({ apiVersion: "v1", kind: "Pod", metadata: { name: `p-${i}`, namespace: "apps" }, spec: { nodeName: "n", containers: [], terminationGracePeriodSeconds: 600 } }, call);
    await namespaces.delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => api.all(NAMESPACES)[0]?.status?.conditions, (all) => all !== undefined);
    const before = sweeps;
    for (const pod of api.all(PODS)) {
      await pods.delete(pod, { gracePeriodSeconds: 0 }, call); // as the kubelet does
      await systemClock.sleep(10, call.signal);
    }
    await eventually(() => api.all(NAMESPACES), (all) => all.length === 0);
    expect(sweeps - before).toBeLessThan(4);
  }));

test("pods whose time is over and that are still there hold back the rest all the same", () =>
  withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    await api.client.resource(NAMESPACES).create(ns("apps"), call);
    await api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "apps" } }, call);
    await api.client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: "apps" }, spec: { nodeName: "silent", containers: [], terminationGracePeriodSeconds: 1 } }, call);
    await api.client.resource(NAMESPACES).delete({ metadata: { name: "apps" } }, {}, call);
    const conditions = await eventually(() => api.all(NAMESPACES)[0]?.status?.conditions, (all) => all?.some(({ reason }) => reason === "ContentDeletionFailed") === true);
    expect(conditions!.find(({ status }) => status === "True")?.message).toBe("Failed to delete all resource types, 1 remaining: unexpected items still remain in namespace: apps for gvr: /v1, Resource=pods");
    expect(api.all(CONFIG_MAPS)).toHaveLength(1);
  }));

test("a group that does not answer holds a deleted Namespace, which says which in client-go's words", () =>
  withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    const namespaces = api.client.resource(NAMESPACES);
    api.fail = ({ path }) => (path === "/apis/apps/v1" ? statusError({ code: 503, reason: "ServiceUnavailable", message: "the server is currently unable to handle the request" }) : undefined);
    await namespaces.create(ns("apps"), call);
    await namespaces.delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => api.all(NAMESPACES)[0]?.status?.conditions, (all) => all?.some(({ message }) =>
      message === "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: apps/v1: stale GroupVersion discovery: apps/v1") === true);
  }));

test("a Namespace does not go without what is served in another version by the time it is looked for", () =>
  withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    const widgets = { group: "example.com", version: "v1", plural: "widgets", kind: "Widget", namespaced: true };
    const v2 = { ...widgets, version: "v2" };
    api.serve(widgets);
    const namespaces = api.client.resource(NAMESPACES);
    await namespaces.create(ns("apps"), call);
    let made: Promise<unknown> | undefined;
    api.fail = ({ path }) => {
      if (!path.includes("/example.com/v1/namespaces/")) return undefined;
      api.serve(v2);
      made ??= api.client.resource(v2).create({ apiVersion: "example.com/v2", kind: "Widget", metadata: { name: "one", namespace: "apps" } }, call); // the same, as the API has it
      return statusError({ code: 404, reason: "NotFound", message: "the server could not find the requested resource", details: {} });
    };
    await namespaces.delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => api.all(NAMESPACES), (all) => all.length === 0);
    await made;
    expect(api.all(v2)).toEqual([]);
  }));

test("a deleted Namespace is looked at again at least once a minute", async () => {
  const delays: number[] = [];
  const hasty = { ...systemClock, after: (ms: number, work: () => void) => { delays.push(ms); return systemClock.after(Math.min(ms, 1), work); } };
  await withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    api.fail = ({ path }) => (path === "/apis/apps/v1" ? new Error("no") : undefined);
    await api.client.resource(NAMESPACES).create(ns("apps"), call);
    await api.client.resource(NAMESPACES).delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => delays, (all) => all.filter((ms) => ms === 60_000).length >= 3);
  }, { clock: hasty });
});

test("a Namespace stays while its content cannot be deleted, and says why", () =>
  withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    const [namespaces, maps] = [api.client.resource(NAMESPACES), api.client.resource(CONFIG_MAPS)];
    await namespaces.create(ns("apps"), call);
    await maps.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "c", namespace: "apps" } }, call);
    let refuse = true;
    api.fail = ({ method, path }) => (refuse && method === "DELETE" && path.endsWith("/configmaps") ? forbidden({ group: "", resource: "configmaps" }, "", "no") : undefined);
    await namespaces.delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => api.all(NAMESPACES)[0]?.status?.conditions, (all) => all?.some(({ message }) => message === "Failed to delete all resource types, 1 remaining: configmaps is forbidden: no") === true);
    refuse = false;
    await eventually(() => api.all(NAMESPACES), (all) => all.length === 0);
  }));

test("a Namespace goes although somebody refuses what is told of it", () =>
  withControllers((deps) => [namespaceController({ ...deps, clock: later })], async (api, call) => {
    await api.client.resource(NAMESPACES).create(ns("apps"), call);
    api.fail = ({ method, path, body }) => (method === "PUT" && path.endsWith("/status") && JSON.stringify(body).includes("NamespaceContentRemaining") ? forbidden({ group: "", resource: "namespaces" }, "apps", "no") : undefined);
    await api.client.resource(NAMESPACES).delete({ metadata: { name: "apps" } }, {}, call);
    await eventually(() => api.all(NAMESPACES), (all) => all.length === 0);
  }));

test("another authority of servers is told to all Namespaces, and in token Secrets, as soon as it is there", () => {
  let ca = "before", tell = (): void => undefined;
  const handlers = new Set<() => void>();
  const authorities = { rootCa: () => ca, onRootCa: (handler: () => void) => { handlers.add(handler); return () => void handlers.delete(handler); } };
  tell = () => { for (const handler of handlers) handler(); };
  return withControllers((deps) => [rootCaController({ ...deps, ...authorities }), serviceAccountTokensController({ ...deps, ...authorities, tokenFor: () => "token" })], async (api, call) => {
    for (const name of ["one", "two"]) await api.client.resource(NAMESPACES).create(ns(name), call);
    await api.client.resource(SERVICE_ACCOUNTS).create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "one" } }, call);
    await api.client.resource(SECRETS).create({ apiVersion: "v1", kind: "Secret", type: "kubernetes.io/service-account-token", metadata: { name: "t", namespace: "one", annotations: { "kubernetes.io/service-account.name": "robot" } } }, call);
    const told = () => [...api.all(CONFIG_MAPS).map(({ data }) => data?.["ca.crt"]), ...api.all(SECRETS).map(({ data }) => atob(data?.["ca.crt"] ?? ""))].join();
    await eventually(told, (all) => all === "before,before,before");
    ca = "after";
    tell();
    await eventually(told, (all) => all === "after,after,after");
  });
});

test("token Secrets are filled in, and go with their account; expired bootstrap tokens go", () =>
  withControllers((deps) => [serviceAccountTokensController({ ...deps, rootCa, tokenFor: ({ metadata }) => `token of ${metadata.name}` }), tokenCleanerController(deps)], async (api, call) => {
    const [accounts, secrets] = [api.client.resource(SERVICE_ACCOUNTS), api.client.resource(SECRETS)];
    const account = await accounts.create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "apps" } }, call);
    await secrets.create({ apiVersion: "v1", kind: "Secret", type: "kubernetes.io/service-account-token", metadata: { name: "t", namespace: "apps", annotations: { "kubernetes.io/service-account.name": "robot" } } }, call);
    const filled = await eventually(() => api.all(SECRETS)[0], (one) => one?.data?.["token"] !== undefined);
    expect(Object.fromEntries(Object.entries(filled!.data!).map(([name, value]) => [name, atob(value)]))).toEqual({ token: "token of robot", "ca.crt": "CA", namespace: "apps" });
    await accounts.delete(account, {}, call);
    await eventually(() => api.all(SECRETS), (all) => all.length === 0);

    const bootstrap = (name: string, expiration: string) => secrets.create({ apiVersion: "v1", kind: "Secret", type: "bootstrap.kubernetes.io/token", metadata: { name, namespace: "kube-system" }, data: { expiration: btoa(expiration) } }, call);
    await bootstrap("valid", "2999-01-01T00:00:00Z");
    await bootstrap("old", "2001-01-01T00:00:00Z");
    await eventually(() => api.all(SECRETS).map(({ metadata }) => metadata.name), (names) => names.join() === "valid");
  }));
