/**
 * Kills a writing process again and again, and looks for what it had been promised.
 *
 *   bun test/crash/kill9.ts --kills 200 --seed 1 [--dir <directory>]
 *
 * A child opens the store and writes as fast as it can: 32 writers, each with rows of its own, put, delete and heartbeat, with values of ever new
 * shapes. It prints every write before it starts it and after it was acknowledged. A random time after it has opened the store it is killed
 * (SIGKILL), sometimes after its start: also while it opens the store. A second child then checks the store, opens it and prints what is in it,
 * and closes it in order or kills itself.
 *
 * Counted: acknowledged durable writes that are missing, changed or came back; revisions that were given twice or went backwards; volatile rows
 * that nobody wrote; checks that found something. One line is printed, and the exit code is 1 unless all are 0 and something was acknowledged.
 */
import { mkdtempSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock } from "../../core/lifecycle/clock.ts";
import { checkStore } from "../../storage/check.ts";
import { openStore } from "../../storage/open.ts";
import type { Revision, Store, Value } from "../../storage/store.ts";
import { mulberry32 } from "../mulberry32.ts";
import { wholeNumber } from "../whole-number.ts";

const WRITERS = 32;
const KEYS_PER_WRITER = 12;
const isVolatile = (key: string): boolean => key.startsWith("/v/");

/** One line of the writing child. `n` numbers the writes of a life; deletes have a number, too. */
type Line =
  | { readonly at: "open"; readonly revision: Revision }
  | { readonly at: "start"; readonly key: string; readonly n: number; readonly remove: boolean }
  | { readonly at: "done"; readonly key: string; readonly n: number; readonly revision: Revision };

/** What the second child found. */
interface Found {
  readonly problems: readonly string[];
  readonly revision: Revision;
  readonly rows: readonly { readonly key: string; readonly revision: Revision; readonly value: Value }[];
}

function seeded(seed: number): (below: number) => number {
  const next = mulberry32(seed);
  return (below) => Math.floor(next() * below);
}

/** The value of write `n` of `life`: its fields follow from its number, so that a value under a wrong shape is seen. */
function valueOf(life: number, n: number): Value {
  const random = seeded(life * 1_000_003 + n);
  const shape = random(4) === 0 ? random(100_000) : random(20); // every fourth value has a shape that nobody has seen before
  return { life, n, metadata: { name: `n${n}`, labels: { [`l/${random(50)}`]: "x" } }, spec: { [`field${shape}`]: n, [`other${shape % 7}`]: { list: [n, "x".repeat(random(800))] } } };
}

function open(dir: string): Promise<Store> {
  return openStore({ path: dir, clock: systemClock, volatile: isVolatile, flushEveryMs: 40, heartbeatFlushEveryMs: 90, freeBytesMin: 0 });
}

async function write(dir: string, life: number): Promise<void> {
  const store = await open(dir);
  const random = seeded(life);
  const print = (line: Line): void => void writeSync(1, `${JSON.stringify(line)}\n`);
  print({ at: "open", revision: store.revision });
  let n = 0;
  await Promise.all(Array.from({ length: WRITERS }, async (_, writer) => {
    for (;;) {
      const quiet = Math.floor(performance.now() / 60) % 3 === 0; // times without durable writes, so that what is volatile is really lost
      const key = `/${quiet || random(4) === 0 ? "v" : "d"}/${writer}/${random(KEYS_PER_WRITER)}`;
      const row = await store.get(key);
      const remove = row !== undefined && random(5) === 0;
      const mine = n++;
      print({ at: "start", key, n: mine, remove });
      const revision = remove ? await store.delete(key, row.revision) : await store.put(key, valueOf(life, mine), row?.revision ?? 0);
      print({ at: "done", key, n: mine, revision });
      if (isVolatile(key)) await new Promise((resolve) => setTimeout(resolve, 1)); // volatile writes do not wait: let the others have their turn
    }
  }));
}

