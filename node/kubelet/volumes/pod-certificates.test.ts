import { createPrivateKey } from "node:crypto";
import { expect, test } from "vitest";
import { eventually, fakeApi } from "../../../test/fake-api.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import type { PodCertificateRequest, PodCertificateRequestStatus } from "../../../core/api/gen/certificates.v1beta1.ts";
import type { Pod, PodCertificateProjection, ServiceAccount } from "../../../core/api/gen/core.v1.ts";
import { POD_CERTIFICATE_REQUESTS, SERVICE_ACCOUNTS } from "../../../core/client/resources.ts";
import { systemClock, timestamp } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import { decodeCertificateRequest } from "../../../core/pki/certificate-request.ts";
import { toPem } from "../../../core/pki/pem.ts";
import { spkiOf } from "../../../core/pki/signature.ts";
import { podCertificates } from "./pod-certificates.ts";

const MINUTE = 60, HOUR = 60 * MINUTE;
const SERVER_MS = Date.UTC(2026, 0, 1);
const LEAF = toPem("CERTIFICATE", Buffer.from("leaf")), ABOVE = toPem("CERTIFICATE", Buffer.from("above"));

/** `aheadMs`: this machine's clock, of the signer's. Seconds go by as they are told to. */
async function world({ aheadMs = 0 }: { readonly aheadMs?: number } = {}) {
  let seconds = 0, serverAheadMs: number | undefined;
  const api = fakeApi(), signal = new AbortController().signal, informer = staticInformer<PodCertificateRequest>(), metrics = metricsRegistry();
  const [told, changed, warned]: [string[], string[], string[]] = [[], [], []];
  await api.client.resource(SERVICE_ACCOUNTS).create({ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "robot", namespace: "ns" } } as ServiceAccount, { signal });
  const clock = { ...systemClock, nowMs: () => SERVER_MS + aheadMs + seconds * 1000, uptimeMs: () => 7_000_000 + seconds * 1000 };
  const certificates = podCertificates({
    client: api.client, requests: () => informer, nodeName: "n1", node: () => ({ metadata: { name: "n1", uid: "node-uid" } as never }), clock, serverMs: () => (serverAheadMs === undefined ? undefined : SERVER_MS + serverAheadMs + seconds * 1000), random: { ...systemRandom, next: () => 0 }, metrics, signal,
    log: { ...silentLog, warn: (_, facts) => void warned.push(String((facts as { error: Error }).error.message)) },
    events: { event: (about, type, reason, message) => void told.push(`${(about as { name?: string }).name} ${type} ${reason}: ${message}`) }, onChange: (uid) => void changed.push(uid),
  });
  const projection: PodCertificateProjection = { signerName: "e.com/s", keyType: "ECDSAP256", maxExpirationSeconds: 3600, userAnnotations: { "e.com/a": "b" }, keyPath: "k" };
  const pod = stored<Pod>("v1", "Pod", "ns/p", { metadata: { uid: "u" }, spec: { serviceAccountName: "robot", volumes: [{ name: "v", projected: { sources: [{ downwardAPI: {} }, { podCertificate: projection }] } }] } });
  return {
    api, informer, told, changed, warned, pod,
    at: (now: number): void => { seconds = now; },
    /** What the server's clock says, ahead of the signer's until now. */
    serverAhead: (ms: number): void => { serverAheadMs = ms; },
    forget: () => certificates.forget("u"),
    look(): string {
      try {
        return certificates.certificate(pod, "v", 1).chain;
      } catch (error) {
        return (error as Error).message;
      }
    },
    key: (): string => certificates.certificate(pod, "v", 1).key,
    /** All that were made, the last of which is now seen by the informer. */
    async asked(count: number): Promise<PodCertificateRequest> {
      const all = await eventually(() => api.all(POD_CERTIFICATE_REQUESTS), (seen) => seen.length === count);
      await Bun.sleep(5); // what was made is noted
      informer.put(all.at(-1)!);
      return all.at(-1)!;
    },
    answer: (request: PodCertificateRequest, type: string, status: PodCertificateRequestStatus = {}): void => informer.put({ ...request, status: { ...status, conditions: [{ type, status: "True", reason: "Why", message: "so", lastTransitionTime: "" }] } }),
    /** An hour, to be renewed after half of it. */
    life: (chain = LEAF, from = seconds): PodCertificateRequestStatus => ({ certificateChain: chain, notBefore: timestamp(SERVER_MS + from * 1000), beginRefreshAt: timestamp(SERVER_MS + (from + HOUR / 2) * 1000), notAfter: timestamp(SERVER_MS + (from + HOUR) * 1000) }),
    states: () => metrics.render().split("\n").filter((line) => line.startsWith("kubelet_podcertificate_states{")),
  };
}
const PENDING = "credential bundle is not issued yet";
const state = (name: string): string[] => [`kubelet_podcertificate_states{signer_name="e.com/s",state="${name}"} 1`];

test("a signer is asked once for what the pod wants; what it issues is had with the key, clean of what stands between", async () => {
  const { look, asked, answer, life, changed, states, key, api } = await world();
  expect([look(), look(), states()]).toEqual([PENDING, PENDING, state("not_yet_issued")]);
  const request = await asked(1);
  const { stubPKCS10Request, ...spec } = request.spec;
  expect(request.metadata).toMatchObject({ generateName: "req-", namespace: "ns", ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "u" }] });
  expect(spec).toEqual({ signerName: "e.com/s", podName: "p", podUID: "u", serviceAccountName: "robot", serviceAccountUID: api.all(SERVICE_ACCOUNTS)[0]?.metadata.uid, nodeName: "n1", nodeUID: "node-uid", maxExpirationSeconds: 3600, unverifiedUserAnnotations: { "e.com/a": "b" } } as never);
  expect([look(), changed]).toEqual([PENDING, []]);
  answer(request, "Issued", life(`text\n${LEAF}text\n${ABOVE.replace("-----\n", "-----\nA: b\n\n")}`));
  await eventually(() => changed, (seen) => seen.length === 1);
  expect([look(), states()]).toEqual([LEAF + ABOVE, state("fresh")]);
  expect(Buffer.from(spkiOf(createPrivateKey(key())))).toEqual(Buffer.from(decodeCertificateRequest(Buffer.from(stubPKCS10Request, "base64")).spki));
});

