import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { systemClock as clock } from "../lifecycle/clock.ts";
import { tunnelDialer } from "./dialer.ts";
import { type NodeSession, TunnelError } from "./node-session.ts";

test("what an agent does not dial is tried straight, too, where its tunnel has come just now", async () => {
  const session = { dial: () => Promise.reject(new TunnelError("not-allowed", "not allowed by the node's tunnel: 10.0.0.7:9100")) } as unknown as NodeSession;
  const tries: string[] = [], answered = new PassThrough();
  const direct = {
    connect: ({ host, port, signal }: { readonly host: string; readonly port: number; readonly signal: AbortSignal }) => {
      tries.push(`${host}:${port}`);
      return tries.length > 1 ? Promise.resolve(answered) : new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(new Error("canceled")))); // slow, as just after both were started
    },
  };
  const dialer = tunnelDialer({ tunnel: { sessionOf: () => undefined, arrival: () => Promise.resolve(session) }, direct, localNode: "server", nodeOf: () => undefined, clock });
  expect(await dialer.connect({ nodeName: "node-1", host: "10.0.0.7", port: 9100, signal: new AbortController().signal })).toBe(answered);
  expect(tries).toEqual(["10.0.0.7:9100", "10.0.0.7:9100"]);
});
