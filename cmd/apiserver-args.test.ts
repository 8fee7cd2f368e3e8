import { expect, test } from "vitest";
import { apiServerArgs } from "./apiserver-args.ts";

test("settings under upstream's names, with or without dashes", () => {
  const args = apiServerArgs(["enable-admission-plugins=A,B", "--enable-admission-plugins=C", "default-not-ready-toleration-seconds=30"]);
  expect([args.list("enable-admission-plugins"), args.list("disable-admission-plugins"), args.text("admission-control-config-file")]).toEqual([["A", "B", "C"], [], undefined]);
  expect(args.integer("default-not-ready-toleration-seconds")).toBe(30);
});

test.each([
  ["no-such=1", "not a setting we have; there are enable-admission-plugins"], ["Default=1", "not a setting we have"],
])("%s: %s", (text, told) => expect(() => apiServerArgs([text])).toThrow(told));

test.each([
  ["default-not-ready-toleration-seconds=1m30s", 'must be a whole number, not "1m30s"'], ["anonymous-auth=no", 'must be true or false, not "no"'], ["goaway-chance=often", 'must be a number, not "often"'],
  ["event-ttl=-1h", 'must be a duration such as 30s or 1h30m, not "-1h"'], ["audit-webhook-batch-max-wait=1", "must be a duration"],
])("--kube-apiserver-arg %s is refused at once: it %s", (text, told) => expect(() => apiServerArgs([text])).toThrow(`--kube-apiserver-arg ${text.split("=", 1)[0]} ${told}`));

test("truth and time are read as Go reads them", () => {
  const args = apiServerArgs(["--anonymous-auth=False", "profiling=1", "enable-priority-and-fairness=T", "request-timeout=.5h", "livez-grace-period=1.5s250us", "allow-privileged=True", "etcd-compaction-interval=300s", "etcd-healthcheck-timeout=2000ms"]);
  expect([args.boolean("anonymous-auth", true), args.boolean("profiling", false), args.boolean("enable-priority-and-fairness", false), args.durationMs("request-timeout"), args.durationMs("livez-grace-period")]).toEqual([false, true, true, 1_800_000, 1500.25]);
  expect(() => apiServerArgs(["allow-privileged=F"])).toThrow("that is how it is: only true");
});

test("of upstream's settings that are none here, those that say what is so are taken, the others are refused with what to do instead", () => {
  expect(() => apiServerArgs(["profiling=false", "allow-privileged", "storage-backend=etcd3", "request-timeout=1m0s", "etcd-prefix=/registry", "etcd-compaction-interval=5m0s", "delete-collection-workers=3", "http2-max-streams-per-connection=250", "emulated-version=1.36", "min-compatibility-version=kube=1.35"])).not.toThrow();
  for (const [text, told] of [["etcd-servers=https://a:2379", "give --datastore-endpoint"], ["secure-port=443", "give --https-listen-port instead"], ["etcd-prefix=/k8s", "give --datastore-endpoint"], ["allow-privileged=false", "that is how it is: only true"], ["emulated-version=1.35", "is v1.36 and emulates no other"]] as const)
    expect(() => apiServerArgs([text])).toThrow(`--kube-apiserver-arg ${text}: ${told.startsWith("is") ? `this server ${told}` : told}`);
});

