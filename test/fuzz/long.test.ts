/** Bodies as long as they may be, made to be slow to read. Nobody else is served meanwhile: none of them may take longer for each of its characters than for a few. */
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { negotiateOutput } from "../../core/api/codec/negotiate.ts";
import { writeYaml } from "../../core/api/codec/yaml-writer.ts";
import { goInteger } from "../../core/api/meta/go-integer.ts";
import { parseQuery, parseUrl } from "../../core/api/meta/go-url.ts";
import { parseQuantity, Quantity } from "../../core/api/meta/quantity.ts";
import { STRING } from "../../core/cel/check/type.ts";
import { compile, evaluate } from "../../core/cel/compile.ts";
import { kubernetesEnvironment } from "../../core/cel/kubernetes.ts";
import { EvalError } from "../../core/cel/value/value.ts";
import { parseSchedule } from "../../core/controllers/cronjob/schedule.ts";
import { UTC } from "../../core/controllers/cronjob/zone.ts";
import { durationMs } from "../../core/ingress/http-route-rules.ts";
import { rewriteHtml } from "../../core/server/node-proxy/rewrite.ts";
import { readHead } from "../../core/net/response-head.ts";
import { expand } from "../../node/kubelet/containers/expansion.ts";
import { apiServer, type ApiServer } from "../api-server.ts";

let api: ApiServer;
beforeAll(async () => { api = await apiServer(); });
afterAll(() => api[Symbol.asyncDispose]());

const many = <T>(count: number, of: (i: number) => T): T[] => Array.from({ length: count }, (_, i) => of(i));
const pod = (spec: object, container: object = {}): object => ({ metadata: { name: "p" }, spec: { containers: [{ name: "c", image: "x", ...container }], ...spec } });
const volume = (path: string, count: number): object => ({ volumes: [{ name: "v", configMap: { name: "c", items: many(count, () => ({ key: "a", path })) } }] });

test.each<[what: string, path: string, body: object, code: number]>([
  ["names of pull Secrets", "pods", pod({ imagePullSecrets: many(60_000, (i) => ({ name: `s${i}` })) }), 201],
  ["addresses of hosts", "pods", pod({ hostAliases: many(40_000, (i) => ({ ip: `10.0.${i >> 8 & 255}.${i & 255}`, hostnames: ["a"] })) }), 201],
  ["one port", "pods", pod({}, { ports: many(50_000, () => ({ containerPort: 80 })) }), 201],
  ["one file", "pods", pod(volume("a", 60_000)), 201],
  ["a file's name", "pods", pod(volume(`a${"/".repeat(2_000_000)}b`, 1)), 201],
  ["a field of the pod", "pods", pod({}, { env: [{ name: "E", valueFrom: { fieldRef: { apiVersion: "v1", fieldPath: "['".repeat(1_000_000) } } }] }), 422],
  ["an iSCSI name", "pods", pod({ volumes: [{ name: "v", iscsi: { targetPortal: "a", lun: 0, iqn: "iqn.2000-01.a".repeat(200_000) } }] }), 422],
  ["quantities", "pods", pod({}, { resources: { limits: Object.fromEntries(many(1_000, (i) => [`a.b/c${i}`, `${"0".repeat(1_000)}x`])) } }), 400],
  ["a host path", "persistentvolumes", { metadata: { name: "v" }, spec: { capacity: { storage: "1" }, accessModes: ["ReadWriteOnce"], persistentVolumeReclaimPolicy: "Recycle", hostPath: { path: `${"/.".repeat(500_000)}x` } } }, 201],
  ["spaces in a quantity", "pods", pod({}, { resources: { limits: { cpu: ` 1${" ".repeat(150_000)}1` } } }), 400],
  ["owners", "configmaps", { metadata: { name: "c", ownerReferences: many(25_000, (i) => ({ apiVersion: "v1", kind: "Pod", name: `a${i}`, uid: "u" })) } }, 201],
])("%s", async (_, resource, body, code) => {
  const path = resource === "persistentvolumes" ? `/api/v1/${resource}` : `/api/v1/namespaces/a/${resource}`;
  const told = await api.ask("POST", path, { body, query: { dryRun: "All" } });
  expect([told.code, String(told.body.message ?? "").slice(0, 300)]).toEqual([code, expect.anything()]);
});

test("managers of fields", async () => {
  const managedFields = many(10_000, (i) => ({ manager: `m${i}`, operation: "Update", apiVersion: "v1", fieldsType: "FieldsV1", fieldsV1: { "f:data": { [`f:a${i}`]: {} } } }));
  const { body } = await api.ask("POST", "/api/v1/namespaces/a/configmaps", { body: { metadata: { name: "m", managedFields } } });
  expect(body.metadata.managedFields.map(({ manager }: { manager: string }) => manager).filter((name: string) => name === "ancient-changes" || name === "m9999")).toEqual(["ancient-changes", "m9999"]);
  expect(Object.keys(body.metadata.managedFields[0].fieldsV1["f:data"])).toHaveLength(9_991);
});

