/**
 * Selectors of devices, as ResourceClaims and DeviceClasses have them:
 *
 *   const selector = compileDeviceSelector('device.driver == "gpu.example.com" && device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("8Gi"))');
 *   if ("problem" in selector) …
 *   selector.matches({ driver, attributes, capacity })       throws what went wrong, in upstream's words
 *
 * With DRAListTypeAttributes attributes may be lists, and `x.includes(y)` asks of both: whether it is one of them, or the one there is.
 *
 * An attribute without a domain has the driver's. Domains that a device does not have are empty maps; `in` tells them from those it has.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/dynamic-resource-allocation/cel/compile.go; cel-go ext/bindings.go
 */
import type { DeviceAttribute, DeviceCapacity } from "../api/gen/resource.v1.ts";
import { defineFunction, type Environment, type Library, method, type StructTypes } from "./check/declarations.ts";
import { BOOL, DYN, mapOf, STRING, struct, Type } from "./check/type.ts";
import { compile, estimate, evaluate } from "./compile.ts";
import type { SizeOf } from "./cost/call-estimate.ts";
import { kubernetesEnvironment } from "./kubernetes.ts";
import { QUANTITY_TYPE, quantityValue } from "./library/quantity.ts";
import { semverValue } from "./library/semver.ts";
import { type Macro, MacroError } from "./syntax/macros.ts";
import { equal, EvalError, isError, List, listFrom, mapFrom, Mapping, type Value } from "./value/value.ts";

/** Of one evaluation, and of what is estimated beforehand. Source: resource/v1 CELSelectorExpressionMaxCost */
const SELECTOR_COST_MAX = 1_000_000;

export interface SelectableDevice {
  readonly driver: string;
  readonly allowMultipleAllocations?: boolean | undefined;
  readonly attributes?: Readonly<Record<string, DeviceAttribute>> | undefined;
  readonly capacity?: Readonly<Record<string, DeviceCapacity>> | undefined;
}

export interface CompiledSelector {
  /** At most, of any device. */
  readonly maxCost: bigint;
  matches(device: SelectableDevice): boolean;
}

const ANY = new Type("any", "any");
const DEVICE = struct("kubernetes.DRADevice");

function structsWith(attribute: Type): StructTypes {
  const fields: Readonly<Record<string, Type>> = {
    driver: STRING, allowMultipleAllocations: BOOL, attributes: mapOf(STRING, mapOf(STRING, attribute)), capacity: mapOf(STRING, mapOf(STRING, QUANTITY_TYPE)),
  };
  return { has: (name) => name === DEVICE.name, field: (name, field) => (name === DEVICE.name && Object.hasOwn(fields, field) ? fields[field] : undefined) };
}

/** How many entries or characters something can have, and what is in it. */
interface Bounds {
  readonly most: number;
  readonly fields?: Readonly<Record<string, Bounds>>;
  readonly key?: Bounds;
  readonly element?: Bounds;
  /** Its elements are found by name as well. */
  readonly named?: true;
}

const [DOMAIN, ID, VALUE] = [{ most: 63 }, { most: 32 }, { most: 64 }];
const ENTRIES_MAX = 32;
const BOUNDS: Bounds = {
  most: 0,
  fields: {
    driver: { most: 63 }, allowMultipleAllocations: { most: 1 },
    attributes: { most: ENTRIES_MAX, key: DOMAIN, element: { most: ENTRIES_MAX, key: ID, element: VALUE, named: true } },
    capacity: { most: ENTRIES_MAX, key: DOMAIN, element: { most: ENTRIES_MAX, key: ID, element: { most: 0 } } },
  },
};

const sizeOf: SizeOf = ({ path = [] }) => {
  if (path[0] !== "device") return undefined;
  let found: Bounds | undefined = BOUNDS;
  for (const name of path.slice(1)) {
    if (name === "@items" || name === "@values") found = found?.element;
    else if (name === "@keys") found = found?.key;
    else found = found?.named ? found.element : found?.fields?.[name];
  }
  return found && { min: 0n, max: BigInt(found.most) };
};

/** `cel.bind(x, init, body)`: a comprehension over nothing, whose accumulator is the variable. */
const BIND: Macro = {
  name: "bind", args: 3, method: true,
  expand(make, target, [name, init, body]) {
    if (target?.kind !== "ident" || target.name !== "cel") return undefined;
    if (name!.kind !== "ident") throw new MacroError(name!, "cel.bind() variable names must be simple identifiers");
    return make.comprehension({ range: make.list(), iterVar: "#unused", accuVar: name!.name, init: init!, condition: make.literal(false), step: make.ident(name!.name), result: body! });
  },
};
const BINDINGS: Library = { macros: [BIND] };

