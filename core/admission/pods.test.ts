import { describe, expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../test/admission-request.ts";
import { fakeApi } from "../../test/fake-api.ts";
import { staticInformer, stored } from "../../test/static-informer.ts";
import type { LimitRange, Node, Pod, ServiceAccount } from "../api/gen/core.v1.ts";
import type { RuntimeClass } from "../api/gen/node.v1.ts";
import type { PriorityClass } from "../api/gen/scheduling.v1.ts";
import { lookup } from "../client/lookup.ts";
import { LIMIT_RANGES, NODES, PRIORITY_CLASSES } from "../client/resources.ts";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import type { Random } from "../lifecycle/random.ts";
import { alwaysPullImages } from "./always-pull-images.ts";
import { defaultTolerationSeconds } from "./default-toleration-seconds.ts";
import { limitRanger } from "./limit-ranger.ts";
import { mergeTolerations } from "./merge-tolerations.ts";
import { nodeDeclaredFeatureValidator } from "./node-declared-features.ts";
import { podResizeValidator } from "./pod-resize-validator.ts";
import { podTopologyLabels } from "./pod-topology-labels.ts";
import { priorityAdmission } from "./priority.ts";
import { runtimeClassAdmission } from "./runtime-class.ts";
import { serviceAccountAdmission } from "./service-account.ts";

const { client } = fakeApi();
const random: Random = { next: () => 0, uuid: () => "u", bytes: (length) => new Uint8Array(length) };
const pod = (spec: object = {}, metadata: object = {}): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", namespace: "default", ...metadata }, spec: { containers: [{ name: "c", image: "i" }], ...spec } }) as unknown as Pod;
const create = (object: Pod) => admissionRequest({ resource: "pods", object });

describe("ServiceAccount", () => {
  const account = (name: string, rest: object = {}): ServiceAccount => stored<ServiceAccount>("v1", "ServiceAccount", `default/${name}`, rest);
  const sleeps: number[] = [];
  const clock: Clock = { ...systemClock, sleep: async (ms) => void sleeps.push(ms) };
  const serviceAccounts = staticInformer<ServiceAccount>(
    account("default"), account("puller", { imagePullSecrets: [{ name: "registry" }] }), account("quiet", { automountServiceAccountToken: false }),
    account("strict", { metadata: { annotations: { "kubernetes.io/enforce-mountable-secrets": "true" } }, secrets: [{ name: "mine" }], imagePullSecrets: [{ name: "mine-pull" }] }),
  );
  const plugin = serviceAccountAdmission({ serviceAccounts, clock, random });

  test("a pod gets the default account and its token, exactly as upstream mounts it", async () => {
    const web = pod({ initContainers: [{ name: "init", image: "i" }] });
    expect(await runPlugin(plugin, create(web))).toBe("ok");
    const mount = { name: "kube-api-access-d7trj", readOnly: true, mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" };
    expect(web.spec).toEqual({
      serviceAccountName: "default", serviceAccount: "default",
      initContainers: [{ name: "init", image: "i", volumeMounts: [mount] }], containers: [{ name: "c", image: "i", volumeMounts: [mount] }],
      volumes: [{
        name: "kube-api-access-d7trj",
        projected: {
          defaultMode: 420,
          sources: [
            { serviceAccountToken: { expirationSeconds: 3607, path: "token" } }, { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
            { downwardAPI: { items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }] } },
          ],
        },
      }],
    });
  });

  test("the token's volume is called the same in all pods of an account", async () => {
    const [one, two, other] = [pod({}), pod({}), pod({ serviceAccountName: "puller" })];
    for (const each of [one, two, other]) expect(await runPlugin(plugin, create(each))).toBe("ok");
    const [name, ...names] = [one, two, other].map(({ spec }) => spec.volumes![0]!.name);
    expect(names).toEqual([name, expect.not.stringMatching(`^${name}$`)]);
  });

  test("a container that mounts something there keeps it; nothing is added twice", async () => {
    const own = pod({ containers: [{ name: "c", image: "i", volumeMounts: [{ name: "x", mountPath: "/var/run/secrets/kubernetes.io/serviceaccount" }] }] });
    await runPlugin(plugin, create(own));
    expect(own.spec.volumes).toBeUndefined();
    const copied = pod({ volumes: [{ name: "kube-api-access-xyz", projected: { sources: [] } }] });
    await runPlugin(plugin, create(copied));
    expect(copied.spec.volumes).toHaveLength(1);
    expect(copied.spec.containers[0]?.volumeMounts?.[0]?.name).toBe("kube-api-access-xyz");
  });

  test.each([
    ["the pod says no", { automountServiceAccountToken: false }, false], ["the account says no", { serviceAccountName: "quiet" }, false],
    ["the pod's word counts more", { serviceAccountName: "quiet", automountServiceAccountToken: true }, true],
  ])("automount: %s", async (_name, spec, mounted) => {
    const one = pod(spec);
    await runPlugin(plugin, create(one));
    expect(one.spec.volumes !== undefined).toBe(mounted);
  });

  test("pull secrets are the account's, unless the pod has its own", async () => {
    const one = pod({ serviceAccountName: "puller" });
    const other = pod({ serviceAccountName: "puller", imagePullSecrets: [{ name: "own" }] });
    await runPlugin(plugin, create(one));
    await runPlugin(plugin, create(other));
    expect([one.spec.imagePullSecrets, other.spec.imagePullSecrets]).toEqual([[{ name: "registry" }], [{ name: "own" }]]);
  });

  test.each([
    [pod({ serviceAccountName: "gone" }), 'pods "web" is forbidden: error looking up service account default/gone: serviceaccount "gone" not found'],
    [pod({ serviceAccountName: "strict", volumes: [{ name: "v", secret: { secretName: "other" } }] }), 'pods "web" is forbidden: volume with secret.secretName="other" is not allowed because service account strict does not reference that secret'],
    [pod({ serviceAccountName: "strict", containers: [{ name: "c", env: [{ name: "A", valueFrom: { secretKeyRef: { name: "other", key: "k" } } }] }] }), 'pods "web" is forbidden: container c with envVar A referencing secret.secretName="other" is not allowed because service account strict does not reference that secret'],
    [pod({ serviceAccountName: "strict", imagePullSecrets: [{ name: "other" }] }), 'pods "web" is forbidden: imagePullSecrets[0].name="other" is not allowed because service account strict does not reference that imagePullSecret'],
    [pod({ serviceAccountName: "strict", volumes: [{ name: "v", secret: { secretName: "mine" } }] }), "ok"],
    [pod({ serviceAccountName: "default" }, { annotations: { "kubernetes.io/config.mirror": "x" } }), 'pods "web" is forbidden: a mirror pod may not reference service accounts'],
    [pod({ volumes: [{ name: "v", secret: { secretName: "s" } }] }, { annotations: { "kubernetes.io/config.mirror": "x" } }), 'pods "web" is forbidden: a mirror pod may not reference secrets'],
    [pod({ volumes: [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }] }, { annotations: { "kubernetes.io/config.mirror": "x" } }), 'pods "web" is forbidden: a mirror pod may not use ServiceAccountToken volume projections'],
  ])("%#: %s", async (object, answer) => expect(await runPlugin(plugin, create(object))).toBe(answer));

  test("a mirror pod is left as its node made it", async () => {
    const mirror = pod({}, { annotations: { "kubernetes.io/config.mirror": "x" } });
    expect(await runPlugin(plugin, create(mirror))).toBe("ok");
    expect(mirror.spec).toEqual({ containers: [{ name: "c", image: "i" }] });
  });

  test("a new namespace's default account is waited for", async () => {
    sleeps.length = 0;
    const refused = await runPlugin(plugin, admissionRequest({ resource: "pods", namespace: "fresh", object: pod() }));
    expect(refused).toBe('pods "web" is forbidden: error looking up service account fresh/default: serviceaccount "default" not found');
    expect(sleeps).toEqual(Array(9).fill(100));
  });

  test.each(["pods/status", "pods/binding", "services"])("%s is not its business", async (resource) => expect(await runPlugin(plugin, admissionRequest({ resource, object: pod() }))).toBe("not handled"));
});

