import { expect, test } from "vitest";
import type { ServerRequest } from "./request.ts";
import { strictTransport, strictTransportProblem } from "./strict-transport.ts";

test("every answer has the directives that were asked for, and without any there is no header", async () => {
  const set: string[] = [];
  const request = { setHeader: (name: string, value: string) => void set.push(`${name}: ${value}`) } as unknown as ServerRequest;
  const handler = () => Promise.resolve({ type: "raw", status: 200, headers: {}, body: "" } as const);
  await strictTransport(handler, [])(request);
  await strictTransport(handler, ["max-age=31536000", "includeSubDomains"])(request);
  expect(set).toEqual(["Strict-Transport-Security: max-age=31536000; includeSubDomains"]);
});

test.each([
  [["max-age=1", "includeSubDomains", "preload"], undefined], [["max-age="], undefined], [["max-age=1", " "], "empty value"], [["max-age"], "allowed values: max-age=expireTime"], [["max-age=1=2"], "allowed values"], [["MaxAge=1"], "allowed values"],
])("directives %j: %s", (directives, told) => {
  const problem = strictTransportProblem(directives);
  if (told === undefined) expect(problem).toBeUndefined();
  else expect(problem).toContain(told);
});
