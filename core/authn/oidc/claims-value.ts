/**
 * Claims, and the user made of them, as expressions see them:
 *   claims.level          a double, as all numbers are
 *   claims.a__dot__b      the claim "a.b"; names that are no words are written as in schemas
 *
 * Unlike upstream's, claims count and hold: `"roles" in claims`, `size(claims)` work as they do for any map.
 *
 * Source: kubernetes v1.36 apiserver/plugin/pkg/authenticator/token/oidc/oidc.go (newClaimsValue, unescapeWrapper), apiserver/pkg/cel/lazy/lazy.go
 */
import { unescapeName } from "../../cel/schema/escape.ts";
import { List, Mapping, type Value } from "../../cel/value/value.ts";

type JsonObject = Readonly<Record<string, unknown>>;

export function claimsValue(claims: JsonObject): Value { return new Claims(claims, unescapeName); }

function valueOf(json: unknown): Value {
  if (Array.isArray(json)) return new Items(json);
  if (typeof json === "object" && json !== null) return new Claims(json as JsonObject, (key) => unescapeName(key) ?? key);
  return json === undefined ? null : json as Value;
}

class Claims extends Mapping {
  readonly #json: JsonObject;
  readonly #nameOf: (key: string) => string | undefined;
  constructor(json: JsonObject, nameOf: (key: string) => string | undefined) {
    super();
    this.#json = json;
    this.#nameOf = nameOf;
  }
  override get size(): number { return Object.keys(this.#json).length; }
  override find(key: Value): Value | undefined {
    const name = typeof key === "string" ? this.#nameOf(key) : undefined;
    return name !== undefined && Object.hasOwn(this.#json, name) ? valueOf(this.#json[name]) : undefined;
  }
  override keys(): Iterable<Value> { return Object.keys(this.#json); }
}

class Items extends List {
  readonly #items: readonly unknown[];
  constructor(items: readonly unknown[]) {
    super();
    this.#items = items;
  }
  override get size(): number { return this.#items.length; }
  override at(index: number): Value { return valueOf(this.#items[index]); }
}
