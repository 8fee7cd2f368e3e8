import { expect, test } from "vitest";
import { apiServer } from "../../test/api-server.ts";
import { badRequest } from "../api/meta/status-error.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { bootstrapPolicy } from "../authz/bootstrap-policy.ts";
import { ensureBootstrapPolicy } from "../authz/reconcile-policy.ts";
import { silentLog } from "../observe/log.ts";
import { type BootstrapOptions, ensureBootstrapObjects, standingObjects } from "./bootstrap.ts";
import { ensureJoinObjects } from "./join-objects.ts";

const OPTIONS: BootstrapOptions = {
  serviceCidrs: ["10.43.0.0/16"], apiServiceIp: "10.43.0.1", apiServicePort: 443, apiServerPort: 6443, clusterDns: "10.43.0.10", localStorage: true, ingress: true,
  clientCa: () => "client ca", requestHeaderCa: () => "proxy ca", proxyNames: ["front"], today: () => "2026-01-01",
};

test("a cluster is born with its namespaces, each with its name as a label that cannot be changed, and with the objects everybody expects", async () => {
  await using api = await apiServer();
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  const { body } = await api.ask("GET", "/api/v1/namespaces");
  const namespaces = body.items as { metadata: { name: string; labels: object }; status: { phase: string } }[];
  expect(namespaces.map(({ metadata, status }) => [metadata.name, metadata.labels, status.phase])).toEqual(
    ["default", "kube-node-lease", "kube-public", "kube-system"].map((name) => [name, { "kubernetes.io/metadata.name": name }, "Active"]));
  const relabelled = await api.ask("PATCH", "/api/v1/namespaces/default", { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { labels: { "kubernetes.io/metadata.name": "other", own: "1" } } } });
  expect(relabelled.body.metadata.labels).toEqual({ "kubernetes.io/metadata.name": "default", own: "1" });
  const table = await api.ask("GET", "/api/v1/namespaces/default", { headers: { accept: "application/json;as=Table;g=meta.k8s.io;v=v1" } });
  expect([table.body.columnDefinitions.map(({ name }: { name: string }) => name), table.body.rows[0].cells.slice(0, 2)]).toEqual([["Name", "Status", "Age"], ["default", "Active"]]);
  expect((await api.ask("GET", "/api/v1/namespaces/default/services/kubernetes")).body.spec).toMatchObject({ clusterIP: "10.43.0.1", ports: [{ name: "https", port: 443, protocol: "TCP", targetPort: 6443 }] });
  expect((await api.ask("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/system-node-critical")).body.value).toBe(2_000_001_000);
});

test("who has made what of it is told as upstream tells it", async () => {
  await using api = await apiServer();
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  await ensureBootstrapPolicy(api.client, { signal: api.signal, log: silentLog, policy: bootstrapPolicy(new Set()) });
  const owned = async (path: string): Promise<unknown> => ((await api.ask("GET", path)).body.metadata.managedFields as { manager: string; operation: string; fieldsV1: Record<string, object> }[])
    .map(({ manager, operation, fieldsV1 }) => [operation === "Apply" ? manager : operation, fieldsV1["f:status"] ?? Object.keys(fieldsV1["f:spec"] ?? fieldsV1)]);
  expect(await owned("/apis/networking.k8s.io/v1/servicecidrs/kubernetes")).toContainEqual(["kubernetes-service-cidr-controller", { "f:conditions": { 'k:{"type":"Ready"}': { ".": {}, "f:lastTransitionTime": {}, "f:message": {}, "f:status": {}, "f:type": {} } } }]);
  expect(await owned("/api/v1/namespaces/default/services/kubernetes")).toEqual([["Update", ["f:clusterIP", "f:internalTrafficPolicy", "f:ipFamilyPolicy", "f:ports", "f:sessionAffinity", "f:type"]]]);
  expect(await owned("/apis/rbac.authorization.k8s.io/v1/clusterroles/view")).toEqual([["Update", ["f:aggregationRule", "f:metadata"]]]);
});