describe("Priority", () => {
  const priorityClasses = staticInformer<PriorityClass>(
    stored<PriorityClass>("scheduling.k8s.io/v1", "PriorityClass", "high", { value: 1000, preemptionPolicy: "Never" }), stored<PriorityClass>("scheduling.k8s.io/v1", "PriorityClass", "std", { value: 10, globalDefault: true }),
    stored<PriorityClass>("scheduling.k8s.io/v1", "PriorityClass", "std2", { value: 20, globalDefault: true }),
  );
  const plugin = priorityAdmission({ priorityClasses, informer: priorityClasses, client: client.resource(PRIORITY_CLASSES) });
  const none = staticInformer<PriorityClass>();
  const bare = priorityAdmission({ priorityClasses: none, informer: none, client: client.resource(PRIORITY_CLASSES) });

  test.each([
    [plugin, { priorityClassName: "high" }, { priorityClassName: "high", priority: 1000, preemptionPolicy: "Never" }], [plugin, {}, { priorityClassName: "std", priority: 10 }], [bare, {}, { priority: 0, preemptionPolicy: "PreemptLowerPriority" }],
  ])("%#: %j", async (one, spec, result) => {
    const object = pod(spec);
    expect(await runPlugin(one, create(object))).toBe("ok");
    const { priorityClassName, priority, preemptionPolicy } = object.spec;
    expect({ priorityClassName, priority, preemptionPolicy }).toEqual({ priorityClassName: undefined, preemptionPolicy: undefined, ...result });
  });

  test("a class whose name no path can have is not asked for", async () => {
    const asking = priorityAdmission({ priorityClasses: { find: () => Promise.reject(new Error("asked")) }, informer: none, client: client.resource(PRIORITY_CLASSES) });
    expect(await runPlugin(asking, create(pod({ priorityClassName: ".." })))).toBe('pods "web" is forbidden: no PriorityClass with name .. was found');
  });

  test.each([
    [{ priorityClassName: "gone" }, 'pods "web" is forbidden: no PriorityClass with name gone was found'],
    [{ priorityClassName: "high", priority: 5 }, 'pods "web" is forbidden: the integer value of priority (5) must not be provided in pod spec; priority admission controller computed 1000 from the given PriorityClass name'],
    [{ priorityClassName: "high", preemptionPolicy: "PreemptLowerPriority" }, 'pods "web" is forbidden: the string value of PreemptionPolicy (PreemptLowerPriority) must not be provided in pod spec; priority admission controller computed Never from the given PriorityClass name'],
    [{ priorityClassName: "high", priority: 1000 }, "ok"],
  ])("%j: %s", async (spec, answer) => expect(await runPlugin(plugin, create(pod(spec)))).toBe(answer));

  test("an update keeps what was resolved", async () => {
    const next = pod();
    await runPlugin(plugin, admissionRequest({ operation: "UPDATE", resource: "pods", object: next, old: pod({ priority: 7, preemptionPolicy: "Never" }) }));
    expect(next.spec).toMatchObject({ priority: 7, preemptionPolicy: "Never" });
  });

  test("one default only", async () => {
    const request = (operation: "CREATE" | "UPDATE", name: string) => admissionRequest({ operation, resource: "priorityclasses.scheduling.k8s.io", namespace: "", object: stored<PriorityClass>("scheduling.k8s.io/v1", "PriorityClass", name, { value: 1, globalDefault: true }) });
    expect(await runPlugin(plugin, request("CREATE", "new"))).toBe('priorityclasses.scheduling.k8s.io "new" is forbidden: PriorityClass std is already marked as default. Only one default can exist');
    expect(await runPlugin(plugin, request("UPDATE", "std"))).toBe("ok");
    expect(await runPlugin(bare, request("CREATE", "new"))).toBe("ok");
  });
});

