/**
 * A configuration file that is read again when it changes. One that cannot be used is logged, and the one before still holds.
 *
 * What speaks of other servers may be right but useless, for now: such a file is tried until it can be used.
 */
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import { fromFile, readText } from "./config/config.ts";
import type { ReloadMeter } from "./reload-meter.ts";

const LOOK_EVERY_MS = 5_000;
/** Source: kubernetes v1.36 pkg/kubeapiserver/options/authentication.go UpdateAuthenticationConfigTimeout */
const SETTLE_MS = 60_000;

interface Options<T> {
  /** The setting that names the file. */
  readonly setting: string;
  readonly path: string;
  /** `before`: what the file said first; undefined: this is it. */
  read(text: string, before: T | undefined): T;
  /** Waits until what was read again can be used. Throws when it cannot be for as long as the signal allows. */
  settled?(value: T, signal: AbortSignal): Promise<void>;
  /** Told that there is another value now. */
  readonly changed?: (() => void) | undefined;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: ReloadMeter | undefined;
}

export interface ReloadedFile<T> { current(): T; readonly part: Runnable }

/** Throws ConfigError when it cannot be used now. */
export function reloadedFile<T>({ setting, path, read, settled, changed, clock, log, meter }: Options<T>): ReloadedFile<T> {
  let text = readText(path);
  const first = fromFile(setting, path, (now) => read(now, undefined));
  let value = first;
  meter?.holds(text ?? "");

  /** What cannot be used, however often it is tried, is told of once. */
  function readAgain(now: string | undefined): T {
    try {
      return fromFile(setting, path, (found) => read(found, first));
    } catch (error) {
      text = now;
      throw error;
    }
  }

  async function settle(next: T, signal: AbortSignal): Promise<void> {
    const late = new AbortController();
    const alarm = clock.after(SETTLE_MS, () => late.abort());
    await settled?.(next, AbortSignal.any([signal, late.signal])).finally(() => alarm.cancel());
  }

  return {
    current: () => value,
    part: {
      name: setting,
      async run(signal, ready) {
        ready();
        for await (const _ of clock.every(LOOK_EVERY_MS, signal)) {
          try {
            const now = readText(path);
            if (now === text) continue;
            const next = readAgain(now);
            await settle(next, signal);
            [text, value] = [now, next];
            meter?.reloaded("success");
            meter?.holds(text ?? "");
            log.info("a configuration file was read again", { setting, path });
            changed?.();
          } catch (error) {
            meter?.reloaded("failure");
            log.error("a configuration file cannot be used; the one before still holds", { setting, path, error });
          }
        }
      },
    },
  };
}
