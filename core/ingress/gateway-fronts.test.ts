import { expect, test } from "vitest";
import type { Service } from "../api/gen/core.v1.ts";
import { keyOf } from "../api/meta/object-meta.ts";
import { doorsOf, listenerProblems, ownServiceName, planFronts } from "./gateway-fronts.ts";
import type { Gateway, Listener } from "./gateway-types.ts";

const gateway = (name: string, listeners: readonly Partial<Listener>[], created = "2026-01-01T00:00:00Z"): Gateway => ({
  apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", metadata: { name, namespace: "default", creationTimestamp: created } as unknown as Gateway["metadata"],
  spec: { gatewayClassName: "coracle", listeners: listeners.map((one, i) => ({ name: `l${i}`, port: 80, protocol: "HTTP", ...one })) },
});
const fronts = (...gateways: readonly Gateway[]): ReturnType<typeof given> => given(gateways, false);
const given = (gateways: readonly Gateway[], hasSecureIngress: boolean): [shared: Record<string, string>, own: Record<string, Record<string, string>>] => {
  const { shared, own } = planFronts(gateways, { portProblem: (port) => (port === 6443 ? "taken" : undefined), hasSecureIngress });
  return [Object.fromEntries(shared), Object.fromEntries([...own].map(([key, ports]) => [key, Object.fromEntries(ports)]))];
};
const FIXED = { 80: "HTTP", 443: "HTTPS" };

test("Gateways share the nodes' ports as long as their listeners can be told apart", () => {
  expect(fronts()).toEqual([FIXED, {}]);
  expect(fronts(gateway("a", [{}, { port: 8080 }]), gateway("b", [{ hostname: "b.test" }, { port: 8443, protocol: "HTTPS" }, { port: 6443 }, { port: 53, protocol: "UDP" }]))).toEqual([{ ...FIXED, 8080: "HTTP", 8443: "HTTPS" }, {}]);
});

test("what does not go together with an older one has an address of its own, with all of its ports, and none of them at the nodes", () => {
  const old = gateway("old", [{}, { port: 8080, hostname: "X.test" }]), young = gateway("young", [{ port: 81 }, { port: 8080, hostname: "x.test" }], "2026-02-01T00:00:00Z");
  const expected = [{ ...FIXED, 8080: "HTTP" }, { "default/young": { 81: "HTTP", 8080: "HTTP" } }];
  expect([fronts(old, young), fronts(young, old)]).toEqual([expected, expected]);
  expect(fronts(old, young, gateway("youngest", [{ port: 81 }], "2026-03-01T00:00:00Z")), "what it does not have there is the next one's").toEqual([{ ...expected[0], 81: "HTTP" }, expected[1]]);
  expect(fronts(gateway("a", [{ port: 443 }]), gateway("b", [{ port: 9000 }]), gateway("c", [{ port: 9000, protocol: "HTTPS", hostname: "c" }]))).toEqual([{ 80: "HTTP", 443: "HTTP", 9000: "HTTP" }, { "default/c": { 9000: "HTTPS" } }]);
});

test("TLS that is passed through has port 443 unless somebody older, or an Ingress, has HTTPS there", () => {
  const tls = gateway("tls", [{ port: 443, protocol: "TLS", tls: { mode: "Passthrough" } }]), https = gateway("https", [{ port: 443, protocol: "HTTPS" }], "2026-02-01T00:00:00Z");
  expect(fronts(tls)).toEqual([{ 80: "HTTP", 443: "TLS" }, {}]);
  expect(fronts(tls, https)).toEqual([{ 80: "HTTP", 443: "TLS" }, { "default/https": { 443: "HTTPS" } }]);
  expect(given([tls], true)).toEqual([FIXED, { "default/tls": { 443: "TLS" } }]);
});

test("a port for TLS has listeners for HTTPS as well, told apart by the name that is asked for; one that was somebody's for HTTPS before stays that", () => {
  const tls: Partial<Listener> = { port: 443, protocol: "TLS", hostname: "t.test", tls: { mode: "Passthrough" } }, https: Partial<Listener> = { port: 443, protocol: "HTTPS", hostname: "h.test" };
  const young = (name: string, ...listeners: readonly Partial<Listener>[]): Gateway => gateway(name, listeners, "2026-02-01T00:00:00Z");
  const problems = (...listeners: readonly Partial<Listener>[]): string[] => [...listenerProblems(gateway("g", listeners), () => undefined)].map(([name, { reason }]) => `${name} ${reason}`);
  expect([problems(https, tls), problems(https, { ...tls, hostname: "H.test" }), problems(https, { ...tls, hostname: "*.test" }, {}), problems(https, tls, { port: 443 })]).toEqual([
    [], ["l0 ProtocolConflict", "l1 ProtocolConflict"], [], ["l0 ProtocolConflict", "l1 ProtocolConflict", "l2 ProtocolConflict"],
  ]);
  expect([fronts(gateway("a", [https, tls])), fronts(gateway("a", [tls]), young("b", https)), fronts(gateway("a", [https, tls]), young("b", { ...tls, hostname: "h.test" }))]).toEqual([
    [{ 80: "HTTP", 443: "TLS" }, {}], [{ 80: "HTTP", 443: "TLS" }, {}], [{ 80: "HTTP", 443: "TLS" }, { "default/b": { 443: "TLS" } }],
  ]);
  expect([fronts(gateway("a", [https]), young("b", tls)), given([gateway("a", [tls, https])], true)]).toEqual([[FIXED, { "default/b": { 443: "TLS" } }], [FIXED, { "default/a": { 443: "TLS" } }]]);
});

test("only ports that are ours to give lead to listeners", () => {
  const service = (...ports: readonly object[]): Service => ({ spec: { ports } }) as unknown as Service;
  expect(doorsOf(service({ name: "http", port: 80, targetPort: 10_080 }, { name: "gateway-81", port: 81, targetPort: 10_500 }, { name: "gateway-82", port: 82, targetPort: 22 }, { name: "gateway-83", port: 83, targetPort: "x" }, { name: "gateway-x", port: 84, targetPort: 10_501 }), undefined)).toEqual([{ gateway: undefined, port: 81, target: 10_500 }]);
  expect(ownServiceName(keyOf(gateway("1.with.dots", [])))).toMatch(/^coracle-gateway-[0-9a-f]{10}$/);
});
