import { expect, test } from "vitest";
import { apiServer } from "../../../../test/api-server.ts";
import type { Service, ServiceSpec } from "../../../api/gen/core.v1.ts";
import { formatFieldError } from "../../../api/meta/field-error.ts";
import { StatusError } from "../../../api/meta/status-error.ts";
import type { Random } from "../../../lifecycle/random.ts";
import type { WriteContext } from "../../generic/resource.ts";
import { serviceDefinition } from "./service.ts";

const context: WriteContext = { user: { name: "u", groups: [] }, nowMs: 0, dryRun: false, uuid: () => "u" };
const lowest: Random = { next: () => 0, uuid: () => "u", bytes: (length) => new Uint8Array(length) };

/** A little API server for services: prepares, allocates, validates, stores. */
function cluster(serviceCidrs = ["10.43.0.0/24"], stored = new Map<string, Service>(), { claims, existing = () => stored.values() }: Pick<Partial<Parameters<typeof serviceDefinition>[0]>, "claims" | "existing"> = {}) {
  const definition = serviceDefinition({ serviceCidrs, nodePortRange: { first: 30000, last: 30063 }, existing, random: lowest, claims });
  async function write(name: string, spec: Partial<ServiceSpec>): Promise<ServiceSpec> {
    const old = stored.get(name);
    const next = { apiVersion: "v1", kind: "Service", metadata: { name, namespace: "d", uid: name, resourceVersion: "", creationTimestamp: "" }, spec: structuredClone(spec) } as Service;
    definition.defaults!(next);
    if (old) definition.prepareForUpdate!(next, old, context);
    else definition.prepareForCreate!(next, context);
    const allocation = await definition.allocate!(next, old, context);
    const errors = [...definition.validate!(next, old)].map(formatFieldError);
    if (errors.length > 0) {
      allocation.rollback();
      throw new Error(errors.join("; "));
    }
    stored.set(name, structuredClone(next));
    allocation.commit();
    return structuredClone(next.spec);
  }
  return { write, remove: (name: string) => stored.delete(name) };
}

const http = { ports: [{ port: 80 }] } as unknown as Partial<ServiceSpec>;

test("a service gets an address, defaults, and keeps both", async () => {
  const { write } = cluster();
  const spec = await write("a", http);
  expect(spec).toEqual({
    clusterIP: "10.43.0.17", clusterIPs: ["10.43.0.17"], ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack", internalTrafficPolicy: "Cluster", sessionAffinity: "None", type: "ClusterIP",
    ports: [{ port: 80, protocol: "TCP", targetPort: 80 }],
  });
  expect((await write("a", { ports: [{ port: 81 } as never] })).clusterIP).toBe("10.43.0.17");
  await expect(write("a", { ...http, clusterIP: "10.43.0.20" })).rejects.toThrow(`spec.clusterIPs[0]: Invalid value: ["10.43.0.20"]: may not change once set`);
});

test("addresses that are taken, outside the range, or used up are refused in upstream's words", async () => {
  const { write, remove } = cluster(["10.43.0.0/29"]);
  await write("kubernetes", { ...http, clusterIP: "10.43.0.1" });
  await expect(write("b", { ...http, clusterIP: "10.43.0.1" })).rejects.toThrow(
    `Service "b" is invalid: spec.clusterIPs: Invalid value: ["10.43.0.1"]: failed to allocate IP 10.43.0.1: provided IP is already allocated`);
  await expect(write("b", { ...http, clusterIP: "10.44.0.1" })).rejects.toThrow("failed to allocate IP 10.44.0.1: the provided network does not match the current range");
  for (const clusterIP of ["10.43.0.0", "10.43.0.7"]) await expect(write("b", { ...http, clusterIP })).rejects.toThrow(`failed to allocate IP ${clusterIP}: the provided network does not match the current range`);
  await expect(write(undefined as never, { ...http, clusterIP: "10.43.0.1" })).rejects.toThrow(/^Service "" is invalid/);
  for (const name of ["c", "d", "e", "f", "g"]) await write(name, http);
  const full = await write("h", http).catch((error: unknown) => error);
  expect(full).toBeInstanceOf(StatusError);
  expect((full as StatusError).message).toBe(`Internal error occurred: failed to allocate a serviceIP for Service "h": range is full`);
  remove("c");
  expect((await write("h", http)).clusterIP).toBe("10.43.0.2");
});

