import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { refusalDetail } from "./authn.ts";
import { webhookTokens } from "./webhook-token.ts";

const asked: { token: string; audiences?: string[] }[] = [];
let failing = 0;
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => { body += String(chunk); });
  request.on("end", () => {
    const { spec, ...review } = JSON.parse(body) as { spec: { token: string; audiences?: string[] } };
    asked.push(spec);
    if (failing-- > 0) {
      response.writeHead(429).end("busy");
      return;
    }
    const status = spec.token === "good" ? { authenticated: true, user: { username: "jane", uid: "1", groups: ["g"], extra: { k: ["v"] } } }
      : spec.token === "nulls" ? { authenticated: true, user: { username: "jo", uid: null, groups: null, extra: null }, audiences: null, error: null } : spec.token === "texts" ? { authenticated: "false", user: { username: "root" } }
      : spec.token === "other" ? { authenticated: true, user: { username: "x" }, audiences: ["elsewhere"] } : { authenticated: false, ...(spec.token === "odd" ? { error: "no such token" } : {}) };
    response.end(JSON.stringify({ ...review, spec, status }));
  });
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => server.close());

let uptimeMs = 0;
const clock: Clock = { ...systemClock, uptimeMs: () => uptimeMs, sleep: async () => undefined };
const tokens = webhookTokens({ server: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/authenticate`, tls: {} }, apiAudiences: ["api"], clock });
const { signal } = new AbortController();
const ask = async (token: string, audiences = ["api"]) => await tokens.authenticateToken(token, audiences, signal).then((found) => found && { ...found.user, audiences: found.audiences }, refusalDetail);

test("is asked once, however many come with the token, and again when what it said is old", async () => {
  const jane = { name: "jane", uid: "1", groups: ["g"], extra: { k: ["v"] }, audiences: ["api"] };
  expect(await Promise.all([ask("good"), ask("good")])).toEqual([jane, jane]);
  expect([await ask("good"), asked.length]).toEqual([jane, 1]);
  uptimeMs += 120_001;
  await ask("good");
  expect(asked.splice(0)).toEqual([{ token: "good", audiences: ["api"] }, { token: "good", audiences: ["api"] }]);
});

test("what it does not know is somebody else's; what it refuses is refused", async () => {
  expect([await ask("unknown"), await ask("odd"), await ask("other")]).toEqual([undefined, "no such token", undefined]);
});

test("what it says is read as Go reads it: null is nothing, and \"false\" is no yes", async () => {
  expect(await ask("nulls")).toEqual({ name: "jo", groups: [], audiences: ["api"] });
  expect(await ask("texts")).toBe("webhook: json: cannot unmarshal string into Go struct field TokenReviewStatus.status.authenticated of type bool");
});

test("that it does not know a token is remembered, that it has an error to tell of one is not", async () => {
  asked.length = 0;
  for (const token of ["nobody's", "nobody's", "odd", "odd"]) await ask(token, ["api", "z"]);
  expect(asked.map(({ token }) => token)).toEqual(["nobody's", "odd", "odd"]);
});

test("when it is busy it is asked again; that it does not answer is not remembered", async () => {
  failing = 2;
  asked.length = 0;
  expect([(await ask("good", ["api", "x"]) as { name: string }).name, asked.length]).toEqual(["jane", 3]);
  failing = 9;
  expect(await ask("odd", ["api", "y"])).toBe("webhook: 429: busy");
  failing = 0;
  expect(await ask("odd", ["api", "y"])).toBe("no such token");
  expect(asked.length).toBe(3 + 5 + 1);
});

test("who is asked has half a minute to answer", async () => {
  const alarmsMs: number[] = [];
  const after: Clock["after"] = (ms, act) => { alarmsMs.push(ms); return systemClock.after(ms, act); };
  const patient = webhookTokens({ server: { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/authenticate`, tls: {} }, apiAudiences: ["api"], clock: { ...clock, after } });
  expect([(await patient.authenticateToken("good", ["api"], signal))?.user.name, alarmsMs]).toEqual(["jane", [30_000]]);
});