async function dump(dir: string, dieAfter: boolean): Promise<void> {
  const report = await checkStore(dir);
  const store = await open(dir);
  const { rows } = await store.list({ prefix: "" });
  const found: Found = { problems: report.problems.map(({ what, key }) => `${what} ${key ?? ""}`), revision: store.revision, rows };
  const bytes = Buffer.from(JSON.stringify(found));
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at);
  if (dieAfter) process.kill(process.pid, "SIGKILL");
  await store.close();
}

/** What is known of one key: the last acknowledged state, and the write that was under way when the process died. */
interface Known {
  row: { readonly life: number; readonly n: number; readonly revision: Revision } | undefined;
  pending: { readonly n: number; readonly remove: boolean } | undefined;
}

class Ledger {
  readonly #known = new Map<string, Known>();
  /** Of volatile keys: every write there ever was, by life and number, with its revision if it was acknowledged. */
  readonly #volatile = new Map<string, Map<string, Revision | undefined>>();
  #newest: Revision = 0; // the newest revision anybody was told
  readonly complaints: string[] = [];
  lost = 0;
  repeated = 0;
  unclean = 0;
  acknowledged = 0;

  /** What the writing child printed. */
  read(life: number, lines: readonly Line[]): void {
    const before = this.#newest;
    const seen = new Set<Revision>();
    for (const line of lines) {
      if (line.at === "open") {
        if (line.revision < before) this.#complain("repeated", `life ${life} opened at ${line.revision}, before ${before}`);
        this.#newest = Math.max(this.#newest, line.revision);
        continue;
      }
      const known = this.#of(line.key);
      if (line.at === "start") {
        known.pending = { n: line.n, remove: line.remove };
        if (isVolatile(line.key)) this.#writes(line.key).set(`${life}/${line.n}`, undefined);
        continue;
      }
      if (line.revision <= before || seen.has(line.revision)) this.#complain("repeated", `revision ${line.revision} in life ${life}, newest before was ${before}`);
      if (known.row && line.revision <= known.row.revision) this.#complain("repeated", `${line.key} went from ${known.row.revision} to ${line.revision}`);
      seen.add(line.revision);
      this.#newest = Math.max(this.#newest, line.revision);
      this.acknowledged++;
      if (isVolatile(line.key)) this.#writes(line.key).set(`${life}/${line.n}`, line.revision);
      known.row = known.pending!.remove ? undefined : { life, n: line.n, revision: line.revision };
      known.pending = undefined;
    }
  }

  /** What was found after the kill; from then on it is what is known. */
  compare(life: number, { problems, revision, rows }: Found): void {
    for (const problem of problems) this.#complain("unclean", `life ${life}: ${problem}`);
    if (revision < this.#newest) this.#complain("repeated", `after life ${life} the store is at ${revision}, but ${this.#newest} had been told`);
    this.#newest = Math.max(this.#newest, revision);
    const found = new Map(rows.map((row) => [row.key, row]));
    for (const key of new Set([...this.#known.keys(), ...found.keys()])) {
      const known = this.#of(key);
      const row = found.get(key);
      const { life: wroteLife, n } = (row?.value ?? {}) as { life: number; n: number };
      const right = isVolatile(key) ? this.#volatileIsRight(key, row, `${wroteLife}/${n}`) : this.#durableIsRight(known, row, life, wroteLife, n);
      const whole = !row || JSON.stringify(row.value) === JSON.stringify(valueOf(wroteLife, n));
      if (!right || !whole) this.#complain("lost", `after life ${life}: ${key} is ${JSON.stringify(row)?.slice(0, 200)}, known ${JSON.stringify(known)}`);
      known.row = row && { life: wroteLife, n, revision: row.revision };
      known.pending = undefined;
    }
  }

  #durableIsRight({ row: last, pending }: Known, row: Found["rows"][number] | undefined, life: number, wroteLife: number, n: number): boolean {
    if (!row) return last === undefined || pending?.remove === true;
    if (last && wroteLife === last.life && n === last.n) return row.revision === last.revision;
    return pending !== undefined && !pending.remove && wroteLife === life && n === pending.n && row.revision > (last?.revision ?? 0);
  }

  #volatileIsRight(key: string, row: Found["rows"][number] | undefined, write: string): boolean {
    if (!row) return true;
    const revision = this.#writes(key).get(write);
    return this.#writes(key).has(write) && (revision === undefined || revision === row.revision);
  }

  #of(key: string): Known {
    let known = this.#known.get(key);
    if (!known) this.#known.set(key, (known = { row: undefined, pending: undefined }));
    return known;
  }

