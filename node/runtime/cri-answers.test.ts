import { expect, test } from "vitest";
import type { Cri } from "../cri/client.ts";
import { RpcError, type RpcErrorCode } from "../cri/rpc-client.ts";
import { untilCriAnswers } from "./cri-answers.ts";

const clock = { sleep: async (): Promise<void> => undefined };

/** Refuses with these, one after the other, and answers then. */
function starting(...codes: RpcErrorCode[]): { readonly cri: Pick<Cri, "call">; readonly left: readonly string[] } {
  const call = async (method: string): Promise<unknown> => {
    const code = codes.shift();
    if (code !== undefined) throw new RpcError({ method, code, detail: "server is not initialized yet: unavailable" });
    return { runtime_name: "containerd" };
  };
  return { cri: { call } as Pick<Cri, "call">, left: codes };
}

test("a CRI that has not found its containers again yet is waited for, without a word", async () => {
  const { cri, left } = starting("Unavailable", "Unavailable");
  await untilCriAnswers({ cri, clock }, new AbortController().signal);
  expect(left).toEqual([]);
});

test("one that refuses for another reason is not", async () => {
  const { cri } = starting("Unavailable", "Unimplemented", "Unavailable");
  await expect(untilCriAnswers({ cri, clock }, new AbortController().signal)).rejects.toMatchObject({ code: "Unimplemented" });
});

test("one that never gets so far is told of with what it said", async () => {
  const { cri } = starting(...Array<RpcErrorCode>(1000).fill("Unavailable"));
  const stop = new AbortController();
  let looks = 0;
  const stopping = { sleep: async () => { if (++looks === 3) stop.abort(); } };
  await expect(untilCriAnswers({ cri, clock: stopping }, stop.signal)).rejects.toThrow("server is not initialized yet");
});
