import { existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { writePayload } from "./atomic-writer.ts";
import { growth } from "../../../test/reads.ts";
import { usedVolumes } from "./volumes.ts";
import { makeMountPoints, nestedMountPoints } from "./nested-mounts.ts";

let directory = "";
beforeEach(() => { directory = mkdtempSync(join(tmpdir(), "nested-")); });
afterEach(() => rmSync(directory, { recursive: true }));

const pod = (...containers: Record<string, string>[]): Pick<Pod, "spec"> => ({ spec: { containers: containers.map((mounts, i) => ({ name: `c${i}`, volumeMounts: Object.entries(mounts).map(([mountPath, name]) => ({ mountPath, name })) })) } as Pod["spec"] });

test.each<[string, Record<string, string>[], string[]]>([
  ["none", [{ "/etc/a": "v", "/etc/ab": "w", "/etc": "x" }], []],
  ["one below", [{ "/etc/a": "v", "/etc/a/deep/b": "w" }], ["deep/b"]],
  ["not what is below that", [{ "/etc/a/": "v", "/etc/a/b": "w", "/etc/a/b/c": "x", "/etc/a/b-c": "y" }], ["b", "b-c"]],
  ["in whichever container", [{ "/a": "v" }, { "/v": "v", "/v/x": "w" }, { "/o": "v", "/o/x": "w", "/o/y": "v" }], ["x", "y"]],
  ["below a path that is written otherwise", [{ "/etc//a/.": "v", "/etc/a/b/": "w" }], ["b"]],
  ["below the root", [{ "/": "v", "/b": "w" }], ["b"]],
])("mounts within a volume: %s", (_, containers, expected) => {
  expect(nestedMountPoints(pod(...containers))("v")).toEqual(expected);
});

test("a pod may have tens of thousands of them", () => {
  const below = Array.from({ length: 40_000 }, (_, i) => [`/a/${i}`, "v"]);
  expect(nestedMountPoints(pod(Object.fromEntries([["/a", "v"], ...below]) as Record<string, string>))("v")).toHaveLength(40_000);
});

test("mount points are there before the files, and stay when these change", async () => {
  const write = async (content: Record<string, string>, paths: string[]): Promise<void> => {
    const taken = await makeMountPoints(directory, paths, (name) => name in content);
    await writePayload(directory, new Map(Object.entries(content).map(([path, text]) => [path, { data: Buffer.from(text), mode: 0o644 }])), { clock: systemClock, random: systemRandom, taken, prepare: async () => undefined });
  };
  await write({ a: "1", file: "2" }, ["nested/deep", "file"]);
  expect(statSync(join(directory, "nested/deep")).isDirectory()).toBe(true);
  expect(lstatSync(join(directory, "file")).isSymbolicLink()).toBe(true); // of its own: what is mounted there covers it
  const { ino } = statSync(join(directory, "nested"));
  await write({ a: "9", nested: "a key by that name, too late" }, ["nested/deep"]);
  await write({ a: "9", nested: "a key by that name, too late" }, ["nested/deep"]);
  expect([readFileSync(join(directory, "a"), "utf8"), statSync(join(directory, "nested")).ino, existsSync(join(directory, "file"))]).toEqual(["9", ino, false]);
});

test("a pod's mounts are gone through once for all its volumes", () => {
  expect(growth((n, reads) => {
    const mounts = Array.from({ length: n }, (_, i) => ({ name: `v${i}`, mountPath: `/m/${i}` }));
    const spec = { containers: [{ name: "c", volumeMounts: reads.of(mounts) }] } as unknown as Pod["spec"];
    const nested = nestedMountPoints({ spec }), used = usedVolumes({ spec });
    for (const { name } of mounts) expect([used.has(name), nested(name)]).toEqual([true, []]);
  }, 200)).toBeLessThan(3);
});