describe("DefaultTolerationSeconds", () => {
  const both = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map((key) => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 }));
  test.each([
    [undefined, both], [[{ key: "a", operator: "Exists" }], [{ key: "a", operator: "Exists" }, ...both]], [[{ operator: "Exists" }], [{ operator: "Exists" }]],
    [[{ key: "node.kubernetes.io/not-ready", effect: "NoExecute", operator: "Exists" }], [{ key: "node.kubernetes.io/not-ready", effect: "NoExecute", operator: "Exists" }, both[1]]],
    [[{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }], [{ key: "node.kubernetes.io/not-ready", effect: "NoSchedule" }, ...both]],
  ])("%j", async (given, result) => {
    const object = pod({ tolerations: given });
    await runPlugin(defaultTolerationSeconds(), create(object));
    expect(object.spec.tolerations).toEqual(result);
  });
});

describe("RuntimeClass", () => {
  const runtimeClasses = staticInformer<RuntimeClass>(
    stored<RuntimeClass>("node.k8s.io/v1", "RuntimeClass", "kata", { handler: "kata", overhead: { podFixed: { cpu: "250m", memory: "120Mi" } }, scheduling: { nodeSelector: { kata: "yes" }, tolerations: [{ key: "kata", operator: "Exists" }] } }),
    stored<RuntimeClass>("node.k8s.io/v1", "RuntimeClass", "runc", { handler: "runc" }),
    stored<RuntimeClass>("node.k8s.io/v1", "RuntimeClass", "placed", { handler: "runc", scheduling: { nodeSelector: { disk: "ssd" } } }),
  );
  const plugin = runtimeClassAdmission({ runtimeClasses });

  test("adds overhead, selector and tolerations", async () => {
    const object = pod({ runtimeClassName: "kata", nodeSelector: { disk: "ssd" } });
    expect(await runPlugin(plugin, create(object))).toBe("ok");
    expect(object.spec).toMatchObject({ overhead: { cpu: "250m", memory: "120Mi" }, nodeSelector: { disk: "ssd", kata: "yes" }, tolerations: [{ key: "kata", operator: "Exists" }] });
  });

  test.each([
    [{ runtimeClassName: "gone" }, 'pods "web" is forbidden: pod rejected: RuntimeClass "gone" not found'],
    [{ runtimeClassName: "kata", overhead: { cpu: "1" } }, 'pods "web" is forbidden: pod rejected: Pod\'s Overhead doesn\'t match RuntimeClass\'s defined Overhead'],
    [{ runtimeClassName: "kata", overhead: { cpu: "0.25", memory: "120Mi" } }, "ok"],
    [{ runtimeClassName: "runc", overhead: { cpu: "1" } }, 'pods "web" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'],
    [{ overhead: {} }, 'pods "web" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'],
    [{ overhead: { cpu: "1" } }, 'pods "web" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead'],
    [{ runtimeClassName: "kata", nodeSelector: { kata: "no" } }, 'pods "web" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[kata] = yes; pod.spec.nodeSelector[kata] = no'],
    [{}, "ok"],
  ])("%j: %s", async (spec, answer) => expect(await runPlugin(plugin, create(pod(spec)))).toBe(answer));

  test("where a class says which nodes, what others of the pod's tolerations include is dropped", async () => {
    const object = pod({ runtimeClassName: "placed", tolerations: [{ key: "a", operator: "Exists", effect: "NoSchedule" }, { operator: "Exists" }] });
    expect(await runPlugin(plugin, create(object))).toBe("ok");
    expect(object.spec.tolerations).toEqual([{ operator: "Exists" }]);
  });

  test("tolerations that others include are dropped", () => {
    expect(mergeTolerations([{ key: "a", operator: "Equal", value: "1", effect: "NoSchedule" }], [{ key: "a", operator: "Exists" }])).toEqual([{ key: "a", operator: "Exists" }]);
    expect(mergeTolerations([{ operator: "Exists" }], [{ key: "a", operator: "Exists" }])).toEqual([{ operator: "Exists" }]);
    expect(mergeTolerations([{ key: "a", operator: "Exists" }], [{ key: "b", operator: "Exists" }])).toHaveLength(2);
  });

  test("one that lasts for ever is not dropped for one of no seconds", () => {
    const [never, ever] = [{ key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 0 } as const, { key: "a", operator: "Exists", effect: "NoExecute" } as const];
    expect([mergeTolerations([never], [ever]), mergeTolerations([ever], [never])]).toEqual([[ever], [ever]]);
  });

  test("of many, each is known by what it is for", { timeout: 5_000 }, () => {
    const many = Array.from({ length: 20_000 }, (_, i) => ({ key: `k${i % 10_000}`, operator: "Equal", value: `v${i % 10_000}`, effect: "NoExecute", tolerationSeconds: i }) as const);
    expect(mergeTolerations(many, [])).toEqual(many.slice(10_000));
  });
});

