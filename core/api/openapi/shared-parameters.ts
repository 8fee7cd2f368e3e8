/**
 * Parameters that many operations of OpenAPI v2 take are told once, and referred to: `#/parameters/limit-1NfNmdNH`, with a hash of what it is.
 *
 * Source: kube-openapi pkg/builder/parameters.go
 */

export interface ParameterV2 {
  readonly name: string; readonly in: string; readonly required?: boolean; readonly type?: string; readonly description?: string; readonly uniqueItems?: boolean;
  readonly schema?: { readonly $ref: string };
}

/** kubectl before 1.27 looks for them in the operation. */
const LOOKED_FOR = new Set(["fieldValidation", "dryRun"]);
const HASH_BYTES = 6;

export class SharedParameters {
  readonly #refs = new Map<string, { readonly $ref: string }>(); // by the JSON of the parameter
  readonly #told: Record<string, ParameterV2> = {};

  /** What stands for the parameter in an operation: a reference, unless it speaks of one kind. */
  inPlaceOf(parameter: ParameterV2): object {
    if (isOwn(parameter)) return parameter;
    const text = JSON.stringify(parameter);
    let ref = this.#refs.get(text);
    if (!ref) {
      const name = `${parameter.name}-${hashOf(text)}`;
      this.#told[name] = parameter;
      this.#refs.set(text, (ref = { $ref: `#/parameters/${name}` }));
    }
    return ref;
  }

  /** By name, sorted. */
  all(): Record<string, ParameterV2> { return Object.fromEntries(Object.entries(this.#told).sort(([a], [b]) => (a < b ? -1 : 1))); }
}

function isOwn({ name, in: where, schema }: ParameterV2): boolean {
  if (where === "body") return !schema?.$ref.startsWith("#/definitions/io.k8s.apimachinery");
  return name === "name" || (where === "query" && LOOKED_FOR.has(name));
}

/** FNV-1 of 64 bits, the first six bytes of it. */
function hashOf(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const byte of Buffer.from(text)) hash = BigInt.asUintN(64, hash * 0x100000001b3n) ^ BigInt(byte);
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(hash);
  return bytes.subarray(0, HASH_BYTES).toString("base64url");
}