test("what users changed of them stays at the next start, what they removed comes back", async () => {
  await using api = await apiServer();
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  await api.ask("PATCH", "/apis/storage.k8s.io/v1/storageclasses/local-path", { headers: { "content-type": "application/merge-patch+json" }, body: { metadata: { annotations: { "storageclass.kubernetes.io/is-default-class": "false" } } } });
  await api.ask("DELETE", "/apis/networking.k8s.io/v1/ingressclasses/coracle");
  await ensureBootstrapObjects(api.client, { ...OPTIONS, today: () => "2026-02-02" }, api.signal);
  expect((await api.ask("GET", "/apis/storage.k8s.io/v1/storageclasses/local-path")).body.metadata.annotations).toEqual({ "storageclass.kubernetes.io/is-default-class": "false" });
  expect((await api.ask("GET", "/apis/networking.k8s.io/v1/ingressclasses/coracle")).code).toBe(200);
  expect((await api.ask("GET", "/api/v1/namespaces/kube-system/configmaps/kube-apiserver-legacy-service-account-token-tracking")).body.data).toEqual({ since: "2026-01-01" });
});

test("what is as it should be is not written again: nobody who would refuse it is asked", async () => {
  await using api = await apiServer();
  const join = { server: "https://a:6443", serverCa: "server ca", clientCa: "client ca", settings: { "cluster-cidr": "10.42.0.0/16" } };
  const ensure = async (more: object = {}): Promise<number> => {
    const before = Number((await api.ask("GET", "/api/v1/configmaps")).body.metadata.resourceVersion);
    await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
    await ensureJoinObjects(api.client, { ...join, ...more }, api.signal);
    return Number((await api.ask("GET", "/api/v1/configmaps")).body.metadata.resourceVersion) - before;
  };
  expect(await ensure()).toBeGreaterThan(0);
  let refused = 0;
  const client: typeof api.client = { ...api.client, resource: (ref) => {
    const resource = api.client.resource(ref);
    const refuse = (): never => { refused++; throw badRequest("a broken webhook"); };
    return { ...resource, create: refuse, update: refuse, patch: refuse, apply: refuse } as never;
  } };
  await ensureBootstrapObjects(client, OPTIONS, api.signal);
  await ensureJoinObjects(client, join, api.signal);
  expect(refused).toBe(0);
  await expect(ensureJoinObjects(client, { ...join, server: "https://b:6443" }, api.signal)).rejects.toThrow("a broken webhook");
  let made = false;
  await expect(ensureBootstrapObjects(client, { ...OPTIONS, clientCa: () => "another ca" }, api.signal, () => { made = true; })).rejects.toThrow("a broken webhook");
  expect(made).toBe(true);
  expect(await ensure({ server: "https://b:6443" })).toBe(1);
});

