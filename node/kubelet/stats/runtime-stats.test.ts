import { expect, test } from "vitest";
import { type Cri, CriError, type CriErrorCode } from "../../cri/client.ts";
import { POD_UID } from "../containers/labels.ts";
import { runtimeStats } from "./runtime-stats.ts";

const signal = new AbortController().signal;
const usage = { cpuNs: 9, memoryBytes: 8, workingSetBytes: 7, rssBytes: 6, pageFaults: 5, majorPageFaults: 4 };

function ask(answers: Readonly<Record<string, object | CriErrorCode>>) {
  const cri = {
    call: async (method: string, { pod_sandbox_id: id = "" }: { readonly pod_sandbox_id?: string }) => {
      const answer = answers[`${method.replace("RuntimeService/", "")}${id && ` ${id}`}`] ?? "Unimplemented";
      if (typeof answer === "string") throw new CriError({ method, code: answer, detail: "" });
      return answer;
    },
  } as unknown as Pick<Cri, "call">;
  return runtimeStats({ cri, cgroups: { usage: () => usage }, sandboxes: () => ["s1", "s2"], podGroup: (uid) => (uid === "u1" ? "/u1" : undefined) }, signal);
}

test("all at once; one by one when that fails, without those of which nothing is known; nothing is made up of a runtime that is away", async () => {
  expect(await ask({ ListPodSandboxStats: { stats: [{ attributes: { id: "s1" } }] } })).toEqual([{ attributes: { id: "s1" } }]);
  expect(await ask({ ListPodSandboxStats: "Unknown", "PodSandboxStats s1": { stats: { attributes: { id: "s1" } } }, "PodSandboxStats s2": "Unknown" })).toEqual([{ attributes: { id: "s1" } }]);
  expect(await ask({ ListPodSandboxStats: "DeadlineExceeded", "PodSandboxStats s1": "DeadlineExceeded", "PodSandboxStats s2": { stats: { attributes: { id: "s2" } } } })).toEqual([{ attributes: { id: "s2" } }]);
  await expect(ask({ ListPodSandboxStats: "Unavailable" })).rejects.toThrow();
  await expect(ask({ ListPodSandboxStats: "Unknown", "PodSandboxStats s1": "Unavailable" })).rejects.toThrow();
});

test("a runtime that knows of containers only: a pod's are put together, what they share is its cgroup's", async () => {
  const container = (uid: string, id: string, nanoCores: number) => ({ attributes: { id, labels: { [POD_UID]: uid } }, cpu: { usage_nano_cores: { value: nanoCores } } });
  const stats = await ask({ ListContainerStats: { stats: [container("u1", "a", 1), container("u2", "b", 2), container("u1", "c", 3), { attributes: { id: "stranger" } }] } });
  expect(stats.map(({ attributes, linux }) => [attributes?.labels?.[POD_UID], linux?.containers?.map((one) => one.attributes?.id), linux?.cpu?.usage_nano_cores?.value, linux?.memory?.working_set_bytes?.value]))
    .toEqual([["u1", ["a", "c"], 4, 7], ["u2", ["b"], undefined, undefined]]);
});
