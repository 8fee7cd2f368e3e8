/**
 * bun installers/bundle/bytecode-order.ts RECORD…   → bytecode-order.txt, by which build.ts lays out the executable's bytecode: what runs stands together at the front, and of the
 * rest nothing is read into memory. That is 8 MB of a server's, and of an agent's.
 *
 * A record is what a process leaves when it ends that was started with BUN_BYTECODE_ORDER_OUT=RECORD: a server, then an agent, each after a pod or two. Functions are known by what they
 * are, so that an order lasts as long as most of them stay what they are; it changes nothing but places.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const ORDER = join(import.meta.dirname, "bytecode-order.txt");
/** Functions and modules. Strings and names are recorded as well: ten times as many lines, for nothing that could be measured. */
const KEPT = /^[FM] /;

export function orderOf(records: readonly string[]): string {
  const [version = ""] = records[0]!.split("\n");
  return [version, ...new Set(records.flatMap((record) => record.split("\n").filter((line) => KEPT.test(line)))), ""].join("\n");
}

if (import.meta.main) writeFileSync(ORDER, orderOf(process.argv.slice(2).map((file) => readFileSync(file, "utf8"))));