  #writes(key: string): Map<string, Revision | undefined> {
    let writes = this.#volatile.get(key);
    if (!writes) this.#volatile.set(key, (writes = new Map()));
    return writes;
  }

  #complain(count: "lost" | "repeated" | "unclean", text: string): void {
    this[count]++;
    if (this.complaints.length < 20) this.complaints.push(text);
  }
}

/** What it prints until it is killed, this long after its start; or after it has opened the store, which on a busy machine takes longer than any such moment. */
async function linesUntilKilled(writer: Bun.Subprocess<"ignore", "pipe", "inherit">, { momentMs, onceOpen }: { readonly momentMs: number; readonly onceOpen: boolean }): Promise<string> {
  const begin = () => setTimeout(() => writer.kill("SIGKILL"), momentMs);
  let timer = onceOpen ? undefined : begin(), text = "";
  for await (const bytes of writer.stdout.pipeThrough(new TextDecoderStream())) {
    timer ??= begin();
    text += bytes;
  }
  await writer.exited;
  clearTimeout(timer);
  return text;
}

async function run({ kills, seed, dir }: { kills: number; seed: number; dir: string }): Promise<boolean> {
  const random = seeded(seed);
  const ledger = new Ledger();
  const startMs = performance.now();
  let whileOpening = 0;
  let made = false; // a store was opened once, so there must be one from now on
  for (let kill = 0; kill < kills; kill++) {
    const life = seed * 1_000_000 + kill;
    const writer = Bun.spawn([process.execPath, import.meta.filename, "--write", String(life), "--dir", dir], { stdout: "pipe", stderr: "inherit" });
    const text = await linesUntilKilled(writer, { momentMs: 60 + random(500), onceOpen: random(4) > 0 });
    if (writer.signalCode !== "SIGKILL") throw new Error(`the writer of life ${life} ended by itself`);
    const lines = text.split("\n").slice(0, -1).map((line) => JSON.parse(line) as Line); // the last one may be half a line
    if (lines.length === 0) whileOpening++;
    ledger.read(life, lines);
    const dieAfter = random(2) === 0;
    if (!(made ||= lines.length > 0)) continue;
    const reader = Bun.spawn([process.execPath, import.meta.filename, "--dump", dieAfter ? "die" : "close", "--dir", dir], { stdout: "pipe", stderr: "inherit" });
    const dumped = await new Response(reader.stdout).text();
    if ((await reader.exited) !== 0 && !dieAfter) throw new Error(`the store cannot be opened after life ${life}; it lies in ${dir}`);
    ledger.compare(life, JSON.parse(dumped) as Found);
  }
  const { lost, repeated, unclean, acknowledged } = ledger;
  const sound = lost + repeated + unclean === 0 && acknowledged > 0;
  for (const complaint of ledger.complaints) console.error(complaint);
  console.log(`kill9: ${kills} kills (${whileOpening} while opening), ${acknowledged} writes acknowledged, ${lost} lost, ${repeated} revisions repeated, ${unclean} unclean checks, seed ${seed}, ${Math.round((performance.now() - startMs) / 1000)} s: ${sound ? "ok" : "FAILED"}`);
  return sound;
}

const { values: flags } = parseArgs({ options: { kills: { type: "string", default: "20" }, seed: { type: "string", default: "1" }, dir: { type: "string" }, write: { type: "string" }, dump: { type: "string" } } });
if (flags.write !== undefined) await write(flags.dir!, Number(flags.write));
else if (flags.dump !== undefined) await dump(flags.dir!, flags.dump === "die");
else {
  const dir = flags.dir ?? mkdtempSync(join(tmpdir(), "kill9-"));
  const sound = await run({ kills: wholeNumber(flags.kills, "--kills"), seed: wholeNumber(flags.seed, "--seed"), dir: join(dir, "store") });
  if (sound && flags.dir === undefined) rmSync(dir, { recursive: true });
  process.exitCode = sound ? 0 : 1;
}
