import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock } from "../core/lifecycle/clock.ts";
import { silentLog } from "../core/observe/log.ts";
import { metricsRegistry } from "../core/observe/metrics.ts";
import { KUBELET_DEFAULTS } from "../node/kubelet/settings.ts";
import { kubeletSettings, providersOf, resolvConf } from "./kubelet-settings.ts";
import { paths } from "./paths.ts";

const settings = (...kubeletArg: string[]) => kubeletSettings({ kubeletArg, nodeLabel: [], nodeTaint: ["dry=only:NoSchedule"], clusterDns: "10.43.0.10", clusterDomain: "cluster.local", kubeletPort: 10250 } as never, { name: "n1", ips: ["172.16.0.1"] } as never, paths("/data"));

test("where the machine's servers for names will stand is known before its network is up", () => {
  const root = mkdtempSync(join(tmpdir(), "resolv-"));
  try {
    mkdirSync(join(root, "etc"));
    expect(resolvConf(root)).toBe("/etc/resolv.conf");
    writeFileSync(join(root, "etc/resolv.conf"), "nameserver 192.168.0.1\n");
    expect(resolvConf(root)).toBe("/etc/resolv.conf");
    rmSync(join(root, "etc/resolv.conf"));
    symlinkSync("../run/systemd/resolve/stub-resolv.conf", join(root, "etc/resolv.conf")); // to nowhere as yet
    expect(resolvConf(root)).toBe("/run/systemd/resolve/resolv.conf");
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("the kubelet's directory is called as in the table of mounts, where the data directory is behind a link", () => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "linked-")));
  try {
    mkdirSync(join(root, "disk"));
    symlinkSync(join(root, "disk"), join(root, "data"));
    const dataDir = (...kubeletArg: string[]): string => kubeletSettings({ kubeletArg, nodeLabel: [], nodeTaint: [] } as never, { name: "n1", ips: [] } as never, paths(join(root, "data"))).dataDir;
    expect(dataDir()).toBe(join(root, "disk/agent/kubelet")); // not made yet
    mkdirSync(join(root, "elsewhere"));
    mkdirSync(join(root, "disk/agent"));
    symlinkSync(join(root, "elsewhere"), join(root, "disk/agent/kubelet"));
    expect(dataDir()).toBe(join(root, "elsewhere"));
    expect(dataDir(`root-dir=${join(root, "data/own")}`)).toBe(join(root, "disk/own"));
  } finally {
    rmSync(root, { recursive: true });
  }
});

test("logs of pods are where collectors of logs look, unless a flag says otherwise", () => {
  expect(settings()).toMatchObject({ podLogsDir: "/var/log/pods", containerLogsDir: "/var/log/containers" });
  expect(settings("pod-logs-dir=/logs").podLogsDir).toBe("/logs");
  expect([settings(), settings("root-dir=/kubelet")].map(({ dataDir, seccompDir }) => [dataDir, seccompDir])).toEqual([["/data/agent/kubelet", "/data/agent/kubelet/seccomp"], ["/kubelet", "/kubelet/seccomp"]]);
});

test("the node's name stands for the machine's in labels and addresses; its taints are registered with it", () => {
  expect(settings()).toMatchObject({ nodeName: "n1", hostname: "n1", taints: [{ key: "dry", value: "only", effect: "NoSchedule" }] });
  expect(settings("register-with-taints=os=windows:NoSchedule,slow:NoExecute", "node-labels=rack=7,shed=")).toMatchObject({
    taints: [{ key: "os", value: "windows", effect: "NoSchedule" }, { key: "slow", effect: "NoExecute" }], labels: { rack: "7", shed: "" },
  });
  expect(() => settings("register-with-taints=os=windows")).toThrow("must be key=value:Effect");
});

test.each([
  ["node-labels=rack=7=8", "--kubelet-arg node-labels \"rack=7=8\": a valid label must be an empty string or consist of alphanumeric characters"], ["node-labels=a b=c", "name part must consist of alphanumeric characters"],
  ["node-labels=node-role.kubernetes.io/worker=", "an administrator gives it others: coracle kubectl label node"], ["node-labels=node-restriction.kubernetes.io/a=b", "an administrator gives it others"],
])("a label the node could not register with is refused: %s", (text, why) => {
  expect(() => settings(text)).toThrow(why);
});

