/** Quantities: quantity("1.5Gi").isGreaterThan(quantity("1G")) and so on. Source: kubernetes v1.36 apiserver/pkg/cel/library/quantity.go */
import { addQuantity, compareQuantity, isQuantity, parseQuantity, Quantity, quantityOf, subQuantity } from "../../api/meta/quantity.ts";
import { defineFunction, method, overload, type Library } from "../check/declarations.ts";
import { BOOL, DOUBLE, INT, STRING, struct } from "../check/type.ts";
import { EvalError, noSuchOverload, Opaque, type Value } from "../value/value.ts";

export const QUANTITY_TYPE = struct("kubernetes.Quantity");
const Q = QUANTITY_TYPE;
const [INT_MIN, INT_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

/** `decimal`: upstream keeps it as one of any length; it does not ask those whether they are whole. */
export class QuantityValue extends Opaque {
  override readonly type = QUANTITY_TYPE;
  override readonly goType = "cel.Quantity";
  readonly quantity: Quantity;
  readonly decimal: boolean;
  constructor(quantity: Quantity, decimal = false) { super(); this.quantity = quantity; this.decimal = decimal; }
  override equals(other: Value): boolean | EvalError { return other instanceof QuantityValue ? compareQuantity(this.quantity, other.quantity) === 0 : noSuchOverload(other); }
}

export const quantityLibrary: Library = {
  functions: [
    defineFunction("quantity", overload("string_to_quantity", [STRING], Q, ([text]) => parsed(text as string))),
    defineFunction("isQuantity", overload("is_quantity_string", [STRING], BOOL, ([text]) => isQuantity(text as string))),
    // Upstream declares it as a function, not as a method.
    defineFunction("sign", overload("quantity_sign", [Q], INT, ([value]) => BigInt(of(value).sign))),
    defineFunction("isGreaterThan", method("quantity_is_greater_than", [Q, Q], BOOL, ([a, b]) => compareQuantity(of(a), of(b)) > 0)),
    defineFunction("isLessThan", method("quantity_is_less_than", [Q, Q], BOOL, ([a, b]) => compareQuantity(of(a), of(b)) < 0)),
    defineFunction("compareTo", method("quantity_compare_to", [Q, Q], INT, ([a, b]) => BigInt(compareQuantity(of(a), of(b))))),
    defineFunction("asApproximateFloat", method("quantity_get_float", [Q], DOUBLE, ([value]) => approximately(value as QuantityValue))),
    defineFunction("asInteger", method("quantity_get_int", [Q], INT, ([value]) => asInteger(value) ?? new EvalError("cannot convert value to integer"))),
    defineFunction("isInteger", method("quantity_is_integer", [Q], BOOL, ([value]) => asInteger(value) !== undefined)),
    defineFunction("add",
      method("quantity_add", [Q, Q], Q, ([a, b]) => new QuantityValue(addQuantity(of(a), of(b)), isDecimal(a) || isDecimal(b))),
      method("quantity_add_int", [Q, INT], Q, ([a, b]) => new QuantityValue(addQuantity(of(a), quantityOf(b as bigint, "DecimalExponent")), isDecimal(a)))),
    defineFunction("sub",
      method("quantity_sub", [Q, Q], Q, ([a, b]) => new QuantityValue(subQuantity(of(a), of(b)), isDecimal(a) || isDecimal(b))),
      method("quantity_sub_int", [Q, INT], Q, ([a, b]) => new QuantityValue(subQuantity(of(a), quantityOf(b as bigint, "DecimalExponent")), isDecimal(a)))),
  ],
};

const DIGITS_MAX = 18;
const NANO = -9;
const BINARY_DIGITS_MAX = 15;

/** What quantity("…") gives. */
export function quantityValue(text: string): Value { return parsed(text); }

function of(value: Value | undefined): Quantity { return (value as QuantityValue).quantity; }

function parsed(text: string): Value {
  try {
    return new QuantityValue(parseQuantity(text), isLong(text));
  } catch (error) {
    return new EvalError((error as Error).message);
  }
}

function isDecimal(value: Value | undefined): boolean { return (value as QuantityValue).decimal; }

/** As near as upstream's floats come: of a decimal from its billionths. */
function approximately({ quantity, decimal }: QuantityValue): number {
  return decimal && quantity.scale >= NANO ? new Quantity(quantity.unscaled * 10n ** BigInt(quantity.scale - NANO), { scale: NANO }).approximate() : quantity.approximate();
}

/** More digits than an int64 surely holds, finer than a billionth, or a fraction of a power of two. */
function isLong(text: string): boolean {
  const [, whole = "", fraction = "", suffix = ""] = /^[+-]?0*(\d*)(?:\.(\d*))?(.*)$/.exec(text)!;
  const exponent = { n: -9, u: -6, m: -3, k: 3, M: 6, G: 9, T: 12, P: 15, E: 18 }[suffix] ?? Number(/^[eE](.+)$/.exec(suffix)?.[1] ?? 0);
  const power = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].indexOf(suffix) + 1;
  if (power > 0) return fraction !== "" || BINARY_DIGITS_MAX - Math.max(whole.length, 1) - Math.trunc(power * 3) - 1 < 0;
  return Math.max(whole.length, 1) + fraction.length > DIGITS_MAX || exponent - fraction.length < NANO;
}

/** Undefined for fractions, for what is written as one (3000m), and for what is too large. */
function asInteger(value: Value | undefined): bigint | undefined {
  const { unscaled, scale } = of(value);
  if (isDecimal(value) || scale < 0) return undefined;
  const whole = unscaled * 10n ** BigInt(scale);
  return whole < INT_MIN || whole > INT_MAX ? undefined : whole;
}
