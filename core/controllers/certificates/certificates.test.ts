import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { CertificateSigningRequest } from "../../api/gen/certificates.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import { REVOKED_NODES } from "../../client/cluster-objects.ts";
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, NODES } from "../../client/resources.ts";
import { clientOver } from "../../client/resource-client.ts";
import { timestamp } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { NO_ALT_NAMES } from "../../pki/alt-names.ts";
import { authority, generateKey, keyPem, selfSign } from "../../pki/authority.ts";
import { createCertificateRequest } from "../../pki/certificate-request.ts";
import { certificateHash } from "../../pki/join-token.ts";
import { MACHINE_ANNOTATION, machineAnnotations, machineName } from "../../pki/machine-key.ts";
import { readCertificatePems } from "../../pki/pem.ts";
import { formatRevocation, readRevocation } from "../../pki/revocation.ts";
import { parseCertificate } from "../../pki/x509.ts";
import { csrApprovingController, csrEndsMs, csrSigningController } from "./certificates.ts";
import { BY_NODE_NAME, nodeNameProblem } from "./node-name.ts";
import { KUBELET_CLIENT, KUBELET_SERVING } from "./requests.ts";

const DAY = 86_400_000;
const key = await generateKey();
const ca = authority(selfSign("ca", { key, random: systemRandom, notBeforeMs: Date.now() - DAY, notAfterMs: Date.now() + 3650 * DAY }), keyPem(key), systemRandom);

async function request(name: string, spec: Partial<CertificateSigningRequest["spec"]> & { dnsNames?: string[]; organization?: string }): Promise<NewObject<CertificateSigningRequest>> {
  const { dnsNames = [], organization = "system:nodes", ...rest } = spec;
  const pem = createCertificateRequest({ commonName: "system:node:n1", organizations: [organization] }, { ...NO_ALT_NAMES, dnsNames }, await generateKey());
  return {
    apiVersion: "certificates.k8s.io/v1", kind: "CertificateSigningRequest", metadata: { name },
    spec: { request: btoa(pem), signerName: KUBELET_CLIENT, usages: ["digital signature", "client auth"] as never, username: "system:bootstrap:abc", groups: ["system:bootstrappers"], ...rest },
  };
}

/** Reviews say yes to bootstrappers for nodeclient, and to nodes for themselves. */
function reviewingApi() {
  const api = fakeApi();
  const call = api.call.bind(api);
  api.call = async (req) => {
    if (!req.path.endsWith("/subjectaccessreviews")) return await call(req);
    const { spec } = req.body as { spec: { groups?: string[]; resourceAttributes: { subresource: string } } };
    const allowed = spec.resourceAttributes.subresource === "nodeclient" ? spec.groups?.includes("system:bootstrappers") ?? false : spec.groups?.some((group) => group === "system:nodes" || group === "coracle:expired-nodes") ?? false;
    return { ...(req.body as object), status: { allowed } };
  };
  return { ...api, client: clientOver(api) };
}

