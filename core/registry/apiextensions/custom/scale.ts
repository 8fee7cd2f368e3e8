/**
 * The scale subresource of custom resources: replicas and selector stand where the definition says they do.
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/registry/customresource/{etcd,validator}.go
 */
import type { Scale } from "../../../api/gen/autoscaling.v1.ts";
import type { CustomResourceSubresourceScale } from "../../../api/gen/apiextensions.v1.ts";
import { type FieldError, invalid } from "../../../api/meta/field-error.ts";
import { goNumber } from "../../../api/meta/go-float.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";
import type { ApiObject } from "../../../api/meta/object-meta.ts";
import { badRequest, internalError } from "../../../api/meta/status-error.ts";
import { formatGo, isMap, type JsonMap } from "../../../api/patch/json-value.ts";
import type { Subresource } from "../../generic/resource.ts";
import { isNumber, numberType } from "./numbers.ts";

type Paths = Readonly<CustomResourceSubresourceScale>;

/** Stands for "not set" while a Scale is being changed. */
const UNSET = -(2 ** 31);
const INT32_MAX = 2 ** 31 - 1;

export function customScale(paths: Paths): Extract<Subresource, { type: "view" }> {
  const read = (object: Readonly<ApiObject>): Scale => scaleOf(object, paths);
  return {
    type: "view",
    read: (object) => withReplicas(read(object), 0),
    draft: (object) => withReplicas(read(object), UNSET),
    show(object) {
      const scale = read(object);
      if (scale.spec?.replicas === undefined) throw internalError(new Error(`the spec replicas field ${goQuote(paths.specReplicasPath)} does not exist`));
      return scale;
    },
    write(object, view) {
      const replicas = (view as Scale).spec?.replicas ?? 0;
      if (replicas === UNSET) throw badRequest(`the spec replicas field ${goQuote(paths.specReplicasPath)} cannot be empty`);
      setAt(object as unknown as Record<string, unknown>, partsOf(paths.specReplicasPath), replicas);
    },
  };
}

/** Nought is not written. */
function withReplicas(scale: Scale, otherwise: number): Scale {
  const replicas = scale.spec?.replicas ?? otherwise;
  return { ...scale, spec: replicas === 0 ? {} : { replicas } };
}

function scaleOf(object: Readonly<ApiObject>, { specReplicasPath, statusReplicasPath, labelSelectorPath }: Paths): Scale {
  const content = object as unknown as JsonMap;
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const replicas = integerAt(content, specReplicasPath);
  const selector = labelSelectorPath ? stringAt(content, labelSelectorPath) : undefined;
  return {
    kind: "Scale", apiVersion: "autoscaling/v1",
    metadata: { name, ...(namespace === undefined ? {} : { namespace }), uid, resourceVersion, creationTimestamp },
    spec: replicas === undefined ? {} : { replicas: Number(replicas) },
    status: { replicas: Number(integerAt(content, statusReplicasPath) ?? 0), ...(selector ? { selector } : {}) },
  };
}

export function* validateScaleSpec(object: JsonMap, { specReplicasPath }: Paths): Iterable<FieldError> { yield* replicasAt(object, specReplicasPath); }

export function* validateScaleStatus(object: JsonMap, { statusReplicasPath, labelSelectorPath }: Paths): Iterable<FieldError> {
  yield* replicasAt(object, statusReplicasPath);
  if (labelSelectorPath) yield* attempt(labelSelectorPath, "", () => stringAt(object, labelSelectorPath));
}

function* replicasAt(object: JsonMap, path: string): Iterable<FieldError> {
  let replicas: number | bigint | undefined;
  const errors = [...attempt(path, 0, () => void (replicas = integerAt(object, path)))];
  if (errors.length > 0) yield* errors;
  else if (replicas !== undefined && replicas < 0) yield invalid(path, replicas, "should be a non-negative integer");
  else if (replicas !== undefined && replicas > INT32_MAX) yield invalid(path, replicas, `should be less than or equal to ${INT32_MAX}`);
}

class AccessError extends Error {}

function* attempt(path: string, value: unknown, read: () => unknown): Iterable<FieldError> {
  try {
    read();
  } catch (error) {
    if (!(error instanceof AccessError)) throw error;
    yield invalid(path, value, error.message);
  }
}

function integerAt(object: JsonMap, path: string): number | bigint | undefined {
  const value = valueAt(object, partsOf(path));
  if (value === undefined) return undefined;
  if (!isNumber(value) || numberType(value) !== "integer") throw wrong(partsOf(path), value, "int64");
  return value;
}

function stringAt(object: JsonMap, path: string): string | undefined {
  const value = valueAt(object, partsOf(path));
  if (value !== undefined && typeof value !== "string") throw wrong(partsOf(path), value, "string");
  return value;
}

function partsOf(path: string): string[] { return path.replace(/^\./, "").split("."); }

function valueAt(object: JsonMap, parts: readonly string[]): unknown {
  let value: unknown = object;
  for (const [i, part] of parts.entries()) {
    if (value === null || value === undefined) return undefined;
    if (!isMap(value)) throw wrong(parts.slice(0, i + 1), value, "map[string]interface{}");
    if (!Object.hasOwn(value, part)) return undefined;
    value = value[part];
  }
  return value;
}

function setAt(object: Record<string, unknown>, [part = "", ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) { object[part] = value; return; }
  const below = object[part] ?? {};
  if (!isMap(below)) throw wrong([part], below, "map[string]interface{}");
  const copy = { ...below };
  object[part] = copy;
  setAt(copy, rest, value);
}

function wrong(parts: readonly string[], value: unknown, wanted: string): AccessError {
  return new AccessError(`.${parts.join(".")} accessor error: ${isNumber(value) ? goNumber(value) : formatGo(value)} is of the type ${goType(value)}, expected ${wanted}`);
}

function goType(value: unknown): string {
  if (value === null) return "<nil>";
  if (isNumber(value)) return numberType(value) === "integer" ? "int64" : "float64";
  if (Array.isArray(value)) return "[]interface {}";
  return typeof value === "object" ? "map[string]interface {}" : typeof value === "boolean" ? "bool" : "string";
}
