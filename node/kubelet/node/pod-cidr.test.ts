import { expect, test } from "vitest";
import { silentLog } from "../../../core/observe/log.ts";
import { type Cri, CriError, type CriErrorCode } from "../../cri/client.ts";
import { podCidrTold } from "./pod-cidr.ts";

test("the runtime is told once which addresses its pods have, until it has heard, unless it does not want to know", async () => {
  const heard: string[] = [];
  const answers: (CriErrorCode | undefined)[] = ["Unavailable", undefined, "Unimplemented"];
  const cri = { call: async (method: string, { runtime_config }: { runtime_config?: { network_config?: { pod_cidr?: string } } }) => {
    heard.push(`${method} ${runtime_config?.network_config?.pod_cidr}`);
    const code = answers[heard.length - 1];
    if (code) throw new CriError({ method, code, detail: "" });
    return {};
  } } as unknown as Cri;
  const tell = podCidrTold({ cri, log: silentLog });
  const { signal } = new AbortController();
  for (const podCIDRs of [undefined, ["10.1.0.0/24"], ["10.1.0.0/24"], ["10.1.0.0/24"], ["10.1.0.0/24", "fd00::/64"], ["10.1.0.0/24", "fd00::/64"]]) await tell({ spec: podCIDRs ? { podCIDRs } : {} }, signal);
  expect(heard).toEqual(["RuntimeService/UpdateRuntimeConfig 10.1.0.0/24", "RuntimeService/UpdateRuntimeConfig 10.1.0.0/24", "RuntimeService/UpdateRuntimeConfig 10.1.0.0/24,fd00::/64"]);
});
