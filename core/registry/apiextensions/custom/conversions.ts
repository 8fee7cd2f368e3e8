/**
 * What a webhook converts, for code that does not wait: it asks for a conversion, and if there is none yet it ends there and runs again when there is.
 *
 *   const conversions = new Conversions(kind, signal);
 *   await conversions.settle(() => … conversions.converted(object, "example.com/v2") …)
 *
 * Each object is converted to each version once. One that cannot be converted stays so: `converted` throws a ConversionError with what the webhook's
 * caller says. What comes back must fit the schema of its version as it is: nothing is pruned or defaulted.
 *
 * Source: kubernetes v1.36 apimachinery/pkg/util/managedfields/internal/versionconverter.go, apiextensions-apiserver/pkg/apiserver/conversion/webhook_converter.go
 */
import { jsonText } from "../../../api/codec/json.ts";
import { parseApiVersion } from "../../../api/meta/gvk.ts";
import type { ApiObject } from "../../../api/meta/object-meta.ts";
import { ConversionError } from "../../../api/patch/apply/ownership.ts";
import { validateTyped } from "../../../api/patch/apply/validate-typed.ts";
import type { JsonMap } from "../../../api/patch/json-value.ts";
import type { CustomKind } from "./custom-kind.ts";

/** Ends work that needs a conversion there is not yet. */
class Unconverted extends Error {
  override readonly name = "Unconverted";
  readonly key: string;
  readonly object: JsonMap;
  readonly apiVersion: string;
  constructor(key: string, object: JsonMap, apiVersion: string) {
    super(`not yet converted to ${apiVersion}`);
    this.key = key;
    this.object = object;
    this.apiVersion = apiVersion;
  }
}

export class Conversions {
  readonly #kind: CustomKind;
  readonly #signal: AbortSignal;
  readonly #known = new Map<string, JsonMap | ConversionError>();

  constructor(kind: CustomKind, signal: AbortSignal) {
    this.#kind = kind;
    this.#signal = signal;
  }

  /** To be asked within `settle`. */
  converted(object: JsonMap, apiVersion: string): JsonMap {
    if (isEmpty(object)) return { ...object, apiVersion };
    const key = `${apiVersion} ${jsonText(object)}`;
    const known = this.#known.get(key);
    if (known === undefined) throw new Unconverted(key, object, apiVersion);
    if (known instanceof ConversionError) throw known;
    return known;
  }

  /** Does the work, as often as it takes. */
  async settle<T>(work: () => T): Promise<T> {
    for (;;) {
      try {
        return work();
      } catch (error) {
        if (!(error instanceof Unconverted)) throw error;
        this.#known.set(error.key, await this.#convert(error));
      }
    }
  }

  async #convert({ object, apiVersion }: Unconverted): Promise<JsonMap | ConversionError> {
    try {
      const [converted] = await this.#kind.remote!([object as unknown as ApiObject], apiVersion, this.#signal);
      validateTyped(this.#kind.schema(parseApiVersion(apiVersion).version).root, converted as unknown as JsonMap);
      return converted as unknown as JsonMap;
    } catch (error) {
      if (this.#signal.aborted) throw error;
      return new ConversionError((error as Error).message, { cause: error });
    }
  }
}

/** Of a type and nothing else: no webhook is asked about it. */
function isEmpty(object: JsonMap): boolean { return Object.keys(object).every((key) => key === "apiVersion" || key === "kind"); }