/** Of kube-apiserver v1.36. */
const UPSTREAM = `
admission-control admission-control-config-file advertise-address aggregator-reject-forwarding-redirect allow-metric-labels allow-metric-labels-manifest
allow-privileged anonymous-auth api-audiences audit-log-batch-buffer-size audit-log-batch-max-size audit-log-batch-max-wait audit-log-batch-throttle-burst
audit-log-batch-throttle-enable audit-log-batch-throttle-qps audit-log-compress audit-log-format audit-log-maxage audit-log-maxbackup audit-log-maxsize
audit-log-mode audit-log-path audit-log-truncate-enabled audit-log-truncate-max-batch-size audit-log-truncate-max-event-size audit-log-version audit-policy-file
audit-webhook-batch-buffer-size audit-webhook-batch-max-size audit-webhook-batch-max-wait audit-webhook-batch-throttle-burst audit-webhook-batch-throttle-enable
audit-webhook-batch-throttle-qps audit-webhook-config-file audit-webhook-initial-backoff audit-webhook-mode audit-webhook-truncate-enabled
audit-webhook-truncate-max-batch-size audit-webhook-truncate-max-event-size audit-webhook-version authentication-config authentication-token-webhook-cache-ttl
authentication-token-webhook-config-file authentication-token-webhook-version authorization-config authorization-mode authorization-policy-file
authorization-webhook-cache-authorized-ttl authorization-webhook-cache-unauthorized-ttl authorization-webhook-config-file authorization-webhook-version
bind-address cert-dir client-ca-file contention-profiling coordinated-leadership-lease-duration coordinated-leadership-renew-deadline
coordinated-leadership-retry-period cors-allowed-origins debug-socket-path default-not-ready-toleration-seconds default-unreachable-toleration-seconds
delete-collection-workers disable-admission-plugins disable-http2-serving disabled-metrics egress-selector-config-file emulated-version
emulation-forward-compatible enable-admission-plugins enable-aggregator-routing enable-bootstrap-token-auth enable-garbage-collector enable-logs-handler
enable-priority-and-fairness encryption-provider-config encryption-provider-config-automatic-reload endpoint-reconciler-type etcd-cafile etcd-certfile
etcd-compaction-interval etcd-count-metric-poll-period etcd-db-metric-poll-interval etcd-healthcheck-timeout etcd-keyfile etcd-prefix etcd-readycheck-timeout
etcd-servers etcd-servers-overrides event-ttl external-hostname feature-gates goaway-chance http2-max-streams-per-connection kubelet-certificate-authority
kubelet-client-certificate kubelet-client-key kubelet-preferred-address-types kubelet-timeout kubernetes-service-node-port lease-reuse-duration-seconds
livez-grace-period log-flush-frequency log-json-info-buffer-size log-json-split-stream log-text-info-buffer-size log-text-split-stream logging-format
max-connection-bytes-per-sec max-mutating-requests-inflight max-requests-inflight min-compatibility-version min-request-timeout oidc-ca-file oidc-client-id
oidc-groups-claim oidc-groups-prefix oidc-issuer-url oidc-required-claim oidc-signing-algs oidc-username-claim oidc-username-prefix peer-advertise-ip
peer-advertise-port peer-ca-file permit-address-sharing permit-port-sharing profiling proxy-client-cert-file proxy-client-key-file request-timeout
requestheader-allowed-names requestheader-client-ca-file requestheader-extra-headers-prefix requestheader-group-headers requestheader-uid-headers
requestheader-username-headers runtime-config runtime-config-emulation-forward-compatible secure-port send-retry-after-while-not-ready-once
service-account-extend-token-expiration service-account-issuer service-account-jwks-uri service-account-key-file service-account-lookup
service-account-max-token-expiration service-account-signing-endpoint service-account-signing-key-file service-cluster-ip-range service-node-port-range
show-hidden-metrics-for-version shutdown-delay-duration shutdown-send-retry-after shutdown-watch-termination-grace-period storage-backend
storage-initialization-timeout storage-media-type strict-transport-security-directives tls-cert-file tls-cipher-suites tls-curve-preferences tls-min-version
tls-private-key-file tls-sni-cert-key token-auth-file tracing-config-file version vmodule watch-cache watch-cache-sizes
`.trim().split(/\s+/);

test.each(UPSTREAM)("upstream's --%s is obeyed, or it is told what is so instead", (name) => {
  try {
    apiServerArgs([`${name}=zzz`]);
  } catch (error) {
    expect((error as Error).message).not.toContain("not a setting we have");
  }
});

test("each setting that is no text is known as what it is read as", async () => {
  const sources = (await Promise.all([...new Bun.Glob("**/*.ts").scanSync({ cwd: import.meta.dirname })].filter((name) => !name.includes("test")).map((name) => Bun.file(`${import.meta.dirname}/${name}`).text()))).join("\n");
  const read = [...sources.matchAll(/\.(?:boolean|integer|decimal|durationMs)\("([a-z0-9-]+)"/g)].map(([, name]) => name!);
  expect(read.length).toBeGreaterThan(20);
  for (const name of read) expect(() => apiServerArgs([`${name}=?`]), name).toThrow("must be");
});
