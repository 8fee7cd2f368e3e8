/** Pods of one template, whose spec is known again after the first: they are what the first is, and held to the same. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { inProcessServer } from "../../../test/in-process-server.ts";
import type { Pod } from "../../api/gen/core.v1.ts";
import type { NewObject } from "../../api/meta/object-meta.ts";
import type { Client } from "../../client/client.ts";
import { NAMESPACES, PODS } from "../../client/resources.ts";
import { pods } from "../../registry/core/pod/pod.ts";

const stop = new AbortController(), { signal } = stop;
let client: Client;
let ended: Promise<void>;

beforeAll(async () => {
  const server = await inProcessServer({ signal });
  ended = server.ended;
  client = server.client("test");
  await client.resource(NAMESPACES).create({ apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } } as never, { signal });
});
afterAll(async () => {
  stop.abort();
  await ended;
});

const template = () => ({
  containers: [{ name: "app", image: "web:1", env: [{ name: "A", value: "1" }, { name: "A", value: "2" }], ports: [{ containerPort: 80 }], resources: { requests: { memory: "1Gi", cpu: "1000m" } } }],
  nodeSelector: { zone: "a", disk: "ssd" }, topologySpreadConstraints: [{ maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "ScheduleAnyway", labelSelector: { matchLabels: { app: "web" } }, matchLabelKeys: ["hash"] }],
});
const create = (name: string, spec: object = template(), metadata: object = {}): Promise<Pod> =>
  client.resource(PODS).create({ apiVersion: "v1", kind: "Pod", metadata: { name, namespace: "default", labels: { app: "web", hash: "h1" }, ...metadata }, spec } as unknown as NewObject<Pod>, { signal });
const refusal = (made: Promise<Pod>): Promise<string> => made.then(() => "", (error: unknown) => (error as Error).message);

test("each is what the first is", async () => {
  const [first, ...others] = [await create("a"), await create("b"), await create("c"), await create("d")];
  for (const other of others) {
    expect(JSON.stringify(other.spec)).toBe(JSON.stringify(first!.spec));
    expect(JSON.stringify(other.metadata.managedFields![0]!.fieldsV1)).toBe(JSON.stringify(first!.metadata.managedFields![0]!.fieldsV1));
    expect(other.status).toEqual(first!.status);
    expect([...pods.warnings!(other, undefined)]).toEqual([...pods.warnings!(first!, undefined)]);
  }
  expect([...pods.warnings!(first!, undefined)]).toHaveLength(1);
  expect(first!.spec.containers[0]!.resources!.requests).toEqual({ cpu: "1", memory: "1Gi" });
  const another = await create("e", template(), { labels: { app: "web", hash: "h2" } });
  expect(another.spec.topologySpreadConstraints![0]!.labelSelector!.matchExpressions).toEqual([{ key: "hash", operator: "In", values: ["h2"] }]);
  expect(Object.keys(another.metadata.managedFields![0]!.fieldsV1!)).toEqual(["f:metadata", "f:spec"]);
});

test("with texts of its own each is the same all the same, and what of them is looked into still is", async () => {
  const one = (text: string, env: object[] = [{ name: "A", value: text }]): object => ({ ...template(), containers: [{ ...template().containers[0]!, command: ["run", text], args: [text], env }] });
  const made: Pod[] = [];
  for (const text of ["1", "2", "3", "4", "3"]) made.push(await create(`own-${made.length}`, one(text)));
  const [first] = made, texts = JSON.stringify(first!.spec);
  for (const [i, text] of ["1", "2", "3", "4", "3"].entries()) {
    expect(JSON.stringify(made[i]!.spec)).toBe(texts.replaceAll('"1"]', `"${text}"]`).replace('"value":"1"', `"value":"${text}"`));
    expect(JSON.stringify(made[i]!.metadata.managedFields![0]!.fieldsV1)).toBe(JSON.stringify(first!.metadata.managedFields![0]!.fieldsV1));
    expect([...pods.warnings!(made[i]!, undefined)]).toEqual([]);
  }
  expect(made[4]!.spec).toBe(made[2]!.spec);
  expect(made[3]!.spec.topologySpreadConstraints).toBe(made[2]!.spec.topologySpreadConstraints!);
  const hidden = ["1", "2", "3"].map((value) => [{ name: "A", value }, { name: "A", value: `${value}!` }]), built = [{ name: "A", value: "1" }, { name: "A", value: "$(A)!" }];
  for (const [i, env] of [...hidden, built].entries()) expect([...pods.warnings!(await create(`env-${i}`, one("1", env)), undefined)]).toHaveLength(env === built ? 0 : 1);
  for (const text of ["1", "2", "3"]) expect(await refusal(create("none", { ...one(text), restartPolicy: "Sometimes" }))).toContain('spec.restartPolicy: Unsupported value: "Sometimes"');
  const both = [{ name: "A", value: "1", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }];
  expect(await refusal(create("none", one("1", both)))).toContain("may not be specified when `value` is not empty");
});

test("what annotations and the name say is still looked at, and a fault is found every time", async () => {
  const annotations = { "container.apparmor.security.beta.kubernetes.io/other": "runtime/default" };
  const odd = await refusal(create("odd", template(), { annotations }));
  expect(odd).toContain("container not found");
  const claimed = (): object => ({ ...template(), volumes: [{ name: "v".repeat(63), ephemeral: { volumeClaimTemplate: { spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "1Gi" } } } } } }] });
  for (const name of ["short", "short-2"]) await create(name, claimed());
  expect(await refusal(create("n".repeat(200), claimed()))).toContain("must be no more than 253 characters");
  const broken = { ...template(), restartPolicy: "Sometimes" };
  const [one, two] = [await refusal(create("x", structuredClone(broken))), await refusal(create("x", structuredClone(broken)))];
  expect(one).toContain('spec.restartPolicy: Unsupported value: "Sometimes"');
  expect(two).toBe(one);
});