test("a refused address is shown with a place for each family, and who becomes headless gets a second address before being refused", async () => {
  const { write } = cluster(["10.43.0.0/24", "fd43::/112"]);
  await write("a", { ...http, clusterIP: "10.43.0.1" });
  for (const [ipFamilyPolicy, shown] of [["RequireDualStack", '["10.43.0.1",""]'], ["SingleStack", '["10.43.0.1"]']] as const)
    await expect(write("b", { ...http, ipFamilyPolicy, clusterIP: "10.43.0.1" })).rejects.toThrow(`spec.clusterIPs: Invalid value: ${shown}: failed to allocate IP 10.43.0.1: provided IP is already allocated`);
  await expect(write("a", { ...http, ipFamilyPolicy: "PreferDualStack", clusterIPs: ["10.43.0.1", "fd43::"] })).rejects.toThrow('Invalid value: ["10.43.0.1","fd43::"]: failed to allocate IP fd43::: the provided network does not match the current range');
  await expect(write("a", { ...http, ipFamilyPolicy: "PreferDualStack", clusterIP: "None", selector: { a: "b" } })).rejects.toThrow('spec.clusterIPs: Invalid value: ["None","fd43::101"]: \'None\' must be the first and only value');
});

test("of addresses that were None before, one that is none is no family's", async () => {
  const { write } = cluster(["10.43.0.0/24", "fd43::/112"]);
  await write("a", { ...http, clusterIP: "None" });
  await expect(write("a", { ...http, clusterIPs: ["fd43::9", "None"], ipFamilies: ["IPv6", "IPv4"] })).rejects.toThrow(
    /failed to check for dual stack with error:invalid IP\[1\]: None, spec\.clusterIPs: Invalid value: \["fd43::9","None"\]: may specify no more than one IP for each IP family\]?$/);
});

test("two writes in flight do not get the same address; a failed one gives it back", async () => {
  const services: Service[] = [];
  const definition = serviceDefinition({ serviceCidrs: ["10.43.0.0/24"], nodePortRange: { first: 30000, last: 30063 }, existing: () => services, random: lowest });
  const make = (): Service => {
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "s" }, spec: structuredClone(http) } as unknown as Service;
    definition.defaults!(service);
    return service;
  };
  const [a, b, c] = [make(), make(), make()];
  const first = await definition.allocate!(a, undefined, context);
  await definition.allocate!(b, undefined, context);
  first.rollback();
  await definition.allocate!(c, undefined, context);
  expect([a, b, c].map(({ spec }) => spec.clusterIP)).toEqual(["10.43.0.17", "10.43.0.18", "10.43.0.17"]);
});

test("a dry run takes nothing, is told of ports that are taken, and gets what stands for the rest", async () => {
  const stored = new Map<string, Service>();
  const { write } = cluster(["10.43.0.0/24"], stored);
  await write("a", { type: "NodePort", clusterIP: "10.43.0.9", ports: [{ port: 1, nodePort: 30050 }] as never });
  const definition = serviceDefinition({ serviceCidrs: ["10.43.0.0/24"], nodePortRange: { first: 30000, last: 30063 }, existing: () => stored.values(), random: lowest });
  async function dry(spec: object): Promise<ServiceSpec> {
    const service = { apiVersion: "v1", kind: "Service", metadata: { name: "s" }, spec: structuredClone(spec) } as unknown as Service;
    definition.defaults!(service);
    definition.prepareForCreate!(service, { ...context, dryRun: true });
    await definition.allocate!(service, undefined, { ...context, dryRun: true });
    return service.spec;
  }
  expect((await dry(http)).clusterIP).toBe("10.43.0.0");
  expect((await dry({ ...http, clusterIP: "10.43.0.9" })).clusterIP).toBe("10.43.0.9");
  await expect(dry({ ...http, clusterIP: "10.44.0.9" })).rejects.toThrow("failed to allocate IP 10.44.0.9: the provided IP (10.44.0.9) is not in the valid range. The range of valid IPs is 10.43.0.0/24");
  const local = await dry({ type: "LoadBalancer", externalTrafficPolicy: "Local", ports: [{ name: "a", port: 1 }, { name: "b", port: 2 }] });
  expect([...local.ports!.map(({ nodePort }) => nodePort), local.healthCheckNodePort]).toEqual([32769, 32770, 32771]);
  expect((await dry({ type: "NodePort", ports: [{ name: "a", port: 1, nodePort: 80 }, { name: "b", port: 2 }] })).ports!.map(({ nodePort }) => nodePort)).toEqual([80, 81]);
  expect((await dry({ type: "NodePort", ports: [{ name: "a", port: 1, nodePort: 2147483647 }, { name: "b", port: 2 }] })).ports![1]!.nodePort).toBe(-2147483648);
  await expect(dry({ type: "NodePort", ports: [{ port: 1, nodePort: 30050 }] })).rejects.toThrow("spec.ports[0].nodePort: Invalid value: 30050: provided port is already allocated");
  await expect(dry({ type: "NodePort", ports: [{ name: "a", port: 1, nodePort: 30051 }, { name: "b", port: 2, nodePort: 30051 }] })).rejects.toThrow("spec.ports[1].nodePort: Invalid value: 30051: provided port is already allocated");
  expect((await write("b", { ...http, clusterIP: "10.43.0.17", type: "NodePort", ports: [{ port: 1, nodePort: 30051 }] as never })).clusterIP).toBe("10.43.0.17");
});