describe("LimitRanger", () => {
  const range = (name: string, ...limits: object[]): LimitRange => stored<LimitRange>("v1", "LimitRange", name, { spec: { limits } });
  const limitRanges = staticInformer<LimitRange>(
    range("default/defaults", { type: "Container", default: { cpu: "500m" }, defaultRequest: { cpu: "100m", memory: "64Mi" } }),
    range("bounded/bounds", { type: "Container", min: { cpu: "100m" }, max: { memory: "1Gi" }, maxLimitRequestRatio: { memory: "2" } }, { type: "Pod", max: { cpu: "2" } }, { type: "PersistentVolumeClaim", min: { storage: "1Gi" }, max: { storage: "10Gi" } }),
    range("ratio/seven", { type: "Container", maxLimitRequestRatio: { cpu: "7" } }, { type: "Pod", max: { memory: "1Gi" } }),
  );
  const plugin = limitRanger({ limitRanges, client: client.resource(LIMIT_RANGES) });
  const resources = (requests: object, limits: object) => pod({ containers: [{ name: "c", image: "i", resources: { requests, limits } }] });

  test("fills in what is not said, and says so", async () => {
    const object = pod({ containers: [{ name: "a", image: "i" }, { name: "b", image: "i", resources: { requests: { cpu: "1" }, limits: { cpu: "2" } } }], initContainers: [{ name: "i", image: "i" }] });
    expect(await runPlugin(plugin, create(object))).toBe("ok");
    expect(object.spec.containers.map((one) => one.resources)).toEqual([{ limits: { cpu: "500m" }, requests: { cpu: "100m", memory: "64Mi" } }, { limits: { cpu: "2" }, requests: { cpu: "1", memory: "64Mi" } }]);
    expect(object.metadata.annotations).toEqual({
      "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu, memory request for container a; cpu limit for container a; memory request for container b; cpu, memory request for init container i; cpu limit for init container i",
    });
  });

  test.each([
    [resources({ cpu: "100m", memory: "512Mi" }, { cpu: "2", memory: "1Gi" }), "ok"],
    [resources({ cpu: "50m", memory: "1Gi" }, { cpu: "1", memory: "1Gi" }), "minimum cpu usage per Container is 100m, but request is 50m"],
    [resources({ cpu: "1", memory: "1Gi" }, { cpu: "1" }), "[maximum memory usage per Container is 1Gi.  No limit is specified, memory max limit to request ratio per Container is 2, but no limit is specified or limit is 0]"],
    [resources({ cpu: "1", memory: "1Gi" }, { cpu: "1", memory: "1536Mi" }), "maximum memory usage per Container is 1Gi, but limit is 1536Mi"],
    [resources({ cpu: "1", memory: "256Mi" }, { cpu: "1", memory: "1Gi" }), "memory max limit to request ratio per Container is 2, but provided ratio is 4.000000"],
    [resources({ cpu: "3", memory: "1Gi" }, { cpu: "3", memory: "1Gi" }), "maximum cpu usage per Pod is 2, but limit is 3"],
    [resources({ memory: "1Gi" }, { cpu: "1", memory: "1Gi" }), "minimum cpu usage per Container is 100m.  No request is specified"],
  ])("%#: %s", async (object, answer) => {
    const message = await runPlugin(plugin, admissionRequest({ resource: "pods", namespace: "bounded", object }));
    expect(message).toBe(answer === "ok" ? "ok" : `pods "web" is forbidden: ${answer}`);
  });

  test("a ratio is that of whole thousandths, and an amount beside sidecars is written as the container's own", async () => {
    const ask = (object: Pod) => runPlugin(plugin, admissionRequest({ resource: "pods", namespace: "ratio", object }));
    expect(await ask(resources({ cpu: "600m" }, { cpu: "4200m", memory: "1Gi" }))).toBe("ok"); // 4.2 by 0.6 is 7.000000000000001
    expect(await ask(resources({ cpu: "600m" }, { cpu: "4201m", memory: "1Gi" }))).toBe('pods "web" is forbidden: cpu max limit to request ratio per Container is 7, but provided ratio is 7.001667');
    const starts = [{ name: "s", restartPolicy: "Always", resources: { limits: { memory: "1k" } } }, { name: "i", resources: { limits: { memory: "2Gi" } } }].map((one) => ({ image: "i", ...one }));
    const object = pod({ initContainers: starts.map((one) => ({ ...one, resources: { requests: { cpu: "1" }, limits: { cpu: "1", ...one.resources.limits } } })), containers: resources({ cpu: "1" }, { cpu: "1" }).spec.containers } as never);
    expect(await ask(object)).toBe('pods "web" is forbidden: maximum memory usage per Pod is 1Gi, but limit is 2147484648');
  });

  test.each([["500Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi"], ["20Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 20Gi"], ["5Gi", "ok"]])("a claim of %s", async (storage, answer) => {
    const object = stored("v1", "PersistentVolumeClaim", "bounded/data", { spec: { resources: { requests: { storage } } } });
    const message = await runPlugin(plugin, admissionRequest({ resource: "persistentvolumeclaims", namespace: "bounded", object }));
    expect(message).toBe(answer === "ok" ? "ok" : `persistentvolumeclaims "data" is forbidden: ${answer}`);
  });
});

