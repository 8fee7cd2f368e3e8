/**
 * Which way a connection goes.
 *
 *   to this server's own node, or to what is on no node     directly
 *   to a node with a tunnel, and to pods on it              through its tunnel: always, so that what works does not depend on the network's mood
 *   to a node without                                       directly, or through the tunnel if that comes first: the agent may be on its way
 *
 * An address the agent does not dial for us (the node's other ports) is tried directly.
 */
import type { Duplex } from "node:stream";
import type { Clock } from "../lifecycle/clock.ts";
import { hostPort } from "../net/dial-tcp.ts";
import { type NodeSession, TunnelError } from "./node-session.ts";
import type { TunnelServer } from "./tunnel.ts";

export interface DialTarget {
  /** The node that `host` is an address of, or that runs the pod it is an address of. Undefined: not known. */
  readonly nodeName: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly signal: AbortSignal;
}

export interface Dialer {
  connect(target: DialTarget): Promise<Duplex>;
}

export interface TunnelDialerOptions {
  readonly tunnel: Pick<TunnelServer, "sessionOf" | "arrival">;
  readonly direct: Dialer;
  /** The node in this process, if there is one. */
  readonly localNode: string | undefined;
  /** For targets that name no node: whose address it is, or whose pod's. */
  readonly nodeOf: (host: string) => string | undefined;
  readonly clock: Clock;
}

/** A direct connection that failed at once is no reason to give up: after a server's restart agents come back within seconds. */
const ARRIVAL_MS = 3_000;
/** A node that has a tunnel is likely not to be reached directly: so long it is tried. */
const BESIDE_MS_MAX = 5_000;

export function tunnelDialer({ tunnel, direct, localNode, nodeOf, clock }: TunnelDialerOptions): Dialer {
  async function withoutTunnel(nodeName: string, target: DialTarget): Promise<Duplex> {
    const lost = new AbortController();
    const signal = AbortSignal.any([target.signal, lost.signal]);
    const straight = direct.connect({ ...target, signal }).then((connection) => ({ connection, error: undefined }), (error: unknown) => ({ connection: undefined, error }));
    const arrived = tunnel.arrival(nodeName, signal);
    try {
      const first = await Promise.race([arrived, straight]);
      if (first && "dial" in first) {
        void straight.then(({ connection }) => connection?.destroy());
        return await through(first, target);
      }
      const { connection, error } = await straight;
      if (connection) return connection;
      const late = clock.after(ARRIVAL_MS, () => lost.abort());
      const session = await arrived.finally(() => late.cancel());
      if (!session) throw error;
      return await through(session, target);
    } finally {
      lost.abort();
    }
  }

  async function through(session: Pick<NodeSession, "dial">, target: DialTarget): Promise<Duplex> {
    try {
      return await session.dial(target);
    } catch (error) {
      if (!(error instanceof TunnelError) || error.code !== "not-allowed") throw error;
      return await besideTunnel(target, error);
    }
  }

  async function besideTunnel(target: DialTarget, refusal: TunnelError): Promise<Duplex> {
    const late = new AbortController();
    const alarm = clock.after(BESIDE_MS_MAX, () => late.abort());
    try {
      return await direct.connect({ ...target, signal: AbortSignal.any([target.signal, late.signal]) });
    } catch (cause) {
      throw new Error(`${late.signal.aborted ? `dial tcp ${hostPort(target.host, target.port)}: i/o timeout` : (cause as Error).message} (${refusal.message})`, { cause });
    } finally {
      alarm.cancel();
    }
  }

  return {
    async connect(target) {
      const nodeName = target.nodeName ?? nodeOf(target.host);
      if (nodeName === undefined || nodeName === localNode) return await direct.connect(target);
      const session = tunnel.sessionOf(nodeName);
      if (!session) return await withoutTunnel(nodeName, target);
      try {
        return await through(session, target);
      } catch (error) {
        if (error instanceof TunnelError && error.code === "closed") return await withoutTunnel(nodeName, target);
        throw error;
      }
    },
  };
}
