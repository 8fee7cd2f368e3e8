/**
 * The rows of a Table as JSON, of a list of thousands above all. What a row says of an object but for its age is kept beside it: to go through pods for nine cells means
 * to fetch most of each of them into the processor's cache, which costs more than all that is done with them.
 */
import { jsonText } from "../api/codec/json.ts";
import type { Part, Piece } from "../api/codec/pieces.ts";
import { AGE } from "../api/codec/table/columns.ts";
import { humanDuration } from "../api/codec/table/human-duration.ts";
import type { Printer } from "../api/codec/table/printer.ts";
import { printerOf } from "../api/codec/table/printers.ts";
import { renderTable, type Table, type TableRequest } from "../api/codec/table/table.ts";
import { parseTime } from "../api/meta/time.ts";
import type { Pausing } from "../lifecycle/breather.ts";
import type { Cached, RowBytes } from "../registry/generic/cached.ts";
import type { ServedResource } from "../registry/registry.ts";

/** Cells, and the conditions after them, if there are any: `before` the age, and `after` it. */
export interface Row { readonly entry: Cached; before: Piece; readonly age: string; readonly after: Piece }

/** `head`: the Table without its rows; `none`: what they are if there are none. */
export function* tableRows(served: ServedResource, entries: readonly Cached[], request: Pick<TableRequest, "listMeta" | "nowMs" | "version" | "describe">): Pausing<{ readonly head: Omit<Table, "rows">; readonly rows: readonly Row[]; readonly none: Table["rows"] }> {
  const printer = served.custom?.printer ?? printerOf(served.row);
  const { rows: none, ...head } = renderTable({ ...request, kind: served.row, printer, objects: [], listMeta: request.listMeta });
  const cellsOf = cellsEncoder();
  const { nowMs } = request;
  const agesOnly = !served.custom && printer.agesOnly !== undefined;
  const texts: string[] = [], rows: Row[] = [];
  for (const { entry, object } of inOrder(served, entries, printer)) {
    yield;
    const kept = agesOnly ? entry.row(() => rowBytes(printer, entry, cellsOf)) : undefined;
    if (kept) {
      rows.push({ entry, before: partOf(kept.bytes, 0, kept.ageAt), age: ageText(nowMs - kept.createdMs), after: partOf(kept.bytes, kept.ageAt, kept.bytes.length) });
      continue;
    }
    const before = textOf(printer, object, cellsOf(printer.cells(object, nowMs)));
    texts.push(before);
    rows.push({ entry, before, age: "", after: "" });
  }
  if (texts.length > 0) encodeAtOnce(rows, texts.join(""));
  return { head, rows, none };
}

/** As it stands in JSON: of what a clock that was set back has made "<invalid>". */
function ageText(ms: number): string {
  const text = humanDuration(ms);
  return text.startsWith("<") ? jsonText(text).slice(1, -1) : text;
}

function partOf(bytes: Buffer, start: number, end: number): Part { return { bytes, start, end }; }

/** Thousands of short texts cost less as one. Parts of its bytes are parts of its text as long as all of it is ASCII. */
function encodeAtOnce(rows: readonly Row[], whole: string): void {
  const bytes = Buffer.from(whole);
  if (bytes.length !== whole.length) return;
  let end = 0;
  for (const row of rows) if (typeof row.before === "string") row.before = partOf(bytes, end, (end += row.before.length));
}

interface Shown { readonly entry: Cached; readonly object: Readonly<Cached["object"]> }

/** A few kinds have an order of their own. Of all others each is brought into its version when it is asked for. */
function* inOrder(served: ServedResource, entries: readonly Cached[], { compare }: Printer): Iterable<Shown> {
  const shown = (entry: Cached): Shown => ({ entry, object: served.custom ? served.fromStorage(entry.object) : entry.object });
  if (compare) yield* entries.map(shown).sort((a, b) => compare(a.object, b.object));
  else for (const entry of entries) yield shown(entry);
}

function textOf(printer: Printer, object: Shown["object"], cells: string): string {
  const conditions = printer.conditions?.(object);
  return conditions && conditions.length > 0 ? `${cells},"conditions":${jsonText(conditions)}` : cells;
}

/** Undefined: more of it than the age depends on the time. */
function rowBytes(printer: Printer, { object }: Cached, cellsOf: CellsEncoder): RowBytes | undefined {
  const createdMs = parseTime(object.metadata.creationTimestamp ?? "");
  if (createdMs === undefined || !printer.agesOnly!(object)) return undefined;
  const cells = printer.cells(object, 0), at = printer.columns.indexOf(AGE);
  const start = `${cellsOf(cells.slice(0, at)).slice(0, -1)},"`, rest = cells.slice(at + 1);
  const end = textOf(printer, object, rest.length > 0 ? `",${cellsOf(rest).slice(1)}` : '"]');
  return { bytes: Buffer.from(start + end), ageAt: Buffer.byteLength(start), createdMs };
}

type CellsEncoder = (cells: readonly unknown[]) => string;

/** Cells as JSON, row by row. Most are what they were in the row before, and after the name often all are. */
function cellsEncoder(): CellsEncoder {
  let before: readonly unknown[] = [];
  let texts: string[] = [];
  let afterFirst = "";
  return (cells) => {
    let isNew = texts.length !== cells.length;
    if (isNew) texts = new Array<string>(cells.length).fill("");
    for (let i = 1; i < cells.length; i++) {
      if (texts[i] !== "" && cells[i] === before[i]) continue;
      texts[i] = cellText(cells[i]);
      isNew = true;
    }
    if (isNew) afterFirst = texts.slice(1).map((text) => `,${text}`).join("");
    before = cells;
    return cells.length === 0 ? "[]" : `[${cellText(cells[0])}${afterFirst}]`;
  };
}

/** Nearly all cells are short and plain: strings with nothing in them that JSON must escape, or what says that there is none. */
function cellText(cell: unknown): string {
  if (typeof cell !== "string") return jsonText(cell ?? null);
  return cell === "<none>" ? NONE : PLAIN.test(cell) ? `"${cell}"` : jsonText(cell);
}
const NONE = jsonText("<none>");
const PLAIN = /^[ !#-%'-;=?-[\]-~]*$/;