test("a kubelet's requests are approved and signed; others are left to the administrator, wrong ones fail", () =>
  withControllers((deps) => [csrApprovingController({ ...deps, approveServing: true, serverNames: () => ["kubernetes"] }), csrSigningController({ ...deps, authorityFor: () => ca })], async (api, call) => {
    const requests = api.client.resource(CERTIFICATE_SIGNING_REQUESTS);
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {}, status: { addresses: [{ type: "Hostname", address: "n1.example.com" }, { type: "InternalDNS", address: "kubernetes" }] } } as never, call);
    const serving = { signerName: KUBELET_SERVING, usages: ["digital signature", "server auth"] as never, username: "system:node:n1", groups: ["system:nodes"] };
    await requests.create(await request("bootstrap", {}), call);
    await requests.create(await request("stranger", { groups: ["system:authenticated"] }), call);
    await requests.create(await request("serving", { ...serving, dnsNames: ["n1.example.com"] }), call);
    await requests.create(await request("forged-name", { ...serving, dnsNames: ["kubernetes.default.svc"] }), call);
    await requests.create(await request("servers-name", { ...serving, dnsNames: ["n1.example.com", "kubernetes"] }), call);
    const wrong = await requests.create(await request("wrong", { organization: "system:masters" }), call);
    await requests.updateStatus({ ...wrong, status: { conditions: [{ type: "Approved", status: "True" }] } }, call); // by an administrator who did not look
    const state = () => Object.fromEntries(api.all(CERTIFICATE_SIGNING_REQUESTS).map(({ metadata, status }) => [metadata.name, [...(status?.conditions ?? []).map(({ type }) => type), ...(status?.certificate ? ["issued"] : [])].join()]));
    const unfit = await requests.create(await request("unfit", { usages: ["server auth"] as never }), call);
    await requests.updateStatus({ ...unfit, status: { conditions: [{ type: "Approved", status: "True" }] } }, call);
    await eventually(state, (seen) => JSON.stringify(seen) === JSON.stringify({ bootstrap: "Approved,issued", stranger: "", serving: "Approved,issued", "forged-name": "", "servers-name": "", wrong: "Approved,Failed", unfit: "Approved,Failed" }));
    expect(api.all(CERTIFICATE_SIGNING_REQUESTS).find(({ metadata }) => metadata.name === "unfit")?.status?.conditions?.[1]).toMatchObject({ message: "usages did not match [client auth digital signature key encipherment]" });
    const failed = api.all(CERTIFICATE_SIGNING_REQUESTS).find(({ metadata }) => metadata.name === "wrong");
    expect(failed?.status?.conditions?.[1]).toMatchObject({ reason: "SignerValidationFailure", message: "subject organization is not system:nodes" });
    const issued = api.all(CERTIFICATE_SIGNING_REQUESTS).find(({ metadata }) => metadata.name === "bootstrap");
    const certificate = parseCertificate(readCertificatePems(atob(issued!.status!.certificate!))[0]!);
    expect(certificate.subject).toMatchObject({ commonName: "system:node:n1", organizations: ["system:nodes"] });
    expect(Math.round((certificate.notAfterMs - certificate.notBeforeMs) / DAY)).toBe(365);
  }, { api: reviewingApi() }));

test("what a server has come to be called since it was started is no node's either", () => {
  const servers: string[] = [];
  return withControllers((deps) => [csrApprovingController({ ...deps, approveServing: true, serverNames: () => servers })], async (api, call) => {
    const requests = api.client.resource(CERTIFICATE_SIGNING_REQUESTS), serving = { signerName: KUBELET_SERVING, usages: ["digital signature", "server auth"] as never, username: "system:node:n1", groups: ["system:nodes"] };
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1" }, spec: {}, status: { addresses: ["vpn.example.com", "n1.example.com"].map((address) => ({ type: "Hostname", address })) } } as never, call);
    const approved = () => api.all(CERTIFICATE_SIGNING_REQUESTS).filter(({ status }) => status?.conditions).map(({ metadata }) => metadata.name).toSorted().join();
    await requests.create(await request("a", { ...serving, dnsNames: ["vpn.example.com"] }), call);
    await eventually(approved, (seen) => seen === "a");
    servers.push("vpn.example.com");
    await requests.create(await request("b", { ...serving, dnsNames: ["vpn.example.com"] }), call);
    await requests.create(await request("c", { ...serving, dnsNames: ["n1.example.com"] }), call);
    await eventually(approved, (seen) => seen.includes("c"));
    expect(approved()).toBe("a,c");
  }, { api: reviewingApi() });
});