test.each([["Denied", "was denied", "denied"], ["Failed", "failed", "failed"]])("%s is for good, and told", async (type, what, name) => {
  const { look, asked, answer, told, changed, states, at, api } = await world();
  look();
  const request = await asked(1);
  answer(request, type);
  await eventually(() => changed, (seen) => seen.length === 1);
  at(HOUR);
  expect([look(), states()]).toEqual([`PodCertificateRequest was permanently ${name}: reason="Why" message="so"`, state(name)]);
  expect(told).toEqual([`p Warning ${type}: PodCertificateRequest ns/${request.metadata.name} ${what}, reason="Why", message="so"`]);
  await Bun.sleep(5);
  expect(api.all(POD_CERTIFICATE_REQUESTS)).toHaveLength(1);
});

test("it is asked for anew in time, with another key; the old one holds until then, and its lateness is told once", async () => {
  const { look, asked, answer, life, told, states, at, key, api } = await world();
  look();
  answer(await asked(1), "Issued", life());
  await eventually(look, (seen) => seen === LEAF);
  const first = key();
  at(HOUR / 2 - 1);
  look();
  await Bun.sleep(5);
  expect(api.all(POD_CERTIFICATE_REQUESTS)).toHaveLength(1);
  at(HOUR / 2);
  look();
  const again = await asked(2);
  at(HOUR / 2 + 10 * MINUTE);
  look();
  await eventually(() => told, (seen) => seen.length === 1);
  expect([look(), states()]).toEqual([LEAF, state("overdue_for_refresh")]);
  at(HOUR);
  look();
  await eventually(() => told, (seen) => seen.length === 2);
  expect([look(), states(), told]).toEqual([LEAF, state("expired"), ["p Warning CertificateOverdueForRefresh: PodCertificate refresh overdue", "p Warning CertificateExpired: PodCertificate expired"]]);
  answer(again, "Issued", life(ABOVE));
  await eventually(look, (seen) => seen === ABOVE);
  expect([key() === first, states()]).toEqual([false, state("fresh")]);
});

test("one that is denied the next time is not had any longer", async () => {
  const { look, asked, answer, life, at } = await world();
  look();
  answer(await asked(1), "Issued", life());
  await eventually(look, (seen) => seen === LEAF);
  at(HOUR / 2);
  look();
  answer(await asked(2), "Denied");
  await eventually(look, (seen) => seen.startsWith("PodCertificateRequest was permanently denied"));
});

test("a request that is gone is made again, after ten minutes", async () => {
  const { look, asked, informer, at, api } = await world();
  look();
  informer.remove(await asked(1));
  at(10 * MINUTE - 1);
  look();
  await Bun.sleep(5);
  expect(api.all(POD_CERTIFICATE_REQUESTS)).toHaveLength(1);
  at(10 * MINUTE);
  look();
  await asked(2);
});

test("what could not be asked for is asked for at the next look", async () => {
  const { look, asked, api, warned } = await world();
  const sent: unknown[] = [];
  api.fail = ({ method, body }) => {
    if (method !== "POST") return undefined;
    sent.push((body as PodCertificateRequest).spec.stubPKCS10Request);
    return new Error("no way to it");
  };
  look();
  await eventually(() => warned, (seen) => Bun.deepEquals(seen, ["no way to it"]));
  api.fail = undefined;
  look();
  expect(sent).toEqual([(await asked(1)).spec.stubPKCS10Request]); // no key is made in vain
});

test.each([["a year ahead", 366 * 24 * HOUR * 1000], ["a year behind", -366 * 24 * HOUR * 1000]])("on a node whose clock is %s it is renewed at the same time", async (_, aheadMs) => {
  const { look, asked, answer, life, at, states, api } = await world({ aheadMs });
  look();
  answer(await asked(1), "Issued", life());
  await eventually(look, (seen) => seen === LEAF);
  at(HOUR / 2 - 1);
  look();
  await Bun.sleep(5);
  expect([api.all(POD_CERTIFICATE_REQUESTS).length, states()]).toEqual([1, state("fresh")]);
  at(HOUR / 2);
  look();
  await asked(2);
  at(HOUR);
  expect(states()).toEqual(state("expired"));
});

test("where the server's clock is set it is asked for anew, though the node's says otherwise", async () => {
  const { look, asked, answer, life, serverAhead, api } = await world({ aheadMs: 366 * 24 * HOUR * 1000 });
  serverAhead(0);
  look();
  answer(await asked(1), "Issued", life());
  await eventually(look, (seen) => seen === LEAF);
  await Bun.sleep(5);
  expect(api.all(POD_CERTIFICATE_REQUESTS)).toHaveLength(1);
  serverAhead(HOUR * 1000);
  look();
  await asked(2);
});

test("of a pod that is gone nothing is kept", async () => {
  const { look, asked, answer, life, forget, states } = await world();
  look();
  answer(await asked(1), "Issued", life());
  await eventually(look, (seen) => seen === LEAF);
  forget();
  expect([states(), look()]).toEqual([[], PENDING]);
});
