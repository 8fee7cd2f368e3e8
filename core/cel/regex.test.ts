import { expect, test } from "vitest";
import { compileRegex, RegexError } from "./regex.ts";

test("two groups may have one name, and one that every object has", () => {
  expect(compileRegex("(?P<a>x)(?<a>y)[[:alpha:](?P<a>]+\\Q(?P<a>").exec("xyz(?P<a>")?.groups).toEqual(["xyz(?P<a>", "x", "y"]);
  expect(compileRegex("(?P<constructor>x)").groupCount).toBe(1);
});

test.each([
  ["that of the pattern", "[duplicate capture group name", "error parsing regexp: missing closing ]: `[duplicate capture group name`"],
  ["a class without its end", "(?P<a>)(?P<a>)[(?P<a>)", "error parsing regexp: missing closing ]: `[(?P<a>)`"],
  ["a very long one", `(?P<a>)(?P<a>)${"[".repeat(300_000)}`, /^error parsing regexp: missing closing \]: `\[/],
  ["a very long one that ends with a backslash", `(?P<a>)(?P<a>)${"[".repeat(300_000)}\\`, /^error parsing regexp: trailing backslash at end of expression/],
])("what else is wrong is said behind two groups of one name, and where it only looks like such: %s", (_, pattern, message) => {
  expect(() => compileRegex(pattern)).toThrow(RegexError);
  expect(() => compileRegex(pattern)).toThrow(message);
});