test.each([
  ["container-log-max-files=1", "containerLogMaxFiles must be greater than 1"], ["container-log-max-size=large", "containerLogMaxSize large must be a quantity"], ["healthz-port=99999", "healthzPort (--healthz-port) 99999 must be between 1 and 65535, inclusive"],
  ["pod-logs-dir=logs", 'pod logs path "logs" must be absolute path'], ["node-lease-duration-seconds=0", "nodeLeaseDurationSeconds must be greater than 0"],
])("--kubelet-arg %s is refused as it is of a file: %s", (text, why) => expect(() => settings(text)).toThrow(`--kubelet-arg: failed to validate kubelet configuration, error: invalid configuration: ${why}`));

test("a flag that says zero says so; a kubelet without pods is one", () => {
  expect([settings("max-pods=0").maxPods, settings("pod-max-pids=-7").podPidsLimit, settings("cgroup-root=").cgroupRoot, settings("sync-frequency=0s").syncMs]).toEqual([0, -1, "/", 60_000]);
});

test("what nobody has asked for is as upstream has it", () => {
  expect(KUBELET_DEFAULTS).toMatchObject({
    maxPods: 110, podPidsLimit: -1, serializeImagePulls: true, containerLogMaxBytes: 10 * 1024 * 1024, containerLogMaxFiles: 5, statusMs: 10_000, reportMs: 300_000, leaseSeconds: 40, crashBackoffMsMax: 300_000,
    imageGc: { highPercent: 85, lowPercent: 80, ageMinMs: 120_000, ageMaxMs: 0 }, shutdown: { graceMs: 0, criticalMs: 0 }, seccompDefault: false, staticPodDir: "",
  });
});

test("how many dead containers stay, and how long", () => {
  const kept = (...args: string[]) => settings(...args).deadContainers;
  expect([kept("maximum-dead-containers-per-container=3", "minimum-container-ttl-duration=1m"), kept("maximum-dead-containers-per-container=-1"), kept("maximum-dead-containers-per-container=0", "maximum-dead-containers=-1")]).toEqual([{ perContainer: 3, ageMinMs: 60_000 }, { perContainer: -1, ageMinMs: 0 }, { perContainer: 1, ageMinMs: 0 }]);
  expect(() => kept("minimum-container-ttl-duration=soon")).toThrow('--kubelet-arg minimum-container-ttl-duration: time: invalid duration "soon"');
  expect(() => kept("maximum-dead-containers=100")).toThrow("each container keeps its own");
});

test.each([["container-runtime=remote"]])("--kubelet-arg %s says what is so", (text) => expect(() => settings(text)).not.toThrow());

test("who may ask the kubelet is said by flags, too", () => {
  expect(settings("anonymous-auth=true", "authentication-token-webhook=false", "authentication-token-webhook-cache-ttl=1m", "authorization-mode=AlwaysAllow", "authorization-webhook-cache-authorized-ttl=2m", "authorization-webhook-cache-unauthorized-ttl=3s", "read-only-port=10255", "enable-debugging-handlers=false").access)
    .toEqual({ anonymous: true, tokens: false, authorizes: false, tokenTtlMs: 60_000, allowedTtlMs: 120_000, deniedTtlMs: 3_000, debugging: false, readOnlyPort: 10_255 });
  expect(settings("anonymous-auth=false", "authorization-mode=Webhook").access).toEqual(KUBELET_DEFAULTS.access);
  expect(settings("anonymous-auth=T").access.anonymous).toBe(true);
  expect(settings("register-schedulable=False", "seccomp-default", "--serialize-image-pulls=0")).toMatchObject({ unschedulable: true, seccompDefault: true, serializeImagePulls: false });
  expect(() => settings("seccomp-default=yes")).toThrow('--kubelet-arg seccomp-default must be true or false, not "yes"');
});