test("a kubelet's request that nobody may approve yet is approved once somebody may", () => {
  const api = reviewingApi();
  const call = api.call.bind(api);
  let allows = false;
  api.call = async (req) => (req.path.endsWith("/subjectaccessreviews") && !allows ? { ...(req.body as object), status: { allowed: false } } : await call(req));
  return withControllers((deps) => [csrApprovingController({ ...deps, approveServing: false })], async (_, { signal }) => {
    await api.client.resource(CERTIFICATE_SIGNING_REQUESTS).create(await request("early", {}), { signal });
    await Bun.sleep(50);
    allows = true;
    await eventually(() => api.all(CERTIFICATE_SIGNING_REQUESTS)[0]?.status?.conditions?.[0]?.type, (type) => type === "Approved");
  }, { api: { ...api, client: clientOver(api) } });
});

test("a node that joins before the clocks are set is one still when they are", () => {
  const releasedMs = Date.now() + 1000 * DAY;
  return withControllers((deps) => [csrApprovingController({ ...deps, approveServing: true }), csrSigningController({ ...deps, authorityFor: () => authority(selfSign("ca", { key, random: systemRandom, notBeforeMs: 0, notAfterMs: releasedMs + 3650 * DAY }), keyPem(key), systemRandom), releasedMs })], async (api, call) => {
    const requests = api.client.resource(CERTIFICATE_SIGNING_REQUESTS);
    await requests.create(await request("node", {}), call);
    const user = await requests.create(await request("user", { signerName: "kubernetes.io/kube-apiserver-client" }), call);
    await requests.updateStatus({ ...user, status: { conditions: [{ type: "Approved", status: "True" }] } }, call);
    const certificates = await eventually(() => Object.fromEntries(api.all(CERTIFICATE_SIGNING_REQUESTS).flatMap(({ metadata, status }) => (status?.certificate ? [[metadata.name, parseCertificate(readCertificatePems(atob(status.certificate))[0]!)]] : []))), (seen) => Object.keys(seen).length === 2);
    const days = ({ notBeforeMs, notAfterMs }: { notBeforeMs: number; notAfterMs: number }): number[] => [notBeforeMs, notAfterMs].map((ms) => Math.round((ms - Date.now()) / DAY));
    expect([days(certificates!["node"]!), days(certificates!["user"]!)]).toEqual([[-0, 1365], [-0, 365]]);
  }, { api: reviewingApi() });
});

test("while the authority has expired, be it by a clock that is ahead, nothing is signed: an approved request waits until it can be", async () => {
  const expired = authority(selfSign("ca", { key, random: systemRandom, notBeforeMs: Date.now() - 2 * DAY, notAfterMs: Date.now() - DAY }), keyPem(key), systemRandom);
  let asked = 0;
  await withControllers((deps) => [csrSigningController({ ...deps, authorityFor: () => (asked++ === 0 ? expired : ca) })], async (api, call) => {
    const requests = api.client.resource(CERTIFICATE_SIGNING_REQUESTS);
    const made = await requests.create(await request("late", {}), call);
    await requests.updateStatus({ ...made, status: { conditions: [{ type: "Approved", status: "True" }] } }, call);
    const status = await eventually(() => api.all(CERTIFICATE_SIGNING_REQUESTS)[0]?.status, (seen) => seen?.certificate !== undefined);
    const { notBeforeMs, notAfterMs } = parseCertificate(readCertificatePems(atob(status!.certificate!))[0]!);
    expect([asked, notAfterMs > notBeforeMs]).toEqual([2, true]);
  });
});

