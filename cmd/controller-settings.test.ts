import { expect, test } from "vitest";
import { CONCURRENT } from "../core/controllers/configz.ts";
import { controllerSettings } from "./controller-settings.ts";

test("settings of the controllers have upstream's names; the last one counts, and groups keep what was said before", () => {
  expect(controllerSettings([])).toEqual({});
  expect(controllerSettings(["node-monitor-grace-period=1m30s", "--terminated-pod-gc-threshold=7", "terminated-pod-gc-threshold=-1", "disable-force-detach-on-timeout", "node-eviction-rate=.5"])).toEqual({
    nodeLifecycle: { graceMs: 90_000, rate: 0.5 }, terminatedPodsMax: -1, forceDetach: false,
  });
  expect(controllerSettings(["disable-force-detach-on-timeout=false", "horizontal-pod-autoscaler-downscale-stabilization=1m", "horizontal-pod-autoscaler-tolerance=0", "cluster-signing-duration=72h", "max-endpoints-per-slice=1000", "mirroring-max-endpoints-per-subset=7", "legacy-service-account-token-clean-up-period=24h"])).toEqual({
    forceDetach: true, autoscaling: { downscaleSeconds: 60, tolerance: 0 }, signingMs: 259_200_000, perSliceMax: 1000, mirroredPerSubsetMax: 7, legacyTokenCleanUpMs: 86_400_000,
  });
  expect(controllerSettings(["downscale-stabilization", "cpu-initialization-period", "initial-readiness-delay"].map((name) => `horizontal-pod-autoscaler-${name}=0s`))).toEqual({ autoscaling: { downscaleSeconds: 0, cpuInitializationMs: 0, initialReadinessMs: 0 } });
  expect(controllerSettings(["concurrent-deployment-syncs=9", "concurrent-resourceclaim-syncs=3", "concurrent-gc-syncs=1"]).workers).toEqual({ deployment: 9, resource_claim: 3, pod_resource_claim: 3, garbage_collector: 1 });
});

test("how many keys a controller works on at once is said of one that is known", () => {
  const given = ["resource-quota", "serviceaccount-token", "service-endpoint", "validating-admission-policy-status", "ttl-after-finished", "rc"].map((name) => `concurrent-${name}-syncs=2`);
  const { workers = {} } = controllerSettings(given);
  expect(Object.keys(workers)).toHaveLength(given.length);
  expect(Object.keys(workers).filter((name) => !(name in CONCURRENT))).toEqual([]);
});

test("ranges of nodes are cut from the cluster's", () => {
  const settings = (text: string, clusterCidrs: string[]) => controllerSettings([text], { clusterCidrs }).nodeMasks;
  expect(settings("node-cidr-mask-size=26", ["10.42.0.0/16"])).toMatchObject({ maskSizeIpv4: 26 });
  expect(settings("node-cidr-mask-size-ipv6=80", ["10.42.0.0/16", "fd00::/56"])).toEqual({ maskSizeIpv6: 80 });
  expect(() => settings("node-cidr-mask-size=15", ["10.42.0.0/16"])).toThrow("ranges of /15 cannot be cut from --cluster-cidr 10.42.0.0/16");
  expect(() => settings("node-cidr-mask-size=24", ["10.42.0.0/16", "fd00::/56"])).toThrow("ranges of /24 cannot be cut from --cluster-cidr fd00::/56");
});

test.each([["allocate-node-cidrs=true"], ["use-service-account-credentials=false"], ["leader-elect=true"], ["profiling=false"], ["leader-elect-lease-duration=15s"], ["leader-elect-resource-lock=leases"], ["http2-max-streams-per-connection=0"], ["requestheader-username-headers=x-remote-user"], ["min-resync-period=12h0m0s"], ["pv-recycler-minimum-timeout-nfs=300"], ["enable-leader-migration=false"], ["authentication-tolerate-lookup-failure"]])("--kube-controller-manager-arg %s says what is so", (text) => {
  expect(controllerSettings([text])).toEqual({});
});

test.each([
  ["node-monitor-grace-period=50", 'must be a duration such as 50s, not "50"'], ["node-monitor-grace-period=0s", "must be a duration"], ["horizontal-pod-autoscaler-downscale-stabilization=-1s", "must be a duration such as 50s, or 0s"], ["terminated-pod-gc-threshold=many", "must be a whole number"],
  ["disable-force-detach-on-timeout=no", "must be true or false"], ["make-coffee=true", "not a setting we have; there are controllers, bind-address, secure-port, node-monitor-period"], ["toString=1", "not a setting we have"],
  ["concurrent-job-syncs=0", "must be a whole number above 0"], ["unhealthy-zone-threshold=55", "must be a number from 0 to 1"], ["pod-eviction-timeout=1m", "v1.36 knows no such setting: pods leave a silent node by their own tolerations"],
  ["controllers=*,-typo", 'controllers: "typo" is not in the list of known controllers'], ["cluster-cidr=10.0.0.0/8", "give --cluster-cidr instead"], ["bind-address=here", "bind-address must be an IP address"], ["secure-port=70000", "secure-port must be a port, or 0 for none"], ["tls-cert-file=/x", "the API server's own certificate"], ["profiling=maybe", "true or false"], ["contention-profiling=true", "no threads contend"], ["leader-elect-lease-duration=1m", "upstream's Leases and times"], ["disabled-metrics=a", "give it as --kube-apiserver-arg"], ["mirroring-max-endpoints-per-subset=1001", "a whole number from 1 to 1000"], ["cluster-signing-kubelet-client-key-file=/x", "<data-dir>/server/tls"],
])("--kube-controller-manager-arg %s is refused", (text, why) => {
  expect(() => controllerSettings([text])).toThrow(why);
});

test("controllers are chosen by name", () => {
  const both = controllerSettings(["controllers=*", "controllers=-ttl-controller,-cronjob-controller"]).runs!; // each adds to the others
  const { runs } = controllerSettings(["controllers=*, -ttl-controller"]);
  expect([runs?.("ttl-controller"), runs?.("job-controller")]).toEqual([false, true]);
  expect((["ttl-controller", "cronjob-controller", "job-controller"] as const).map((name) => both(name))).toEqual([false, false, true]);
});

test("where the controllers tell how they are", () => {
  expect(controllerSettings(["profiling=false", "authorization-always-allow-paths=/healthz,/readyz,/livez"]).listening).toBeUndefined();
  expect(controllerSettings(["bind-address=0.0.0.0"]).listening).toEqual({ address: "0.0.0.0", port: 10257 });
  expect(controllerSettings(["bind-address=::", "secure-port=0"]).listening).toEqual({ address: "::", port: 0 });
});
