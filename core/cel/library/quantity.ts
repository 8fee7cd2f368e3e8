/** Quantities: quantity("1.5Gi").isGreaterThan(quantity("1G")) and so on. Source: kubernetes v1.36 apiserver/pkg/cel/library/quantity.go */
import { addQuantity, compareQuantity, isQuantity, parseQuantity, type Quantity, quantityOf, subQuantity } from "../../api/meta/quantity.ts";
import { defineFunction, method, overload, type Library } from "../check/declarations.ts";
import { BOOL, DOUBLE, INT, STRING, struct } from "../check/type.ts";
import { EvalError, Opaque, type Value } from "../value/value.ts";

export const QUANTITY_TYPE = struct("kubernetes.Quantity");
const Q = QUANTITY_TYPE;
const [INT_MIN, INT_MAX] = [-(2n ** 63n), 2n ** 63n - 1n];

class QuantityValue extends Opaque {
  override readonly type = QUANTITY_TYPE;
  readonly quantity: Quantity;
  constructor(quantity: Quantity) { super(); this.quantity = quantity; }
  override equals(other: Value): boolean { return other instanceof QuantityValue && compareQuantity(this.quantity, other.quantity) === 0; }
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
    defineFunction("asApproximateFloat", method("quantity_get_float", [Q], DOUBLE, ([value]) => Number(`${of(value).unscaled}e${of(value).scale}`))),
    defineFunction("asInteger", method("quantity_get_int", [Q], INT, ([value]) => asInteger(of(value)) ?? new EvalError("cannot convert value to integer"))),
    defineFunction("isInteger", method("quantity_is_integer", [Q], BOOL, ([value]) => asInteger(of(value)) !== undefined)),
    defineFunction("add",
      method("quantity_add", [Q, Q], Q, ([a, b]) => new QuantityValue(addQuantity(of(a), of(b)))),
      method("quantity_add_int", [Q, INT], Q, ([a, b]) => new QuantityValue(addQuantity(of(a), quantityOf(b as bigint, "DecimalExponent"))))),
    defineFunction("sub",
      method("quantity_sub", [Q, Q], Q, ([a, b]) => new QuantityValue(subQuantity(of(a), of(b)))),
      method("quantity_sub_int", [Q, INT], Q, ([a, b]) => new QuantityValue(subQuantity(of(a), quantityOf(b as bigint, "DecimalExponent"))))),
  ],
  types: [QUANTITY_TYPE],
};

function of(value: Value | undefined): Quantity { return (value as QuantityValue).quantity; }

function parsed(text: string): Value {
  try {
    return new QuantityValue(parseQuantity(text));
  } catch (error) {
    return new EvalError((error as Error).message);
  }
}

/** Undefined for fractions and for what is too large. */
function asInteger({ unscaled, scale }: Quantity): bigint | undefined {
  const divisor = scale < 0 ? 10n ** BigInt(-scale) : 1n;
  if (unscaled % divisor !== 0n) return undefined;
  const whole = scale < 0 ? unscaled / divisor : unscaled * 10n ** BigInt(scale);
  return whole < INT_MIN || whole > INT_MAX ? undefined : whole;
}
