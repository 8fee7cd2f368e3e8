import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { proxyArguments } from "./proxy-configuration.ts";
import { proxySettings } from "./proxy-settings.ts";

test("kube-proxy's defaults", () => {
  expect(proxySettings([], { ipv6: false })).toEqual({
    healthz: { address: "0.0.0.0", port: 10_256 }, status: { address: "127.0.0.1", port: 10_249 }, conntrack: { perCpu: 32_768, min: 131_072, establishedSeconds: 86_400, closeWaitSeconds: 3_600 },
  });
  expect(proxySettings([], { ipv6: true }).healthz?.address).toBe("::");
});

test("what is asked for instead", () => {
  const given = ["metrics-bind-address=0.0.0.0", "--healthz-bind-address=[::1]:1256", "conntrack-max-per-core=0", "conntrack-tcp-timeout-close-wait=1m30s", "proxy-mode=nftables", "conntrack-min=5", "conntrack-min=7"];
  expect(proxySettings(given, { ipv6: false })).toEqual({
    healthz: { address: "::1", port: 1256 }, status: { address: "0.0.0.0", port: 10_249 }, conntrack: { perCpu: 0, min: 7, establishedSeconds: 86_400, closeWaitSeconds: 90, asked: new Set(["max", "closeWait"]) },
  });
  expect(proxySettings(["healthz-bind-address="], { ipv6: false }).healthz).toBeUndefined();
});

test.each([
  ["proxy-mode=ipvs", "services are rules of nftables"], ["nodeport-addresses=10.0.0.0/8", "give --nodeport-addresses instead"], ["conntrack-min=many", 'must be a whole number, not "many"'],
  ["metrics-bind-address=here:1", "must be an address"], ["cleanup", "that is how it is: only false"], ["write-config-to=/c", "ask its own port: /configz"], ["pod-bridge-interface=br0", "what is local is told by --cluster-cidr"], ["conntrack-tcp-timeout-established=1", "must be a duration such as 24h"], ["conntrack-tcp-timeout-established=-1h", "must be a duration such as 24h"], ["make-coffee=1", "not a setting we have; there are config, healthz-bind-address"],
])("--kube-proxy-arg %s is refused", (text, why) => expect(() => proxySettings([text], { ipv6: false })).toThrow(why));

test("on Windows services are load balancers of HNS, and the ports of health and metrics are set as elsewhere", () => {
  const windows = (...given: string[]) => proxySettings(given, { ipv6: false, mode: "kernelspace" });
  expect(windows("proxy-mode=kernelspace", "healthz-bind-address=127.0.0.1").healthz).toEqual({ address: "127.0.0.1", port: 10_256 });
  expect(() => windows("proxy-mode=nftables")).toThrow("services are load balancers of HNS here");
});

const directory = mkdtempSync(join(tmpdir(), "proxy-"));
afterAll(() => rmSync(directory, { recursive: true }));
const configured = (fields: string, ...more: string[]) => {
  const path = join(directory, "config.yaml");
  writeFileSync(path, `apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n${fields}`);
  return proxySettings([`config=${path}`, ...more], { ipv6: false });
};
/** As kubeadm writes it: every field, most of them empty. */
const KUBEADM = `bindAddress: 0.0.0.0
bindAddressHardFail: false
clientConnection: {acceptContentTypes: "", burst: 0, contentType: "", kubeconfig: /var/lib/kube-proxy/kubeconfig.conf, qps: 0}
configSyncPeriod: 0s
conntrack: {maxPerCore: null, min: 4, tcpBeLiberal: false, tcpCloseWaitTimeout: 2m, tcpEstablishedTimeout: null, udpStreamTimeout: 0s, udpTimeout: 0s}
detectLocal: {bridgeInterface: "", interfaceNamePrefix: ""}
detectLocalMode: ""
enableProfiling: false
healthzBindAddress: ""
hostnameOverride: ""
iptables: {localhostNodePorts: null, masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 30s}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
metricsBindAddress: 0.0.0.0:10249
mode: nftables
nftables: {masqueradeAll: false, masqueradeBit: null, minSyncPeriod: 0s, syncPeriod: 0s}
nodePortAddresses: null
oomScoreAdj: null
winkernel: {enableDSR: false, networkName: ""}
`;

test("a KubeProxyConfiguration says the same; an argument beside it counts before it", () => {
  const wanted = { healthz: { address: "0.0.0.0", port: 10_256 }, status: { address: "0.0.0.0", port: 10_249 }, conntrack: { perCpu: 32_768, min: 4, establishedSeconds: 86_400, closeWaitSeconds: 120, asked: new Set(["max", "closeWait"]) } };
  const file = KUBEADM.replace("kubeconfig: /var/lib/kube-proxy/kubeconfig.conf", 'kubeconfig: ""');
  expect(configured(file)).toEqual(wanted);
  expect(configured(file, "conntrack-min=9").conntrack.min).toBe(9);
});

test.each([
  ["mode: ipvs", "services are rules of nftables"], ["colour: red", 'strict decoding error: unknown field "colour"'], ["conntrack: {max: 1}", 'unknown field "conntrack.max"'], 
  ["clusterCIDR: 10.0.0.0/8", "give --cluster-cidr instead"], ["conntrack: {udpTimeout: 5s}", "net.netfilter.nf_conntrack_"],
])("a KubeProxyConfiguration with %s is refused", (fields, why) => expect(() => configured(fields)).toThrow(why));

test("a file of another kind is refused", () => {
  expect(() => proxyArguments("apiVersion: v1\nkind: Other")).toThrow('no kind "Other" is registered for version "v1"');
});
