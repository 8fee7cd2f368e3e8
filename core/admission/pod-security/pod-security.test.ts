import { describe, expect, test } from "vitest";
import { admissionRequest, runPlugin } from "../../../test/admission-request.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { Namespace, Pod } from "../../api/gen/core.v1.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import type { AdmissionRequest } from "../plugin.ts";
import { podSecurityConfiguration } from "./configuration.ts";
import { detailOf, violationsOf } from "./evaluate.ts";
import { podSecurityMetrics } from "./measure.ts";
import { parseVersion } from "./policy.ts";
import { podSecurity } from "./pod-security.ts";

const container = (name: string, securityContext?: object, rest: object = {}) => ({ name, image: "i", ...(securityContext ? { securityContext } : {}), ...rest });
const pod = (spec: object = {}, metadata: object = {}): Pod => ({ apiVersion: "v1", kind: "Pod", metadata: { name: "web", ...metadata }, spec: { containers: [container("a")], ...spec } }) as unknown as Pod;
const GOOD = { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] }, runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } };

describe("the standards", () => {
  const told = (level: "baseline" | "restricted", version: string, object: Pod) => detailOf(violationsOf({ level, version: parseVersion(version)! }, object));
  const all = pod({ containers: [container("a"), container("b")] });
  const good = (spec: object) => pod({ containers: [container("a", GOOD)], ...spec });

  test.each<[string, "baseline" | "restricted", string, Pod, string]>([
    ["a plain pod", "baseline", "latest", pod(), ""],
    ["a plain pod, restricted", "restricted", "latest", all, 'allowPrivilegeEscalation != false (containers "a", "b" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (containers "a", "b" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or containers "a", "b" must set securityContext.runAsNonRoot=true), seccompProfile (pod or containers "a", "b" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'],
    ["as it was in 1.7", "restricted", "v1.7", pod(), 'runAsNonRoot != true (pod or container "a" must set securityContext.runAsNonRoot=true)'],
    ["what it asks for", "restricted", "latest", good({}), ""],
    ["host namespaces", "baseline", "latest", pod({ hostNetwork: true, hostPID: true, hostIPC: true }), "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)"],
    ["host ports, sorted as text", "baseline", "latest", pod({ containers: [container("b", undefined, { ports: [{ hostPort: 30 }, { hostPort: 20 }, {}] }), container("c", undefined, { ports: [{ hostPort: 100 }] })] }), 'hostPort (containers "b", "c" use hostPorts 100, 20, 30)'],
    ["privileged", "baseline", "latest", pod({ initContainers: [container("i", { privileged: true })] }), 'privileged (container "i" must not set securityContext.privileged=true)'],
    ["capabilities", "baseline", "latest", pod({ containers: [container("a", { capabilities: { add: ["NET_RAW", "CHOWN"] } }), container("b", { capabilities: { add: ["FOO"] } })] }), 'non-default capabilities (containers "a", "b" must not include "FOO", "NET_RAW" in securityContext.capabilities.add)'],
    ["capabilities, restricted", "restricted", "v1.22", good({ containers: [container("a", { ...GOOD, capabilities: { add: ["CHOWN", "NET_BIND_SERVICE"] } })] }), 'unrestricted capabilities (container "a" must set securityContext.capabilities.drop=["ALL"]; container "a" must not include "CHOWN" in securityContext.capabilities.add)'],
    ["host paths", "baseline", "latest", pod({ volumes: [{ name: "a", hostPath: {} }, { name: "b", hostPath: {} }] }), 'hostPath volumes (volumes "a", "b")'],
    ["volumes, restricted", "restricted", "latest", good({ volumes: [{ name: "a", hostPath: {} }, { name: "b", nfs: {} }, { name: "c", emptyDir: {} }] }), 'restricted volume types (volumes "a", "b" use restricted volume types "hostPath", "nfs")'],
    ["sysctls", "baseline", "v1.28", pod({ securityContext: { sysctls: [{ name: "net.ipv4.tcp_rmem" }, { name: "net.ipv4.ip_local_reserved_ports" }] } }), "forbidden sysctls (net.ipv4.tcp_rmem)"],
    ["SELinux", "baseline", "latest", pod({ securityContext: { seLinuxOptions: { type: "foo" } }, containers: [container("e", { seLinuxOptions: { type: "bar" } }), container("f", { seLinuxOptions: { user: "u" } }), container("g", { seLinuxOptions: { role: "r" } })] }), 'seLinuxOptions (pod and containers "e", "f", "g" set forbidden securityContext.seLinuxOptions: types "bar", "foo"; user may not be set; role may not be set)'],
    ["AppArmor", "baseline", "latest", pod({ securityContext: { appArmorProfile: { type: "Unconfined" } } }, { annotations: { "container.apparmor.security.beta.kubernetes.io/a": "unconfined" } }), 'forbidden AppArmor profiles (pod and annotation must not set AppArmor profile type to "Unconfined", "container.apparmor.security.beta.kubernetes.io/a="unconfined"")'],
    ["seccomp by annotation", "baseline", "v1.18", pod({}, { annotations: { "seccomp.security.alpha.kubernetes.io/pod": "unconfined" } }), 'seccompProfile (forbidden annotation seccomp.security.alpha.kubernetes.io/pod="unconfined")'],
    ["seccomp by field", "restricted", "latest", good({ securityContext: { seccompProfile: { type: "Unconfined" } } }), 'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")'],
    ["root by id", "restricted", "latest", good({ securityContext: { runAsUser: 0 } }), "runAsUser=0 (pod must not set runAsUser=0)"],
    ["root by word", "restricted", "latest", good({ containers: [container("c", { ...GOOD, runAsNonRoot: false }), container("d", { ...GOOD, runAsNonRoot: false })] }), 'runAsNonRoot != true (containers "c", "d" must not set securityContext.runAsNonRoot=false)'],
    ["root in a user namespace", "restricted", "latest", good({ hostUsers: false, securityContext: { runAsUser: 0 } }), ""],
    ["root in a user namespace, before 1.35", "restricted", "v1.34", good({ hostUsers: false, securityContext: { runAsUser: 0 } }), "runAsUser=0 (pod must not set runAsUser=0)"],
    ["/proc in a user namespace", "baseline", "latest", pod({ hostUsers: false, containers: [container("a", { procMount: "Unmasked" })] }), ""],
    ["/proc, restricted", "restricted", "latest", good({ hostUsers: false, containers: [container("a", { ...GOOD, procMount: "Unmasked" })] }), 'procMount (container "a" must not set securityContext.procMount to "Unmasked")'],
    ["probes of other hosts", "baseline", "latest", pod({ containers: [container("a", undefined, { livenessProbe: { httpGet: { host: "localhost" } }, lifecycle: { preStop: { tcpSocket: { host: "::1" } } } })] }), 'probe or lifecycle host (container "a" uses probe or lifecycle hosts "::1", "localhost")'],
    ["a Windows pod need not say what is Linux's", "restricted", "latest", pod({ os: { name: "windows" }, securityContext: { runAsNonRoot: true } }), ""],
    ["host process", "baseline", "latest", pod({ securityContext: { windowsOptions: { hostProcess: true } }, containers: [container("e", { windowsOptions: { hostProcess: true } })] }), 'hostProcess (pod and container "e" must not set securityContext.windowsOptions.hostProcess=true)'],
    ["ephemeral containers are containers", "baseline", "latest", pod({ ephemeralContainers: [container("debug", { privileged: true })] }), 'privileged (container "debug" must not set securityContext.privileged=true)'],
  ])("%s", (_name, level, version, object, detail) => expect(told(level, version, object)).toBe(detail));
});

