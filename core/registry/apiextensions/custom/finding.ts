/** What is wrong with a value, and the error that tells it. */
import { stringify } from "../../../api/codec/json.ts";
import { inKeyOrder } from "../../../api/codec/json-document.ts";
import { type FieldError, invalid, notSupported, required, tooLong, tooMany, typeInvalid } from "../../../api/meta/field-error.ts";
import { goQuote } from "../../../api/meta/go-quote.ts";

export interface Finding {
  readonly type: "required" | "enum" | "tooLong" | "tooMany" | "type" | "other";
  /** As the schema's reader writes paths: "spec.a[0].b", ".a" for what is missing at the root; undefined for what belongs to no place. */
  readonly path: string | undefined;
  readonly message: string;
  readonly value?: unknown;
  readonly max?: number;
  readonly allowed?: readonly unknown[];
}

/** `base`: where the whole value stands. */
export function fieldErrorOf({ type, path, message, value, max = -1, allowed = [] }: Finding, base: string): FieldError {
  const name = path?.replace(/^\./, "") ?? "";
  const field = (base !== "" && name !== "" ? `${base}.${name}` : base || name) || "<nil>";
  switch (type) {
    case "required": return required(field, "");
    case "enum": return notSupported(field, inKeyOrder(value), textsOf(allowed));
    case "tooLong": return tooLong(field, max);
    case "tooMany": return tooMany(field, value as number, max);
    case "type": return typeInvalid(field, value, message);
    case "other": return invalid(field, value ?? "", message);
  }
}

export function typeFinding(path: string, wanted: string, given: string): Finding {
  return { type: "type", path, message: `${path} in body must be of type ${wanted}: ${goQuote(given)}`, value: given };
}

/** Of a schema's values, once. */
const texts = new WeakMap<readonly unknown[], readonly string[]>();

function textsOf(allowed: readonly unknown[]): readonly string[] {
  const known = texts.get(allowed) ?? allowed.map((one) => (typeof one === "string" ? one : stringify(one)));
  texts.set(allowed, known);
  return known;
}