describe("what a pod learns of its node", () => {
  const nodes = staticInformer<Node>(
    stored<Node>("v1", "Node", "node-1", { metadata: { labels: { "topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1", "kubernetes.io/os": "linux" } }, status: { allocatable: { cpu: "2", memory: "4Gi" } } }),
    stored<Node>("v1", "Node", "win-1", { metadata: { labels: { "kubernetes.io/os": "windows" } }, status: { allocatable: { cpu: "8", memory: "16Gi" } } }),
  );

  test("PodTopologyLabels: at binding, or when it is made there", async () => {
    const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: "web" }, target: { kind: "Node", name: "node-1" } };
    await runPlugin(podTopologyLabels({ nodes }), admissionRequest({ resource: "pods/binding", object: binding }));
    expect(binding.metadata).toEqual({ name: "web", labels: { "topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1" } });
    const object = pod({ nodeName: "node-1" }, { labels: { app: "web" } });
    await runPlugin(podTopologyLabels({ nodes }), create(object));
    expect(object.metadata.labels).toEqual({ "app": "web", "topology.kubernetes.io/zone": "z1", "topology.kubernetes.io/region": "r1" });
  });

  test("PodTopologyLabels: what is no name of a node is left to who validates it", async () => {
    const asked = podTopologyLabels({ nodes: lookup(nodes, client.resource(NODES)) });
    const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: "web" }, target: { kind: "Node", name: ".." } };
    expect([await runPlugin(asked, create(pod({ nodeName: "a/b" }))), await runPlugin(asked, admissionRequest({ resource: "pods/binding", object: binding }))]).toEqual(["ok", "ok"]);
  });

  test.each([
    ["node-1", "1", "ok"], ["node-1", "3", 'pods "web" is forbidden: node didn\'t have enough allocatable resources: cpu, requested: 3000, allocatable: 2000'],
    ["win-1", "1", 'pods "web" is forbidden: pod resize is only supported on linux nodes, node "win-1" is "windows"'], ["gone", "1", 'pods "web" is forbidden: node "gone" not found'],
  ])("PodResizeValidator: %s %s", async (nodeName, cpu, answer) => {
    const sized = (amount: string) => pod({ nodeName, containers: [{ name: "c", image: "i", resources: { requests: { cpu: amount } } }] });
    expect(await runPlugin(podResizeValidator({ nodes }), admissionRequest({ operation: "UPDATE", resource: "pods/resize", object: sized(cpu), old: sized("500m") }))).toBe(answer);
  });
});

