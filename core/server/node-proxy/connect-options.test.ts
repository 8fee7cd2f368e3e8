import { expect, test } from "vitest";
import { portsOf } from "./connect-options.ts";
import { logOptionsOf } from "./pod-streams.ts";

test("ports are numbers as Go reads them, several in one word or each in its own", () => expect(portsOf(new URLSearchParams("ports=80,0&ports=65535"))).toEqual([80, 0, 65_535]));

test.each([
  ["ports=x", "x", "invalid syntax"], ["ports=", "", "invalid syntax"], ["ports=%2B1", "+1", "invalid syntax"], ["ports=-1", "-1", "invalid syntax"], ["ports=80,1e2", "1e2", "invalid syntax"],
  ["ports=65536", "65536", "value out of range"],
])("%s is refused", (query, text, why) => expect(() => portsOf(new URLSearchParams(query))).toThrow(`cannot convert to []int32: strconv.ParseUint: parsing "${text}": ${why}`));

test.each([
  ["tailLines=", 'strconv.ParseInt: parsing "": invalid syntax'], ["limitBytes=", 'strconv.ParseInt: parsing "": invalid syntax'], ["sinceSeconds=", 'strconv.ParseInt: parsing "": invalid syntax'],
  ["tailLines=99999999999999999999", 'strconv.ParseInt: parsing "99999999999999999999": value out of range'],
  ["sinceTime=2020-01-01", 'parsing time "2020-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"'], ["sinceTime=2020-13-01T00:00:00Z", 'parsing time "2020-13-01T00:00:00Z": month out of range'],
])("a log with %s is refused", (query, message) => expect(() => logOptionsOf(new URLSearchParams(query))).toThrow(message));

test("an empty time is none", () => expect(logOptionsOf(new URLSearchParams("sinceTime=&timestamps="))).toMatchObject({ sinceTime: undefined, timestamps: true }));
