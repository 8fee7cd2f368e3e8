import { expect, test } from "vitest";
import { jsonText, parseJson } from "../codec/json.ts";
import { canonicalCustom } from "./canonical-custom.ts";
import { canonical, canonicalOwn } from "./canonical.ts";
import { declaredDefaults } from "./declared-defaults.ts";
import { builtInFacts } from "./facts.ts";

function typeOf(apiVersion: string, kind: string): NonNullable<ReturnType<typeof builtInFacts.typeOf>> {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") as [string, string] : ["", apiVersion];
  return builtInFacts.typeOf({ group, version, kind })!;
}

/** What the API server answers with when it is sent the left side and defaults nothing. */
const CASES: readonly [what: string, apiVersion: string, kind: string, given: string, expected: string][] = [
  ["what must be written is there", "apps/v1", "Deployment", `{}`,
    `{"metadata":{},"spec":{"selector":null,"template":{"metadata":{},"spec":{"containers":null}},"strategy":{}},"status":{}}`],
  ["fields in the struct's order, map keys sorted, optional empties gone", "v1", "ConfigMap",
    `{"data":{"b":"1","a":""},"binaryData":{},"metadata":{"labels":{},"namespace":"","name":"x","finalizers":[],"creationTimestamp":null}}`,
    `{"metadata":{"name":"x"},"data":{"a":"","b":"1"}}`],
  ["zero pointers stay, zero values go", "v1", "Pod",
    `{"spec":{"activeDeadlineSeconds":0,"hostNetwork":false,"containers":[{"name":"c","resources":{"limits":{"cpu":"0.5","memory":1024}},"ports":[{"containerPort":0,"hostPort":0}],"env":[{"name":"E","value":""}]}]}}`,
    `{"metadata":{},"spec":{"containers":[{"name":"c","ports":[{"containerPort":0}],"env":[{"name":"E"}],"resources":{"limits":{"cpu":"500m","memory":"1024"}}}],"activeDeadlineSeconds":0},"status":{}}`],
  ["but what is stored as JSON keeps it", "apiextensions.k8s.io/v1", "CustomResourceDefinition", `{"status":{"storedVersions":[]}}`,
    `{"metadata":{},"spec":{"group":"","names":{"plural":"","kind":""},"scope":"","versions":null},"status":{"conditions":null,"acceptedNames":{"plural":"","kind":""},"storedVersions":[]}}`],
  ["an empty struct behind a pointer is a choice made", "v1", "PersistentVolume", `{"spec":{"hostPath":{},"local":{"path":""}}}`,
    `{"metadata":{},"spec":{"hostPath":{"path":""},"local":{"path":""}},"status":{}}`],
  ["times are UTC to the second or the microsecond", "coordination.k8s.io/v1", "Lease",
    `{"metadata":{"creationTimestamp":"2026-01-02T03:04:05.678+02:00"},"spec":{"renewTime":"2026-01-02T03:04:05.123456Z"}}`,
    `{"metadata":{"creationTimestamp":"2026-01-02T01:04:05Z"},"spec":{"renewTime":"2026-01-02T03:04:05.123456Z"}}`],
  ["times of other than four digits of year are the nearest that have four", "coordination.k8s.io/v1", "Lease",
    `{"metadata":{"creationTimestamp":"9999-12-31T23:59:59-01:00"},"spec":{"acquireTime":"0000-01-01T00:00:00.000001+01:00","renewTime":"9999-12-31T23:59:59.000001-24:00"}}`,
    `{"metadata":{"creationTimestamp":"9999-12-31T23:59:59Z"},"spec":{"acquireTime":"0000-01-01T00:00:00.000001Z","renewTime":"9999-12-31T23:59:59.000001Z"}}`],
  ["the zero time is none, wherever it is told; a part of a second after it is one", "coordination.k8s.io/v1", "Lease",
    `{"metadata":{"creationTimestamp":"0001-01-01T01:00:00+01:00"},"spec":{"renewTime":"0001-01-01T00:00:00.000001Z"}}`,
    `{"metadata":{},"spec":{"renewTime":"0001-01-01T00:00:00.000001Z"}}`],
  ["the zero time of microseconds is none, either", "v1", "Event", `{"firstTimestamp":"0000-12-31T23:00:00-01:00","eventTime":"0001-01-01T01:00:00.000000+01:00"}`,
    `{"metadata":{},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}`],
  ["null is absence, and the zero of a list's item", "v1", "Service", `{"spec":{"ports":[{"port":80,"targetPort":null}],"selector":null,"externalIPs":[null]}}`,
    `{"metadata":{},"spec":{"ports":[{"port":80,"targetPort":0}],"externalIPs":[""]},"status":{"loadBalancer":{}}}`],
  ["integers keep every digit", "v1", "Event", `{"metadata":{"generation":9007199254740993}}`,
    `{"metadata":{"generation":9007199254740993},"involvedObject":{},"source":{},"firstTimestamp":null,"lastTimestamp":null,"eventTime":null,"reportingComponent":"","reportingInstance":""}`],
  ["raw JSON is left alone", "apps/v1", "ControllerRevision", `{"data":{"b":[],"a":null},"revision":1}`, `{"metadata":{},"data":{"b":[],"a":null},"revision":1}`],
];

