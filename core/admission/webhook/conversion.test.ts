import { rmSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { testPki } from "../../../test/certificates.ts";
import { staticInformer } from "../../../test/static-informer.ts";
import type { CustomResourceDefinition } from "../../api/gen/apiextensions.v1.ts";
import type { Service } from "../../api/gen/core.v1.ts";
import type { EndpointSlice } from "../../api/gen/discovery.v1.ts";
import type { ApiObject } from "../../api/meta/object-meta.ts";
import { systemClock } from "../../lifecycle/clock.ts";
import { systemRandom } from "../../lifecycle/random.ts";
import { metricsRegistry } from "../../observe/metrics.ts";
import { dialTcp } from "../../net/dial-tcp.ts";
import { altNamesOf } from "../../pki/alt-names.ts";
import { generateKey, keyPem } from "../../pki/authority.ts";
import type { Pki } from "../../pki/pki.ts";
import { spkiOf } from "../../pki/signature.ts";
import { conversionBy } from "./conversion.ts";
import { type ConversionMeter, conversionMeter } from "./conversion-metrics.ts";

let pki: Pki;
let tls: { key: string; cert: string };
beforeAll(async () => {
  pki = await testPki();
  const key = await generateKey();
  tls = { key: keyPem(key), cert: pki.authority("server-ca").issue({ subject: { commonName: "hook", organizations: [] }, spki: spkiOf(key), usages: ["digital signature", "server auth"], altNames: altNamesOf(["127.0.0.1"]), notBeforeMs: 0, notAfterMs: systemClock.nowMs() + 3_600_000 }) };
});
afterAll(() => rmSync(pki.dir, { recursive: true, force: true }));
const closing: (() => void)[] = [];
afterEach(() => { for (const close of closing.splice(0)) close(); });

interface Asked { readonly apiVersion: string; readonly request: { readonly uid: string; readonly desiredAPIVersion: string; readonly objects: readonly ApiObject[] } }

const widget = (name: string, more: object = {}): ApiObject => ({ apiVersion: "x.io/v1", kind: "Widget", metadata: { name, namespace: "a", uid: `u-${name}`, labels: { l: "1" }, managedFields: [] }, ...more }) as unknown as ApiObject;
const converted = ({ request: { objects, desiredAPIVersion } }: Asked): object[] => objects.map((object) => ({ ...object, apiVersion: desiredAPIVersion }));

async function convert(answer: (asked: Asked) => object, objects: readonly ApiObject[] = [widget("w")], conversion: object = {}, meter?: ConversionMeter): Promise<unknown> {
  const server = createServer(tls, (incoming, outgoing) => {
    let body = "";
    incoming.on("data", (chunk) => { body += chunk; });
    incoming.on("end", () => {
      const asked = JSON.parse(body) as Asked;
      const { review = {}, ...response } = answer(asked) as { readonly review?: object };
      if ("whole" in response) outgoing.end(JSON.stringify(response.whole));
      else outgoing.end(JSON.stringify({ apiVersion: asked.apiVersion, kind: "ConversionReview", ...review, response: { uid: asked.request.uid, result: { status: "Success" }, ...response } }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  closing.push(() => { server.closeAllConnections(); server.close(); });
  const clientConfig = { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}/convert`, caBundle: Buffer.from(pki.authority("server-ca").bundlePem).toString("base64") };
  const crd = { metadata: { name: "widgets.x.io" }, spec: { conversion: { strategy: "Webhook", webhook: { clientConfig, conversionReviewVersions: ["v2", "v1"] }, ...conversion } } } as unknown as CustomResourceDefinition;
  const by = conversionBy(crd, { dialer: { connect: ({ host, port, signal }) => dialTcp({ host, port, timeoutMs: 60_000 }, { clock: systemClock, signal }) }, services: staticInformer<Service>(), endpointSlices: staticInformer<EndpointSlice>(), clock: systemClock, random: systemRandom, meter });
  return by?.(objects, "x.io/v2", new AbortController().signal).catch(({ code, message }: { code: number; message: string }) => `${code} ${message}`);
}

test("of what comes back, metadata other than labels and annotations is as it was", async () => {
  const answer = (asked: Asked): object => ({ convertedObjects: converted(asked).map((object) => ({ ...object, metadata: { ...(object as ApiObject).metadata, labels: { l: "2" }, annotations: { a: "b" }, finalizers: ["x/y"] }, spec: { size: 2 } })) });
  expect(await convert(answer)).toEqual([{ apiVersion: "x.io/v2", kind: "Widget", metadata: { name: "w", namespace: "a", uid: "u-w", labels: { l: "2" }, annotations: { a: "b" }, managedFields: [] }, spec: { size: 2 } }]);
  expect(await convert((asked) => ({ convertedObjects: converted(asked) }), [widget("w")], { strategy: "None" })).toBeUndefined();
});

test("what is asked is a review with an empty answer, of objects as they are stored", async () => {
  let asked: object | undefined;
  const w = widget("w");
  await convert((review) => { asked = review; return { convertedObjects: converted(review) }; }, [{ ...w, metadata: { ...w.metadata, resourceVersion: "7" } }]);
  expect(asked).toEqual({
    kind: "ConversionReview", apiVersion: "apiextensions.k8s.io/v1",
    request: { uid: expect.any(String), desiredAPIVersion: "x.io/v2", objects: [w] }, response: { uid: "", convertedObjects: null, result: { metadata: {} } },
  });
});

test("what is left of an object for one who applies may have no metadata: it comes back with none, or the webhook's labels", async () => {
  const { metadata: _, ...rest } = widget("w");
  const asked = (metadata: object | undefined) => convert((review) => ({ convertedObjects: converted(review).map((object) => ({ ...object, ...(metadata && { metadata }) })) }), [rest as unknown as ApiObject]);
  expect(await asked({ creationTimestamp: null })).toEqual([{ apiVersion: "x.io/v2", kind: "Widget", metadata: {} }]);
  expect(await asked({ labels: { a: "b" } })).toEqual([{ apiVersion: "x.io/v2", kind: "Widget", metadata: { labels: { a: "b" } } }]);
  expect(await asked(undefined)).toBe(`${ONE} returned invalid metadata: missing metadata in converted object`);
});

const ONE = "500 conversion webhook for x.io/v1, Kind=Widget";
test.each<[string, (asked: Asked) => object, readonly ApiObject[], string]>([
  ["says no", () => ({ result: { status: "Failure", message: "not today" } }), [widget("w")], `${ONE} failed: not today`],
  ["says nothing", () => ({ result: {} }), [widget("w")], `${ONE} failed: response.result.status was '', not 'Success'`],
  ["answers another question", () => ({ uid: "other" }), [widget("w")], "expected response.uid="],
  ["answers with something else", (asked) => ({ review: { kind: "Other" }, convertedObjects: converted(asked) }), [widget("w")], `${ONE} failed: no kind "Other" is registered for version "apiextensions.k8s.io/v1" in scheme`],
  ["answers in another version", (asked) => ({ review: { apiVersion: "apiextensions.k8s.io/v1beta1" }, convertedObjects: converted(asked) }), [widget("w")], `${ONE} failed: converting (v1beta1.ConversionReview) to (v1.ConversionReview): unknown conversion`],
  ["does not say what it answers with", (asked) => ({ review: { apiVersion: "", kind: "" }, convertedObjects: converted(asked) }), [widget("w")], `${ONE} failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got `],
  ["answers nothing", () => ({ whole: null }), [widget("w")], `${ONE} failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got /, Kind=`],
  ["answers with a text", () => ({ whole: { apiVersion: "apiextensions.k8s.io/v1", kind: "ConversionReview", response: "x" } }), [widget("w")], `${ONE} failed: json: cannot unmarshal string into Go struct field ConversionReview.response of type v1.ConversionResponse`],
  ["has a number for a uid", () => ({ uid: 5 }), [widget("w")], `${ONE} failed: json: cannot unmarshal number into Go struct field ConversionResponse.response.uid of type types.UID`],
  ["has no result", () => ({ result: null }), [widget("w")], `${ONE} failed: response.result.status was '', not 'Success'`],
  ["has a text for a result", () => ({ result: "Success" }), [widget("w")], `${ONE} failed: json: cannot unmarshal string into Go struct field ConversionResponse.response.result of type v1.Status`],
  ["has no objects", () => ({ convertedObjects: null }), [widget("w")], `${ONE} returned 0 objects, expected 1`],
  ["has a map of objects", () => ({ convertedObjects: {} }), [widget("w")], `${ONE} failed: json: cannot unmarshal object into Go struct field ConversionResponse.response.convertedObjects of type []runtime.RawExtension`],
  ["makes nothing of an object", () => ({ convertedObjects: [null] }), [widget("w")], "500 unexpected end of JSON input"],
  ["makes a list of an object", () => ({ convertedObjects: [[]] }), [widget("w")], "500 json: cannot unmarshal array into Go value of type map[string]interface {}"],
  ["makes an object of no kind", () => ({ convertedObjects: [{ apiVersion: "x.io/v2", kind: "" }] }), [widget("w")], `500 Object 'Kind' is missing in '{"apiVersion":"x.io/v2","kind":""}'`],
  ["makes an object of no kind among others", (asked) => ({ convertedObjects: converted(asked).map((object) => ((object as ApiObject).metadata.name === "v" ? {} : object)) }), [widget("w"), widget("v")], "500 Object 'Kind' is missing in '{}'"],
  ["has a text for metadata", (asked) => ({ convertedObjects: converted(asked).map((object) => ({ ...object, metadata: "x" })) }), [widget("w")], `${ONE} returned invalid object: must have the same name: w != `],
  ["annotates too much", (asked) => ({ convertedObjects: converted(asked).map((object) => ({ ...object, metadata: { ...(object as ApiObject).metadata, annotations: { a: "x".repeat(262_144) } } })) }), [widget("w")], `${ONE} returned invalid metadata: metadata.annotation: Too long: may not be more than 262144 bytes`],
  ["leaves one out", (asked) => ({ convertedObjects: converted(asked).slice(1) }), [widget("w"), widget("v")], `${ONE} returned 0 objects, expected 1`],
  ["converts to another version", ({ request }) => ({ convertedObjects: request.objects }), [widget("w")], `${ONE} returned invalid object at index 0: invalid groupVersion (expected x.io/v2, received x.io/v1)`],
  ["changes the kind", (asked) => ({ convertedObjects: converted(asked).map((object) => ({ ...object, kind: "Gadget" })) }), [widget("w"), widget("v")], `${ONE} returned invalid object at index 0: invalid kind (expected Widget, received Gadget)`],
  ["changes the name", (asked) => ({ convertedObjects: converted(asked).map((object) => ({ ...object, metadata: { ...(object as ApiObject).metadata, name: "x" } })) }), [widget("w")], `${ONE} returned invalid object: must have the same name: w != x`],
  ["drops metadata", (asked) => ({ convertedObjects: converted(asked).map((object) => ({ ...object, metadata: undefined })) }), [widget("w")], `${ONE} returned invalid object: must have the same name: w != `],
  ["sets labels that are none", (asked) => ({ convertedObjects: converted(asked).map((object) => ({ ...object, metadata: { ...(object as ApiObject).metadata, labels: { l: 1 } } })) }), [widget("w")], `${ONE} returned invalid metadata: metadata.labels[l] must be a string, but is int64 in converted object`],
])("a webhook that %s", async (_, answer, objects, message) => expect(await convert(answer, objects)).toContain(message));

test("a webhook that can convert one object and no more is asked for each", async () => {
  const answer = (asked: Asked): object => ({ convertedObjects: converted(asked).slice(0, 1) });
  expect(await convert(answer, [widget("w"), widget("v")])).toMatchObject([{ apiVersion: "x.io/v2", metadata: { name: "w" } }, { apiVersion: "x.io/v2", metadata: { name: "v" } }]);
});

test("of many objects, or large ones, some at a time are asked for", async () => {
  const asked: number[] = [];
  const answer = (review: Asked): object => {
    asked.push(review.request.objects.length);
    return { convertedObjects: converted(review) };
  };
  const all = Array.from({ length: 450 }, (_, i) => widget(`w${i}`));
  expect(((await convert(answer, all)) as ApiObject[]).map(({ metadata: { name } }) => name)).toEqual(all.map(({ metadata: { name } }) => name));
  const large = widget("large", { spec: { text: "x".repeat(600_000) } });
  expect(await convert(answer, [large, large, widget("small"), large])).toHaveLength(4);
  expect(asked).toEqual([200, 200, 50, 1, 2, 1]);
});

test("what becomes of conversions is counted", async () => {
  const metrics = metricsRegistry(), meter = conversionMeter(metrics, systemClock);
  const answers: ((asked: Asked) => object)[] = [
    (asked) => ({ convertedObjects: converted(asked) }), () => ({ uid: "other" }), () => ({ convertedObjects: null }), ({ request }) => ({ convertedObjects: request.objects }), () => ({ whole: "x" }),
  ];
  for (const answer of answers) await convert(answer, undefined, {}, meter);
  const counted = (name: string): string[] => metrics.render().split("\n").filter((line) => line.startsWith(`${name}{`)).map((line) => line.slice(name.length)).sort();
  expect(counted("apiserver_conversion_webhook_request_total")).toEqual([
    '{failure_type="",result="success"} 1',
    ...["call", "invalid_converted_object", "malformed_response", "partial_response"].map((type) => `{failure_type="conversion_webhook_${type}_failure",result="failure"} 1`),
  ]);
  expect(counted("apiserver_crd_conversion_webhook_duration_seconds_count")).toEqual([["false", 4], ["true", 1]].map(([succeeded, times]) => `{crd_name="widgets.x.io",from_version="v1",succeeded="${succeeded}",to_version="v2"} ${times}`));
});