test("who gives two ports of one protocol the same node port is refused before anything else is looked at", async () => {
  const { write } = cluster(["10.43.0.0/24"], new Map());
  const ports = [{ name: "a", port: 1, protocol: "TCP", nodePort: 30001 }, { name: "b", port: 1, protocol: "UDP", nodePort: 30001 }];
  await write("s", { type: "NodePort", ports } as never);
  await write("s", { type: "NodePort", ports } as never);
  await expect(write("s", { type: "NodePort", sessionAffinity: "Odd", ports: [...ports, { ...ports[1], name: "c", port: 2 }] } as never)).rejects.toThrow("duplicate nodePort: {UDP 30001}");
});

test("names are labels; ports, protocols and affinity have defaults", async () => {
  const definition = serviceDefinition({ serviceCidrs: ["10.43.0.0/24"], nodePortRange: { first: 30000, last: 30063 }, existing: () => [], random: lowest });
  expect(["web", "1web", "a.b", "Web", ""].map((name) => [...definition.validateName!(name)].length > 0)).toEqual([false, false, true, true, true]);
  const { write } = cluster();
  expect((await write("a", { sessionAffinity: "ClientIP", ports: [{ name: "a", port: 1 }, { name: "b", port: 1, protocol: "UDP", targetPort: "dns" }] as never })))
    .toMatchObject({ sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } }, ports: [{ protocol: "TCP", targetPort: 1 }, { protocol: "UDP", targetPort: "dns" }] });
  expect(await write("sctp", { type: "NodePort", ports: [{ port: 1, protocol: "SCTP", appProtocol: "example.com/mine" }] as never })).toMatchObject({ ports: [{ protocol: "SCTP", nodePort: 30016, appProtocol: "example.com/mine" }] });
});

test("node ports: given, shared by protocols of one port, kept by name, released with the type", async () => {
  const { write } = cluster();
  const spec = await write("dns", { type: "NodePort", ports: [{ name: "udp", port: 53, protocol: "UDP" }, { name: "tcp", port: 53, protocol: "TCP" }] as never });
  expect(spec.ports!.map(({ nodePort }) => nodePort)).toEqual([30016, 30016]);
  await expect(write("x", { type: "NodePort", ports: [{ port: 1, nodePort: 30016 }] as never })).rejects.toThrow("spec.ports[0].nodePort: Invalid value: 30016: provided port is already allocated");
  await expect(write("x", { type: "NodePort", ports: [{ port: 1, nodePort: 80 }] as never })).rejects.toThrow("spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-30063");
  const renumbered = await write("dns", { type: "NodePort", ports: [{ name: "udp", port: 54, protocol: "UDP" }, { name: "more", port: 9 }] as never });
  expect(renumbered.ports!.map(({ nodePort }) => nodePort)).toEqual([30016, 30017]);
  const { ports, externalTrafficPolicy } = await write("dns", { ...renumbered, type: "ClusterIP" });
  expect([ports!.map(({ nodePort }) => nodePort), externalTrafficPolicy]).toEqual([[undefined, undefined], undefined]);
  expect((await write("x", { type: "NodePort", ports: [{ port: 1, nodePort: 30016 }] as never })).ports![0]!.nodePort).toBe(30016);
});