test("NodeDeclaredFeatureValidator: a pod does not become what its node has not declared it can do", async () => {
  const nodes = staticInformer<Node>(stored<Node>("v1", "Node", "old"), stored<Node>("v1", "Node", "new", { status: { declaredFeatures: ["InPlacePodVerticalScalingInitContainers"] } }));
  const ask = (nodeName: string | undefined, before: object, after: object, resource = "pods/resize") =>
    runPlugin(nodeDeclaredFeatureValidator({ nodes }), admissionRequest({ operation: "UPDATE", resource, object: pod({ nodeName, ...after } as never), old: pod({ nodeName, ...before } as never) }));
  const init = (cpu: string, restartPolicy?: string) => ({ initContainers: [{ name: "i", image: "i", resources: { requests: { cpu } }, ...(restartPolicy && { restartPolicy }) }] });
  const whole = (cpu: string) => ({ resources: { requests: { cpu } } });
  expect(await ask("old", init("1"), init("2"))).toBe('pods "web" is forbidden: pod update requires features InPlacePodVerticalScalingInitContainers which are not available on node "old"');
  expect(await ask("new", { ...init("1"), ...whole("1") }, { ...init("2"), ...whole("2") }, "pods")).toBe('pods "web" is forbidden: pod update requires features InPlacePodLevelResourcesVerticalScaling which are not available on node "new"');
  expect(await ask("gone", init("1"), init("2"))).toBe('pods "web" is forbidden: node "gone" not found');
  for (const [on, before, after] of [["new", init("1"), init("2")], ["old", init("1", "Always"), init("2", "Always")], [undefined, init("1"), init("2")], ["old", init("1"), init("1")]] as const) expect(await ask(on, before, after)).toBe("ok");
});