test.each([
  ["authorization-mode=RBAC", "unknown authorization mode RBAC"], ["hostname-override=a", "give --node-name instead"], ["container-runtime-endpoint=unix:///run/x.sock", "give --container-runtime-endpoint instead"], ["v=4", "give --log-level instead"], ["pod-infra-container-image=registry.example/pause:3", "the image of sandboxes is the container runtime's to choose"], ["cloud-provider=external", "give --node-taint node.cloudprovider.kubernetes.io/uninitialized"],
  ["windows-priorityclass=HIGH_PRIORITY_CLASS", "this is no Windows"], ["make-coffee=1", "not a setting we have; there are anonymous-auth"], ["constructor=1", "not a setting we have; there are anonymous-auth"],
])("--kubelet-arg %s is refused", (text, why) => expect(() => settings(text)).toThrow(`--kubelet-arg ${text}: ${why}`));

test.each([
  ["NodeSwap=true", undefined], ["CPUManagerPolicyAlphaOptions=true", undefined], ["MemoryQoS=true", undefined], ["CustomCPUCFSQuotaPeriod=false", undefined], ["GracefulNodeShutdown=false,GracefulNodeShutdownBasedOnPodPriority=false,WindowsGracefulNodeShutdown=false", undefined],
  ["MemoryQuality=true", "unrecognized feature gate: MemoryQuality"], ["NodeSwap=false", "failed to set feature gates from initial flags-based config: cannot set feature gate NodeSwap to false, feature is locked to true"],
  ["GracefulNodeShutdown=false", "[GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled: [GracefulNodeShutdown], WindowsGracefulNodeShutdown is enabled, but depends on features that are disabled: [GracefulNodeShutdown]]"],
  ["WorkloadAwarePreemption=true", "WorkloadAwarePreemption is enabled, but depends on features that are disabled: [GangScheduling]"],
])("--kubelet-arg feature-gates=%s is taken or refused as upstream does", (gate, why) => {
  if (why === undefined) expect(() => settings(`feature-gates=${gate}`)).not.toThrow();
  else expect(() => settings(`feature-gates=${gate}`)).toThrow(why);
});

