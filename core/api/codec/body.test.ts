import { expect, test } from "vitest";
import { StatusError } from "../meta/status-error.ts";
import { decodeBody, decodeOptions, decodeUntypedBody, type FieldValidation } from "./body.ts";
import type { Encoding } from "./negotiate.ts";

const POD = { group: "", version: "v1", kind: "Pod" };
const DEPLOYMENT = { group: "apps", version: "v1", kind: "Deployment" };

function answer(body: string, { expected = POD, fieldValidation = "Strict" as FieldValidation, encoding = "json" as Encoding } = {}): string {
  try { return `ok ${decodeBody({ bytes: new TextEncoder().encode(body), encoding, expected, fieldValidation }).warnings.join("; ")}`.trim(); }
  catch (error) {
    if (!(error instanceof StatusError)) throw error;
    return `${error.code} ${error.message}`;
  }
}

const UNFIT = `400 Pod in version "v1" cannot be handled as a Pod:`;

test.each([
  [`{}`, "ok"], [`null`, "ok"],
  [`{"kind":"Pod","KIND":"Nop","ApiVersion":"v1"}`, '400 Nop in version "v1" cannot be handled as a Pod: no kind "Nop" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"'],
  [`{"spec":{"nodeName":1}}`, `${UNFIT} json: cannot unmarshal number into Go struct field PodSpec.spec.nodeName of type string`],
  [`{"spec":{"priority":"x","foo":1}}`, `${UNFIT} json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32`],
  [`{"spec":{"priority":1.5}}`, `${UNFIT} json: cannot unmarshal number 1.5 into Go struct field PodSpec.spec.priority of type int32`],
  ...["8.0", "8e1", "8E+1", "-0.0", "1e400"].map((text): [string, string] => [`{"spec":{"priority":${text}}}`, `${UNFIT} json: cannot unmarshal number ${text} into Go struct field PodSpec.spec.priority of type int32`]),
  [`{"spec":{"overhead":{"cpu":1.0,"memory":1e3}},"metadata":{"annotations":{"a":"[1.0,2e3]"}}}`, "ok"],
  [`{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":8e1}}}]}}`, `${UNFIT} json: cannot unmarshal number 8e1 into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32`],
  [`{"spec":{"priority":9223372036854775808}}`, `${UNFIT} json: cannot unmarshal number 9223372036854775808 into Go struct field PodSpec.spec.priority of type int32`],
  [`{"metadata":{"deletionTimestamp":"é\\""}}`, `${UNFIT} parsing time "\\xc3\\xa9\\"" as "2006-01-02T15:04:05Z07:00": cannot parse "\\xc3\\xa9\\"" as "2006"`],
  [`{"spec":{"containers":{}}}`, `${UNFIT} json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container`],
  [`{"spec":{"volumes":[{"emptyDir":3}]}}`, `${UNFIT} json: cannot unmarshal number into Go struct field Volume.spec.volumes.VolumeSource.emptyDir of type v1.EmptyDirVolumeSource`],
  [`{"spec":{"restartPolicy":true}}`, `${UNFIT} json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy`],
  [`{"metadata":{"labels":{"a":1}}}`, `${UNFIT} json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string`],
  [`{"metadata":{"deletionTimestamp":"x"}}`, `${UNFIT} parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"`],
  [`{"metadata":{"deletionTimestamp":"2026-02-30T00:00:00Z"}}`, `${UNFIT} parsing time "2026-02-30T00:00:00Z": day out of range`],
  [`{"spec":{"overhead":{"cpu":"a"},"nodeName":1}}`, `${UNFIT} quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`],
  [`{"spec":{"overhead":{"cpu":" 1 "}}}`, "ok"],
  [`{"spec":{"overhead":{"cpu":"1\\n"}}}`, `${UNFIT} quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`],
  [`{"metadata":{"deletionTimestamp":"0001-01-01T00:00:00Z"}}`, "ok"],
  [`{"metadata":{"deletionTimestamp":"0001-01-01T00:00:00x"}}`, `${UNFIT} parsing time "0001-01-01T00:00:00x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "Z07:00"`],
  [`{"spec":{"containers":[{"livenessProbe":{"httpGet":{"port":true}}}]}}`, `${UNFIT} json: cannot unmarshal bool into Go struct field HTTPGetAction.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32`],
  [`{"kind":"Service","apiVersion":"v1"}`, `400 Service in version "v1" cannot be handled as a Pod: converting (v1.Service) to (core.Pod): unknown conversion`],
  [`{"kind":"Scale","apiVersion":"extensions/v1beta1"}`, `400 Scale in version "v1beta1" cannot be handled as a Pod: converting (v1beta1.Scale) to (core.Pod): unknown conversion`],
  [`{"kind":"Foo","apiVersion":"v1"}`, `400 Foo in version "v1" cannot be handled as a Pod: no kind "Foo" is registered for version "v1" in scheme "pkg/api/legacyscheme/scheme.go:30"`],
  [`{"a":`, `400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: unexpected end of JSON input ({"a":)`],
  [``, `400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: unexpected end of JSON input (<empty>)`],
  [`\ufeff{}`, `400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character 'ï' looking for beginning of value (efbbbf7b7d)`],
  [`{"kind":1}`, `400 the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1})`],
  [`{"kind":"Pod","apiVersion":"a/b/c"}`, `400 the object provided is unrecognized (must be of type Pod): unexpected GroupVersion string: a/b/c ({"kind":"Pod","apiVersion":"a/ ...)`],
])("%s → %s", (body, expected) => {
  expect(answer(body)).toBe(expected);
});