describe("the plug-in", () => {
  const namespace = (name: string, labels: Record<string, string> = {}) => stored<Namespace>("v1", "Namespace", name, { metadata: { labels: Object.fromEntries(Object.entries(labels).map(([key, value]) => [`pod-security.kubernetes.io/${key}`, value])) } });
  const namespaces = staticInformer<Namespace>(
    namespace("open"), namespace("strict", { enforce: "restricted" }), namespace("told", { warn: "baseline", audit: "baseline", "warn-version": "v1.20" }), namespace("odd", { enforce: "none" }), namespace("kube-system", { enforce: "restricted" }),
  );
  const owned = { ownerReferences: [{ controller: true, uid: "rs" }] };
  const pods = staticInformer<Pod>(
    ...["p3", "p1", "p2"].map((name) => stored<Pod>("v1", "Pod", `open/${name}`, { metadata: owned, spec: { containers: [container("a", { privileged: true })] } })),
    stored<Pod>("v1", "Pod", "open/host", { spec: { hostPID: true, containers: [] } }), stored<Pod>("v1", "Pod", "open/exempt", { spec: { runtimeClassName: "kata", hostPID: true, containers: [] } }),
  );
  const configuration = podSecurityConfiguration({
    apiVersion: "pod-security.admission.config.k8s.io/v1", kind: "PodSecurityConfiguration", defaults: { enforce: "privileged" },
    exemptions: { namespaces: ["kube-system"], usernames: ["admin"], runtimeClasses: ["kata"] },
  });
  const metrics = metricsRegistry();
  const plugin = podSecurity({ namespaces, pods, configuration, clock: { uptimeMs: () => 0 }, metrics });

  async function ask(parts: Parameters<typeof admissionRequest>[0]) {
    const warnings: string[] = [];
    const annotations: Record<string, string> = {};
    const request: AdmissionRequest = { ...admissionRequest(parts), warn: (text) => void warnings.push(text), annotate: (key, value) => void (annotations[key] = value) };
    return { answer: await runPlugin(plugin, request), warnings, annotations };
  }

  test("enforced: refused, in upstream's words", async () => {
    const { answer, annotations } = await ask({ resource: "pods", namespace: "strict", object: pod({ containers: [container("a", { ...GOOD, allowPrivilegeEscalation: true })] }) });
    expect(answer).toBe('pods "web" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "a" must set securityContext.allowPrivilegeEscalation=false)');
    expect(annotations).toMatchObject({ "pod-security.kubernetes.io/enforce-policy": "restricted:latest" });
    expect((await ask({ resource: "pods", namespace: "strict", object: pod({ containers: [container("a", GOOD)] }) })).answer).toBe("ok");
    expect((await ask({ resource: "pods", namespace: "odd", object: pod() })).answer).toContain('violates PodSecurity "restricted:latest"'); // a label that cannot be read
    expect(metrics.render()).toContain('pod_security_evaluations_total{decision="deny",mode="enforce",policy_level="restricted",policy_version="latest",request_operation="create",resource="pod",subresource=""} 2');
  });

  test("audited and warned of", async () => {
    const { answer, warnings, annotations } = await ask({ resource: "pods", namespace: "told", object: pod({ hostPID: true }) });
    expect(answer).toBe("ok");
    expect(warnings).toEqual(['would violate PodSecurity "baseline:v1.20": host namespaces (hostPID=true)']);
    expect(annotations["pod-security.kubernetes.io/audit-violations"]).toBe('would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)');
  });

  test("a workload's template is warned of, also where only enforcing is asked for", async () => {
    const deployment = { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "d" }, spec: { template: { metadata: {}, spec: pod({ containers: [container("a", { ...GOOD, runAsUser: 0 })] }).spec } } };
    const { answer, warnings } = await ask({ resource: "deployments.apps", namespace: "strict", object: deployment });
    expect([answer, warnings]).toEqual(["ok", ['would violate PodSecurity "restricted:latest": runAsUser=0 (container "a" must not set runAsUser=0)']]);
    expect((await ask({ resource: "deployments.apps/status", namespace: "strict", object: deployment })).warnings).toEqual([]);
  });

  test.each([
    ["namespace", { namespace: "kube-system" }], ["user", { namespace: "strict", user: { name: "admin", groups: [] } }], ["runtimeClass", { namespace: "strict", object: pod({ runtimeClassName: "kata" }) }],
  ])("exempt by %s", async (reason, parts) => {
    const { answer, annotations } = await ask({ resource: "pods", object: pod(), ...parts });
    expect([answer, annotations["pod-security.kubernetes.io/exempt"]]).toEqual(["ok", reason]);
  });

  test.each<[string, object, string]>([
    ["another image", { containers: [container("a", undefined, { image: "j" })] }, "violates"], ["the same containers", { nodeName: "n" }, "ok"],
    ["a new ephemeral container", { ephemeralContainers: [container("e")] }, "violates"],
  ])("an update: %s", async (_name, spec, answer) => {
    expect((await ask({ operation: "UPDATE", resource: "pods", namespace: "strict", object: pod(spec), old: pod() })).answer).toContain(answer);
  });

  test("a namespace: labels must be readable, existing pods are told of", async () => {
    const labels = (values: Record<string, string>, name = "open") => ({ ...namespace(name, values) });
    const bad = await ask({ resource: "namespaces", namespace: "", object: labels({ enforce: "none", "warn-version": "1.2" }) });
    expect(bad.answer).toBe('422 Namespace "open" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "none": must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: Invalid value: "1.2": must be "latest" or "v1.x"]');
    const stricter = await ask({ operation: "UPDATE", resource: "namespaces", namespace: "open", object: labels({ enforce: "baseline" }), old: labels({}) });
    expect(stricter).toMatchObject({ answer: "ok", warnings: ['existing pods in namespace "open" violate the new PodSecurity enforce level "baseline:latest"', "host: host namespaces", "p1 (and 2 other pods): privileged"] });
    expect((await ask({ operation: "UPDATE", resource: "namespaces", object: labels({ enforce: "baseline" }), old: labels({ enforce: "restricted" }) })).warnings).toEqual([]);
    const ignored = await ask({ resource: "namespaces", object: labels({ enforce: "restricted", "audit": "baseline" }, "kube-system") });
    expect(ignored.warnings).toEqual(['namespace "kube-system" is exempt from Pod Security, and the policy (enforce=restricted:latest, audit=baseline:latest) will be ignored']);
  });

  test.each<[object, string]>([
    [{ kind: "Other" }, 'no kind "Other" is registered'], [{ defaults: { enforce: "none" } }, 'defaults.enforce: Invalid value: "none": must be one of privileged, baseline, restricted'],
    [{ exemptions: { namespaces: ["a", "a"], usernames: [""] } }, '[exemptions.namespaces[1]: Duplicate value: "a", exemptions.usernames[0]: Invalid value: "": username must not be empty]'], [{ default: {} }, 'unknown field "default"'],
  ])("a configuration that cannot be: %j", (rest, told) => {
    expect(() => podSecurityConfiguration({ apiVersion: "pod-security.admission.config.k8s.io/v1", kind: "PodSecurityConfiguration", ...rest })).toThrow(told);
  });
});

test("what is counted most is shown before there was any", () => {
  const metrics = metricsRegistry();
  podSecurityMetrics(metrics);
  expect(metrics.render().split("\n").filter((line) => line.startsWith("pod_security_"))).toEqual([
    ...["create", "update"].map((operation) => `pod_security_evaluations_total{decision="allow",mode="enforce",policy_level="privileged",policy_version="latest",request_operation="${operation}",resource="pod",subresource=""} 0`),
    ...["create", "update"].flatMap((operation) => ["pod", "controller"].map((resource) => `pod_security_exemptions_total{request_operation="${operation}",resource="${resource}",subresource=""} 0`)),
  ]);
});
