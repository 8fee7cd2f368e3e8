/**
 * The event loop accepts connections as long as more come, before anybody else has a turn: who opens them faster than they are accepted, which needs no permission and one processor, would hold the whole
 * process for as long as he does. A listener that has accepted more than can have waited for it is closed, and listens again once others had their turn. The connections there are stay; those in the kernel's
 * queue are refused, and may come again.
 *
 *   const server = acceptInTurns(net.createServer(…));        and then as ever: server.listen(…), server.close()
 */
import type * as net from "node:net";
import type { Clock } from "../lifecycle/clock.ts";

/** Twice what the kernel keeps for us (the backlog of node's listen): that many come at once when a server is back, and none of them is refused. */
const TOGETHER_MAX = 1024;
/** Somebody else may have had the port in that moment. */
const RETRY_MS = 100;

interface Options {
  /** Tries again where it cannot listen again at once. Absent: whoever has it listen hears of an error, and sees to it. */
  readonly clock?: Pick<Clock, "after"> | undefined;
  readonly togetherMax?: number;
}

export function acceptInTurns<S extends net.Server>(server: S, { clock, togetherMax = TOGETHER_MAX }: Options = {}): S {
  const close = server.close.bind(server);
  let accepted = 0;
  let place: net.AddressInfo | undefined; // where it is to listen again

  const listenAgain = (): void => {
    if (place && !server.listening) server.listen({ host: place.address, port: place.port });
  };
  server.on("connection", () => {
    if (accepted++ === 0) setImmediate(() => { accepted = 0; });
    if (accepted < togetherMax || !server.listening) return;
    const address = server.address();
    if (address === null || typeof address === "string") return;
    place = address;
    close();
    setImmediate(listenAgain);
  });
  server.on("listening", () => { place = undefined; });
  server.on("error", () => { if (place) clock?.after(RETRY_MS, listenAgain); });
  return Object.assign(server, {
    close(told?: (error?: Error) => void) {
      place = undefined;
      return close(told);
    },
  });
}
