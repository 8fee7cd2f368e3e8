/**
 * Annotations of nodes from before there were fields: JSON that nobody reads any more, and that is looked at all the same.
 *
 * Source: kubernetes v1.36 pkg/apis/core/validation/validation.go ValidateNodeSpecificAnnotations
 */
import { parseJson } from "../../api/codec/json.ts";
import type { Node, Taint } from "../../api/gen/core.v1.ts";
import { child, type FieldError, index, invalid, required } from "../../api/meta/field-error.ts";
import { annotationsOf } from "../../api/meta/object-meta.ts";
import { jsonKindOf, textOf } from "../../api/patch/json-value.ts";

const PATH = "metadata.annotations";
const TAINTS = "scheduler.alpha.kubernetes.io/taints";
const AVOIDED = "scheduler.alpha.kubernetes.io/preferAvoidPods";

type Fields = Readonly<Record<string, unknown>>;

/** What was stored already is let pass: a node must be able to say that it is well. */
export function* validateNodeAnnotations(next: Readonly<Node>, old: Readonly<Node> | undefined, validateTaints: (path: string, taints: readonly Taint[]) => Iterable<FieldError>): Iterable<FieldError> {
  const annotations = annotationsOf(next);
  const isNew = (name: string): boolean => !!annotations[name] && (!old || annotationsOf(old)[name] !== annotations[name]);
  if (isNew(TAINTS)) {
    const taints = read(annotations[TAINTS]!, (value) => listOf(value, "value of type []core.Taint"));
    if (typeof taints === "string") yield invalid(PATH, TAINTS, taints);
    else yield* validateTaints(child(PATH, TAINTS), taints.map(taintOf));
  }
  if (isNew(AVOIDED)) {
    const avoided = read(annotations[AVOIDED]!, (value) => listOf(field(structOf(value, "value of type v1.AvoidPods"), "preferAvoidPods"), "struct field AvoidPods.preferAvoidPods of type []v1.PreferAvoidPodsEntry"));
    if (typeof avoided === "string") yield invalid(child(PATH, "AvoidPods"), AVOIDED, avoided);
    else for (const [i, entry] of avoided.entries()) yield* validateAvoided(index(child(PATH, AVOIDED), i), entry as Fields);
  }
}

function* validateAvoided(path: string, entry: Fields): Iterable<FieldError> {
  const at = child(path, "PodSignature");
  const controller = field(field(entry, "podSignature"), "podController");
  if (!controller) yield required(at);
  else if (field(controller, "controller") !== true) yield invalid(child(at, "PodController", "Controller"), false, "must point to a controller");
}

/** Or what is wrong with it, in the words of Go's decoder. */
function read(text: string, items: (value: unknown) => readonly unknown[]): readonly unknown[] | string {
  try {
    return items(parseJson(text).value);
  } catch (error) {
    return (error as Error).message;
  }
}

function taintOf(value: unknown): Taint { return { key: textOf(field(value, "key")), value: textOf(field(value, "value")), effect: textOf(field(value, "effect")) as Taint["effect"] }; }

/** By any spelling of its name, as Go's decoder takes it. */
function field(value: unknown, name: string): unknown {
  return Object.entries(structOf(value, "value")).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
}

function listOf(value: unknown, target: string): readonly unknown[] {
  if (value === null || value === undefined) return [];
  if (!Array.isArray(value)) throw mismatch(value, target);
  return value;
}

function structOf(value: unknown, target: string): object {
  if (value === null || value === undefined) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw mismatch(value, target);
  return value;
}

function mismatch(value: unknown, target: string): Error { return new Error(`json: cannot unmarshal ${jsonKindOf(value)} into Go ${target}`); }
