import { expect, test } from "vitest";
import { eventually } from "../../../test/fake-api.ts";
import { staticInformer, stored } from "../../../test/static-informer.ts";
import { withControllers } from "../../../test/run-controllers.ts";
import type { PodCertificateRequest } from "../../api/gen/certificates.v1beta1.ts";
import { objectKey } from "../../api/meta/object-meta.ts";
import type { Client } from "../../client/client.ts";
import { POD_CERTIFICATE_REQUESTS } from "../../client/resources.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { silentLog } from "../../observe/log.ts";
import { podCertificateRequestCleaner } from "./pod-certificate-requests.ts";

const MADE_MS = Date.UTC(2026, 6, 1), MINUTE_MS = 60_000;

test("a request goes a quarter of an hour after it was made; a clock that is set meanwhile makes none older", async () => {
  let [nowMs, uptimeMs] = [MADE_MS, 0];
  const request = stored<PodCertificateRequest>("certificates.k8s.io/v1beta1", "PodCertificateRequest", "ns/req-1", { metadata: { creationTimestamp: "2026-07-01T00:00:00Z" } });
  const requests = staticInformer(request), deleted: unknown[] = [];
  const client = { resource: () => ({ delete: async ({ metadata }: PodCertificateRequest, options: object) => void deleted.push([metadata.name, options]) }) } as unknown as Client;
  const controller = podCertificateRequestCleaner({ client, informers: { of: () => requests as never, stop: () => undefined }, clock: { ...systemClock, nowMs: () => nowMs, uptimeMs: () => uptimeMs } });
  const look = () => controller.reconcile(objectKey("ns", "req-1"), { signal: new AbortController().signal, log: silentLog });
  expect(await look()).toEqual({ againInMs: 15 * MINUTE_MS });
  [nowMs, uptimeMs] = [MADE_MS + 1000 * MINUTE_MS, 14 * MINUTE_MS];
  expect([await look(), deleted]).toEqual([{ againInMs: MINUTE_MS }, []]);
  uptimeMs = 15 * MINUTE_MS;
  expect([await look(), deleted]).toEqual([undefined, [["req-1", { preconditions: { uid: "uid-ns/req-1" } }]]]);
  requests.remove(request);
  expect(await look()).toBeUndefined();
});

test("it does so in a cluster", () => withControllers((deps) => [podCertificateRequestCleaner({ ...deps, clock: { ...deps.clock, nowMs: () => systemClock.nowMs() + 16 * MINUTE_MS } })], async (api, call) => {
  await api.client.resource(POD_CERTIFICATE_REQUESTS).create({ apiVersion: "certificates.k8s.io/v1beta1", kind: "PodCertificateRequest", metadata: { name: "req-1", namespace: "ns" }, spec: {} } as never, call);
  await eventually(() => api.all(POD_CERTIFICATE_REQUESTS).length, (count) => count === 0);
}));
