import { expect, test } from "vitest";
import { errorText } from "./error-text.ts";

test("an error without words is told by its code, or else its name; what is no error by itself", () => {
  const without = (facts: object): Error => Object.assign(new Error(""), facts);
  expect([errorText(new Error("unexpected EOF")), errorText(without({ code: "EPIPE" })), errorText(new AggregateError([new Error("one")])), errorText("no more")]).toEqual(["unexpected EOF", "EPIPE", "AggregateError", "no more"]);
});
