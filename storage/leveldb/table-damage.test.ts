/** Tables that LevelDB itself has written, damaged a byte, a page or an end at a time. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { mulberry32 } from "../../test/mulberry32.ts";
import { levelEngine, unreadableShare } from "./leveldb.ts";
import { liveTables } from "./live-tables.ts";
import { damageInTable } from "./table-damage.ts";

const clock = { uptimeMs: () => 0 };
const PAGE = 4096;
let path = "", file = "";
let table: Buffer;

/** Rows of which a part is packed well and another is not, some of them written twice, in one table, behind which is a log. */
beforeAll(async () => {
  path = mkdtempSync(join(tmpdir(), "table-"));
  const random = mulberry32(7);
  for (const [begin, end] of [[0, 800], [400, 401]] as const) {
    const engine = await levelEngine({ path, clock, create: begin === 0, freeBytesMin: 0 });
    for (let i = begin; i < end; i++)
      await engine.batch([{ type: "put", key: `/rows/${String(i).padStart(5, "0")}`, value: Buffer.from(`${"same ".repeat(40)}${Array.from({ length: 100 }, () => random().toString(36)).join("")}`) }], { sync: false });
    await engine.close();
  }
  file = readdirSync(path).filter((name) => name.endsWith(".ldb")).map((name) => join(path, name)).toSorted((a, b) => statSync(b).size - statSync(a).size)[0]!;
  table = readFileSync(file);
});
afterAll(() => rmSync(path, { recursive: true }));

function changed(change: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.from(table);
  change(bytes);
  return bytes;
}

test("a table is as LevelDB has written it, and its MANIFEST says how long it is", () => {
  expect(damageInTable(table)).toBeUndefined();
  expect([...liveTables(path)!]).toContainEqual([Number.parseInt(file.slice(path.length + 1), 10), table.length]);
});

test("each bit counts, but for those between the places in its last bytes and their number", () => {
  const random = mulberry32(1);
  for (let i = 0; i < 300; i++) {
    const at = Math.floor(random() * (table.length - 48));
    expect({ at, found: damageInTable(changed((bytes) => void (bytes[at]! ^= 1 << Math.floor(random() * 8)))) === undefined }).toEqual({ at, found: false });
  }
});

test("a value alone does not cost the rows beside it; keys, and where they stand, do; a table without an index is nothing", () => {
  const key = table.indexOf("/rows/"), value = table.indexOf("same same") + 2;
  expect(damageInTable(changed((bytes) => void (bytes[value]! ^= 1)))).toMatchObject({ types: [] });
  expect(damageInTable(changed((bytes) => bytes.write("~", key)))?.types).toHaveLength(1);
  expect(damageInTable(changed((bytes) => bytes.fill(0xff, 8 * PAGE, 9 * PAGE)))?.types?.length).toBeGreaterThan(0);
  for (const length of [0, 47, PAGE, table.length - 1]) expect(damageInTable(table.subarray(0, length))).toEqual({ types: undefined, bytes: length });
  expect(damageInTable(changed((bytes) => bytes.fill(0xff, table.length - 48, table.length - 9)))).toEqual({ types: undefined, bytes: table.length });
  expect(damageInTable(changed((bytes) => bytes.fill(0, table.length - 600, table.length - 500)))).toEqual({ types: undefined, bytes: table.length });
});

test("a table that a crash has left half written, of which the MANIFEST says nothing, is no damage; one that is gone counts as long as it was", async () => {
  writeFileSync(join(path, "999999.ldb"), table.subarray(0, PAGE));
  await (await levelEngine({ path, clock, freeBytesMin: 0 })).close();
  expect(unreadableShare(path)).toBe(0);
  rmSync(file);
  expect(unreadableShare(path)).toBeGreaterThan(0.5);
  await expect(levelEngine({ path, clock, freeBytesMin: 0 })).rejects.toMatchObject({ code: "corrupt" });
});