test.each([
  ["0001-01-01T00:00:00.000000Z", "ok"],
  ["0001-01-01T00:00:00Z", `400 Lease in version "v1" cannot be handled as a Lease: parsing time "0001-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"`],
])("the zero time has its digits, too, where they are asked for: %s", (renewTime, expected) => {
  expect(answer(JSON.stringify({ spec: { renewTime } }), { expected: { group: "coordination.k8s.io", version: "v1", kind: "Lease" } })).toBe(expected);
});

test("a map under names of resources is called as Go calls it", () => {
  expect(answer('{"status":{"allocatedResourceStatuses":[]}}', { expected: { group: "", version: "v1", kind: "PersistentVolumeClaim" } })).toBe('400 PersistentVolumeClaim in version "v1" cannot be handled as a PersistentVolumeClaim: '
    + "json: cannot unmarshal array into Go struct field PersistentVolumeClaimStatus.status.allocatedResourceStatuses of type map[v1.ResourceName]v1.ClaimResourceStatus");
});

test("unknown and duplicate fields are listed in the order met, refused or warned about or ignored", () => {
  const body = `{"foo":1,"spec":{"replicas":1,"replicas":2,"template":{"spec":{"containers":[{"name":"a","imag":"b"}]}}}}`;
  const errors = [`unknown field "foo"`, `duplicate field "spec.replicas"`, `unknown field "spec.template.spec.containers[0].imag"`];
  expect(answer(body, { expected: DEPLOYMENT })).toBe(`400 Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: ${errors.join(", ")}`);
  expect(answer(body, { expected: DEPLOYMENT, fieldValidation: "Warn" })).toBe(`ok ${errors.join("; ")}`);
  expect(answer(body, { expected: DEPLOYMENT, fieldValidation: "Ignore" })).toBe("ok");
});

test("a version that exists but is not the endpoint's is refused", () => {
  expect(answer(`{"kind":"HorizontalPodAutoscaler","apiVersion":"autoscaling/v1"}`, { expected: { group: "autoscaling", version: "v2", kind: "HorizontalPodAutoscaler" } }))
    .toBe("400 the API version in the data (autoscaling/v1) does not match the expected API version (autoscaling/v2)");
});

test.each([
  [`{"apiVersion":"v1","kind":"Pod"}`, `no kind "Pod" is registered for version "v1" in scheme "pkg/apis/meta/internalversion/scheme/register.go:27"`],
  [`{"kind":"Pod"}`, `no kind "Pod" is registered for version "meta.k8s.io/v1" in scheme "pkg/apis/meta/internalversion/scheme/register.go:27"`],
  [`{"apiVersion":"v1","kind":"Status"}`, "converting (v1.Status) to (v1.DeleteOptions): unknown conversion"], [`{"kind":"CreateOptions"}`, "converting (v1.CreateOptions) to (v1.DeleteOptions): unknown conversion"],
  [`{"kind":1}`, "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string"],
  [`{"dryRun":"All"}`, "json: cannot unmarshal string into Go struct field DeleteOptions.dryRun of type []string"],
  ["{", "couldn't get version/kind; json parse error: unexpected end of JSON input"],
])("options of %s are refused without more ado", (body, why) => {
  expect(() => decodeOptions({ bytes: Buffer.from(body), encoding: "json", expected: { group: "", version: "v1", kind: "DeleteOptions" } })).toThrow(new RegExp(`^${why.replace(/[/\\^$*+?.()|[\]{}]/g, "\\$&")}$`));
});

