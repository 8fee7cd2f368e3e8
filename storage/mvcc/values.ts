/**
 * Values on disk: msgpackr records with shared shapes. A pod of 2.5 kB of JSON takes 0.9 kB, and packing costs what JSON.stringify costs.
 *
 * A shape is the list of field names of an object. Each is written once, under its number, and objects refer to it; so a shape must be on
 * disk before or with the first value that uses it. `fresh` names the shapes that are not there yet: the store puts them into the same batch.
 * Shapes are never changed nor removed.
 *
 * Only objects whose keys all look like API fields make a shape. Labels, annotations, data and managed fields have keys of their own making;
 * they would fill the table with shapes used once, and are written as plain maps.
 *
 * An object with a key named __proto__ is legal JSON (and a legal ConfigMap) but msgpackr renames it: such a value is kept as JSON text.
 */
import { Packr } from "msgpackr";
import { parseValueText, valueText } from "../json-text.ts";
import type { Value } from "../store.ts";
import { FORMAT_JSON, FORMAT_MSGPACK, type Payload } from "./record.ts";

/** Once reached, objects of new shapes are written as plain maps. Half of what msgpackr could number; a cluster of every built-in kind has some hundreds. */
const SHAPES_MAX = 4096;
/** A PodSpec has 41 fields. Wider objects are somebody's data. */
const SHAPE_FIELDS_MAX = 64;
const FIELD_NAME = /^[a-z][A-Za-z0-9]{0,62}$/;

export class ValueCodec {
  readonly #shapes: (readonly string[])[]; // as msgpackr numbers them
  readonly #packr: Packr;
  readonly #text = new TextDecoder("utf-8", { fatal: true });
  #durable: number; // shapes below this number are on disk
  #asJson = false; // the value being packed has something that msgpackr cannot keep

  constructor(shapes: readonly (readonly string[])[]) {
    this.#shapes = [...shapes];
    this.#durable = shapes.length;
    this.#packr = new Packr({
      getStructures: () => this.#shapes.map((fields) => [...fields]), // copies: msgpackr keeps notes in them
      saveStructures: (all: string[][]) => void this.#shapes.push(...all.slice(this.#shapes.length).map((fields) => [...fields])),
      maxSharedStructures: SHAPES_MAX,
      maxOwnStructures: 0,
      useRecords: (object: object) => this.#makesShape(object),
      mapsAsObjects: true,
      variableMapSize: true,
      useToJSON: false,
    } as ConstructorParameters<typeof Packr>[0]);
  }

  encode(value: Value): Payload {
    this.#asJson = false;
    const bytes = this.#packr.pack(value);
    if (!this.#asJson) return { format: FORMAT_MSGPACK, bytes };
    return { format: FORMAT_JSON, bytes: Buffer.from(valueText(value)) };
  }

  /** The value, not frozen. Throws if these bytes are not one. */
  decode({ format, bytes }: Payload): Value {
    return format === FORMAT_JSON ? (parseValueText(this.#text.decode(bytes)) as Value) : this.#packr.unpack(bytes);
  }

  /** Shapes that are not on disk yet, with their numbers. */
  get fresh(): readonly (readonly [id: number, fields: readonly string[]])[] {
    return this.#shapes.slice(this.#durable).map((fields, i) => [this.#durable + i, fields]);
  }

  /** Every shape below `count` is on disk. */
  markDurable(count: number): void {
    this.#durable = Math.max(this.#durable, count);
  }

  get shapeCount(): number {
    return this.#shapes.length;
  }

  #makesShape(object: object): boolean {
    const keys = Object.keys(object);
    let fields = keys.length > 0 && keys.length <= SHAPE_FIELDS_MAX;
    for (const key of keys) {
      if (FIELD_NAME.test(key)) continue;
      fields = false;
      if (key === "__proto__") this.#asJson = true;
    }
    return fields;
  }
}
