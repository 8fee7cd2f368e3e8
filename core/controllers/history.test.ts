import { expect, test } from "vitest";
import { templatePatch } from "./history.ts";

test("a revision holds its template byte for byte as upstream's controllers write it", () => {
  const template = { metadata: { labels: { b: "2", a: "1" } }, spec: { restartPolicy: "Always" as const, containers: [{ name: "c", image: "i", args: ["x"], env: undefined }] } };
  expect(JSON.stringify(templatePatch(template))).toBe('{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[{"args":["x"],"image":"i","name":"c"}],"restartPolicy":"Always"}}}}');
});
