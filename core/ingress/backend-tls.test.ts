import { expect, test } from "vitest";
import { type ObjectKey, objectKey } from "../api/meta/object-meta.ts";
import { authorityProblem, planBackendTls } from "./backend-tls.ts";
import type { BackendTlsPolicy } from "./gateway-types.ts";

type Target = BackendTlsPolicy["spec"]["targetRefs"][number];
const policy = (name: string, targets: readonly Partial<Target>[], validation: Partial<BackendTlsPolicy["spec"]["validation"]> = {}): BackendTlsPolicy => ({
  apiVersion: "gateway.networking.k8s.io/v1", kind: "BackendTLSPolicy", metadata: { name, namespace: "d", generation: 1, creationTimestamp: `2026-01-0${name.at(-1)}T00:00:00Z` } as BackendTlsPolicy["metadata"],
  spec: { targetRefs: targets.map((one) => ({ kind: "Service", name: "web", ...one })), validation: { hostname: "web.test", caCertificateRefs: [{ kind: "ConfigMap", name: "ca" }], ...validation } },
});
const problem = (_: string, name: string): string | undefined => (name === "ca" ? undefined : `configmap d/${name} not found`);
const GATEWAY = "d/gw" as ObjectKey;

test("a port's own policy, and one for the rest of the Service; of two for the same the older counts, and the other is told", () => {
  const all = [policy("b2", [{}]), policy("a1", [{}]), policy("c3", [{ sectionName: "https" }], { hostname: "port.test" }), policy("d4", [{ name: "other" }], { wellKnownCACertificates: "System" }), policy("e5", [{ kind: "Pod" }])];
  const plan = planBackendTls(all, problem);
  expect(plan.of(objectKey("d", "web")).map(({ policy: by, section, serverName, authorities }) => [by, section, serverName, authorities])).toEqual([["d/a1", undefined, "web.test", ["d/ca"]], ["d/c3", "https", "port.test", ["d/ca"]]]);
  expect(plan.of(objectKey("d", "other")).map(({ authorities }) => authorities)).toEqual(["System"]);
  expect([plan.of(objectKey("d", "none")), plan.of(objectKey("x", "web"))]).toEqual([[], []]);
  const reasons = all.map((one) => plan.statusOf(one, (service) => (service === "d/web" ? [GATEWAY] : [])).map(({ ancestorRef, conditions }) => `${ancestorRef.name} ${conditions[0]!.reason}`).join());
  expect(reasons, "told for each Gateway that leads there").toEqual(["gw Conflicted", "gw Accepted", "gw Accepted", "", "gw Accepted"]);
});

test("a policy without anybody to trust is refused, and nothing is sent; one bad reference of two is told", () => {
  const told = (refs: { kind?: string; name: string }[]): string[] => {
    const one = policy("a1", [{}], { caCertificateRefs: refs }), plan = planBackendTls([one], problem);
    return [...plan.statusOf(one, () => [GATEWAY])[0]!.conditions.map(({ type, reason }) => `${type} ${reason}`), String(plan.of(objectKey("d", "web"))[0]!.authorities)];
  };
  expect(told([{ name: "ca" }])).toEqual(["Accepted Accepted", "ResolvedRefs ResolvedRefs", "d/ca"]);
  expect(told([{ name: "gone" }])).toEqual(["Accepted NoValidCACertificate", "ResolvedRefs InvalidCACertificateRef", ""]);
  expect(told([{ name: "ca", kind: "Secret" }])).toEqual(["Accepted NoValidCACertificate", "ResolvedRefs InvalidKind", ""]);
  expect(told([{ name: "gone" }, { name: "ca" }])).toEqual(["Accepted Accepted", "ResolvedRefs InvalidCACertificateRef", "d/ca"]);
  expect([authorityProblem(undefined), authorityProblem({ "ca.crt": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----" })]).toEqual(["has no certificate in ca.crt", "has no certificate in ca.crt"]);
});

test("a certificate may have to be for other names than the one that is asked for", () => {
  const [tls] = planBackendTls([policy("a1", [{}], { subjectAltNames: [{ type: "Hostname", hostname: "x.test" }, { type: "URI", uri: "spiffe://a/b" }] })], problem).of(objectKey("d", "web"));
  expect(tls!.names).toEqual([{ type: "DNS", value: "x.test" }, { type: "URI", value: "spiffe://a/b" }]);
});
