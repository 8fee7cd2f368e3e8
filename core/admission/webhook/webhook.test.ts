/** Real webhooks over HTTPS on loopback, with certificates of a CA of their own. */
import { rmSync } from "node:fs";
import { createServer } from "node:https";
import { gzipSync } from "node:zlib";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { admissionRequest } from "../../../test/admission-request.ts";
import { apiServer } from "../../../test/api-server.ts";
import { testPki } from "../../../test/certificates.ts";
import { connectProxy } from "../../../test/connect-proxy.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { AdmissionRequest as ReviewRequest, AdmissionResponse } from "../../api/gen/admission.v1.ts";
import type { MutatingWebhook, MutatingWebhookConfiguration, ValidatingWebhookConfiguration, WebhookClientConfig } from "../../api/gen/admissionregistration.v1.ts";
import type { Namespace, Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { StatusError, statusError } from "../../api/meta/status-error.ts";
import type { Authorizer } from "../../authz/authorizer.ts";
import { type Clock, systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { proxyDialers } from "../../net/dial-through.ts";
import { dialTcp } from "../../net/dial-tcp.ts";
import { silentLog } from "../../observe/log.ts";
import { type Metrics, metricsRegistry } from "../../observe/metrics.ts";
import { altNamesOf } from "../../pki/alt-names.ts";
import { generateKey, keyPem } from "../../pki/authority.ts";
import type { Pki } from "../../pki/pki.ts";
import { spkiOf } from "../../pki/signature.ts";
import { admissionMeter, conditionMeter, webhookMeter } from "../admission-metrics.ts";
import { admissionChain } from "../chain.ts";
import type { AdmissionPlugin, AdmissionRequest, AdmissionSpan } from "../plugin.ts";
import { type DialDeps, endpointOf } from "./dial.ts";
import type { ObjectVersions } from "./object-versions.ts";
import type { Self } from "./self.ts";
import type { WebhookUsers } from "./users.ts";
import { rejection } from "./review.ts";
import { mutatingWebhooks, validatingWebhooks } from "./webhook.ts";

let pki: Pki;
let tls: { key: string; cert: string };
beforeAll(async () => {
  pki = await testPki();
  const key = await generateKey();
  tls = { key: keyPem(key), cert: pki.authority("server-ca").issue({ subject: { commonName: "hook", organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf(["hook.hooks.svc", "127.0.0.1"]), notBeforeMs: 0, notAfterMs: systemClock.nowMs() + 3_600_000 }) };
});
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));
const closing: (() => void)[] = [];
afterEach(() => { for (const close of closing.splice(0)) close(); });

interface Asked { readonly path: string; readonly apiVersion: string; readonly request: ReviewRequest; readonly authorization: string | undefined }
type Answer = (Omit<Partial<AdmissionResponse>, "status"> & { readonly status?: object | undefined }) | { readonly raw: string | Uint8Array; readonly code?: number; readonly headers?: Readonly<Record<string, string>> } | undefined;
type Answering = (asked: Asked) => Answer;

/** A webhook that answers as told; undefined: never. */
async function webhookServer(answering: Answering): Promise<{ port: number; asked: Asked[] }> {
  const asked: Asked[] = [];
  const server = createServer(tls, (incoming, outgoing) => {
    let body = "";
    incoming.on("data", (chunk) => { body += chunk; });
    incoming.on("end", () => {
      const { apiVersion, request } = JSON.parse(body) as { apiVersion: string; request: ReviewRequest };
      asked.push({ path: incoming.url!, apiVersion, request, authorization: incoming.headers.authorization });
      const answer = answering(asked.at(-1)!);
      if (!answer) return;
      if ("raw" in answer) return void outgoing.writeHead(answer.code ?? 200, answer.headers).end(answer.raw);
      outgoing.end(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response: { uid: request.uid, ...answer } }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  closing.push(() => { server.closeAllConnections(); server.close(); });
  return { port: (server.address() as AddressInfo).port, asked };
}

const plainVersions: ObjectVersions = {
  *equivalents({ group, resource }) { if (resource === "widgets") yield { group, version: "v2", resource }; },
  kindOf: ({ group, version, resource }) => ({ group, version, kind: resource === "widgets" ? "Widget" : resource === "namespaces" ? "Namespace" : "ConfigMap" }),
  schemaOf: () => undefined,
  inOrder: (object) => object,
  shown: async (object, { group, version }) => (group === "" ? object : { ...object, apiVersion: `${group}/${version}` }),
  restored: async (value, _from, { group, version }) => ({ ...value, apiVersion: group === "" ? version : `${group}/${version}` }) as unknown as ApiObject,
};

const patchOf = (...operations: object[]): Partial<AdmissionResponse> => ({ allowed: true, patchType: "JSONPatch", patch: Buffer.from(JSON.stringify(operations)).toString("base64") });
const ANY = [{ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"], scope: "*" }] as unknown as MutatingWebhook["rules"];

const NOBODY: Authorizer = { authorize: () => ({ decision: "no-opinion", reason: "" }), rulesFor: () => Promise.resolve({ resourceRules: [], pathRules: [], incomplete: false }) };

interface World { readonly port: number; readonly mutating?: readonly Partial<MutatingWebhook>[]; readonly validating?: readonly Partial<MutatingWebhook>[]; readonly between?: AdmissionPlugin; readonly authorizer?: Authorizer; readonly metrics?: Metrics; readonly versions?: Partial<ObjectVersions>; readonly users?: WebhookUsers; readonly self?: Self; readonly proxyTo?: DialDeps["proxyTo"]; readonly clock?: Clock }

function chainOf({ port, mutating = [], validating = [], between, authorizer = NOBODY, metrics, versions, users, self, proxyTo, clock = systemClock }: World) {
  const complete = (hook: Partial<MutatingWebhook>, i: number): MutatingWebhook => ({
    namespaceSelector: {}, objectSelector: {},
    name: `w${i}.example.com`, rules: ANY, failurePolicy: "Fail", matchPolicy: "Equivalent", sideEffects: "None", timeoutSeconds: 5, admissionReviewVersions: ["v1"],
    clientConfig: { service: { namespace: "hooks", name: "hook", path: `/${i}`, port: 443 }, caBundle: Buffer.from(pki.authority("server-ca").bundlePem).toString("base64") }, ...hook,
  } as MutatingWebhook);
  const deps = {
    mutating: staticInformer(stored<MutatingWebhookConfiguration>("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "m", { webhooks: mutating.map(complete) })),
    validating: staticInformer(stored<ValidatingWebhookConfiguration>("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "v", { webhooks: validating.map(complete) })),
    namespaces: staticInformer(stored<Namespace>("v1", "Namespace", "default", { metadata: { labels: { env: "test" } } })),
    services: staticInformer(stored<Service>("v1", "Service", "hooks/hook", { spec: { type: "ClusterIP", ports: [{ name: "https", port: 443 }] } }), stored<Service>("v1", "Service", "hooks/empty", { spec: { type: "ClusterIP", ports: [{ port: 443 }] } })),
    endpointSlices: staticInformer(stored<EndpointSlice>("discovery.k8s.io/v1", "EndpointSlice", "hooks/hook-1", {
      metadata: { labels: { "kubernetes.io/service-name": "hook" } }, addressType: "IPv4", ports: [{ name: "https", port }], endpoints: [{ addresses: ["192.0.2.1"], conditions: { ready: false } }, { addresses: ["127.0.0.1"], nodeName: "node-1" }],
    })),
    versions: { ...plainVersions, ...versions }, authorizer, ...(metrics ? { meter: webhookMeter(metrics), conditionMeter: conditionMeter(metrics) } : {}), clock, random: systemRandom, log: silentLog, users, self, proxyTo,
    dialer: { connect: ({ host, port: to, signal }: { host: string; port: number; signal: AbortSignal }) => dialTcp({ host, port: to, timeoutMs: 60_000 }, { clock: systemClock, signal }) },
  };
  return admissionChain([...(between ? [between] : []), mutatingWebhooks(deps), validatingWebhooks(deps)], metrics && admissionMeter(metrics, systemClock));
}

const configMap = (): ApiObject => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name: "cm", namespace: "default", labels: { app: "web" } }, data: { a: "1" } }) as unknown as ApiObject;

async function run(world: World, request: AdmissionRequest = admissionRequest({ resource: "configmaps", object: configMap() })): Promise<string> {
  const chain = chainOf(world);
  try {
    await chain.admit(request);
    await chain.validate(request);
    return "ok";
  } catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return `${error.code} ${error.reason}: ${error.message}`.replaceAll(`:${world.port}`, ":PORT");
  }
}

test("a webhook behind an alias is where the alias says", async () => {
  const services = staticInformer(stored<Service>("v1", "Service", "hooks/alias", { spec: { type: "ExternalName", externalName: "hooks.example.com" } }));
  const target = endpointOf({ services, endpointSlices: staticInformer<EndpointSlice>(), random: systemRandom } as unknown as DialDeps, { name: "alias", namespace: "hooks", port: 8443 }, new AbortController().signal);
  expect(await target).toEqual({ nodeName: undefined, host: "hooks.example.com", port: 8443 });
});

test("a webhook is told how long somebody will wait, if that is less than it may take", async () => {
  const server = await webhookServer(() => ({ allowed: true }));
  const clock = { ...systemClock, uptimeMs: () => 0, after: () => ({ cancel: () => undefined }) }; // it stands still
  const request = { ...admissionRequest({ resource: "configmaps", object: configMap() }), deadlineMs: 2_500 };
  expect(await run({ port: server.port, validating: [{}, { timeoutSeconds: 1 }], clock }, request)).toBe("ok");
  expect(server.asked.map(({ path }) => path.replace(/.*timeout=/, "")).sort()).toEqual(["1s", "3s"]);
});

test("webhooks are told who asks where somebody is named for them: behind a Service, and at a URL", async () => {
  const server = await webhookServer(() => ({ allowed: true }));
  const at = { clientConfig: { url: `https://127.0.0.1:${server.port}/u`, caBundle: Buffer.from(pki.authority("server-ca").bundlePem).toString("base64") } };
  const users = { named: new Map([["hook.hooks.svc", { token: "for-the-service" }], [`127.0.0.1:${server.port}`, { username: "u", password: "p" }]]) };
  expect(await run({ port: server.port, validating: [{}, at], users })).toBe("ok");
  expect(server.asked.map(({ authorization }) => authorization).sort()).toEqual(["Basic dTpw", "Bearer for-the-service"]);
});

test("the way to a URL goes through the proxy that there is for it; the way to a Service through none", async () => {
  const server = await webhookServer(() => ({ allowed: true }));
  await using proxy = await connectProxy({ routes: { "hook.hooks.svc:8443": `127.0.0.1:${server.port}` } });
  const proxyTo = proxyDialers(() => new URL(`http://127.0.0.1:${proxy.port}`), systemClock);
  const at = { clientConfig: { url: "https://hook.hooks.svc:8443/u", caBundle: Buffer.from(pki.authority("server-ca").bundlePem).toString("base64") } };
  expect(await run({ port: server.port, validating: [{}, at], proxyTo })).toBe("ok");
  expect(server.asked.map(({ path }) => path).sort()).toEqual(["/0?timeout=5s", "/u?timeout=5s"]);
  expect(proxy.asked.map(({ target }) => target)).toEqual(["hook.hooks.svc:8443"]);
});

test("a webhook of a server behind this one is asked through this one, in its own name, whatever kubeconfig says", async () => {
  const asked: string[] = [];
  const self: Self = async ({ path, query, headers, body }) => {
    const { request: { uid } } = JSON.parse(Buffer.from(body).toString()) as { request: { uid: string } };
    asked.push(`${path}?${query} ${new Map(headers).get("authorization")}`);
    const response = { uid, allowed: false, status: { code: 403, message: "no" } };
    return path === "/apis/none" ? { status: 404, contentType: "text/plain", body: Buffer.from("404 page not found\n") } : { status: 201, contentType: "application/json", body: Buffer.from(JSON.stringify({ apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response })) };
  };
  const users = { named: new Map([["kubernetes.default.svc", { token: "t" }]]) };
  const at = (path: string) => ({ clientConfig: { service: { namespace: "default", name: "kubernetes", path, port: 443 } } }) as unknown as Partial<MutatingWebhook>;
  expect(await run({ port: 1, validating: [at("/apis/admission.example.com/v1/reviews")], self, users })).toBe('403 : admission webhook "w0.example.com" denied the request: no');
  expect(await run({ port: 1, mutating: [{ clientConfig: { url: "https://kubernetes.default.svc/apis/none" } }], self })).toBe('500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": failed to call webhook: the server could not find the requested resource');
  expect(asked).toEqual(["/apis/admission.example.com/v1/reviews?timeout=5s undefined", "/apis/none?timeout=5s undefined"]);
});

test("a review tells who wants what; a patch changes the object; validating webhooks see the outcome", async () => {
  const server = await webhookServer(({ request }) => ((request.object as { data: object } | null)?.data && !("b" in (request.object as { data: object }).data) ? { ...patchOf({ op: "add", path: "/data/b", value: "2" }), warnings: ["mind the gap"] } : { allowed: true }));
  const warnings: string[] = [];
  const object = configMap();
  const request = { ...admissionRequest({ resource: "configmaps", object, user: { name: "jane", uid: "7", groups: ["g"], extra: { k: ["v"] } } }), options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" }, warn: (text: string) => void warnings.push(text) };
  expect(await run({ port: server.port, mutating: [{}], validating: [{}, {}] }, request)).toBe("ok");
  expect(object).toMatchObject({ data: { a: "1", b: "2" } });
  expect(warnings).toEqual(["mind the gap"]);
  expect(server.asked.map(({ path }) => path)).toEqual(["/0?timeout=5s", expect.stringMatching(/timeout=5s$/), expect.stringMatching(/timeout=5s$/)]);
  const [first, second] = server.asked;
  expect(first!.request).toEqual({
    uid: expect.stringMatching(/^[0-9a-f-]{36}$/), kind: { group: "", version: "v1", kind: "ConfigMap" }, resource: { group: "", version: "v1", resource: "configmaps" },
    requestKind: { group: "", version: "v1", kind: "ConfigMap" }, requestResource: { group: "", version: "v1", resource: "configmaps" },
    name: "cm", namespace: "default", operation: "CREATE", userInfo: { username: "jane", uid: "7", groups: ["g"], extra: { k: ["v"] } },
    object: configMap(), oldObject: null, dryRun: false, options: { kind: "CreateOptions", apiVersion: "meta.k8s.io/v1" },
  });
  expect(second!.request.object).toMatchObject({ data: { b: "2" } });
});

const CALL_FAILED = '500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": ';

describe("a webhook's answer", () => {
  test.each<[string, Answer, Partial<MutatingWebhook>, string]>([
    ["no, with words", { allowed: false, status: { message: "not on Mondays", reason: "Forbidden", code: 403 } }, {}, '403 Forbidden: admission webhook "w0.example.com" denied the request: not on Mondays'],
    ["no, with a reason", { allowed: false, status: { reason: "Conflict" } }, {}, '400 Conflict: admission webhook "w0.example.com" denied the request: Conflict'],
    ["no, whatever the failurePolicy", { allowed: false }, { failurePolicy: "Ignore" }, '400 : admission webhook "w0.example.com" denied the request without explanation'],
    ["another's uid", { uid: "x", allowed: true }, {}, expect.stringMatching(/^500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": received invalid webhook response: expected response.uid="[^"]+", got "x"$/) as never],
    ["nothing", { raw: "{}" }, {}, '500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": received invalid webhook response: webhook response was absent'],
    ["a patch without its type", { allowed: true, patch: "W10=" }, {}, '500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": received invalid webhook response: webhook returned response.patch but not response.patchType'],
    ["a patch that does not apply", patchOf({ op: "remove", path: "/data/none" }), { failurePolicy: "Ignore" }, expect.stringMatching(/^500 InternalError: Internal error occurred: /) as never],
    ["another kind of object", patchOf({ op: "replace", path: "/kind", value: "Secret" }), {}, "500 : converting (v1.Secret) to (core.ConfigMap): unknown conversion"],
    ["a version that nobody knows", patchOf({ op: "replace", path: "/apiVersion", value: "v2" }), {}, '500 InternalError: Internal error occurred: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30"'],
    ["no kind", patchOf({ op: "remove", path: "/kind" }), {}, "ok"],
    ["YAML", { raw: "a: b" }, {}, `${CALL_FAILED}received invalid webhook response: webhook response was absent`],
    ["words", { raw: "not json" }, {}, expect.stringContaining("couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct") as never],
    ["not found", { raw: "", code: 404 }, {}, '500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": failed to call webhook: the server could not find the requested resource'],
    ["an error that is no text", { raw: "boom", code: 500, headers: { "Content-Type": "application/json" } }, {}, `${CALL_FAILED}failed to call webhook: an error on the server ("unknown") has prevented the request from succeeding`],
    ["a Status", { raw: JSON.stringify({ kind: "Status", apiVersion: "v1", status: "Failure", message: "come back on Monday", code: 409 }), code: 409 }, {}, `${CALL_FAILED}failed to call webhook: come back on Monday`],
    ["empty", { raw: "" }, {}, `${CALL_FAILED}failed to call webhook: 0-length response with status code: 200 and content type: application/json`],
    ["a list", { raw: "[]" }, {}, expect.stringContaining(`${CALL_FAILED}failed to call webhook: couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct`) as never],
    ["of the version before", { raw: '{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"allowed":true}}' }, {}, `${CALL_FAILED}failed to call webhook: converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion`],
    ["of that version, which is what was asked in", { raw: '{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"allowed":true,"patch":"W10="}}' }, { admissionReviewVersions: ["v0", "v1beta1", "v1"] }, "ok"],
    ["of another kind", { raw: '{"apiVersion":"admission.k8s.io/v1","kind":"Other"}' }, {}, `${CALL_FAILED}failed to call webhook: no kind "Other" is registered for version "admission.k8s.io/v1" in scheme "pkg/util/webhook/client.go:71"`],
    ["a yes that is a word", { allowed: "yes" as never }, {}, `${CALL_FAILED}failed to call webhook: json: cannot unmarshal string into Go struct field AdmissionResponse.response.allowed of type bool`],
    ["a patch that is not in base64", { allowed: true, patchType: "JSONPatch", patch: "!!" }, {}, `${CALL_FAILED}failed to call webhook: illegal base64 data at input byte 0`],
    ["a patch that is no JSON", { allowed: true, patchType: "JSONPatch", patch: Buffer.from("x").toString("base64") }, {}, `${CALL_FAILED}received undecodable patch in webhook response: invalid character 'x' looking for beginning of value`],
    ["a patch that is a word", { allowed: true, patchType: "JSONPatch", patch: Buffer.from('"x"').toString("base64") }, {}, `${CALL_FAILED}received undecodable patch in webhook response: json: cannot unmarshal string into Go value of type jsonpatch.Patch`],
    ["a patch of numbers", patchOf(1 as never), {}, `${CALL_FAILED}received undecodable patch in webhook response: json: cannot unmarshal number into Go value of type jsonpatch.Operation`],
    ["a patch that puts nothing in place of all", patchOf({ op: "replace", path: "", value: null }), {}, "500 InternalError: Internal error occurred: replace operation value must be object or array: %!w(<nil>)"],
    ["a Status where a review should be", { raw: '{"kind":"Status","apiVersion":"v1","status":"Success"}' }, {}, `${CALL_FAILED}failed to call webhook: converting (v1.Status) to (v1.AdmissionReview): unknown conversion`],
    ["compressed", { raw: gzipSync("boom"), code: 500, headers: { "Content-Type": "text/plain", "Content-Encoding": "gzip" } }, {}, `${CALL_FAILED}failed to call webhook: an error on the server ("boom") has prevented the request from succeeding`],
    ["said to be compressed", { raw: "this is not compressed", headers: { "Content-Encoding": "gzip" } }, {}, `${CALL_FAILED}failed to call webhook: unexpected error when reading response body. Please retry. Original error: gzip: invalid header`],
    ["compressed, and cut short", { raw: gzipSync("boom").subarray(0, 12), headers: { "Content-Encoding": "gzip" } }, {}, `${CALL_FAILED}failed to call webhook: unexpected error when reading response body. Please retry. Original error: unexpected EOF`],
    ["shorter than it said", { raw: "{", headers: { "Content-Length": "100", "Connection": "close" } }, {}, `${CALL_FAILED}failed to call webhook: unexpected error when reading response body. Please retry. Original error: unexpected EOF`],
    ["of no media type", { raw: "{}", headers: { "Content-Type": ";;" } }, {}, `${CALL_FAILED}failed to call webhook: Internal error occurred: mime: no media type`],
    ["of a media type that is none", { raw: "{}", headers: { "Content-Type": "a/b/c;;" } }, {}, `${CALL_FAILED}failed to call webhook: Internal error occurred: mime: unexpected content after media subtype`],
    ["marked as UTF-8", { raw: "\uFEFF{}" }, {}, `${CALL_FAILED}received invalid webhook response: webhook response was absent`],
    ["of a parameter behind very many spaces", { raw: "{}", headers: { "Content-Type": `a/b;c=d${" ".repeat(100_000)}x` } }, {}, `${CALL_FAILED}failed to call webhook: Internal error occurred: mime: invalid media parameter`],
    ["a long text", { raw: "y".repeat(3000), code: 500, headers: { "Content-Type": "text/plain" } }, {}, `${CALL_FAILED}failed to call webhook: an error on the server ("${"y".repeat(2048)}") has prevented the request from succeeding`],
    ["a patch of a kind nobody knows", { ...patchOf({ op: "add", path: "/data/b", value: "2" }), patchType: "Other" }, {}, `${CALL_FAILED}unsupported patch type "Other"`],
    ["a patch of that kind that changes nothing", { ...patchOf(), patchType: "Other" }, {}, "ok"],
    ["an error, ignored", { raw: "", code: 500 }, { failurePolicy: "Ignore" }, "ok"],
    ["none in time", undefined, { timeoutSeconds: 1 }, '500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": failed to call webhook: Post "https://hook.hooks.svc:443/0?timeout=1s": context deadline exceeded'],
    ["none in time, ignored", undefined, { timeoutSeconds: 1, failurePolicy: "Ignore" }, "ok"],
  ])("%s", async (_name, answer, hook, outcome) => {
    const { port } = await webhookServer(() => answer);
    expect(await run({ port, mutating: [hook] })).toEqual(outcome);
  });

  test("a webhook that asks for time is asked again when it is over, in the version it takes", async () => {
    const apiVersions: string[] = [];
    const server = await webhookServer(({ apiVersion }) => (apiVersions.push(apiVersion) < 3 ? { raw: "later", code: apiVersions.length === 1 ? 429 : 503, headers: { "retry-after": "0" } } : { raw: '{"response":{"allowed":true}}' }));
    expect(await run({ port: server.port, validating: [{ admissionReviewVersions: ["v1beta1"] }] })).toBe("ok");
    expect(apiVersions).toEqual(Array(3).fill("admission.k8s.io/v1beta1"));
  });

  test("a webhook that asks for more time than there is is not asked again", async () => {
    let asked = 0;
    const { port } = await webhookServer(() => ({ raw: "later", code: 429, headers: { "retry-after": String(30 * 86_400 + asked++) } }));
    expect(await run({ port, mutating: [{ timeoutSeconds: 1 }] })).toMatch(/context deadline exceeded$/);
    expect(asked).toBe(1);
  });

  test("a validating webhook may not patch", async () => {
    const { port } = await webhookServer(() => patchOf({ op: "add", path: "/data/b", value: "2" }));
    expect(await run({ port, validating: [{}] })).toContain("received invalid webhook response: validating webhook may not return response.patch");
  });

  test("nothing can be patched where nothing is written", async () => {
    const { port } = await webhookServer(() => patchOf({ op: "add", path: "/data/b", value: "2" }));
    const request = admissionRequest({ resource: "configmaps", operation: "DELETE", name: "cm", old: configMap() });
    expect(await run({ port, mutating: [{}] }, request)).toContain("attempted to modify the object, which is not supported for this operation");
  });
});

describe("reaching a webhook", () => {
  const caOf = (bundle: string): string => Buffer.from(bundle).toString("base64");
  const FAILED = '500 InternalError: Internal error occurred: failed calling webhook "w0.example.com": failed to call webhook: ';
  test.each<[string, (port: number) => WebhookClientConfig, string]>([
    ["at its URL", (port) => ({ url: `https://127.0.0.1:${port}/x`, caBundle: caOf(pki.authority("server-ca").bundlePem) }), "ok"],
    ["whose path has slashes that name nothing", () => ({ url: "https://127.0.0.1:1//x/" }), `${FAILED}Post "https://127.0.0.1:1/x?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused`],
    ["whose CA we were not told", (port) => ({ url: `https://127.0.0.1:${port}/x` }), `${FAILED}Post "https://127.0.0.1:PORT/x?timeout=5s": tls: failed to verify certificate: x509: certificate signed by unknown authority`],
    ["whose CA is another", (port) => ({ url: `https://127.0.0.1:${port}/x`, caBundle: caOf(pki.authority("client-ca").bundlePem) }), `${FAILED}Post "https://127.0.0.1:PORT/x?timeout=5s": tls: failed to verify certificate: x509: certificate signed by unknown authority`],
    ["by a name its certificate is not for", (port) => ({ url: `https://localhost:${port}/x`, caBundle: caOf(pki.authority("server-ca").bundlePem) }), `${FAILED}Post "https://localhost:PORT/x?timeout=5s": tls: failed to verify certificate: x509: certificate is valid for hook.hooks.svc, not localhost`],
    ["by such a name, whose CA is another", (port) => ({ url: `https://localhost:${port}/x`, caBundle: caOf(pki.authority("client-ca").bundlePem) }), `${FAILED}Post "https://localhost:PORT/x?timeout=5s": tls: failed to verify certificate: x509: certificate is valid for hook.hooks.svc, not localhost`],
    ["where nobody listens", () => ({ url: "https://127.0.0.1:1/x" }), `${FAILED}Post "https://127.0.0.1:1/x?timeout=5s": dial tcp 127.0.0.1:1: connect: connection refused`],
    ["behind no Service", () => ({ service: { namespace: "hooks", name: "none", port: 443 } }), `${FAILED}Post "https://none.hooks.svc:443/?timeout=5s": service "none" not found`],
    ["behind a Service without that port", () => ({ service: { namespace: "hooks", name: "hook", port: 80 } }), `${FAILED}Post "https://hook.hooks.svc:80/?timeout=5s": no service port 80 found for service "hook"`],
    ["behind a Service without endpoints", () => ({ service: { namespace: "hooks", name: "empty", port: 443 } }), `${FAILED}Post "https://empty.hooks.svc:443/?timeout=5s": no endpoints available for service "empty"`],
  ])("%s", async (_name, clientConfig, outcome) => {
    const { port } = await webhookServer(() => ({ allowed: true }));
    expect(await run({ port, validating: [{ clientConfig: clientConfig(port) }] })).toBe(outcome);
  });
});

const UNCONVERTED = "conversion webhook for example.com/v1, Kind=Widget failed: no such shape";
const unconverted = (): Promise<never> => Promise.reject(statusError({ code: 500, reason: "", message: UNCONVERTED, cause: new Error("no such shape") }));

describe("which requests a webhook hears of", () => {
  const rule = (parts: object): Partial<MutatingWebhook> => ({ rules: [{ ...ANY![0], ...parts }] as MutatingWebhook["rules"] });
  const update = (labels: object, old: object): AdmissionRequest => admissionRequest({ resource: "configmaps", operation: "UPDATE", object: { ...configMap(), metadata: { name: "cm", labels } }, old: { ...configMap(), metadata: { name: "cm", labels: old } } });
  const namespace = admissionRequest({ resource: "namespaces", namespace: "new", object: { apiVersion: "v1", kind: "Namespace", metadata: { name: "new", labels: { env: "prod" } } } });
  const widget = admissionRequest({ resource: "widgets.example.com", object: { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" } } });
  const pod = (subresource: string): AdmissionRequest => admissionRequest({ resource: `pods${subresource}`, object: configMap() });
  test.each<[string, Partial<MutatingWebhook>, AdmissionRequest | undefined, boolean]>([
    ["the operation", rule({ operations: ["UPDATE"] }), undefined, false],
    ["the group", rule({ apiGroups: ["apps"] }), undefined, false],
    ["the resource", rule({ resources: ["configmaps"] }), undefined, true],
    ["a subresource by name", rule({ resources: ["pods/status"] }), pod("/status"), true],
    ["a resource without its subresources", rule({ resources: ["pods"] }), pod("/status"), false],
    ["every subresource of one", rule({ resources: ["pods/*"] }), pod("/exec"), true],
    ["every resource but no subresource", rule({ resources: ["*"] }), pod("/exec"), false],
    ["namespaced ones", rule({ scope: "Namespaced" }), undefined, true],
    ["of the cluster: namespaces are", rule({ scope: "Cluster" }), namespace, true],
    ["of namespaces: namespaces are not", rule({ scope: "Namespaced" }), namespace, false],
    ["the namespace's labels", { namespaceSelector: { matchLabels: { env: "test" } } }, undefined, true],
    ["the namespace's labels, others", { namespaceSelector: { matchLabels: { env: "prod" } } }, undefined, false],
    ["a namespace's own labels", { namespaceSelector: { matchLabels: { env: "prod" } } }, namespace, true],
    ["the object's labels", { objectSelector: { matchLabels: { app: "web" } } }, undefined, true],
    ["the object's labels as they were", { objectSelector: { matchLabels: { app: "web" } } }, update({}, { app: "web" }), true],
    ["neither labels", { objectSelector: { matchLabels: { app: "db" } } }, update({ app: "api" }, { app: "web" }), false],
    ["another version of the same", rule({ apiVersions: ["v2"] }), widget, true],
    ["that version only", { ...rule({ apiVersions: ["v2"] }), matchPolicy: "Exact" }, widget, false],
    ["configurations of admission never", {}, admissionRequest({ resource: "validatingwebhookconfigurations.admissionregistration.k8s.io", namespace: "", object: { metadata: { name: "v" } } }), false],
  ])("%s", async (_name, hook, request, heard) => {
    const server = await webhookServer(() => ({ allowed: false }));
    expect(await run({ port: server.port, validating: [hook] }, request)).toMatch(heard ? /denied the request/ : /^ok$/);
    expect(server.asked.length).toBe(heard ? 1 : 0);
  });

  test.each<[string, Omit<World, "port">, number, string]>([
    ["of what it is to be shown, to one that mutates", { mutating: [rule({ apiVersions: ["v2"] })], versions: { shown: unconverted } }, 0, `500 InternalError: Internal error occurred: Internal error occurred: ${UNCONVERTED}`],
    ["of what its conditions ask about", { mutating: [{ ...rule({ apiVersions: ["v2"] }), matchConditions: [{ name: "any", expression: "true" }] }], versions: { shown: unconverted } }, 0, `500 InternalError: Internal error occurred: Internal error occurred: ${UNCONVERTED}`],
    ["of what it is to be shown, to one that validates", { validating: [rule({ apiVersions: ["v2"] })], versions: { shown: unconverted } }, 0, `500 InternalError: Internal error occurred: ${UNCONVERTED}`],
    ["of what it has made of it", { mutating: [rule({ apiVersions: ["v2"] })], versions: { restored: unconverted } }, 1, `500 : ${UNCONVERTED}`],
  ])("a conversion that fails is told as it is: %s", async (_name, world, asked, outcome) => {
    const server = await webhookServer(() => patchOf({ op: "add", path: "/spec", value: { size: 1 } }));
    expect(await run({ port: server.port, ...world }, widget)).toBe(outcome);
    expect(server.asked.length).toBe(asked);
  });

  test("shown in the version its rule names", async () => {
    const server = await webhookServer(() => patchOf({ op: "add", path: "/spec", value: { size: 1 } }));
    const object = { apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" } } as ApiObject;
    expect(await run({ port: server.port, mutating: [rule({ apiVersions: ["v2"] })] }, admissionRequest({ resource: "widgets.example.com", object }))).toBe("ok");
    expect(server.asked[0]!.request).toMatchObject({ kind: { version: "v2" }, resource: { version: "v2" }, requestKind: { version: "v1" }, requestResource: { version: "v1" }, object: { apiVersion: "example.com/v2" } });
    expect(object).toEqual({ apiVersion: "example.com/v1", kind: "Widget", metadata: { name: "w" }, spec: { size: 1 } });
  });
});

test.each<[MutatingWebhook["sideEffects"], string, boolean | undefined]>([
  ["None", "ok", true], ["NoneOnDryRun", "ok", true], ["Some", '400 BadRequest: admission webhook "w0.example.com" does not support dry run', undefined],
])("a dry run and a webhook with side effects: %s", async (sideEffects, outcome, told) => {
  const server = await webhookServer(() => ({ allowed: true }));
  expect(await run({ port: server.port, validating: [{ sideEffects }] }, { ...admissionRequest({ resource: "configmaps", object: configMap() }), dryRun: true })).toBe(outcome);
  expect(server.asked[0]?.request.dryRun).toBe(told);
});

test("a change by a later webhook is shown to plug-ins and to the earlier webhooks that want to see it, once", async () => {
  const server = await webhookServer(({ path, request }) => {
    const { data } = request.object as { data: Record<string, string> };
    return path.startsWith("/2?") ? patchOf({ op: "add", path: "/data/late", value: String(Object.keys(data).length) }) : { allowed: true };
  });
  let rounds = 0;
  const between: AdmissionPlugin = { name: "Counts", handles: () => true, admit: () => void rounds++ };
  expect(await run({ port: server.port, between, mutating: [{ reinvocationPolicy: "IfNeeded" }, { reinvocationPolicy: "Never" }, { reinvocationPolicy: "Never" }] })).toBe("ok");
  expect(server.asked.map(({ path }) => path[1])).toEqual(["0", "1", "2", "0"]);
  expect(rounds).toBe(2);
});

test("a webhook that adds a container each time it is asked is asked again, and what it made of the pod is refused", async () => {
  const server = await webhookServer(({ path }) => patchOf(path.startsWith("/0?") ? { op: "add", path: "/spec/containers/-", value: { name: "side", image: "side:1" } } : { op: "add", path: "/metadata/labels", value: { late: "1" } }));
  const world = (reinvocationPolicy: "Never" | "IfNeeded") => chainOf({ port: server.port, mutating: [{ reinvocationPolicy }, { reinvocationPolicy: "Never" }] });
  const created = async (policy: "Never" | "IfNeeded") => {
    const chain = world(policy);
    await using api = await apiServer({ admit: (request) => chain.admit(request) });
    const { code, body } = await api.ask("POST", "/api/v1/namespaces/default/pods", { body: { apiVersion: "v1", kind: "Pod", metadata: { name: "web" }, spec: { containers: [{ name: "app", image: "app:1" }] } } });
    return [code, code === 201 ? body.spec.containers.map(({ name }: { name: string }) => name) : body.message];
  };
  expect(await created("Never")).toEqual([201, ["app", "side"]]);
  expect(await created("IfNeeded")).toEqual([422, 'Pod "web" is invalid: spec.containers[2].name: Duplicate value: "side"']);
});

const noKey = (text: string): string => `expression '${text}' resulted in error: no such key: none`;
test.each<[string[], MutatingWebhook["failurePolicy"], string, number]>([
  [["object.data.a == '1'", "request.operation == 'CREATE' && oldObject == null", "namespaceObject == null"], "Fail", "ok", 1],
  [["object.none == 1", "false"], "Fail", "ok", 0],
  [["true", "object.none == 1", "object.none == 2"], "Fail", `403 Forbidden: configmaps "cm" is forbidden: [${noKey("object.none == 1")}, ${noKey("object.none == 2")}]`, 0],
  [["object.none == 1"], "Ignore", "ok", 0],
  [["authorizer.group('').resource('configmaps').namespace('default').name('cm').check('breakglass').allowed()"], "Fail", "ok", 1],
  [["authorizer.requestResource.check('update').reason() == 'not you'", "!authorizer.path('/x').check('get').allowed()", "authorizer.path('/broken').check('get').error() == 'no store'"], "Fail", "ok", 1],
  [Array<string>(4).fill("[1, 2].all(x, !authorizer.path('/x').check('get').allowed())"), "Fail", '403 Forbidden: configmaps "cm" is forbidden: validation failed due to running out of cost budget, no further validation rules will be run', 0],
])("conditions %j and failurePolicy %s: %s, asked %d times", async (expressions, failurePolicy, outcome, asked) => {
  const server = await webhookServer(() => ({ allowed: true }));
  const matchConditions = expressions.map((expression, i) => ({ name: `c${i}`, expression }));
  const authorizer: Authorizer = {
    ...NOBODY,
    async authorize(attributes) {
      if (!attributes.isResource) return attributes.path === "/broken" ? Promise.reject(new Error("no store")) : { decision: "deny", reason: "" };
      expect(attributes).toMatchObject({ resource: "configmaps", namespace: "default", name: "cm", user: { name: "jane" } });
      return attributes.verb === "breakglass" ? { decision: "allow", reason: "" } : { decision: "no-opinion", reason: "not you" };
    },
  };
  expect(await run({ port: server.port, authorizer, validating: [{ matchConditions, failurePolicy }] })).toBe(outcome);
  expect(server.asked.length).toBe(asked);
});

test("conditions that do not hold are counted and timed, errors before the first that is false are counted", async () => {
  const metrics = metricsRegistry();
  const { port } = await webhookServer(() => ({ allowed: true }));
  const hook = (...expressions: string[]): Partial<MutatingWebhook> => ({ failurePolicy: "Ignore", matchConditions: expressions.map((expression, i) => ({ name: `c${i}`, expression })) });
  const chain = chainOf({ port, mutating: [hook("true"), hook("object.none == 1", "false", "object.none == 2")], validating: [hook("false"), hook("object.none == 1", "object.none == 2"), { ...hook("object.none == 1"), failurePolicy: "Fail" }], metrics });
  const request = admissionRequest({ resource: "configmaps", object: configMap() });
  await chain.admit(request);
  await expect(chain.validate(request)).rejects.toThrow("no such key: none");
  expect(metrics.render().split("\n").filter((line) => /match_condition_\w+(total|count)\{/.test(line)).map((line) => line.replace("apiserver_admission_match_condition_", "").replace('kind="webhook",', "").replace(/.example.com",operation="CREATE"/, '"')).sort()).toEqual([
    'evaluation_errors_total{name="w1",type="admit"} 1', 'evaluation_errors_total{name="w1",type="validating"} 2', 'evaluation_errors_total{name="w2",type="validating"} 1',
    'evaluation_seconds_count{name="w0",type="validating"} 1', 'evaluation_seconds_count{name="w1",type="admit"} 1', 'evaluation_seconds_count{name="w1",type="validating"} 1', 'evaluation_seconds_count{name="w2",type="validating"} 1',
    'exclusions_total{name="w0",type="validate"} 1', 'exclusions_total{name="w1",type="admit"} 1', 'exclusions_total{name="w1",type="validate"} 1',
  ]);
});

test("what webhooks did is noted for the audit log, counted, and they are told of the trace they are in", async () => {
  const metrics = metricsRegistry();
  const { port } = await webhookServer(({ path }) => (path.startsWith("/0") ? patchOf({ op: "add", path: "/data/b", value: "2" }) : { raw: "no", code: 500 }));
  const notes: Record<string, string> = {};
  const inFull: Record<string, string> = {};
  const ended: string[] = [];
  const span: AdmissionSpan = { traceparent: "00-a-b-01", event: (name) => void ended.push(name), child: (name, kind, { UID: _, ...attributes }) => ({ ...span, end: () => void ended.push(`${kind} ${name} ${JSON.stringify(attributes)}`) }), end: () => undefined };
  const request = { ...admissionRequest({ resource: "configmaps", object: configMap() }), annotate: (key: string, value: string) => void (notes[key] = value), annotateInFull: (key: string, value: () => string) => void (inFull[key] = value()), span };
  const chain = chainOf({ port, mutating: [{}, { failurePolicy: "Ignore" }], metrics });
  await chain.admit(request);
  await chain.validate(request);
  expect(notes).toEqual({
    "mutation.webhook.admission.k8s.io/round_0_index_0": '{"configuration":"m","webhook":"w0.example.com","mutated":true}',
    "failed-open.mutation.webhook.admission.k8s.io/round_0_index_1": "w1.example.com",
    "mutation.webhook.admission.k8s.io/round_0_index_1": '{"configuration":"m","webhook":"w1.example.com","mutated":false}',
  });
  expect(inFull).toEqual({ "patch.webhook.admission.k8s.io/round_0_index_0": '{"configuration":"m","webhook":"w0.example.com","patch":[{"op":"add","path":"/data/b","value":"2"}],"patchType":"JSONPatch"}' });
  const own = (webhook: string): string => `1 Call mutating webhook {"configuration":"m","webhook":"${webhook}","resource":"/v1, Resource=configmaps","subresource":"","operation":"CREATE"}`;
  const call = '3 HTTP POST {"http.request.method":"POST"}';
  expect(ended).toEqual([call, "Request completed", own("w0.example.com"), call, own("w1.example.com")]);
  const text = metrics.render();
  for (const line of [
    'apiserver_admission_webhook_request_total{code="200",name="w0.example.com",operation="CREATE",rejected="false",type="admit"} 1',
    'apiserver_admission_webhook_request_total{code="500",name="w1.example.com",operation="CREATE",rejected="false",type="admit"} 1',
    'apiserver_admission_webhook_fail_open_count{name="w1.example.com",type="admit"} 1',
  ]) expect(text.split("\n")).toContain(line);
  expect(text).not.toContain("apiserver_admission_webhook_rejection_count");
  expect(text).toMatch(/apiserver_admission_step_admission_duration_seconds_count\{operation="CREATE",rejected="false",type="validate"\} 1/);
});

test("a webhook that refuses has changed nothing; one that patches an object whose times are new has, whatever it patched", async () => {
  const { port } = await webhookServer(({ path }) => (path.startsWith("/2") ? { allowed: false } : patchOf({ op: "test", path: "/data/a", value: "1" })));
  const notes: Record<string, string> = {};
  const object = { ...configMap(), metadata: { ...configMap().metadata, managedFields: [{ manager: "m", time: "2026-01-01T00:00:00Z" }] } } as unknown as ApiObject;
  const request = { ...admissionRequest({ resource: "configmaps", object }), annotate: (key: string, value: string) => void (notes[key] = (JSON.parse(value) as { mutated: boolean }).mutated as never) };
  await expect(chainOf({ port, mutating: [{}, {}, {}] }).admit(request)).rejects.toThrow("denied the request");
  expect(Object.values(notes)).toEqual([true, false, false]);
});

test("a webhook may patch what a connection is asked for with, and a patch may change nothing of it", async () => {
  const { port, asked } = await webhookServer(({ path }) => patchOf(path.startsWith("/0") ? { op: "test", path: "/command/0", value: "sh" } : { op: "add", path: "/stdin", value: true }));
  const request = { ...admissionRequest({ operation: "CONNECT", resource: "pods/exec", name: "p", object: { apiVersion: "v1", kind: "PodExecOptions", command: ["sh"] } }), pathName: "p" };
  await chainOf({ port, mutating: [{}, {}] }).admit(request);
  expect([request.object, asked[0]!.request.operation]).toEqual([{ apiVersion: "v1", kind: "PodExecOptions", command: ["sh"], stdin: true }, "CONNECT"]);
});

test("a patch that brings again what is there has changed nothing in the second round; operations are noted in the order of their keys", async () => {
  const { port } = await webhookServer(({ path, request }) => patchOf(path.startsWith("/0") ? { path: "/data/seen", op: "add", value: (request.object as unknown as { data: { late?: string } }).data.late ?? "not yet" } : { value: "<1>", path: "/data/late", op: "add" }));
  const mutated: Record<string, boolean> = {};
  const patches: string[] = [];
  const request = {
    ...admissionRequest({ resource: "configmaps", object: { ...configMap(), metadata: { ...configMap().metadata, managedFields: [{ manager: "m" }] } } as unknown as ApiObject }),
    annotate: (key: string, value: string) => void (mutated[key.slice(-15)] = (JSON.parse(value) as { mutated: boolean }).mutated), annotateInFull: (_: string, value: () => string) => void patches.push(value()),
  };
  await chainOf({ port, mutating: [{ reinvocationPolicy: "IfNeeded" }, { reinvocationPolicy: "IfNeeded" }] }).admit(request);
  expect(mutated).toEqual({ round_0_index_0: true, round_0_index_1: true, round_1_index_0: true, round_1_index_1: false });
  expect(patches[1]).toContain('"patch":[{"op":"add","path":"/data/late","value":"\\u003c1\\u003e"}]');
});

test("a version that has not the subresource is nobody's way to it", async () => {
  const server = await webhookServer(() => ({ allowed: true }));
  const versions: Partial<ObjectVersions> = {
    equivalents: ({ group, resource }) => ["v2", "v3"].map((version) => ({ group, version, resource })),
    kindOf: ({ group, version }, subresource) => (subresource === "" || version !== "v2" ? { group, version, kind: "Widget" } : undefined),
  };
  const validating = [{ rules: [{ operations: ["*"], apiGroups: ["ops.io"], apiVersions: ["v2", "v3"], resources: ["widgets/*"], scope: "*" }] as unknown as MutatingWebhook["rules"] }];
  expect(await run({ port: server.port, validating, versions }, { ...admissionRequest({ operation: "UPDATE", resource: "widgets.ops.io", object: configMap() }), subresource: "scale" })).toBe("ok");
  expect(server.asked.map(({ request }) => request.kind)).toEqual([{ group: "ops.io", version: "v3", kind: "Widget" }]);
});

test("a Namespace's part is chosen by the labels it has, a Namespace itself by those it is to have; users without extra have none", async () => {
  const server = await webhookServer(() => ({ allowed: true }));
  const object = { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as unknown as ApiObject;
  const validating = [{ namespaceSelector: { matchLabels: { env: "test" } } }];
  for (const subresource of ["", "finalize"]) await run({ port: server.port, validating }, { ...admissionRequest({ operation: "UPDATE", resource: "namespaces", namespace: "default", object, user: { name: "jane", groups: [], extra: {} } }), subresource });
  expect(server.asked.map(({ request }) => [request.requestSubResource, request.userInfo])).toEqual([["finalize", { username: "jane" }]]);
});

test("a validating webhook that refuses, one that fails, and one whose failure does not matter are told apart", async () => {
  const metrics = metricsRegistry();
  const { port } = await webhookServer(({ path }) => (path.startsWith("/0") ? { raw: "no", code: 404 } : path.startsWith("/1") ? { raw: "{}" } : { allowed: false, status: { code: 451, message: "no" } as never }));
  const notes: Record<string, string> = {};
  const request = { ...admissionRequest({ resource: "configmaps", object: configMap() }), annotate: (key: string, value: string) => void (notes[key] = value) };
  await expect(chainOf({ port, validating: [{ failurePolicy: "Ignore" }, {}, {}], metrics }).validate(request)).rejects.toThrow("received invalid webhook response");
  expect(notes).toEqual({ "failed-open.validating.webhook.admission.k8s.io/round_0_index_0": "w0.example.com" });
  const lines = metrics.render().split("\n");
  for (const line of [
    'apiserver_admission_webhook_fail_open_count{name="w0.example.com",type="validating"} 1',
    'apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="w1.example.com",operation="CREATE",rejection_code="503",type="validating"} 1',
    'apiserver_admission_webhook_rejection_count{error_type="no_error",name="w2.example.com",operation="CREATE",rejection_code="451",type="validating"} 1',
    'apiserver_admission_webhook_request_total{code="451",name="w2.example.com",operation="CREATE",rejected="true",type="validating"} 1',
  ]) expect(lines).toContain(line);
});

test.each<[object | undefined, string, number]>([[undefined, "Failure", 400], [{ status: "Success", code: 200 }, "Failure", 400], [{ status: "custom", code: 500 }, "custom", 500]])("a no of %j is a Status of its own words unless they say yes", (result, status, code) => {
  expect(rejection("w", result as never).status).toMatchObject({ status, code, message: 'admission webhook "w" denied the request without explanation' });
});