test("a load balancer with local traffic gets a health check port; without node ports it gets none", async () => {
  const { write } = cluster();
  const local = await write("a", { ...http, type: "LoadBalancer", externalTrafficPolicy: "Local" });
  expect([local.ports![0]!.nodePort, local.healthCheckNodePort]).toEqual([30016, 30017]);
  const without = await write("b", { ...http, type: "LoadBalancer", allocateLoadBalancerNodePorts: false });
  expect(without.ports![0]!.nodePort).toBeUndefined();
  expect((await write("a", { ...local, externalTrafficPolicy: "Cluster" })).healthCheckNodePort).toBeUndefined();
  const late = await write("c", { ...http, type: "LoadBalancer", loadBalancerSourceRanges: ["10.0.0.0/8"] });
  expect((await write("c", { ...late, allocateLoadBalancerNodePorts: false })).ports![0]!.nodePort).toBe(late.ports![0]!.nodePort); // who does not want it any more says so
  expect((await write("c", { ...late, allocateLoadBalancerNodePorts: false, ports: [{ port: 80, nodePort: 0 }] as never })).ports![0]!.nodePort).toBeFalsy();
  const classy = await write("d", { ...http, type: "LoadBalancer", loadBalancerClass: "example.com/one", ports: [{ name: "a", port: 80 }, { name: "b", port: 53, protocol: "UDP" }] as never });
  expect(classy).toMatchObject({ allocateLoadBalancerNodePorts: true, externalTrafficPolicy: "Cluster" });
  await expect(write("d", { ...http, type: "NodePort", clusterIP: "None" })).rejects.toThrow(/may not change once set; spec.clusterIPs\[0\]: Invalid value: "None": may not be set to 'None'/);
  await expect(write("d", { ...classy, loadBalancerClass: "two" })).rejects.toThrow('spec.loadBalancerClass: Invalid value: "two": may not change once set');
});

test("headless and external services", async () => {
  const { write } = cluster();
  expect(await write("h", { ...http, clusterIP: "None", selector: { a: "b" } })).toMatchObject({ clusterIPs: ["None"], ipFamilies: ["IPv4"], ipFamilyPolicy: "SingleStack" });
  expect(await write("n", { clusterIP: "None" })).toMatchObject({ ipFamilies: ["IPv4", "IPv6"], ipFamilyPolicy: "RequireDualStack" });
  expect(await write("e", { type: "ExternalName", externalName: "example.com." })).toEqual({ type: "ExternalName", externalName: "example.com.", sessionAffinity: "None" });
  expect((await write("e", http)).clusterIP).toBe("10.43.0.17");
  const back = await write("e", { ...(await write("e", http)), type: "ExternalName", externalName: "x" });
  expect([back.clusterIP, back.ipFamilies]).toEqual([undefined, undefined]);
});

test("an alias shows no internalTrafficPolicy, but plug-ins see what it keeps, and it has that again when it is none any more", async () => {
  const seen: string[] = [];
  const shown = (object: unknown): string => (object as Service | undefined)?.spec.internalTrafficPolicy ?? "-";
  const note = (step: string) => ({ object, oldObject }: { object: unknown; oldObject: unknown }) => void seen.push(`${step} ${shown(object)} ${shown(oldObject)}`);
  await using api = await apiServer({ admit: note("admit"), validate: note("validate") });
  const path = "/api/v1/namespaces/a/services";
  const patched = async (spec: object) => shown((await api.ask("PATCH", `${path}/s`, { headers: { "content-type": "application/merge-patch+json" }, body: { spec } })).body);
  await api.ask("POST", path, { body: { metadata: { name: "s" }, spec: { ...http, clusterIP: "None", internalTrafficPolicy: "Local" } } });
  seen.length = 0;
  expect(await patched({ type: "ExternalName", externalName: "example.com", clusterIP: null, clusterIPs: null })).toBe("-");
  expect(shown((await api.ask("GET", `${path}/s`)).body)).toBe("-");
  expect(shown((await api.ask("GET", path)).body.items[0])).toBe("-");
  expect((await api.events(path, 1)).map(({ object }) => shown(object))).toEqual(["-"]);
  expect(await patched({ type: "ClusterIP", externalName: null, clusterIP: "None" })).toBe("Local");
  expect(seen).toEqual(["admit Local Local", "validate Local Local", "admit Local Local", "validate Local -"]);
});

test("families follow the policy", async () => {
  const dual = cluster(["10.43.0.0/24", "fd43::/112"]);
  expect(await dual.write("a", { ...http, ipFamilyPolicy: "PreferDualStack" })).toMatchObject({ clusterIPs: ["10.43.0.17", "fd43::101"], ipFamilies: ["IPv4", "IPv6"] });
  expect((await dual.write("b", http)).ipFamilies).toEqual(["IPv4"]);
  expect((await dual.write("b", { ...http, ipFamilyPolicy: "RequireDualStack" })).clusterIPs).toEqual(["10.43.0.18", "fd43::102"]);
  expect((await dual.write("b", { ...http, ipFamilyPolicy: "SingleStack" })).clusterIPs).toEqual(["10.43.0.18"]);
  const single = cluster();
  expect((await single.write("a", { ...http, ipFamilyPolicy: "PreferDualStack" })).ipFamilies).toEqual(["IPv4"]);
  await expect(single.write("b", { ...http, ipFamilyPolicy: "RequireDualStack" })).rejects.toThrow(`spec.ipFamilyPolicy: Invalid value: "RequireDualStack": this cluster is not configured for dual-stack services`);
  await expect(single.write("b", { ...http, ipFamilies: ["IPv6"] })).rejects.toThrow(`spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster`);
});