/** Values of all attributes of a device together. Source: resource/v1 ResourceSliceMaxAttributeValuesPerDevice */
const VALUES_MAX = 48;
const TOO_MANY = new EvalError(`'includes' function cannot be applied to lists longer than ${VALUES_MAX} values`);
const LISTS: Library = {
  functions: [defineFunction("includes", method("dra_includes_dyn_dyn", [DYN, DYN], BOOL, ([all, one]) => includes(all!, one!), {
    estimate: ({ target }) => target && { cost: { min: 0n, max: BigInt(VALUES_MAX) } }, actual: () => 1,
  }))],
};

function includes(all: Value, one: Value): Value {
  if (!(all instanceof List)) return equal(all, one) === true;
  let looked = 0;
  for (const item of all) {
    if (looked++ >= VALUES_MAX) return TOO_MANY;
    if (equal(item, one) === true) return true;
  }
  return false;
}

export interface DeviceEnvironment { readonly environment: Environment; /** Attributes may be lists. */ readonly lists: boolean }

export function deviceEnvironment(lists: boolean): DeviceEnvironment {
  return { lists, environment: kubernetesEnvironment().with({ libraries: [BINDINGS, ...(lists ? [LISTS] : [])], variables: { device: DEVICE }, structs: structsWith(lists ? DYN : ANY) }) };
}

export function isTooComplex({ maxCost }: CompiledSelector): boolean { return maxCost > BigInt(SELECTOR_COST_MAX); }

export function compileDeviceSelector(expression: string, { environment, lists }: DeviceEnvironment = deviceEnvironment(false)): CompiledSelector | { readonly problem: string } {
  const compiled = compile(expression, environment);
  if (compiled.problem !== undefined && !compiled.planning) return { problem: `compilation failed: ${compiled.problem}` };
  if (compiled.type && compiled.type.kind !== "bool" && compiled.type.kind !== "any" && !(lists && compiled.type.kind === "dyn")) return { problem: `must evaluate to bool or the unknown type, not ${compiled.type.text}` };
  if (compiled.problem !== undefined) return { problem: `program instantiation failed: ${compiled.problem}` };
  return {
    maxCost: estimate(compiled, sizeOf).max,
    matches(device) {
      const { value } = evaluate(compiled, { device: deviceValue(device, lists) }, { costLimit: SELECTOR_COST_MAX });
      if (isError(value)) throw new Error(value.message);
      if (typeof value !== "boolean") throw new Error("CEL result could not be converted to bool");
      return value;
    },
  };
}

function deviceValue({ driver, allowMultipleAllocations = false, attributes = {}, capacity = {} }: SelectableDevice, lists: boolean): Value {
  return mapFrom([
    ["driver", driver],
    ["allowMultipleAllocations", allowMultipleAllocations],
    ["attributes", byDomain(driver, Object.entries(attributes).map(([name, attribute]) => [name, (lists ? listValue(name, attribute) : undefined) ?? attributeValue(name, attribute)]))],
    ["capacity", byDomain(driver, Object.entries(capacity).map(([name, { value }]) => [name, quantityValue(value)]))],
  ]);
}

function attributeValue(name: string, { int, bool, string, version }: DeviceAttribute): Value {
  if (int !== undefined) return BigInt(int);
  if (bool !== undefined) return bool;
  if (string !== undefined) return string;
  if (version === undefined) throw new Error(`attribute ${name}: unsupported attribute value`);
  return versionValue(name, version);
}

function versionValue(name: string, version: string): Value {
  const parsed = semverValue(version);
  if (isError(parsed)) throw new Error(`attribute ${name}: parse semantic version: ${parsed.message}`);
  return parsed;
}

/** Undefined: it is none. */
function listValue(name: string, { ints, bools, strings, versions }: DeviceAttribute): Value | undefined {
  const values = ints?.map((int) => BigInt(int)) ?? bools ?? strings ?? versions?.map((version) => versionValue(name, version));
  return values && listFrom(values);
}

function byDomain(driver: string, entries: readonly (readonly [name: string, value: Value])[]): Mapping {
  const domains = new Map<string, [string, Value][]>();
  for (const [name, value] of entries) {
    const slash = name.indexOf("/");
    const domain = slash < 0 ? driver : name.slice(0, slash);
    domains.set(domain, [...(domains.get(domain) ?? []), [slash < 0 ? name : name.slice(slash + 1), value]]);
  }
  return new Domains(mapFrom([...domains].map(([domain, values]) => [domain, mapFrom(values)] as const)));
}

const EMPTY = mapFrom([]);

class Domains extends Mapping {
  readonly #known: Mapping;
  constructor(known: Mapping) { super(); this.#known = known; }
  override get size(): number { return this.#known.size; }
  override find(key: Value): Value | undefined { return this.#known.find(key) ?? (typeof key === "string" ? EMPTY : undefined); }
  override has(key: Value): boolean { return this.#known.has(key); }
  override keys(): Iterable<Value> { return this.#known.keys(); }
}