test.each([["?", 0], ["Yg==x", 4], ["Ygg=x", 4], ["Yg=", 3], ["Yg=x", 2], ["Y=", 1], ["Ygg", 0], ["YgggY", 4]])("%s is no base64 from byte %i on", (text, at) => {
  expect(answer(`{"data":{"a":"${text}"}}`, { expected: { group: "", version: "v1", kind: "Secret" } })).toBe(`400 Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte ${at}`);
});

test("definitions and APIServices are registered elsewhere", () => {
  const expected = { group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition" };
  expect(answer(`{"kind":"Foo","apiVersion":"apiextensions.k8s.io/v1"}`, { expected })).toBe(`400 Foo in version "v1" cannot be handled as a CustomResourceDefinition: no kind "Foo" is registered for version "apiextensions.k8s.io/v1" in scheme "pkg/apiserver/apiserver.go:55"`);
  expect(answer(`{"kind":"Pod","apiVersion":"v1"}`, { expected })).toBe(`400 Pod in version "v1" cannot be handled as a CustomResourceDefinition: no kind "Pod" is registered for version "v1" in scheme "pkg/apiserver/apiserver.go:55"`);
  expect(answer(`{"kind":"Status","apiVersion":"v1"}`, { expected })).toBe(`400 Status in version "v1" cannot be handled as a CustomResourceDefinition: converting (v1.Status) to (apiextensions.CustomResourceDefinition): unknown conversion`);
});

test("YAML and protobuf bodies", () => {
  expect(answer("kind: Pod\nmetadata: {name: a, name: b}\nkind: Pod", { encoding: "yaml", fieldValidation: "Warn" })).toBe('ok line 2: key "name" already set in map; line 3: key "kind" already set in map');
  expect(answer("metadata: {name: a, name: b}\nspec: {foo: 1}", { encoding: "yaml" })).toBe(`${UNFIT} strict decoding error: yaml: unmarshal errors:\n  line 1: key "name" already set in map, unknown field "spec.foo"`);
  expect(answer("x", { encoding: "protobuf" })).toBe("400 the object provided is unrecognized (must be of type Pod): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (78)");
  expect(answer("k8s\0\x12\x02\x0a\x05", { encoding: "protobuf" })).toBe(`${UNFIT} unexpected EOF`);
});

test("a custom resource needs a kind, and its duplicates are found", () => {
  const expected = { group: "example.com", version: "v1", kind: "Foo" };
  const decode = (body: string): unknown => decodeUntypedBody({ bytes: new TextEncoder().encode(body), encoding: "json", expected });
  expect(decode(`{"apiVersion":"example.com/v1","kind":"Foo","spec":{"a":[{"b":1,"b":2}]}}`)).toMatchObject({ gvk: expected, object: { spec: { a: [{ b: 2 }] } }, strict: [`duplicate field "spec.a[0].b"`] });
  expect(() => decode(`{"apiVersion":"example.com/v1"}`)).toThrow("Object 'Kind' is missing in");
});

test("an amount that is a number is as it was written", () => {
  const body = `{"spec":{"overhead":{"cpu":1.5,"memory":1e3},"containers":[{"resources":{"limits":{"memory":1E20,"cpu":-0.0}}}],"volumes":[{"emptyDir":{"sizeLimit":1E400}}]}}`;
  expect(decodeBody({ bytes: new TextEncoder().encode(body), encoding: "json", expected: { group: "", version: "v1", kind: "Pod" }, fieldValidation: "Strict" }).object["spec"]).toMatchObject({
    overhead: { cpu: "1500m", memory: "1e3" }, containers: [{ resources: { limits: { memory: "100e18", cpu: "0" } } }], volumes: [{ emptyDir: { sizeLimit: "10e399" } }],
  });
});

test("a number that no double holds is no value at all", () => {
  const expected = { group: "x.io", version: "v1", kind: "Num" };
  const read = (text: string) => decodeUntypedBody({ bytes: new TextEncoder().encode(`{"kind":"Num","apiVersion":"x.io/v1","a":[${text}]}`), encoding: "json", expected });
  expect(() => read("1,1e400")).toThrow(`Num in version "v1" cannot be handled as a Num: json: cannot unmarshal number 1e400 into Go value of type float64`);
  expect(() => read("9".repeat(400))).toThrow("cannot unmarshal number 999");
  expect(read("1e300,1.0").object["a"]).toEqual([1e300, 1]);
  expect(answer(`{"spec":{"versions":[{"schema":{"openAPIV3Schema":{"minimum":1e400,"default":1e400}}}]}}`, { expected: { group: "apiextensions.k8s.io", version: "v1", kind: "CustomResourceDefinition" } }))
    .toContain("json: cannot unmarshal number 1e400 into Go struct field JSONSchemaProps.spec.versions.schema.openAPIV3Schema.minimum of type float64");
  expect(answer(`{"apiVersion":"apps/v1","kind":"ControllerRevision","data":{"a":1e400}}`, { expected: { group: "apps", version: "v1", kind: "ControllerRevision" } })).toContain("cannot unmarshal number 1e400 into Go value of type float64");
});

test("bytes may be a list of numbers, of which nothing is nought", () => {
  const secret = (a: unknown) => decodeBody({ bytes: new TextEncoder().encode(JSON.stringify({ data: { a } })), encoding: "json", expected: { group: "", version: "v1", kind: "Secret" }, fieldValidation: "Strict" }).object["data"];
  expect(secret([104, null, 105])).toEqual({ a: "aABp" });
  expect(() => secret([256])).toThrow("json: cannot unmarshal number");
});

test("times are read as Go reads them: an hour may have one digit, an offset be of a day; what is out of range is told in its order", () => {
  const lease = (renewTime: string, deletionTimestamp: string) => {
    const { object } = decodeBody({ bytes: new TextEncoder().encode(JSON.stringify({ metadata: { deletionTimestamp }, spec: { renewTime } })), encoding: "json", expected: { group: "coordination.k8s.io", version: "v1", kind: "Lease" }, fieldValidation: "Strict" });
    return [(object["metadata"] as { deletionTimestamp?: string }).deletionTimestamp, (object["spec"] as { renewTime?: string }).renewTime];
  };
  expect(lease("2020-02-29T1:02:03,123456+24:60", "2020-02-29T9:02:03.9-00:30")).toEqual(["2020-02-29T09:32:03Z", "2020-02-28T00:02:03.123456Z"]);
  expect(lease("0099-01-01T00:00:00.000001Z", "0099-01-01T00:00:00-01:00")).toEqual(["0099-01-01T01:00:00Z", "0099-01-01T00:00:00.000001Z"]);
  const told = (text: string): string => answer(JSON.stringify({ metadata: { deletionTimestamp: text } })).slice(UNFIT.length + 1);
  expect(["2020-01-00T24:00:00Z", "2020-01-32T00:00:00x", "2020-01-32T00:00:00Z", "2020-01-00T00:00:00Z", "2020-01-01T1:60:00Z", "2020-01-01T00:00:00x25:61", "2020-01-01T00:00:00+25:00"].map(told)).toEqual([
    'parsing time "2020-01-00T24:00:00Z": hour out of range', 'parsing time "2020-01-32T00:00:00x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "Z07:00"', 'parsing time "2020-01-32T00:00:00Z": day out of range',
    'parsing time "2020-01-00T00:00:00Z": day out of range', 'parsing time "2020-01-01T1:60:00Z": minute out of range', 'parsing time "2020-01-01T00:00:00x25:61": time zone offset minute out of range', 'parsing time "2020-01-01T00:00:00+25:00": time zone offset hour out of range']);
});

test("integers of 64 bits without a sign keep their digits in YAML, where an amount is one and where none fits", () => {
  const yaml = (text: string) => decodeBody({ bytes: new TextEncoder().encode(text), encoding: "yaml", expected: POD, fieldValidation: "Strict" }).object["spec"];
  for (const text of ['{"spec":{"overhead":{"cpu":18446744073709551615}}}', "spec:\n  overhead:\n    cpu: 18446744073709551615\n", "spec: {overhead: {cpu: 0xffffffffffffffff}}"]) expect(yaml(text)).toMatchObject({ overhead: { cpu: "18446744073709551615" } });
  expect(() => yaml("spec:\n  priority: 9223372036854775808\n")).toThrow(`${UNFIT.slice("400 ".length)} json: cannot unmarshal number 9223372036854775808 into Go struct field PodSpec.spec.priority of type int32`);
  expect(decodeBody({ bytes: new TextEncoder().encode('{"spec":{"overhead":{"cpu":9223372036854775808}}}'), encoding: "json", expected: POD, fieldValidation: "Strict" }).object["spec"]).toMatchObject({ overhead: { cpu: "9223372036854775808" } });
});
