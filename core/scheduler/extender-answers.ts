/**
 * What extenders answer, read as upstream's decoder reads it: fields are known by their names in any case, since the types say nothing of it and extenders write as they
 * please; what is of another type is told in Go's words; what is not known is passed over.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/kube-scheduler/extender/v1/types.go; Go encoding/json
 */
import type { JsonValue } from "../api/codec/json-document.ts";
import { misfits, type Shape } from "./config/shape.ts";

const struct = (name: string, fields: Readonly<Record<string, Shape>>): Shape => ({ go: `v1.${name}`, fields });
const NODES = struct("NodeList", { items: { list: struct("Node", { metadata: struct("ObjectMeta", { name: "string" }) }) } });
const VICTIMS = struct("MetaVictims", { Pods: { list: struct("MetaPod", { UID: "string" }) }, NumPDBViolations: "int64" });

export interface FilterAnswer {
  readonly Nodes?: { readonly items?: readonly { readonly metadata?: { readonly name?: string } }[] | null } | null;
  readonly NodeNames?: readonly string[] | null;
  readonly FailedNodes?: Readonly<Record<string, string>> | null;
  readonly FailedAndUnresolvableNodes?: Readonly<Record<string, string>> | null;
  readonly Error?: string;
}
export interface BindAnswer { readonly Error?: string }
export interface PreemptAnswer { readonly NodeNameToMetaVictims?: Readonly<Record<string, { readonly Pods?: readonly { readonly UID?: string }[] | null; readonly NumPDBViolations?: number }>> | null }
export type PriorityAnswer = readonly { readonly Host?: string; readonly Score?: number }[];

const FILTER = struct("ExtenderFilterResult", { Nodes: NODES, NodeNames: { list: "string" }, FailedNodes: { entries: "string" }, FailedAndUnresolvableNodes: { entries: "string" }, Error: "string" });
const BIND = struct("ExtenderBindingResult", { Error: "string" });
const PREEMPT = struct("ExtenderPreemptionResult", { NodeNameToMetaVictims: { entries: VICTIMS } });
const PRIORITY: Shape = { list: struct("HostPriority", { Host: "string", Score: "int64" }) };

/** These throw an Error with Go's words. */
export function filterAnswer(value: JsonValue): FilterAnswer { return read<FilterAnswer>(value, FILTER) ?? {}; }
export function bindAnswer(value: JsonValue): BindAnswer { return read<BindAnswer>(value, BIND) ?? {}; }
export function preemptAnswer(value: JsonValue): PreemptAnswer { return read<PreemptAnswer>(value, PREEMPT) ?? {}; }
export function priorityAnswer(value: JsonValue): PriorityAnswer { return read<PriorityAnswer>(value, PRIORITY) ?? []; }

function read<T>(value: JsonValue, shape: Shape): T | null {
  const named = withNames(value, shape);
  const { wrong } = misfits(named, shape);
  if (wrong !== undefined) throw new Error(wrong);
  return named as T | null;
}

/** With the fields' own names. Of two that mean the same the later one counts. */
function withNames(value: unknown, shape: Shape): unknown {
  if (typeof shape === "string" || "text" in shape || value === null || typeof value !== "object") return value;
  if ("list" in shape) return Array.isArray(value) ? value.map((item) => withNames(item, shape.list)) : value;
  if (Array.isArray(value)) return value;
  if ("entries" in shape) return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withNames(item, shape.entries)]));
  const names = new Map(Object.keys(shape.fields).map((name) => [name.toLowerCase(), name]));
  return Object.fromEntries(Object.entries(value).flatMap(([key, item]) => {
    const name = names.get(key.toLowerCase());
    return name === undefined ? [] : [[name, withNames(item, shape.fields[name]!)]];
  }));
}