test.each(CASES)("%s", (_what, apiVersion, kind, given, expected) => {
  const type = typeOf(apiVersion, kind);
  const { object, clean } = canonical(type, parseJson(given).value);
  expect(jsonText(object)).toBe(expected);
  expect(clean).toBe(true);
  expect(jsonText(canonical(type, object).object)).toBe(expected);
});

test.each([
  ["rbac.authorization.k8s.io/v1", "ClusterRole", `{"metadata":{},"rules":[]}`, `{"metadata":{},"rules":null}`],
  ["v1", "LimitRange", `{"metadata":{},"spec":{"limits":[]}}`, `{"metadata":{},"spec":{"limits":null}}`],
])("an empty list in a field that must be written stays until it is stored: %s %s", (apiVersion, kind, sent, stored) => {
  const type = typeOf(apiVersion, kind);
  const { object } = canonical(type, parseJson(sent).value);
  expect([jsonText(object), jsonText(canonicalOwn(type, object))]).toEqual([sent, stored]);
});

test("what does not fit is dropped, and noticed", () => {
  const type = typeOf("v1", "Pod");
  for (const spec of [{ foo: 1 }, { nodeName: 1 }, { containers: {} }, { priority: 1.5 }, { containers: [{ name: "c", resources: { limits: { cpu: "x" } } }] }, { priority: 2 ** 31 }])
    expect(canonical(type, { spec }).clean, JSON.stringify(spec)).toBe(false);
  expect(() => canonicalOwn(type, { spec: { nodeName: 1 } })).toThrow("not a valid Pod");
});

test("a label called __proto__ is a label", () => {
  const { object } = canonical(typeOf("v1", "Pod"), JSON.parse(`{"metadata":{"labels":{"__proto__":"x"}}}`));
  expect(jsonText(object)).toContain(`"labels":{"__proto__":"x"}`);
});

test("declared defaults fill what is absent", () => {
  const type = typeOf("v1", "Pod");
  const pod = canonical(type, { spec: { containers: [{ name: "c", ports: [{ containerPort: 1 }, { containerPort: 2, protocol: "UDP" }], livenessProbe: { grpc: { port: 1 } } }], volumes: [{ name: "v", azureDisk: { diskName: "d", diskURI: "u" } }] } }).object;
  declaredDefaults.apply(type, pod);
  expect(canonicalOwn(type, pod)["spec"]).toEqual({
    containers: [{ name: "c", ports: [{ containerPort: 1, protocol: "TCP" }, { containerPort: 2, protocol: "UDP" }], livenessProbe: { grpc: { port: 1, service: "" } }, resources: {} }],
    volumes: [{ name: "v", azureDisk: { diskName: "d", diskURI: "u", cachingMode: "ReadWrite", fsType: "ext4", kind: "Shared", readOnly: false } }],
  });
});

test("a custom resource has its keys sorted and its metadata in order", () => {
  const { object, clean } = canonicalCustom({ kind: "Foo", apiVersion: "e.com/v1", spec: { b: [], a: null }, metadata: { name: "x", labels: {}, creationTimestamp: null } });
  expect([jsonText(object), clean]).toEqual([`{"apiVersion":"e.com/v1","kind":"Foo","metadata":{"name":"x"},"spec":{"a":null,"b":[]}}`, true]);
  expect(canonicalCustom({ metadata: { name: 1 } }).clean).toBe(false);
});

test("what is taken over from a canonical object stays the very same, and the rest becomes canonical", () => {
  const type = typeOf("v1", "Pod");
  const old = canonicalOwn<Record<string, unknown>>(type, { apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec: { containers: [{ name: "c", image: "x", resources: { limits: { cpu: "0.5" } } }] } });
  const next = { ...structuredClone(old), spec: old["spec"], status: { podIPs: [], phase: "Running" } };
  const result = canonicalOwn<Record<string, unknown>>(type, next, old);
  expect(result["spec"]).toBe(old["spec"]);
  expect(result).toEqual(canonicalOwn(type, structuredClone(next)));
  const bound = { ...old, spec: { nodeName: "n", ...(old["spec"] as object), tolerations: [] } };
  const spec = canonicalOwn<Record<string, unknown>>(type, bound, old)["spec"] as Record<string, unknown>;
  expect(spec["containers"]).toBe((old["spec"] as Record<string, unknown>)["containers"]);
  expect(jsonText(spec)).toBe(jsonText(canonicalOwn<Record<string, unknown>>(type, structuredClone(bound))["spec"]));
});
