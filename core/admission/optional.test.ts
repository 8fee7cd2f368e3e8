/** Plug-ins that are off unless enabled by name, and the file that configures plug-ins. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../test/admission-request.ts";
import { fakeApi } from "../../test/fake-api.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { Namespace, Pod, ResourceQuota } from "../api/gen/core.v1.ts";
import { parseQuantity } from "../api/meta/quantity.ts";
import { evaluatorOf } from "../api/quota/evaluators.ts";
import { NAMESPACES } from "../client/resources.ts";
import { alwaysDeny } from "./always.ts";
import { systemClock } from "../lifecycle/clock.ts";
import { limitPodHardAntiAffinityTopology } from "./anti-affinity.ts";
import { clusterTrustBundleAttest } from "./certificates.ts";
import { admissionConfiguration } from "./configuration.ts";
import { eventRateLimit, eventRateLimits } from "./event-rate-limit.ts";
import { extendedResourceToleration } from "./extended-resource-toleration.ts";
import { imagePolicy, imagePolicyWebhook } from "./image-policy.ts";
import { namespaceAutoProvision, namespaceExists } from "./namespaces.ts";
import { podNodeSelector, podNodeSelectors } from "./pod-node-selector.ts";
import { podTolerationRestriction, tolerationRestriction } from "./pod-toleration-restriction.ts";
import { limitedResources, uncovered } from "./quota-limits.ts";
import { charge } from "./resource-quota.ts";

const pod = (spec: object = {}): Pod => stored<Pod>("v1", "Pod", "default/web", { spec: { containers: [{ name: "c" }], ...spec } });
const create = (object: object, more: object = {}) => admissionRequest({ resource: "pods", object, ...more });
const namespace = (name: string, annotations: Record<string, string> = {}) => stored<Namespace>("v1", "Namespace", name, { metadata: { annotations } });

test("ExtendedResourceToleration: who asks for a device tolerates the taint of its name", async () => {
  const gpu = { key: "vendor.example/gpu", operator: "Exists", effect: "NoSchedule" };
  const asking = (tolerations?: object[]) => pod({ containers: [{ name: "c", resources: { requests: { "vendor.example/gpu": "1", cpu: "1", "requests.vendor.example/x": "1" } } }], ...(tolerations ? { tolerations } : {}) });
  const plain = asking();
  await runPlugin(extendedResourceToleration, create(plain));
  expect(plain.spec.tolerations).toEqual([gpu]);
  const again = asking([gpu]);
  await runPlugin(extendedResourceToleration, create(again));
  expect(again.spec.tolerations).toEqual([gpu]);
});

describe("EventRateLimit", () => {
  const configuration = (limits: object[]) => eventRateLimits({ apiVersion: "eventratelimit.admission.k8s.io/v1alpha1", kind: "Configuration", limits });
  test("a bucket for each key, that fills again", async () => {
    let nowMs = 0;
    const plugin = eventRateLimit({ limits: configuration([{ type: "Namespace", qps: 1, burst: 2 }]), clock: { uptimeMs: () => nowMs } });
    const write = (ns: string) => runPlugin(plugin, admissionRequest({ resource: "events", namespace: ns, object: { kind: "Event" } }));
    expect([await write("a"), await write("a"), await write("a"), await write("b")]).toEqual(["ok", "ok", "429 Too many requests: limit reached on type Namespace for key a", "ok"]);
    expect(await runPlugin(plugin, { ...admissionRequest({ resource: "events", namespace: "a", object: { kind: "Event" } }), group: "events.k8s.io" })).toBe("not handled");
    nowMs = 1_000;
    expect([await write("a"), await write("a")]).toEqual(["ok", "429 Too many requests: limit reached on type Namespace for key a"]);
  });
  test.each([[[], "must not be empty"], [[{ type: "Pod", qps: 1, burst: 1 }], "limits[0].type: Unsupported value"], [[{ type: "Server", qps: 0, burst: 1 }], "limits[0].qps: Invalid value: 0: must be positive"]])("cannot be: %j", (limits, told) => {
    expect(() => configuration(limits)).toThrow(told);
  });
});

test("NamespaceExists and NamespaceAutoProvision", async () => {
  const { client } = fakeApi();
  const namespaces = staticInformer<Namespace>(namespace("default"));
  const exists = namespaceExists({ namespaces });
  expect(await runPlugin(exists, create(pod(), { namespace: "gone" }))).toBe('404 namespaces "gone" not found');
  expect(await runPlugin(exists, create(pod()))).toBe("ok");
  expect(await runPlugin(namespaceAutoProvision({ namespaces, client: client.resource(NAMESPACES) }), create(pod(), { namespace: "fresh" }))).toBe("ok");
  expect((await client.resource(NAMESPACES).get({ metadata: { name: "fresh" } }, { signal: AbortSignal.timeout(60_000) })).metadata.name).toBe("fresh");
});

test("LimitPodHardAntiAffinityTopology and AlwaysDeny", async () => {
  const apart = (topologyKey: string) => pod({ affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ topologyKey }] } } });
  expect(await runPlugin(limitPodHardAntiAffinityTopology, create(apart("zone")))).toBe('pods "web" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed');
  expect(await runPlugin(limitPodHardAntiAffinityTopology, create(apart("kubernetes.io/hostname")))).toBe("ok");
  expect(await runPlugin(alwaysDeny, create(pod()))).toBe('pods "web" is forbidden: admission control is denying all modifications');
});

test("PodNodeSelector", async () => {
  const namespaces = staticInformer<Namespace>(namespace("default", { "scheduler.alpha.kubernetes.io/node-selector": "env=test" }), namespace("other"), namespace("tight"));
  const plugin = podNodeSelector({ namespaces, selectors: podNodeSelectors({ podNodeSelectorPluginConfig: { clusterDefaultNodeSelector: "zone=a", tight: "zone=a" } }) });
  const one = pod({ nodeSelector: { disk: "ssd" } });
  expect([await runPlugin(plugin, create(one)), one.spec.nodeSelector]).toEqual(["ok", { env: "test", disk: "ssd" }]);
  const other = pod();
  expect([await runPlugin(plugin, create(other, { namespace: "other" })), other.spec.nodeSelector]).toEqual(["ok", { zone: "a" }]);
  expect(await runPlugin(plugin, create(pod({ nodeSelector: { env: "prod" } })))).toBe('pods "web" is forbidden: pod node label selector conflicts with its namespace node label selector');
  expect(await runPlugin(plugin, create(pod({ nodeSelector: { disk: "ssd" } }), { namespace: "tight" }))).toBe('pods "web" is forbidden: pod node label selector labels conflict with its namespace whitelist');
  const unnamed = { ...pod({ nodeSelector: { env: "prod" } }), metadata: { generateName: "web-" } };
  expect(await runPlugin(plugin, create(unnamed))).toBe("pods is forbidden: pod node label selector conflicts with its namespace node label selector");
});

test.each([
  ["a=b=c", "500 invalid selector: [a b c]"],
  [" ", "500 invalid selector: [ ]"],
  ["a=b,c", "500 invalid selector: [c]"],
  ["-a=b", expect.stringContaining('500 <nil>: Invalid value: "-a": name part must consist of')],
  ["a=-b", expect.stringContaining('500 [a]: Invalid value: "-b": a valid label must be')],
  [" a = b ", "ok"],
  ["", "ok"],
])("PodNodeSelector: a namespace's selector %j: %s", async (selector, told) => {
  const plugin = podNodeSelector({ namespaces: staticInformer<Namespace>(namespace("default", { "scheduler.alpha.kubernetes.io/node-selector": selector })), selectors: {} });
  expect(await runPlugin(plugin, create(pod()))).toEqual(told);
});

test("PodTolerationRestriction", async () => {
  const own = { key: "own", operator: "Exists", effect: "NoSchedule" };
  const namespaces = staticInformer<Namespace>(namespace("default", { "scheduler.alpha.kubernetes.io/defaultTolerations": JSON.stringify([own]), "scheduler.alpha.kubernetes.io/tolerationsWhitelist": JSON.stringify([own]) }));
  const plugin = podTolerationRestriction({ namespaces, restriction: tolerationRestriction(undefined) });
  const one = pod();
  expect([await runPlugin(plugin, create(one)), one.spec.tolerations]).toEqual(["ok", [own]]);
  expect(await runPlugin(plugin, create(pod({ tolerations: [{ key: "other", operator: "Exists" }] })))).toBe("500 pod tolerations (possibly merged with namespace default tolerations) conflict with its namespace whitelist");
  const free = podTolerationRestriction({ namespaces: staticInformer<Namespace>(namespace("default")), restriction: tolerationRestriction(undefined) });
  const [best, burstable] = [pod(), pod({ containers: [{ name: "c", resources: { requests: { cpu: "1" } } }] })];
  for (const each of [best, burstable]) expect(await runPlugin(free, create(each))).toBe("ok");
  const pressure = { key: "node.kubernetes.io/memory-pressure", operator: "Exists", effect: "NoSchedule" };
  expect([best.spec.tolerations ?? [], burstable.spec.tolerations]).toEqual([[], [pressure]]);
  const [nothing, whole] = [pod({ containers: [{ name: "c", resources: { requests: { cpu: "0" } } }] }), pod({ resources: { limits: { memory: "1Gi" } } })];
  for (const each of [nothing, whole]) expect(await runPlugin(free, create(each))).toBe("ok");
  expect([nothing.spec.tolerations ?? [], whole.spec.tolerations]).toEqual([[], [pressure]]);
});

test("PodTolerationRestriction: an annotation that says null asks for nothing, also where the cluster does; one that is no list is told of", async () => {
  const restriction = tolerationRestriction({ apiVersion: "podtolerationrestriction.admission.k8s.io/v1alpha1", kind: "Configuration", default: [{ key: "cluster", operator: "Exists" }] });
  const plugin = (defaults: string) => podTolerationRestriction({ namespaces: staticInformer<Namespace>(namespace("default", { "scheduler.alpha.kubernetes.io/defaultTolerations": defaults })), restriction });
  const one = pod();
  expect([await runPlugin(plugin("null"), create(one)), one.spec.tolerations]).toEqual(["ok", undefined]);
  expect(await runPlugin(plugin('{"key":"a"}'), create(pod()))).toBe("500 json: cannot unmarshal object into Go value of type []v1.Toleration");
  expect(await runPlugin(plugin("["), create(pod()))).toBe("500 unexpected end of JSON input");
  expect(await runPlugin(plugin('["a"]'), create(pod()))).toBe("500 json: cannot unmarshal string into Go value of type v1.Toleration");
  const two = pod();
  expect([await runPlugin(plugin('[{"Key":"a","Operator":"Exists","TolerationSeconds":null,"more":1}]'), create(two)), two.spec.tolerations]).toEqual(["ok", [{ key: "a", operator: "Exists" }]]);
});

test("ClusterTrustBundleAttest", async () => {
  const bundle = stored("certificates.k8s.io/v1beta1", "ClusterTrustBundle", "b", { spec: { signerName: "example.com/s" } });
  const plugin = (may: boolean) => clusterTrustBundleAttest({ authorize: () => ({ decision: may ? "allow" : "no-opinion", reason: "" }), rulesFor: async () => ({ resourceRules: [], pathRules: [], incomplete: false }) });
  const request = () => admissionRequest({ resource: "clustertrustbundles.certificates.k8s.io", namespace: "", object: bundle });
  expect(await runPlugin(plugin(false), request())).toBe('clustertrustbundles.certificates.k8s.io "b" is forbidden: user not permitted to attest for signerName "example.com/s"');
  expect(await runPlugin(plugin(true), request())).toBe("ok");
});

describe("ResourceQuota: what is used only where a quota says how much", () => {
  const limited = limitedResources({
    apiVersion: "apiserver.config.k8s.io/v1", kind: "ResourceQuotaConfiguration",
    limitedResources: [{ resource: "pods", matchContains: ["requests.cpu"] }, { resource: "pods", matchScopes: [{ scopeName: "PriorityClass", operator: "In", values: ["system-cluster-critical"] }] }],
  });
  const evaluator = evaluatorOf({ group: "", resource: "pods" })!;
  const quota = (hard: Record<string, string>, spec: object = {}) => stored<ResourceQuota>("v1", "ResourceQuota", "default/q", { spec, status: { hard, used: Object.fromEntries(Object.keys(hard).map((name) => [name, "0"])) } });
  const cpu = pod({ containers: [{ name: "c", resources: { requests: { cpu: "1" } } }] });
  const spend = (object: Pod, quotas: ResourceQuota[]) => charge(quotas, { request: create(object), evaluator, nowMs: 0, limited });

  test("by name and by scope", () => {
    expect(() => spend(cpu, [])).toThrow('pods "web" is forbidden: insufficient quota to consume: requests.cpu');
    expect(spend(cpu, [quota({ "requests.cpu": "2" })])[0]?.status?.used).toEqual({ "requests.cpu": "1" });
    const critical = pod({ priorityClassName: "system-cluster-critical" });
    const told = expect.objectContaining({ status: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Failure", message: "insufficient quota to match these scopes: [{PriorityClass In [system-cluster-critical]}]", code: 500 } });
    expect(() => spend(critical, [])).toThrow(told);
    expect(spend(critical, [quota({ pods: "1" }, { scopeSelector: { matchExpressions: [{ scopeName: "PriorityClass", operator: "In", values: ["system-cluster-critical"] }] } })])).toHaveLength(1);
    expect(spend(pod(), [])).toEqual([]);
    expect(uncovered({ limited, group: "", resource: "services", object: cpu, evaluator, usage: new Map([["requests.cpu", parseQuantity("1")]]), quotas: [], isLimited: () => false }).names).toEqual([]);
  });
});

describe("ImagePolicyWebhook", () => {
  const settings = (rest: object = {}) => imagePolicy({ imagePolicy: { kubeConfigFile: "/x", ...rest } })!;
  const image = (name: string): Pod => pod({ containers: [{ name: "c", image: name }] });

  test("asks once for the same images, and refuses with what it is told", async () => {
    let asked = 0;
    const backend = createServer((request, response) => {
      let body = "";
      request.on("data", (chunk) => { body += String(chunk); });
      request.on("end", () => {
        asked++;
        const review = JSON.parse(body) as { spec: { containers: { image: string }[] } };
        const image = review.spec.containers[0]!.image, allowed = image === "good";
        const others: Record<string, object> = { text: { status: { allowed: "false" } }, nothing: { status: null }, kind: { kind: "Pod", status: { allowed: true } } };
        response.end(JSON.stringify({ ...review, status: { allowed, ...(allowed ? {} : { reason: "not signed" }) }, ...others[image] }));
      });
    });
    await new Promise<void>((resolve) => backend.listen(0, "127.0.0.1", resolve));
    const server = { url: `http://127.0.0.1:${(backend.address() as AddressInfo).port}/`, tls: {} };
    const plugin = imagePolicyWebhook({ settings: settings(), server, clock: systemClock });
    expect([await runPlugin(plugin, create(image("good"))), await runPlugin(plugin, create(image("good"))), asked]).toEqual(["ok", "ok", 1]);
    expect(await runPlugin(plugin, create(image("bad")))).toBe('pods "web" is forbidden: image policy webhook backend denied one or more images: not signed');
    expect([await runPlugin(plugin, create(image("text"))), await runPlugin(plugin, create(image("nothing"))), await runPlugin(plugin, create(image("kind")))]).toEqual([
      'pods "web" is forbidden: json: cannot unmarshal string into Go struct field ImageReviewStatus.status.allowed of type bool', 'pods "web" is forbidden: one or more images rejected by webhook backend',
      'pods "web" is forbidden: expected ImageReview of imagepolicy.k8s.io/v1alpha1, got Pod of imagepolicy.k8s.io/v1alpha1',
    ]);
    await new Promise((resolve) => backend.close(resolve));
    const impatient = { ...systemClock, sleep: async () => undefined };
    const without = (defaultAllow: boolean) => runPlugin(imagePolicyWebhook({ settings: settings({ defaultAllow }), server, clock: impatient }), create(image("good")));
    expect([await without(true), await without(false)]).toEqual(["ok", expect.stringContaining('pods "web" is forbidden: Post "http://127.0.0.1')]);
  });

  test("its configuration", () => {
    expect([settings(), settings({ allowTTL: -1, denyTTL: 5 })].map(({ allowMs, denyMs }) => [allowMs, denyMs])).toEqual([[300_000, 30_000], [0, 5_000]]);
    expect(() => settings({ allowTTL: 4_000 })).toThrow("valid value is between 1s and 30m0s");
    expect(() => imagePolicy({ imagePolicy: {} })).toThrow("imagePolicy.kubeConfigFile: Required value");
  });
});

test("AdmissionConfiguration: sections inline and in files; mistakes are told", () => {
  const read = (plugins: string) => admissionConfiguration(`apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n${plugins}`, (path) => `path: ${path}`);
  expect(Object.fromEntries(read("- name: A\n  configuration: {kind: X}\n- name: B\n  path: b.yaml\n"))).toEqual({ A: { kind: "X" }, B: { path: "b.yaml" } });
  expect(() => read("- name: A\n- name: A\n")).toThrow('plugins[1].name: Duplicate value: "A"');
  expect(() => read("- name: A\n  config: {}\n")).toThrow('unknown field "plugins[0].config"');
  expect(() => admissionConfiguration("kind: Pod", () => "")).toThrow('no kind "Pod" is registered');
});
