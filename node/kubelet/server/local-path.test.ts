import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { metricsRegistry } from "../../../core/observe/metrics.ts";
import type { KubeletApi } from "../kubelet-api.ts";
import { BadName } from "../volumes/local-path.ts";
import type { AnswerError } from "./answer.ts";
import { nodeAttributes } from "./authorization.ts";
import { checkedHealth } from "./healthz.ts";
import { route } from "./routes.ts";

test.each([
  ["POST", "/localPath/pvc-1_ns_c", 200, '{"path":"/storage/pvc-1_ns_c"}'],
  ["DELETE", "/localPath/pvc-1_ns_c", 200, "{}"],
  ["DELETE", "/localPath/..", 400, 'is no name of a local-path volume'],
  ["GET", "/localPath/pvc-1_ns_c", 405, "Method Not Allowed"],
  ["POST", "/localPath/a/b", 404, "page not found"],
])("%s %s", async (method, path, status, body) => {
  const localPath = {
    async make(name: string) { return `/storage/${name}`; },
    async remove(name: string) { if (name === "..") throw new BadName(name); },
  };
  const asked = { api: {} as KubeletApi, metrics: metricsRegistry(), health: checkedHealth(() => undefined), debugging: true, configz: () => ({}), body: () => Promise.resolve(""), clock: systemClock, log: silentLog, exec: async () => ({ exitCode: 0, stdout: "", stderr: "" }), localPath, method, parts: path.split("/").slice(1), query: new URLSearchParams(), signal: new AbortController().signal };
  const answer = await route(asked).catch((error: AnswerError) => error.answer);
  expect(answer.status).toBe(status);
  expect(String(answer.body)).toContain(body);
  expect(nodeAttributes(method, path).subresources).toEqual(["proxy"]); // for those who may do anything on a node
});
