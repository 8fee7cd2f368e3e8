import { expect, test } from "vitest";
import { ifFound } from "./if-found.ts";
import { conflict, notFound } from "./status-error.ts";

test("that there is no such object is an answer, whatever else goes wrong is thrown", async () => {
  const pods = { group: "", resource: "pods" };
  expect([await ifFound(Promise.resolve("it")), await ifFound(Promise.reject(notFound(pods, "p")))]).toEqual(["it", undefined]);
  expect(await ifFound(Promise.reject(new Error("read", { cause: notFound(pods, "p") })))).toBeUndefined();
  await expect(ifFound(Promise.reject(conflict(pods, "p", "it has changed")))).rejects.toThrow("it has changed");
});
