import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, expect, test } from "vitest";
import { type Clock, systemClock } from "../lifecycle/clock.ts";
import { refusalDetail } from "./authn.ts";
import { webhookTokens } from "./webhook-token.ts";

const asked: { token: string; audiences?: string[] }[] = [];
let failing = 0;
let askedFor = "";
/** Answers that are none, and ways to write one. */
const OTHERS: Readonly<Record<string, { readonly code?: number; readonly body: object | string; readonly told: unknown }>> = {
  "another kind": { body: { kind: "Pod", apiVersion: "v1" }, told: "converting (v1.Pod) to (v1beta1.TokenReview): unknown conversion" },
  "no kind at all": { body: { kind: "Other" }, told: 'no kind "Other" is registered for version "authentication.k8s.io/v1beta1" in scheme "k8s.io/client-go/kubernetes/scheme/register.go:82"' },
  "another version": { body: { apiVersion: "authentication.k8s.io/v1" }, told: "converting (v1.TokenReview) to (v1beta1.TokenReview): unknown conversion" },
  "a status": { body: { kind: "Status", apiVersion: "v1", status: "Success" }, told: "converting (v1.Status) to (v1beta1.TokenReview): unknown conversion" },
  "a strange spec": { body: { spec: 5 }, told: "json: cannot unmarshal number into Go struct field TokenReview.spec of type v1.TokenReviewSpec" },
  "a list": { body: "[]", told: expect.stringContaining("json: cannot unmarshal array") }, "nothing": { body: "", told: "0-length response with status code: 200 and content type: application/json" },
  "words": { body: "hello", told: expect.stringContaining("couldn't get version/kind; json parse error: ") },
  "a code of its own": { code: 207, body: {}, told: "the server responded with the status code 207 but did not return more information" },
  "why not": { code: 403, body: { kind: "Status", apiVersion: "v1", status: "Failure", message: "not now" }, told: "not now" },
  "nothing of itself": { body: { kind: "", apiVersion: "" }, told: expect.objectContaining({ name: "eve" }) },
  "yaml": { body: "status: {authenticated: true, user: {username: eve}}", told: expect.objectContaining({ name: "eve" }) },
  "a mark before": { body: '\uFEFF{"status":{"authenticated":true,"user":{"username":"eve"}}}', told: expect.objectContaining({ name: "eve" }) },
  "nothing more of her": { body: { status: { authenticated: true, user: { username: "eve", extra: { k: null } } } }, told: expect.objectContaining({ name: "eve", extra: { k: [] } }) },
};
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (chunk) => { body += String(chunk); });
  request.on("end", () => {
    const { spec, ...review } = JSON.parse(body) as { spec: { token: string; audiences?: string[] } };
    asked.push(spec);
    askedFor = request.url ?? "";
    if (failing-- > 0) {
      response.writeHead(429).end("busy");
      return;
    }
    const other = OTHERS[spec.token];
    if (other) {
      response.writeHead(other.code ?? 200, { "content-type": "application/json" }).end(typeof other.body === "string" ? other.body : JSON.stringify({ ...review, spec, status: { authenticated: true, user: { username: "eve" } }, ...other.body }));
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
  expect(await ask("texts")).toBe("json: cannot unmarshal string into Go struct field TokenReviewStatus.status.authenticated of type bool");
});

test.each(Object.entries(OTHERS))("an answer is a review as upstream reads one: %s", async (token, { told }) => expect(await ask(token)).toEqual(told));

test("it is told how long it has", async () => {
  await ask("unknown", ["api", "long"]);
  expect(askedFor).toBe("/authenticate?timeout=30s");
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
  expect(await ask("odd", ["api", "y"])).toBe("the server has received too many requests and has asked us to try again later");
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
