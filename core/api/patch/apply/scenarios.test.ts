/**
 * Who owns what after a sequence of writes: scenarios.txt, commands in, objects and owners out.
 *
 *   ## title
 *   > apply <manager> [force] [status] | update <manager> [status]      then YAML, merged over the live object for an update
 *   > widen                                                             spec.options becomes atomic
 *   > crowd <count>                                                     updates by as many managers
 *   …                                                                   what came of it
 *
 * Rewrite the outcomes with SCENARIOS=write and review the diff.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import type { ManagedFieldsEntry } from "../../meta/object-meta.ts";
import { StatusError } from "../../meta/status-error.ts";
import { canonical, canonicalOwn } from "../../schema/canonical.ts";
import { builtInFacts, type StructType } from "../../schema/facts.ts";
import { builtInSchemas } from "../facts-schema.ts";
import type { JsonMap } from "../json-value.ts";
import { applyMergePatch } from "../merge-patch.ts";
import { customResourceSchema } from "../openapi-schema.ts";
import type { ObjectSchema } from "../schema.ts";
import { serverSideApply } from "./apply.ts";
import { excludeFields } from "./field-filter.ts";
import { formatPath, pathsOf } from "./field-set.ts";
import { managedFieldsOf, updateManagedFields, withoutManagedFields } from "./update.ts";

const FILE = join(import.meta.dirname, "scenarios.txt");
const PARTS = { type: "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], items: { type: "object", properties: { name: { type: "string" }, count: { type: "integer" }, note: { type: "string" } } } };
const WIDGET = {
  type: "object", properties: {
    spec: {
      type: "object", properties: {
        size: { type: "integer" }, color: { type: "string" }, anything: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
        parts: PARTS, loose: { "x-kubernetes-preserve-unknown-fields": true, properties: { parts: PARTS, size: { type: "integer" } } },
        tags: { type: "array", "x-kubernetes-list-type": "set", items: { type: "string" } }, args: { type: "array", items: { type: "string" } },
        ref: { type: "object", "x-kubernetes-map-type": "atomic", properties: { name: { type: "string" }, kind: { type: "string" } } },
        options: { type: "object", additionalProperties: { type: "string" } },
      },
    },
    status: { type: "object", properties: { ready: { type: "boolean" } } },
  },
};
const WIDER = structuredClone(WIDGET);
(WIDER.properties.spec.properties.options as Record<string, unknown>)["x-kubernetes-map-type"] = "atomic";

function schemaFor(apiVersion: string, kind: string, wider: boolean): ObjectSchema {
  if (kind === "Widget") return customResourceSchema(wider ? WIDER : WIDGET, { apiVersion, kind });
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") as [string, string] : ["", apiVersion];
  return builtInSchemas.schemaOf({ group, version, kind })!;
}

function typeOf(object: JsonMap): StructType | undefined {
  const { apiVersion, kind } = object as { apiVersion: string; kind: string };
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") as [string, string] : ["", apiVersion];
  return kind === "Widget" ? undefined : builtInFacts.typeOf({ group, version, kind });
}

function canonicalOf(object: JsonMap): JsonMap {
  const type = typeOf(object);
  return type ? canonical(type, object).object : object;
}

function storedForm(object: JsonMap): JsonMap {
  const type = typeOf(object);
  return type ? canonicalOwn(type, canonicalOf(object)) : object;
}

function deepFreeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) { Object.freeze(value); Object.values(value).forEach(deepFreeze); }
  return value;
}

class World {
  #live: JsonMap | undefined;
  #wider = false;
  #seconds = 0;

  run(command: string, text: string): string {
    const [verb, manager = "", ...flags] = command.split(" ");
    if (verb === "widen") { this.#wider = true; return "ok"; }
    if (verb === "crowd") return this.#crowd(Number(manager));
    const given = deepFreeze(parse(text)) as JsonMap;
    try {
      return verb === "apply" ? this.#apply(given, manager, flags) : this.#update(given, manager, flags);
    } catch (error) {
      if (error instanceof StatusError) return `${error.code} ${error.message}`;
      return `500 ${(error as Error).message}`;
    }
  }

  #common(manager: string, flags: readonly string[], object: JsonMap) {
    const { apiVersion, kind } = object as { apiVersion: string; kind: string };
    const status = flags.includes("status");
    return {
      live: this.#live, manager, apiVersion, kind, schema: schemaFor(apiVersion, kind, this.#wider), nowMs: ++this.#seconds * 1000,
      subresource: status ? "status" : undefined, filter: status ? excludeFields("spec") : excludeFields("status"),
    };
  }

  #apply(given: JsonMap, manager: string, flags: readonly string[]): string {
    const { object, changed } = serverSideApply<JsonMap>({ ...this.#common(manager, flags, given), applied: given, force: flags.includes("force") });
    return `${changed ? "" : "unchanged\n"}${this.#store(object)}`;
  }

  #update(given: JsonMap, manager: string, flags: readonly string[]): string {
    const updated = canonicalOf(this.#live ? applyMergePatch(this.#live, given) : given);
    return this.#store(updateManagedFields<JsonMap>({ ...this.#common(manager, flags, updated), updated }));
  }

  /** Many updaters, each with a field of its own. */
  #crowd(count: number): string {
    let outcome = "";
    for (let i = 1; i <= count; i++) outcome = this.#update({ apiVersion: "v1", kind: "ConfigMap", data: { [`k${i}`]: "v" } }, `u${i}`, []);
    return outcome;
  }

  #store(object: JsonMap): string {
    const stored = storedForm(object);
    this.#live = deepFreeze({ ...stored, metadata: { ...(stored["metadata"] as JsonMap), uid: "u" } });
    const { spec, data, metadata } = withoutManagedFields(stored) as Record<string, JsonMap>;
    const { labels, annotations } = metadata as JsonMap;
    const shown = JSON.stringify({ labels, annotations, ...(spec ?? data) }, (_, value: unknown) => value ?? undefined);
    return [shown.replace(/"(\w+)":/g, "$1: ").replaceAll(",", ", "),
      ...(managedFieldsOf(this.#live) ?? []).map(describeOwner)].join("\n");
  }
}

function describeOwner({ manager, operation, subresource, time, fieldsV1 }: ManagedFieldsEntry): string {
  const seconds = time === undefined ? "" : ` @${Date.parse(time) / 1000}`;
  return `${manager} ${operation}${subresource ? `/${subresource}` : ""}${seconds}: ${[...pathsOf(fieldsV1!)].map(formatPath).join(" ")}`;
}

function outcomes(scenario: string): string {
  const [title, ...steps] = scenario.split(/^(?=> )/m);
  const world = new World();
  return title + steps.map((step) => {
    const [command, ...lines] = step.trimEnd().split("\n");
    const end = lines.findIndex((line) => !line.startsWith("  "));
    const input = lines.slice(0, end < 0 ? lines.length : end);
    return [command, ...input, world.run(command!.slice(2), input.join("\n"))].join("\n");
  }).join("\n");
}

const text = readFileSync(FILE, "utf8");
const [head, ...scenarios] = text.split(/^(?=## )/m);

test.each(scenarios.map((scenario) => [scenario.split("\n", 1)[0]!.slice(3), scenario] as const))("%s", (_, scenario) => {
  if (process.env["SCENARIOS"] === "write") return;
  expect(outcomes(scenario)).toBe(scenario.trimEnd());
});

if (process.env["SCENARIOS"] === "write") writeFileSync(FILE, `${[head!.trimEnd(), ...scenarios.map(outcomes)].join("\n\n")}\n`);