test("a revoked machine gets no certificate, under no name; what another one gets under the revoked name is noted before it has it", () =>
  withControllers((deps) => [csrApprovingController({ ...deps, approveServing: true }), csrSigningController({ ...deps, authorityFor: () => ca })], async (api, call) => {
    const stolen = await generateKey(), spare = await generateKey();
    const entry = { since: "2026-01-01T00:00:00Z", machines: [machineName(stolen)], certificates: {} };
    await api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { ...REVOKED_NODES.metadata }, data: { n1: formatRevocation(entry), gone: formatRevocation(entry) } }, call);
    for (const [name, machine] of [["stolen", stolen], ["spare", spare]] as const) {
      const draft = await request(name, {});
      await api.client.resource(CERTIFICATE_SIGNING_REQUESTS).create({ ...draft, metadata: { name, annotations: machineAnnotations(atob(draft.spec.request), machine) } }, call);
    }
    const of = (name: string) => api.all(CERTIFICATE_SIGNING_REQUESTS).find(({ metadata }) => metadata.name === name)?.status;
    await eventually(() => [of("stolen")?.conditions?.[0]?.type, of("spare")?.certificate !== undefined], (seen) => seen.join() === "Denied,true");
    expect(of("stolen")?.conditions?.[0]).toMatchObject({ reason: "NodeRevoked", message: "this machine was revoked when it was node n1: to let it in again, on the server: coracle node allow n1" });
    const again = await request("again", {});
    await api.client.resource(CERTIFICATE_SIGNING_REQUESTS).create({ ...again, metadata: { name: "again", annotations: machineAnnotations(atob(again.spec.request), stolen) } }, call);
    await eventually(() => api.all(CERTIFICATE_SIGNING_REQUESTS).map(({ metadata }) => metadata.name).sort(), (seen) => seen.join() === "again,spare"); // one that asks for ever leaves one request
    expect(of("again")?.conditions?.[0]).toMatchObject({ reason: "NodeRevoked" });
    const der = readCertificatePems(atob(of("spare")!.certificate!))[0]!;
    const noted = readRevocation(api.all(CONFIG_MAPS)[0]!.data!["n1"])!;
    expect(noted).toEqual({ ...entry, certificates: { [certificateHash(der)]: timestamp(parseCertificate(der).notAfterMs) } });
    expect(readRevocation(api.all(CONFIG_MAPS)[0]!.data!["gone"])).toEqual(entry);
  }, { api: reviewingApi() }));

test("a node whose certificate has expired gets another one as long as its Node is there and it is the machine that it was; for its name alone, and no serving certificate", () =>
  withControllers((deps) => [csrApprovingController({ ...deps, approveServing: true })], async (api, call) => {
    const mine = await generateKey(), other = await generateKey();
    await api.client.resource(NODES).create({ apiVersion: "v1", kind: "Node", metadata: { name: "n1", annotations: { [MACHINE_ANNOTATION]: machineName(mine) } }, spec: {}, status: { addresses: [{ type: "Hostname", address: "n1" }] } } as never, call);
    const expired = { username: "system:node:n1", groups: ["coracle:expired-nodes", "system:authenticated"] };
    const ask = async (name: string, machine: typeof mine, spec: Parameters<typeof request>[1]) => {
      const draft = await request(name, spec);
      await api.client.resource(CERTIFICATE_SIGNING_REQUESTS).create({ ...draft, metadata: { name, annotations: machineAnnotations(atob(draft.spec.request), machine) } }, call);
    };
    await ask("serving", mine, { ...expired, signerName: KUBELET_SERVING, usages: ["digital signature", "server auth"] as never, dnsNames: ["n1"] });
    await ask("for-another", mine, { ...expired, username: "system:node:n2" });
    await ask("another-machine", other, expired);
    await ask("mine", mine, expired);
    const state = () => Object.fromEntries(api.all(CERTIFICATE_SIGNING_REQUESTS).map(({ metadata, status }) => [metadata.name, (status?.conditions ?? []).map(({ type, message }) => `${type}: ${message}`).join()]));
    await eventually(state, (seen) => JSON.stringify(seen) === JSON.stringify({ serving: "", "for-another": "", "another-machine": "Denied: node n1 is no more, or another machine", mine: "Approved: Auto approving self kubelet client certificate of a node whose last one has expired." }));
  }, { api: reviewingApi() }));