test("AlwaysPullImages", async () => {
  const object = pod({ initContainers: [{ name: "i", image: "i" }], volumes: [{ name: "v", image: { reference: "x" } }] });
  expect(await runPlugin(alwaysPullImages, create(object))).toBe("ok");
  expect([object.spec.containers[0]?.imagePullPolicy, object.spec.initContainers?.[0]?.imagePullPolicy, object.spec.volumes?.[0]?.image?.pullPolicy]).toEqual(["Always", "Always", "Always"]);
  expect(await runPlugin(alwaysPullImages, create(pod({ containers: [{ name: "c", image: "i", imagePullPolicy: "Never" }] })), ["validate"])).toBe('500 pods "web" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"');
  const two = pod({ containers: [{ name: "c", image: "i", imagePullPolicy: "Always" }], initContainers: [{ name: "i", image: "i" }], volumes: [{ name: "v", image: { reference: "x", pullPolicy: "Never" } }] });
  expect(await runPlugin(alwaysPullImages, create(two), ["validate"])).toBe('500 [pods "web" is forbidden: spec.initContainers[0].imagePullPolicy: Unsupported value: "": supported values: "Always", pods "web" is forbidden: spec.volumes[0].image.pullPolicy: Unsupported value: "Never": supported values: "Always"]');
  expect(await runPlugin(alwaysPullImages, admissionRequest({ operation: "UPDATE", resource: "pods", object: pod(), old: pod() }))).toBe("not handled");
});
