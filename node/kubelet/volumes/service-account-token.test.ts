import { expect, test } from "vitest";
import type { Pod } from "../../../core/api/gen/core.v1.ts";
import type { Client } from "../../../core/client/client.ts";
import { systemClock } from "../../../core/lifecycle/clock.ts";
import { systemRandom } from "../../../core/lifecycle/random.ts";
import { silentLog } from "../../../core/observe/log.ts";
import { tokenSource } from "./service-account-token.ts";

const pod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: {} } as unknown as Pod;

test.each([
  ["as long as was asked for", 86_400, 86_400, [0, 60_000, 69_200]],
  ["less than a fifth of that", 86_400, 3_600, [0, 2_900]],
])("a token that lives %s is renewed after four fifths of its life", async (_, asked, given, expected) => {
  let seconds = 0;
  const requests: number[] = [];
  const client = { resource: () => ({ createSubresource: async (_name: object, _of: string, { spec }: { spec: object }) => {
    requests.push(seconds);
    return { spec: { ...spec, expirationSeconds: given }, status: { token: `t${requests.length}`, expirationTimestamp: new Date((seconds + given) * 1000).toISOString() } };
  } }) } as unknown as Client;
  const tokens = tokenSource({ client, clock: { ...systemClock, nowMs: () => seconds * 1000, uptimeMs: () => seconds * 1000 }, random: { ...systemRandom, next: () => 0 }, log: silentLog, signal: new AbortController().signal });
  const seen: string[] = [];
  for (seconds of expected) for (let i = 0; i < 2; i++) seen.push(await tokens.token(pod, { path: "", expirationSeconds: asked }));
  expect([seen.at(1), seen.at(-1), requests]).toEqual(["t1", "t2", [0, expected.at(-1)]]);
});

test("on a node whose clock is a year ahead of the server's a token is renewed after as much of its life, not each time, and is good while the server cannot be asked", async () => {
  let seconds = 0, requests = 0, offline = false;
  const client = { resource: () => ({ createSubresource: async (_name: object, _of: string, { spec }: { spec: object }) => {
    if (offline) throw new Error("no way to it");
    return { spec, status: { token: `t${++requests}`, expirationTimestamp: new Date((seconds + 3_600) * 1000).toISOString() } };
  } }) } as unknown as Client;
  const tokens = tokenSource({ client, clock: { ...systemClock, nowMs: () => (seconds + 366 * 86_400) * 1000, uptimeMs: () => seconds * 1000 }, random: { ...systemRandom, next: () => 0 }, log: silentLog, signal: new AbortController().signal });
  const at = async (now: number): Promise<string> => {
    seconds = now;
    return await tokens.token(pod, { path: "", expirationSeconds: 3_600 }).catch(({ message }: Error) => message);
  };
  expect([await at(0), await at(60), await at(2_870), await at(2_890)]).toEqual(["t1", "t1", "t1", "t2"]);
  offline = true;
  expect([await at(6_400), await at(6_500)]).toEqual(["t2", "failed to fetch token: no way to it"]);
});

test("a server that started in 1970 and is told the time gives new tokens at the next look, to a node whose clock was right all along", async () => {
  let seconds = 0, setBy = 0, requests = 0;
  const nowSeconds = Date.UTC(2026, 0, 1) / 1000, serverSeconds = (): number => seconds + setBy;
  const client = { resource: () => ({ createSubresource: async (_name: object, _of: string, { spec }: { spec: object }) =>
    ({ spec, status: { token: `t${++requests}`, expirationTimestamp: new Date((serverSeconds() + 3_600) * 1000).toISOString() } }) }) } as unknown as Client;
  const clock = { ...systemClock, nowMs: () => (nowSeconds + seconds) * 1000, uptimeMs: () => seconds * 1000 };
  const tokens = tokenSource({ client, clock, serverMs: () => serverSeconds() * 1000, random: { ...systemRandom, next: () => 0 }, log: silentLog, signal: new AbortController().signal });
  const at = async (now: number): Promise<string> => {
    seconds = now;
    return await tokens.token(pod, { path: "", expirationSeconds: 3_600 });
  };
  expect([await at(0), await at(60)]).toEqual(["t1", "t1"]);
  setBy = nowSeconds;
  expect([await at(120), await at(180)]).toEqual(["t2", "t2"]);
  setBy = 0; // and back: what it gave meanwhile holds for longer only
  expect([await at(240), await at(3_050)]).toEqual(["t2", "t3"]);
});

test("of thousands of tokens of one pod a few are asked for at a time, others have their turn between them, and other pods do not wait", async () => {
  let underWay = 0, most = 0, turns = 0, over = false;
  const client = { resource: () => ({ createSubresource: async (_name: object, _of: string, { spec }: { spec: { boundObjectRef: { uid: string } } }) => {
    most = Math.max(most, ++underWay);
    await Promise.resolve();
    underWay--;
    return { spec: { ...spec, expirationSeconds: 3600 }, status: { token: spec.boundObjectRef.uid, expirationTimestamp: new Date(Date.now() + 3_600_000).toISOString() } };
  } }) } as unknown as Client;
  const tokens = tokenSource({ client, clock: systemClock, random: systemRandom, log: silentLog, signal: new AbortController().signal });
  const count = (): void => { turns++; if (!over) setImmediate(count); };
  setImmediate(count);
  const many = Promise.all(Array.from({ length: 2000 }, (_, i) => tokens.token(pod, { path: "", audience: `a${i}` })));
  expect(await tokens.token({ ...pod, metadata: { ...pod.metadata, uid: "other" } }, { path: "" })).toBe("other");
  expect(turns).toBeLessThan(10);
  expect(new Set(await many)).toEqual(new Set(["u"]));
  over = true;
  expect(most).toBeLessThan(6);
  expect(turns).toBeGreaterThan(400);
});
