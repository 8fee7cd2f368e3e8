/** application/cbor: objects of the API as bodies of answers, and as events of watches. What is known of their types tells bytes from texts, and numbers that have a point from those that have none. */
import { gvkOf } from "../../meta/gvk.ts";
import { builtInFacts, type Facts } from "../../schema/facts.ts";
import { CborWriter } from "./writer.ts";

export class CborCodec {
  readonly #facts: Facts;
  readonly #writer: CborWriter;

  constructor(facts: Facts, writer = new CborWriter()) {
    this.#facts = facts;
    this.#writer = writer;
  }

  encode(object: object): Uint8Array {
    const { apiVersion, kind } = object as { readonly apiVersion?: unknown; readonly kind?: unknown };
    return this.#writer.write(object, typeof apiVersion === "string" && typeof kind === "string" ? this.#facts.typeOf(gvkOf({ apiVersion, kind })) : undefined);
  }

  encodeEvent(type: string, object: object): Uint8Array { return this.#writer.event(type, this.encode(object)); }
}

/** The codec of the built-in API. */
export const cborCodec: CborCodec = new CborCodec(builtInFacts);