test.each<[unknown, string]>([
  [{}, "spec.ports: Required value"],
  [{ ports: [{ port: 80 }, { port: 81 }] }, "spec.ports[0].name: Required value; spec.ports[1].name: Required value"],
  [{ ports: [{ port: 0 }] }, "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive; spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive"],
  [{ ports: [{ port: 80, nodePort: 30001 }] }, "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
  [{ ...http, type: "Other" }, `spec.type: Unsupported value: "Other": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"`],
  [{ ...http, externalIPs: ["127.0.0.1"] }, `spec.externalIPs[0]: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)`],
  [{ ...http, externalTrafficPolicy: "Local" }, `spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services`],
  [{ ...http, loadBalancerClass: "x" }, "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'"],
  [{ type: "ExternalName" }, "spec.externalName: Required value"],
  [{ ports: [{ name: "a", port: 80 }, { name: "a", port: 81 }] }, 'spec.ports[1].name: Duplicate value: "a"'],
  [{ ports: [{ port: 80, appProtocol: "a b" }] }, 'spec.ports[0].appProtocol: Invalid value: "a b": name part must consist of alphanumeric characters'],
  [{ ...http, sessionAffinity: "ClientIP", sessionAffinityConfig: { clientIP: { timeoutSeconds: 86_401 } } }, "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 86401: must be greater than 0 and less than 86400"],
  [{ ...http, clusterIP: "10.43.0.x" }, 'spec.clusterIPs[0]: Invalid value: "10.43.0.x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
  [{ ...http, internalTrafficPolicy: "Nearby" }, 'spec.internalTrafficPolicy: Unsupported value: "Nearby": supported values: "Cluster", "Local"'],
  [{ ...http, loadBalancerSourceRanges: ["10.0.0.0/8"] }, "spec.LoadBalancerSourceRanges: Forbidden: may only be used when `type` is 'LoadBalancer'"],
  [{ ...http, type: "NodePort", clusterIP: "None" }, `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`],
])("%j is refused", async (spec, text) => {
  await expect(cluster().write("a", spec as Partial<ServiceSpec>)).rejects.toThrow(text);
});

test("servers that share a store never give out the same address or port", async () => {
  const stored = new Map<string, Service>();
  const claimed = new Set<string>();
  const servers = [1, 2, 3].map(() => {
    let seen = new Map<string, Service>(); // each is behind the store until it looks
    const claims = {
      async claim(name: string) {
        await Promise.resolve();
        if (claimed.has(name)) return undefined;
        claimed.add(name);
        return async () => void claimed.delete(name);
      },
      async fresh() {
        await Promise.resolve();
        seen = new Map(stored);
      },
    };
    return cluster(["10.43.0.0/24"], stored, { claims, existing: () => seen.values() });
  });
  const specs = await Promise.all(Array.from({ length: 30 }, (_, i) => servers[i % 3]!.write(`s${i}`, { ...http, type: "NodePort" })));
  expect(new Set(specs.map(({ clusterIP }) => clusterIP)).size).toBe(30);
  expect(new Set(specs.map(({ ports }) => ports![0]!.nodePort)).size).toBe(30);
  const same = await Promise.allSettled(servers.map(({ write }, i) => write(`same${i}`, { ...http, clusterIP: "10.43.0.200" })));
  expect(same.filter(({ status }) => status === "fulfilled")).toHaveLength(1);
  expect(same.flatMap((result) => (result.status === "rejected" ? [String(result.reason)] : []))).toEqual([expect.stringContaining("already allocated"), expect.stringContaining("already allocated")]);
  await Promise.resolve();
  expect(claimed.size).toBe(0);
});

test("an oddly written address of a load balancer is warned of", () => {
  const { status } = serviceDefinition({ serviceCidrs: ["10.43.0.0/24"], nodePortRange: { first: 30000, last: 30063 }, existing: () => [], random: lowest }).subresources!;
  if (status?.type !== "part") throw new Error("no part");
  const service = { status: { loadBalancer: { ingress: [{ ip: "2001:DB8::1" }] } } } as unknown as Service;
  expect([...status.warnings!(service)]).toEqual(['status.loadBalancer.ingress[0]: IPv6 address "2001:DB8::1" should be in RFC 5952 canonical format ("2001:db8::1")']);
});