test("a path of slashes", async () => expect((await api.ask("GET", `/api/v1/namespaces/a/${"/".repeat(60_000)}x`)).code).toBe(404));

const LONG = 200_000, SPACES = " ".repeat(LONG);
/** Of an expression nearly as long as one may be. */
const problemOf = (digits: string): unknown => compile(`double("${digits}${"1".repeat(95_000)}x")`, kubernetesEnvironment()).problem;

const withText = kubernetesEnvironment().with({ variables: { self: STRING } });
/** What is said of an expression about a row of digits. */
function run(text: string): string | undefined {
  const compiled = compile(text, withText);
  if (compiled.problem !== undefined) return compiled.problem;
  const { value } = evaluate(compiled, { self: "1".repeat(1_000_000) });
  return value instanceof EvalError ? value.message : undefined;
}

/** What was gone through from each of its characters to its end took minutes. */
test.each<[what: string, work: () => unknown, outcome: unknown]>([
  ["what a client accepts", () => negotiateOutput({ accept: `application/json, a/b;x=${SPACES}y` }), { encoding: "json", pretty: false, contentType: "application/json" }],
  ["a header of an answer", () => readHead(`HTTP/1.1 200 OK\r\nA: ${SPACES}x\r\n\r\n`).headers, [["A", "x"]]],
  ["line ends of a text in YAML", () => writeYaml({ a: `${"\n".repeat(LONG)}x\n` }).length, LONG + 10],
  ["spaces of a text in YAML", () => writeYaml({ a: `\u0085${`${SPACES}x`.repeat(4)}` }).length, LONG * 3 + 11],
  ["zeros", () => goInteger(`${"0".repeat(LONG)}x`), undefined],
  ["a schedule", () => { expect(() => parseSchedule(`TZ=UTC${SPACES}${SPACES}x\nx`, UTC)).toThrow("expected exactly 5 fields, found 3: [TZ=UTC x x]"); }, undefined],
  ["decimals in an expression", () => problemOf(""), "type conversion error from 'string' to 'double'"],
  ["hexadecimals in an expression", () => problemOf("0x"), "type conversion error from 'string' to 'double'"],
  ["whole numbers in an expression", () => ["int", "uint", "semver"].map((name) => run(`${name}(self)`)), ["type conversion error from 'string' to 'int'", "type conversion error from 'string' to 'uint'", "No Major.Minor.Patch elements found"]],
  ["a version in an expression", () => run("semver(self + '.0.0')")?.slice(0, 40), 'strconv.ParseUint: parsing "111111111111'],
  ["decimals of a format", () => run("('%.' + self + 'f').format([1.0])")?.slice(0, 60), "could not parse formatting clause: error while parsing preci"],
  ["a query in an expression", () => parseQuery("a=b&".repeat(LONG)).get("a")?.length, LONG],
  ["a route's time", () => durationMs("1".repeat(LONG)), 0],
])("%s", (_, work, outcome) => expect(work()).toEqual(outcome));

test.each([["a", "%41"], ["%41", ""], ["é", ""]])("a path of a million in a URL: %s", (part, end) => expect(parseUrl(`http://a/${part.repeat(1_000_000)}${end}`).host).toBe("a"));

test("a quantity with zeros in front", () => expect([parseQuantity(`${"0".repeat(1_000)}1.50`), parseQuantity("0.0Ki")].map(String)).toEqual(["1500m", "0"]));

test("a pod's arguments", () => {
  expect(expand("$(A".repeat(500_000), () => "1")).toBe("$(A".repeat(500_000));
  expect(expand(`${"$(A".repeat(3)} $$)`, () => undefined)).toBe(`${"$(A".repeat(3)} $$)`);
  expect(expand("$(A $$ $(B", () => "1")).toBe("$(A $ $(B");
});

test.each(["<!--".repeat(1_000_000), "<a ".repeat(1_000_000), `<a href="${"'<a ".repeat(1_000_000)}`, "<script>".repeat(500_000), `<a ${"x".repeat(2_000_000)}>`, `<a ${"x=' '".repeat(500_000)}`])("a pod's page", async (page) => {
  const rewritten = await rewriteHtml(Readable.from([Buffer.from(page)]), "", { prefix: "/p", backendHost: "b", requestHost: "r" });
  expect((rewritten as Uint8Array).length).toBe(page.length);
});

test("quantities are what they were", () => {
  for (const text of ["0", "1", "+1", "-1.5Gi", ".5", "5.", "1e3", "1E-3", "100m", "1_0", "1ee3", "e3", "+", "", "1-", "1.2.3", "Ki", "007", "1e+3", "12-3"]) {
    const old = /^([+-]?)(0*)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[-+]?\d*)$/.test(text);
    let now = true;
    try { expect(parseQuantity(text)).toBeInstanceOf(Quantity); } catch (error) { now = !(error as Error).message.startsWith("quantities must match"); }
    expect([text, now]).toEqual([text, old && text !== ""]);
  }
});