test("a cluster of one family of addresses becomes one of both when its server is given a second range, unless that is forbidden or the first is another one", async () => {
  let forbidden = true;
  await using api = await apiServer({ admit: ({ operation, resource, subresource }) => { if (forbidden && operation === "UPDATE" && resource === "servicecidrs" && subresource === "") throw badRequest("not that"); } });
  const started = async (...serviceCidrs: string[]): Promise<string[]> => {
    await ensureBootstrapObjects(api.client, { ...OPTIONS, serviceCidrs }, api.signal);
    return (await api.ask("GET", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes")).body.spec.cidrs;
  };
  expect(await started("10.43.0.0/16")).toEqual(["10.43.0.0/16"]);
  expect(await started("10.43.0.0/16", "fd00::/112")).toEqual(["10.43.0.0/16"]);
  forbidden = false;
  expect(await started("fd00::/112", "10.43.0.0/16")).toEqual(["10.43.0.0/16"]);
  expect(await started("10.43.0.0/16", "fd00::/112")).toEqual(["10.43.0.0/16", "fd00::/112"]);
  expect(await started("10.43.0.0/16")).toEqual(["10.43.0.0/16", "fd00::/112"]);
});

test("that the range of service addresses is not as it was configured is told once, and so is why it cannot become one of both families", async () => {
  await using api = await apiServer({ admit: ({ operation, resource, subresource }) => { if (operation === "UPDATE" && resource === "servicecidrs" && subresource === "") throw badRequest("not that"); } });
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  const toldWith = async (...serviceCidrs: string[]): Promise<string[]> => {
    const stop = new AbortController(), told: string[] = [];
    let looks = 0;
    const clock = { ...systemClock, async *every() { while (looks++ < 3) yield 0; } } as unknown as typeof systemClock;
    await standingObjects({ client: api.client, clock, log: silentLog, options: { ...OPTIONS, serviceCidrs }, recorder: { event: ({ name, metadata }: never, type, reason, message) => void told.push(`${name ?? (metadata as { name: string }).name} ${type} ${reason} ${message}`) } }).run(stop.signal, () => undefined);
    return told;
  };
  expect(await toldWith("10.43.0.0/16")).toEqual([]);
  expect(await toldWith("10.44.0.0/16", "fd00::/112")).toEqual(["kubernetes Warning KubernetesDefaultServiceCIDRInconsistent The default ServiceCIDR [10.43.0.0/16] does not match the controller flag configurations [10.44.0.0/16 fd00::/112]"]);
  expect(await toldWith("10.43.0.0/16", "fd00::/112")).toEqual(["kubernetes Warning KubernetesDefaultServiceCIDRError The default ServiceCIDR can not be upgraded from 10.43.0.0/16 to dual stack [10.43.0.0/16 fd00::/112] : not that"]);
  await api.ask("PATCH", "/apis/networking.k8s.io/v1/servicecidrs/kubernetes/status", { headers: { "content-type": "application/merge-patch+json" }, body: { status: { conditions: [{ type: "Ready", status: "False", reason: "Broken", message: "it is broken", lastTransitionTime: "2026-01-01T00:00:00Z" }] } } });
  expect(await toldWith("10.43.0.0/16")).toEqual(["kubernetes Warning Broken Configuration matches, but it is broken"]);
});

test("a setting that all nodes share and that is another than the cluster had is told to who gives it", async () => {
  await using api = await apiServer();
  const told = (settings: Record<string, string>) => ensureJoinObjects(api.client, { server: "https://s:6443", serverCa: "ca", clientCa: "ca", settings }, api.signal);
  expect(await told({ "cluster-cidr": "10.42.0.0/16", overlay: "vxlan" })).toEqual([]);
  expect(await told({ "cluster-cidr": "10.42.0.0/16", overlay: "vxlan", disable: "dns" })).toEqual([]); // which an older server did not tell
  expect(await told({ "cluster-cidr": "10.55.0.0/16", overlay: "vxlan", disable: "" })).toEqual([{ name: "cluster-cidr", before: "10.42.0.0/16", now: "10.55.0.0/16" }, { name: "disable", before: "dns", now: "" }]);
  expect(await told({ "cluster-cidr": "10.55.0.0/16", overlay: "vxlan", disable: "" })).toEqual([]);
});

test("where pods look for names and nobody answers is told: a Service keeps the address it was made with", async () => {
  await using api = await apiServer();
  const ofSix = { client: { resource: () => ({ get: () => Promise.resolve({ metadata: {}, spec: { clusterIPs: ["fd00:43::a"] } }) }) } as unknown as typeof api.client };
  await ensureBootstrapObjects(api.client, { ...OPTIONS, clusterDns: "10.43.0.10" }, api.signal);
  const toldWith = async (clusterDns: string | undefined, { client }: Pick<typeof api, "client"> = api) => {
    const told: string[] = [];
    const clock = { ...systemClock, async *every() {} } as unknown as typeof systemClock;
    const log = { ...silentLog, error: (message: string) => void told.push(message) };
    await standingObjects({ client, clock, log, options: { ...OPTIONS, clusterDns }, recorder: { event: ({ metadata }: never, type, reason) => void told.push(`${(metadata as { name: string }).name} ${type} ${reason}`) } }).run(api.signal, () => undefined);
    return told;
  };
  expect([await toldWith("10.43.0.10"), await toldWith("FD00:43:0::0:a", ofSix)]).toEqual([[], []]);
  expect(await toldWith("10.43.0.53")).toEqual(["pods that start now have names answered by nobody: their DNS is not at the address of the Service kube-dns", "kube-dns Warning ClusterDNSInconsistent"]);
  expect(await toldWith(undefined)).toEqual([]);
});

test("the Service of the API comes back while the server runs, after a deletion of all Services of its namespace", async () => {
  await using api = await apiServer();
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  const stop = new AbortController(), looks = Promise.withResolvers<void>();
  const life = standingObjects({ client: api.client, clock: systemClock, log: silentLog, options: OPTIONS, periodMs: 10 }).run(stop.signal, looks.resolve);
  await looks.promise;
  expect((await api.ask("DELETE", "/api/v1/namespaces/default/services/kubernetes")).code).toBe(200);
  const found = () => api.ask("GET", "/api/v1/namespaces/default/services/kubernetes");
  while ((await found()).code === 404) await Bun.sleep(3);
  expect((await found()).body.spec.clusterIP).toBe("10.43.0.1");
  stop.abort();
  await life;
});

test("what extension servers read, and since when legacy tokens are looked after, is there again while the server runs", async () => {
  await using api = await apiServer();
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  const MAPS = "/api/v1/namespaces/kube-system/configmaps", TRACKING = `${MAPS}/kube-apiserver-legacy-service-account-token-tracking`;
  await api.ask("DELETE", `${MAPS}/extension-apiserver-authentication`);
  await api.ask("PATCH", TRACKING, { headers: { "content-type": "application/merge-patch+json" }, body: { data: { since: "2026-02-31" } } });
  const stop = new AbortController();
  const life = standingObjects({ client: api.client, clock: systemClock, log: silentLog, options: { ...OPTIONS, today: () => "2026-03-03" }, periodMs: 10 }).run(stop.signal, () => undefined);
  while ((await api.ask("GET", TRACKING)).body.data.since !== "2026-03-03") await Bun.sleep(3);
  expect((await api.ask("GET", `${MAPS}/extension-apiserver-authentication`)).body.data["client-ca-file"]).toBe("client ca");
  stop.abort();
  await life;
});

test("what somebody took out of what extension servers read is there again while the server runs, beside what others added", async () => {
  await using api = await apiServer();
  const ca = (text: string): string => `-----BEGIN CERTIFICATE-----\n${Buffer.from(text).toString("base64")}\n-----END CERTIFICATE-----\n`;
  const options = { ...OPTIONS, clientCa: () => ca("own"), requestHeaderCa: () => ca("own proxy") };
  await ensureBootstrapObjects(api.client, options, api.signal);
  const at = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
  const data = { "client-ca-file": `# theirs\n${ca("theirs")}`, "requestheader-client-ca-file": null, "requestheader-allowed-names": '["back"]', "requestheader-group-headers": "[", "requestheader-username-headers": '["X-Login","X-Remote-User"]', more: "1" };
  await api.ask("PATCH", at, { headers: { "content-type": "application/merge-patch+json" }, body: { data } });
  const stop = new AbortController();
  const life = standingObjects({ client: api.client, clock: systemClock, log: silentLog, options, periodMs: 10 }).run(stop.signal, () => undefined);
  const read = async (): Promise<unknown> => (await api.ask("GET", at)).body.data;
  await expect.poll(read).toEqual({
    "client-ca-file": ca("theirs") + ca("own"), "requestheader-client-ca-file": ca("own proxy"), "requestheader-allowed-names": '["back","front"]', "requestheader-group-headers": '["X-Remote-Group"]',
    "requestheader-username-headers": '["X-Login","X-Remote-User"]', "requestheader-extra-headers-prefix": '["X-Remote-Extra-"]', more: "1",
  });
  stop.abort();
  await life;
});

test("what cannot be made keeps nothing else of what must be there from being made", async () => {
  let refusing = false;
  await using api = await apiServer({ admit: ({ resource, operation }) => { if (refusing && operation === "CREATE" && resource === "services") throw badRequest("no services"); } });
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  const map = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
  for (const path of ["/api/v1/namespaces/default/services/kubernetes", map]) await api.ask("DELETE", path);
  refusing = true;
  const stop = new AbortController(), warned: string[] = [];
  const life = standingObjects({ client: api.client, clock: systemClock, log: { ...silentLog, warn: (_, facts) => void warned.push(String(facts?.["error"])) }, options: OPTIONS, periodMs: 10 }).run(stop.signal, () => undefined);
  await expect.poll(async () => (await api.ask("GET", map)).code).toBe(200);
  await expect.poll(() => warned).toEqual([expect.stringContaining("no services")]);
  stop.abort();
  await life;
});

test("what is made of something that changes while the server runs is written again, once for each change and until it is", async () => {
  await using api = await apiServer();
  await ensureBootstrapObjects(api.client, OPTIONS, api.signal);
  let of = "a";
  const written: string[] = [], stop = new AbortController(), looks = Promise.withResolvers<void>();
  const rewritten = [{ of: () => of, write: async () => { written.push(of); if (written.length === 1) throw new Error("too busy"); } }];
  const life = standingObjects({ client: api.client, clock: systemClock, log: silentLog, options: OPTIONS, rewritten, periodMs: 5 }).run(stop.signal, looks.resolve);
  await looks.promise;
  await Bun.sleep(20);
  expect(written).toEqual([]);
  of = "b";
  await expect.poll(() => written).toEqual(["b", "b"]);
  await Bun.sleep(20);
  stop.abort();
  await life;
  expect(written).toEqual(["b", "b"]);
});

test("extension servers read of authorities that are replaced while the server runs", async () => {
  await using api = await apiServer();
  let clientCa = "before";
  const options = { ...OPTIONS, clientCa: () => clientCa };
  await ensureBootstrapObjects(api.client, options, api.signal);
  const stop = new AbortController(), looks = Promise.withResolvers<void>();
  const life = standingObjects({ client: api.client, clock: systemClock, log: silentLog, options, periodMs: 10 }).run(stop.signal, looks.resolve);
  await looks.promise;
  const read = async (): Promise<string> => (await api.ask("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")).body.data["client-ca-file"];
  expect(await read()).toBe("before");
  clientCa = "after";
  await expect.poll(read).toBe("after");
  stop.abort();
  await life;
});

test("where names are somebody else's to answer, their Service is too: its address is free", async () => {
  await using api = await apiServer();
  const { clusterDns, ...withoutDns } = OPTIONS;
  await ensureBootstrapObjects(api.client, withoutDns, api.signal);
  expect((await api.ask("GET", "/api/v1/namespaces/kube-system/services/kube-dns")).code).toBe(404);
  const made = await api.ask("POST", "/api/v1/namespaces/kube-system/services", { body: { metadata: { name: "coredns" }, spec: { clusterIP: clusterDns, selector: { "k8s-app": "coredns" }, ports: [{ port: 53, protocol: "UDP" }] } } });
  expect(made.code).toBe(201);
  await ensureBootstrapObjects(api.client, withoutDns, api.signal); // and at the next start
});

test("where names are somebody else's to answer from now on, what led to the nodes' goes at the start, and what is another's stays", async () => {
  await using api = await apiServer();
  const { clusterDns, ...withoutDns } = OPTIONS;
  const path = "/api/v1/namespaces/kube-system/services", slices = "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices";
  const sliceOf = (name: string, manager: string, service = "kube-dns") => api.ask("POST", slices, { body: { metadata: { name, labels: { "kubernetes.io/service-name": service, "endpointslice.kubernetes.io/managed-by": manager } }, addressType: "IPv4", endpoints: [{ addresses: ["172.30.0.1"] }], ports: [] } });
  const names = async () => ((await api.ask("GET", slices)).body as { items: { metadata: { name: string } }[] }).items.map(({ metadata }) => metadata.name);
  const start = async (options: BootstrapOptions) => {
    await ensureBootstrapObjects(api.client, options, api.signal);
    await standingObjects({ client: api.client, clock: { ...systemClock, async *every() {} } as unknown as typeof systemClock, log: silentLog, options }).run(api.signal, () => undefined); // its start alone
  };
  await start(OPTIONS);
  await sliceOf("kube-dns-n1", "coracle-dns");
  await sliceOf("other", "coracle-dns", "other");
  await start(OPTIONS);
  expect([(await api.ask("GET", `${path}/kube-dns`)).code, await names()]).toEqual([200, ["kube-dns-n1", "other"]]);
  await start(withoutDns);
  expect([(await api.ask("GET", `${path}/kube-dns`)).code, await names()]).toEqual([404, ["other"]]);

  await api.ask("POST", path, { body: { metadata: { name: "kube-dns" }, spec: { clusterIP: clusterDns, selector: { "k8s-app": "kube-dns" }, ports: [{ port: 53, protocol: "UDP" }] } } });
  await sliceOf("kube-dns-n1", "coracle-dns");
  await sliceOf("kube-dns-abc", "endpointslice-controller.k8s.io");
  await start(withoutDns);
  expect([(await api.ask("GET", `${path}/kube-dns`)).code, await names()]).toEqual([200, ["kube-dns-abc", "other"]]);
});

test("aggregated servers are told of the headers in which front proxies say who a caller is, of one for uids only where they may say them", async () => {
  await using api = await apiServer();
  const told = async (options: BootstrapOptions): Promise<unknown> => {
    await ensureBootstrapObjects(api.client, options, api.signal);
    const { data } = (await api.ask("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")).body;
    return ["username-headers", "uid-headers", "group-headers", "extra-headers-prefix"].map((name) => data[`requestheader-${name}`]);
  };
  const standard = ['["X-Remote-User"]', undefined, '["X-Remote-Group"]', '["X-Remote-Extra-"]'];
  expect(await told(OPTIONS)).toEqual(standard);
  expect(await told({ ...OPTIONS, proxyHeaders: { user: ["X-Remote-User", "X-Login"], uid: ["X-Remote-Uid"], group: ["X-Team"], extraPrefixes: ["X-More-"] } })).toEqual(['["X-Remote-User","X-Login"]', '["X-Remote-Uid"]', '["X-Team"]', '["X-More-"]']);
  expect(await told(OPTIONS)).toEqual(standard);
});
