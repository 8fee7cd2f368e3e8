/**
 * Reads a whole store from its engine, and finds everything that is wrong with it. Used to open a store, to check one and to repair one.
 */
import type { Engine } from "../engine.ts";
import { keyOfRow, META_KEY, ROWS_RANGE, SHAPES_RANGE, shapeKey } from "../keys.ts";
import type { Row, Value } from "../store.ts";
import { freezeJson, type FrozenJson } from "./freeze-json.ts";
import { weightOf } from "./quota.ts";
import { decodeMeta, decodeRecord, LAYOUT, type Meta, type StoredRecord } from "./record.ts";
import type { Weight } from "./rows.ts";
import { stringPool } from "./string-pool.ts";
import { ValueCodec } from "./values.ts";

/** One thing that is wrong, in words, with the row it concerns. */
export interface Problem {
  readonly what: string;
  readonly key?: string;
}

export interface LoadedRow {
  readonly row: Row;
  readonly weight: Weight;
  readonly crc: number;
}

export interface Loaded {
  /** Absent from a new store, and from one without a readable meta record. */
  readonly meta: Meta | undefined;
  /** Nothing was ever written. */
  readonly empty: boolean;
  readonly codec: ValueCodec;
  readonly rows: readonly LoadedRow[];
  /** The checksums of all readable rows, combined as in Meta. */
  readonly digest: number;
  readonly problems: readonly Problem[];
  /** Engine keys of records that cannot be read. */
  readonly damaged: readonly string[];
  /** Of the layout of a newer program; then nothing else here means anything. */
  readonly newerLayout: number | undefined;
}

export async function load(engine: Engine, { freezeArrays = false, share = (value) => value }: { readonly freezeArrays?: boolean | undefined; readonly share?: ((value: Value) => Value) | undefined } = {}): Promise<Loaded> {
  const problems: Problem[] = [];
  const damaged: string[] = [];
  const metaBytes = await engine.get(META_KEY);
  const metaRecord = metaBytes && decodeRecord(META_KEY, metaBytes);
  const metaRead = metaRecord && decodeMeta(metaRecord);
  const newerLayout = metaRead && metaRead.layout > LAYOUT ? metaRead.layout : undefined;
  const codec = new ValueCodec(newerLayout ? [] : await loadShapes(engine, problems, damaged));
  const rows: LoadedRow[] = [];
  const pooled = stringPool();
  const decode = (record: StoredRecord): FrozenJson => freezeJson(share(pooled(codec.decode(record)) as Value), { arrays: freezeArrays });
  let digest = 0;
  let damagedRows = 0;
  if (newerLayout === undefined) {
    for await (const page of engine.range(...ROWS_RANGE)) {
      for (const [engineKey, bytes] of page) {
        const read = loadRow(engineKey, bytes, decode);
        if ("problem" in read) {
          problems.push(read.problem);
          damaged.push(engineKey);
          damagedRows++;
        } else {
          rows.push(read);
          digest ^= read.crc;
        }
      }
    }
  }
  digest >>>= 0;
  const meta = metaRead?.meta;
  const empty = metaBytes === undefined && rows.length === 0 && damaged.length === 0;
  if (!empty && !meta) problems.push({ what: metaBytes ? "the meta record is damaged" : "the meta record is missing" });
  if (meta && newerLayout === undefined) problems.push(...compare(meta, rows, damagedRows, digest));
  return { meta, empty, codec, rows, digest, problems, damaged, newerLayout };
}

function compare(meta: Meta, rows: readonly LoadedRow[], damaged: number, digest: number): Problem[] {
  const found = rows.length + damaged;
  const ahead = rows.find(({ row }) => row.revision > meta.reserved);
  return [
    ...(found < meta.rows ? [{ what: `${meta.rows - found} of ${meta.rows} rows are missing` }] : []),
    ...(found > meta.rows ? [{ what: `${found - meta.rows} rows are too many: deleted rows came back` }] : []),
    ...(found === meta.rows && damaged === 0 && digest !== meta.digest ? [{ what: "a row is not as it was last written" }] : []),
    ...(ahead ? [{ what: `revision ${ahead.row.revision} was never handed out`, key: ahead.row.key }] : []),
  ];
}

async function loadShapes(engine: Engine, problems: Problem[], damaged: string[]): Promise<string[][]> {
  const shapes: string[][] = [];
  let whole = true;
  for await (const page of engine.range(...SHAPES_RANGE)) {
    for (const [engineKey, bytes] of page) {
      const record = decodeRecord(engineKey, bytes);
      // From a hole on, all shapes are given up: rows that need one of them are reported one by one.
      if (whole && (!record || engineKey !== shapeKey(shapes.length))) {
        problems.push({ what: `shape ${shapes.length} of the objects is damaged or missing` });
        whole = false;
      }
      if (whole && record) shapes.push(JSON.parse(new TextDecoder().decode(record.bytes)) as string[]);
      else damaged.push(engineKey);
    }
  }
  return shapes;
}

function loadRow(engineKey: string, bytes: Uint8Array, decode: (record: StoredRecord) => FrozenJson): LoadedRow | { readonly problem: Problem } {
  const key = keyOfRow(engineKey);
  const record = decodeRecord(engineKey, bytes);
  if (!record) return { problem: { what: "the row is damaged", key } };
  try {
    const frozen = decode(record);
    return { row: Object.freeze({ key, value: frozen.value, revision: record.revision }), weight: weightOf(frozen), crc: record.crc };
  } catch (error) {
    return { problem: { what: `the row cannot be decoded: ${(error as Error).message}`, key } };
  }
}
