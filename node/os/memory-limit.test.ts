import { expect, test } from "vitest";
import { limitOf } from "./memory-limit.ts";

const GIB = 1024 ** 3;

test.each<[string, 1 | 2, string, Readonly<Record<string, string>>, number]>([
  ["of its own group", 2, "0::/system.slice/coracle.service\n", { "/system.slice/coracle.service memory.max": `${GIB}\n`, "/system.slice memory.max": "max\n" }, GIB],
  ["of a group around it, as a container's is", 2, "0::/system.slice/coracle.service\n", { "/system.slice/coracle.service memory.max": "max\n", "/system.slice memory.max": "max\n", "/ memory.max": `${GIB}\n` }, GIB],
  ["the least of all", 2, "0::/a/b\n", { "/a/b memory.max": `${2 * GIB}`, "/a memory.max": `${GIB}` }, GIB],
  ["version 1", 1, "9:name=systemd:/x\n4:memory:/a/b\n0::/\n", { "/a/b memory.limit_in_bytes": "9223372036854771712\n", "/a memory.limit_in_bytes": `${GIB}\n` }, GIB],
  ["version 1, with a controller beside it", 1, "4:cpu,memory:/a\n", { "/a memory.limit_in_bytes": `${GIB}\n` }, GIB],
  ["none", 2, "0::/\n", {}, Infinity],
  ["no controller of memory", 1, "1:cpu:/a\n", {}, Infinity],
])("memory that a process may have: %s", (_, version, membership, files, expected) => {
  expect(limitOf(membership, { version, text: (path, _controller, file) => files[`${path} ${file}`] })).toBe(expected);
});
