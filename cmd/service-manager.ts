/**
 * What systemd is told by a service of Type=notify, or with WatchdogSec: that it is ready, that it stops, and in between that it lives. One that hangs says nothing, and is
 * started again once the unit's time is over. A container runtime that hangs is no reason: a new start of ours does not mend it.
 *
 *   runAll([…parts, serviceManager({ systemd, … })], signal)      the last: ready when all are
 *
 * API:    https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html
 * Source: kubernetes v1.36 pkg/kubelet/watchdog/watchdog_linux.go
 */
import { aborted } from "../core/lifecycle/aborted.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";

export interface Systemd {
  /** A path, or @name in the abstract namespace. */
  readonly socket: string;
  /** How long it may be silent. Absent: for ever. */
  readonly watchdogMs?: number | undefined;
}

interface Deps {
  readonly systemd: Systemd | undefined;
  /** One datagram to the socket. Throws when nobody takes it. */
  readonly send: (socket: string, text: string) => void;
  readonly clock: Clock;
  readonly log: Log;
}

const WATCHDOG_MS_MIN = 1_000;
const PER_MS = 1_000;

/** Takes it from the environment: what this process starts is none of systemd's. Throws an Error for a watchdog that cannot be kept. */
export function toldBySystemd(env: Record<string, string | undefined>, pid: number): Systemd | undefined {
  const { NOTIFY_SOCKET: socket, WATCHDOG_USEC: usec, WATCHDOG_PID: of } = env;
  for (const name of ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"]) delete env[name];
  if (!socket) return undefined;
  if (!usec || (of && Number(of) !== pid)) return { socket };
  const watchdogMs = Number(usec) / PER_MS;
  if (!(watchdogMs > WATCHDOG_MS_MIN)) throw new Error(`configure watchdog timeout too small: ${usec}us`);
  return { socket, watchdogMs };
}

export function serviceManager({ systemd, send, clock, log }: Deps): Runnable {
  function say(socket: string, text: string): void {
    try {
      send(socket, text);
    } catch (error) {
      log.warn("systemd was not told", { text, error });
    }
  }

  return {
    name: "service manager",
    async run(signal, ready) {
      ready();
      if (!systemd) return await aborted(signal);
      const { socket, watchdogMs } = systemd;
      say(socket, "READY=1");
      if (watchdogMs === undefined) await aborted(signal);
      else for await (const _ of clock.every(watchdogMs / 2, signal)) say(socket, "WATCHDOG=1");
      say(socket, "STOPPING=1");
    },
  };
}