test("where the kubelet listens, and what it shows, is said by flags or by a file, whose paths begin where it is", () => {
  const shown = { certFile: "/tls/k.crt", keyFile: "/tls/k.key" };
  expect([settings().address, settings().servingFiles, settings("address=0.0.0.0").address]).toEqual(["::", undefined, "::"]);
  expect(settings("address=10.0.0.7", "tls-cert-file=/tls/k.crt", "tls-private-key-file=/tls/k.key")).toMatchObject({ address: "10.0.0.7", servingFiles: shown });
  expect(settings("rotate-server-certificates=true", "tls-cert-file=/tls/k.crt", "tls-private-key-file=/tls/k.key").servingFiles, "the cluster's are asked for").toBeUndefined();
  const directory = mkdtempSync(join(tmpdir(), "kubelet-file-"));
  try {
    writeFileSync(join(directory, "kubelet.yaml"), "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\ntlsCertFile: k.crt\ntlsPrivateKeyFile: ../k.key\nstaticPodPath: /manifests\nclusterDomain: k.crt\n");
    expect(settings(`config=${join(directory, "kubelet.yaml")}`)).toMatchObject({ servingFiles: { certFile: join(directory, "k.crt"), keyFile: join(directory, "../k.key") }, staticPodDir: "/manifests", clusterDomain: "k.crt" });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("drop-ins are laid over one another in the order of their names, those of a directory in its place; other files are none", () => {
  const directory = mkdtempSync(join(tmpdir(), "drop-ins-"));
  try {
    mkdirSync(join(directory, "20-more"));
    const write = (name: string, fields: string) => writeFileSync(join(directory, name), `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${fields}\n`);
    write("10-first.conf", "maxPods: 10\npodsPerCore: 1");
    write("20-more/00.conf", "maxPods: 20\npodsPerCore: 2");
    write("30-last.conf", "maxPods: 30");
    write("40-none.yaml", "maxPods: 40");
    expect(settings(`config-dir=${directory}`)).toMatchObject({ maxPods: 30, podsPerCore: 2 });
    expect(settings(`config-dir=${directory}`, "protect-kernel-defaults=true")).toMatchObject({ protectsKernel: true });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("programs that know credentials are as their files say, which of a directory are those of YAML and JSON", () => {
  const directory = mkdtempSync(join(tmpdir(), "providers-"));
  const at = (...names: string[]): string => join(directory, ...names);
  const file = (name: string, text: string, mode = 0o644): void => writeFileSync(at(name), text, { mode });
  const configuration = (name: string): string => `kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\nproviders: [{name: ${name}, matchImages: [a], defaultCacheDuration: 1m, apiVersion: credentialprovider.kubelet.k8s.io/v1}]\n`;
  const metrics = metricsRegistry();
  const given = (binDir: string): unknown => providersOf({ kubeletArg: [`image-credential-provider-config=${at("config")}`, `image-credential-provider-bin-dir=${binDir}`] } as never, { metrics, clock: systemClock, log: silentLog });
  try {
    for (const name of ["bin", "config", "config/old.yaml"]) mkdirSync(at(name));
    expect(() => given(at("bin"))).toThrow(`no configuration files found in directory "${at("config")}"`);
    expect(() => given(at("none"))).toThrow(`plugin binary directory ${at("none")} did not exist`);
    file("config/b.yml", configuration("one"));
    file("config/a.json", JSON.stringify({ kind: "CredentialProviderConfig", apiVersion: "kubelet.config.k8s.io/v1", providers: [] }));
    file("config/notes.txt", "{");
    expect(() => given(at("bin"))).toThrow(`plugin binary executable ${at("bin/one")} did not exist`);
    file("bin/one", "#!/bin/sh\n");
    expect(() => given(at("bin"))).toThrow(`error inspecting binary executable ${at("bin/one")}: permission denied`);
    file("bin/one.exe", "", 0o755);
    rmSync(at("bin/one"));
    expect(given(at("bin"))).toBeDefined();
    expect(metrics.render()).toContain('kubelet_credential_provider_config_info{hash="sha256:f9a0e224');
    file("config/c.yaml", configuration("one").replace("providers", "provider"));
    expect(() => given(at("bin"))).toThrow(`error decoding config "${at("config/c.yaml")}": strict decoding error: unknown field "provider"`);
    file("config/c.yaml", `${configuration("two")}kind: CredentialProviderConfig\n`);
    expect(() => given(at("bin"))).toThrow('key "kind" already set in map');
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("flags of our own stand for what a file says of the same, too", () => {
  const directory = mkdtempSync(join(tmpdir(), "kubelet-own-")), file = join(directory, "kubelet.yaml");
  try {
    writeFileSync(file, "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nport: 10250\nregisterWithTaints: [{key: file, effect: NoSchedule}]\n");
    const own = (more: object) => {
      const { port, taints } = kubeletSettings({ kubeletArg: [`config=${file}`], nodeLabel: [], nodeTaint: [], clusterDns: "10.43.0.10", clusterDomain: "cluster.local", kubeletPort: 10250, ...more } as never, { name: "n1", ips: ["172.16.0.1"] } as never, paths("/data"));
      return [port, taints.map(({ key }) => key)];
    };
    expect([own({}), own({ kubeletPort: 10260, nodeTaint: ["own:NoSchedule"] })]).toEqual([[10250, ["file"]], [10260, ["own"]]]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("a flag stands for all that a file says of its field; feature gates stand beside each other", () => {
  const directory = mkdtempSync(join(tmpdir(), "kubelet-")), file = join(directory, "kubelet.yaml");
  const HEAD = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
  try {
    writeFileSync(file, `${HEAD}kubeReserved: {cpu: "1", memory: 1Gi}\nallowedUnsafeSysctls: [a.b]\nfeatureGates: {GracefulNodeShutdown: false, GracefulNodeShutdownBasedOnPodPriority: false, WindowsGracefulNodeShutdown: false}\n`);
    const flags = ["kube-reserved=cpu=500m", "allowed-unsafe-sysctls=net.*", "allowed-unsafe-sysctls=kernel.x", "feature-gates=GracefulNodeShutdownBasedOnPodPriority=true"];
    expect(() => settings(`config=${file}`, ...flags)).toThrow("GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that are disabled: [GracefulNodeShutdown]");
    const found = settings(`config=${file}`, ...flags.slice(0, 3));
    expect([found.reserved, found.allowedUnsafeSysctls]).toEqual([settings("kube-reserved=cpu=500m").reserved, ["net.*", "kernel.x"]]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
