import { expect, test } from "vitest";
import { restartCountOf } from "./start-container.ts";

test.each([
  [[], 0], [["0.log"], 1], [["0.log.1"], 1], [["0.log.rotated", "1.log", "2.log"], 3], [["5.log.20260102-030405.gz", "6.log.20260102-030405"], 7], [["145.log.log.rotated"], 146],
  [["a.log", "12log.rotated", "rotated.23.log", "mylog42.log", "-42.log", "23a.log"], 0], [["9223372036854775808.log", "23.log", "2.log"], 24],
])("a container whose predecessors nobody remembers goes on counting from their logs: %j is %i", (logs, count) => {
  expect(restartCountOf(logs)).toBe(count);
});
