import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import { type Cri, CriError } from "../../cri/client.ts";
import { updateSandbox } from "./sandbox-update.ts";

const pod = (overhead?: Record<string, string>): Pod => ({ metadata: { name: "p", uid: "u" }, spec: { containers: [{ name: "c" }], ...(overhead ? { overhead } : {}) } }) as unknown as Pod;
const limits = { cpuShares: 1024, cpuQuotaUs: 200_000, cpuPeriodUs: 100_000, memoryBytes: 256 << 20 };

async function tell(one: Pod, refuse?: { readonly code: "Unimplemented" | "Unknown"; readonly detail: string }, before = { ...limits, memoryBytes: 1 }): Promise<unknown> {
  let told: unknown;
  const cri = { call: async (method: string, request: unknown) => { told = request; if (refuse) throw new CriError({ method, ...refuse }); return {}; } } as unknown as Cri;
  return await updateSandbox(cri, { sandboxId: "s", pod: one, before, limits }, new AbortController().signal).then(() => told, (error: Error) => error.message);
}

test("a sandbox is told what its pod may use, and apart from that what it needs for itself", async () => {
  expect(await tell(pod())).toEqual({ pod_sandbox_id: "s", overhead: {}, resources: { cpu_shares: 1024, cpu_quota: 200_000, cpu_period: 100_000, memory_limit_in_bytes: 256 << 20 } });
  expect(await tell(pod({ cpu: "500m", memory: "56Mi" }))).toMatchObject({ overhead: { cpu_quota: 50_000, memory_limit_in_bytes: 56 << 20 }, resources: { cpu_shares: 512, cpu_quota: 150_000, memory_limit_in_bytes: 200 << 20 } });
});

test.each([
  ["does not know of it", { code: "Unimplemented", detail: "" }, undefined], ["has not made it yet", { code: "Unknown", detail: "not implemented yet" }, undefined],
  ["refuses", { code: "Unknown", detail: "no" }, 'failed to notify runtime for UpdatePodSandboxResources (resource=memory); resize rejected: updatePodSandboxResources failed for sanboxID "s": rpc error: code = Unknown desc = no'],
] as const)("a runtime that %s", async (_, refusal, message) => {
  const said = await tell(pod(), refusal);
  if (message === undefined) expect(said).toMatchObject({ pod_sandbox_id: "s" });
  else expect(said).toBe(message);
});