test("a node's name is its machine's: another one is denied, the same one may come back", async () => {
  const mine = await generateKey(), other = await generateKey();
  const csr = async (machine: typeof mine | undefined, uid: string, status: object = {}) => {
    const draft = await request(uid, {});
    const pem = atob(draft.spec.request);
    return { ...draft, metadata: { ...draft.metadata, uid, creationTimestamp: "2026-01-01T00:00:00Z", annotations: machine ? machineAnnotations(pem, machine) : {} }, status } as never as CertificateSigningRequest;
  };
  const node = (annotations: Record<string, string>, ready: string) => ({ metadata: { name: "n1", annotations }, status: { conditions: [{ type: "Ready", status: ready }] } }) as never;
  const mineNode = node({ [MACHINE_ANNOTATION]: machineName(mine) }, "Unknown");
  const approved = { conditions: [{ type: "Approved", status: "True", lastUpdateTime: "2026-01-01T00:00:00Z" }] };
  const nowMs = Date.parse("2026-01-01T00:01:00Z");
  const told = (one: CertificateSigningRequest, of: { node?: never; others?: CertificateSigningRequest[]; nowMs?: number }) => nodeNameProblem(one, { node: undefined, others: [], nowMs, ...of })?.split(":")[0];
  expect(told(await csr(mine, "a"), { node: mineNode })).toBeUndefined();
  expect(told(await csr(other, "a"), { node: mineNode })).toBe("node n1 is another machine");
  expect(told(await csr(undefined, "a"), { node: mineNode })).toBe("node n1 is another machine");
  const stolen = await csr(mine, "b");
  expect(told({ ...(await csr(other, "a")), metadata: stolen.metadata }, { node: mineNode })).toBe("node n1 is another machine"); // annotations of another request
  expect(told(await csr(mine, "a"), { node: node({}, "True") })).toBe("node n1 is another machine, and alive");
  expect(told(await csr(mine, "a"), { node: node({}, "Unknown") })).toBeUndefined();
  expect(told(await csr(mine, "a"), { others: [await csr(other, "b", approved)] })).toBe("another machine is just joining as node n1");
  expect(nodeNameProblem(await csr(mine, "a"), { node: undefined, others: [await csr(other, "b", approved)], nowMs })).toContain("if it replaces the other, wait for 2 minutes"); // there may be no Node to delete
  expect(told(await csr(mine, "a"), { others: [await csr(mine, "b", approved), await csr(other, "c")] })).toBeUndefined();
  expect(told(await csr(mine, "a"), { others: [await csr(other, "b", approved)], nowMs: nowMs + 120_000 })).toBeUndefined();
  expect(told(await csr(mine, "a"), { others: [await csr(other, "b", approved)], nowMs: Date.parse("2016-01-01T00:00:00Z") })).toBeUndefined(); // the clock was ahead then
});

test("requests are found by the node they are for: what others ask is not read for each", async () => {
  const values = async (spec: Parameters<typeof request>[1]) => [...BY_NODE_NAME.valuesOf((await request("r", spec)) as never)];
  expect(await values({})).toEqual(["n1"]);
  expect(await values({ signerName: KUBELET_SERVING })).toEqual([]);
  expect(await values({ signerName: "example.com/theirs", request: btoa("of another form") })).toEqual([]);
});

test.each([
  ["pending", {}, 24], ["approved, never issued", { conditions: [{ type: "Approved", status: "True", lastUpdateTime: "2026-01-01T00:00:00Z" }] }, 24],
  ["issued", { certificate: btoa("of another form"), conditions: [{ type: "Approved", status: "True", lastUpdateTime: "2026-01-01T00:00:00Z" }] }, 1],
  ["denied", { conditions: [{ type: "Denied", status: "True", lastUpdateTime: "2026-01-01T00:00:00Z" }] }, 1],
])("a request is cleaned up: %s", (_, status, hours) => {
  expect(csrEndsMs({ metadata: { creationTimestamp: "2026-01-01T00:00:00Z" }, status } as never)).toBe(Date.parse("2026-01-01T00:00:00Z") + hours * 3_600_000);
});
