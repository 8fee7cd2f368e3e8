import { expect, test } from "vitest";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import type { Cri } from "../../cri/client.ts";
import { RuntimeState } from "./runtime-state.ts";

const DOWN = "container runtime is down", YET = "container runtime status check may not have completed yet", NOT_READY = "container runtime not ready: RuntimeReady=false reason:Why message:no";

/** The runtime as it is look by look, five seconds apart; what is wrong with it then. */
async function looked(looks: readonly ("ready" | "not ready" | "away")[], { silentMs = 0 }: { readonly silentMs?: number } = {}): Promise<string[]> {
  const stop = new AbortController();
  const said: string[] = [];
  let now = 0;
  const cri = { call: async (method: string) => {
    const look = looks[said.length]!;
    if (look === "away") throw new Error("connection refused");
    if (method === "RuntimeService/Version") return {};
    return { status: { conditions: [{ type: "RuntimeReady", status: look === "ready", reason: "Why", message: "no" }, { type: "NetworkReady", status: true }] } };
  } } as unknown as Cri;
  const clock = { ...systemClock, uptimeMs: () => now, async sleep() {
    said.push(state.problems().join(" & "));
    now += 5_000;
    if (said.length === looks.length) stop.abort();
  } };
  const state = new RuntimeState({ cri, clock, runtimeSilentMs: () => silentMs, runtimeSilentMsMax: 180_000 }, () => undefined);
  await state.run(stop.signal, () => undefined);
  return said;
}

test("a runtime that does not answer is down once it has not been ready for half a minute", async () => {
  expect(await looked(["away", "ready", "away", "away", "away", "away", "away", "away", "away", "ready"])).toEqual([YET, "", "", "", "", "", "", DOWN, DOWN, ""]);
});

test("one that says that it is not ready makes the node not ready at once, and is down as well after a while", async () => {
  expect(await looked(["not ready", "ready", "not ready", "away", "not ready", "not ready", "not ready", "not ready"])).toEqual([`${YET} & ${NOT_READY}`, "", NOT_READY, NOT_READY, NOT_READY, NOT_READY, NOT_READY, `${DOWN} & ${NOT_READY}`]);
  expect(await looked(["ready"], { silentMs: 200_000 })).toEqual(["PLEG is not healthy: pleg was last seen active 200s ago; threshold is 3m0s"]);
});
