import { expect, test } from "vitest";
import { formatFieldError } from "../../api/meta/field-error.ts";
import { portsOf } from "./connect-options.ts";
import { logOptionsOf, validateLogOptions } from "./pod-streams.ts";

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

// Cases: pkg/apis/core/validation/validation_test.go TestValidatePodLogOptions
test.each<[query: string, splits: boolean, told: string[]]>([
  ["", false, []], ["", true, []], ["stream=All", false, ["stream: Forbidden: may not be specified"]], ["stream=Stdout", false, ["stream: Forbidden: may not be specified"]],
  ["stream=All&tailLines=10", true, []], ["stream=Stderr&limitBytes=10&sinceSeconds=1", true, []], ["stream=Stdout", true, []], ["tailLines=10", true, []],
  ["stream=invalid", true, ['stream: Unsupported value: "invalid": supported values: "All", "Stderr", "Stdout"']],
  ["stream=Stdout&tailLines=10", true, ["[]: Forbidden: `tailLines` and specific `stream` are mutually exclusive for now"]],
])("a log with %s, streams apart: %s", (query, splits, told) => expect(validateLogOptions(logOptionsOf(new URLSearchParams(query)), splits).map(formatFieldError)).toEqual(told));
