/**
 * What is missing, null or empty where upstream's golden files have something, and what should not be there: whatever a client sends, the server tells it
 * what is wrong. An answer above 500 means that a check was surprised.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { gvkOf } from "../../core/api/meta/gvk.ts";
import { builtInResources } from "../../core/api/schema/resources.ts";
import { apiServer } from "../api-server.ts";
import { goldensDirectory } from "./goldens.ts";

type Json = Record<string, unknown>;
type Place = readonly (string | number)[];

const ROUNDS = 15;
const SEED = 7;
const INSTEAD = [undefined, undefined, undefined, null, {}, [], [{}], [null], "", "x", 0, -1, { "": "" }];
/** Answered by parts of the server that this one has not. */
const APART = ["TokenReview"];
/** What upstream, too, says of a Binding's target with 500: its errors never become an Invalid (storage.go, assignPod). */
const ANSWERED_500 = /^\[?target\.(kind: Unsupported value|name: Required value)/;

function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

/** Every place within a value; what says which object it is is left alone. */
function* places(value: unknown, at: Place = []): Iterable<Place> {
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (at.length === 0 && (key === "metadata" || key === "apiVersion" || key === "kind")) continue;
    const place = [...at, Array.isArray(value) ? Number(key) : key];
    yield place;
    yield* places(inner, place);
  }
}

function change(object: Json, below: (n: number) => number): string {
  const all = [...places(object)];
  const place = all[below(all.length)];
  if (!place) return "";
  let owner = object as Json;
  for (const key of place.slice(0, -1)) owner = owner[key] as Json;
  const last = place.at(-1)!;
  const value = INSTEAD[below(INSTEAD.length)];
  if (value !== undefined) owner[last] = structuredClone(value);
  else if (Array.isArray(owner)) owner.splice(last as number, 1);
  else delete owner[last];
  return `${place.join(".")} = ${JSON.stringify(value)}`;
}

test("objects that lack something, or have nothing where something should be, are answered", async () => {
  await using api = await apiServer();
  const below = random(SEED);
  const broken: string[] = [];
  let asked = 0;
  for (const file of readdirSync(goldensDirectory()).filter((name) => name.endsWith(".json"))) {
    const golden = JSON.parse(readFileSync(join(goldensDirectory(), file), "utf8")) as Json & { apiVersion?: string; kind: string };
    if (golden.apiVersion === undefined || APART.includes(golden.kind)) continue;
    const { group, version, kind } = gvkOf(golden as { apiVersion: string; kind: string });
    const row = builtInResources.rows().find((one) => one.group === group && one.version === version && one.kind === kind && one.verbs.includes("create"));
    if (!row) continue;
    const path = `${group === "" ? "/api" : `/apis/${group}`}/${version}${row.namespaced ? "/namespaces/default" : ""}/${row.plural}`;
    for (let round = 0; round < ROUNDS; round++) {
      const { status: _, ...object } = structuredClone(golden) as Json;
      object["metadata"] = { name: "x" };
      const changes = Array.from({ length: 1 + below(6) }, () => change(object, below));
      const { code, body } = await api.ask("POST", path, { body: object, query: { dryRun: "All" } });
      asked++;
      if (code >= 500 && !(kind === "Binding" && ANSWERED_500.test(String(body.message)))) broken.push(`${kind} with ${changes.join("; ")}: ${body.message}`);
    }
  }
  expect(broken).toEqual([]);
  expect(asked).toBeGreaterThan(700);
});

test.each<[path: string, body: object, code: number, told: unknown]>([
  ["/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas", { spec: { priorityLevelConfiguration: { name: "p" }, rules: [{ subjects: [{ kind: "User", user: { name: "u" } }], resourceRules: [{ verbs: ["get"], apiGroups: ["*"], resources: ["*"], namespaces: null }] }] } }, 422,
    'FlowSchema.flowcontrol.apiserver.k8s.io "x" is invalid: spec.rules[0].resourceRules[0].namespaces: Required value: resource rules that are not cluster scoped must supply at least one namespace'],
  ["/api/v1/namespaces/default/secrets", { data: { a: null } }, 201, { a: "" }],
  ["/api/v1/namespaces/default/configmaps", { binaryData: { a: null } }, 201, { a: "" }],
])("%s with %j: %i", async (path, body, code, told) => {
  await using api = await apiServer();
  const answer = await api.ask("POST", path, { body: { metadata: { name: "x" }, ...body }, query: { dryRun: "All" } });
  expect([answer.code, answer.body.message ?? answer.body.data ?? answer.body.binaryData]).toEqual([code, told]);
}, 300_000);
