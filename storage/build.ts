/** A new store on disk from rows that keep their revisions: what restoring a backup and mending a damaged store end with. */
import type { StoreClock } from "./engine.ts";
import { storeError } from "./disk.ts";
import { levelEngine } from "./leveldb/leveldb.ts";
import { Durable } from "./mvcc/durable.ts";
import { ValueCodec } from "./mvcc/values.ts";
import type { Revision, Row } from "./store.ts";

/** Rows written with one fsync. */
const ROWS_AT_ONCE = 1000;

interface Options {
  /** Where there is nothing yet. */
  readonly path: string;
  readonly rows: Iterable<Row> | AsyncIterable<Row>;
  /** The revision the store stands at; asked once there is a row. */
  head(): Revision;
  readonly clock: StoreClock;
}

/** Returns how many rows there were. What there is when it throws is no store: the caller removes it. */
export async function buildStore({ path, rows, head, clock }: Options): Promise<number> {
  const engine = await levelEngine({ path, clock, create: true });
  try {
    const durable = new Durable({ engine, clock, codec: new ValueCodec([]), rows: [], digest: 0, reserved: 0, connect: () => Promise.reject(storeError("unavailable", { path, reason: "writing it failed" })) });
    let count = 0;
    let chunk = new Map<string, { row: Row }>();
    for await (const row of rows) {
      chunk.set(row.key, { row });
      count++;
      if (chunk.size < ROWS_AT_ONCE) continue;
      await durable.write(chunk, { head: head(), clean: false });
      chunk = new Map();
    }
    await durable.write(chunk, { head: head(), clean: true });
    await durable.close();
    return count;
  } catch (error) {
    await engine.close();
    throw error;
  }
}
