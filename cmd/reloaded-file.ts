/** A configuration file that is read again when it changes. One that cannot be used is logged, and the one before still holds. */
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import { fromFile, readText } from "./config/config.ts";
import type { ReloadMeter } from "./reload-meter.ts";

const LOOK_EVERY_MS = 5_000;

interface Options<T> {
  /** The setting that names the file. */
  readonly setting: string;
  readonly path: string;
  read(text: string): T;
  readonly clock: Clock;
  readonly log: Log;
  readonly meter?: ReloadMeter | undefined;
}

export interface ReloadedFile<T> { current(): T; readonly part: Runnable }

/** Throws ConfigError when it cannot be used now. */
export function reloadedFile<T>({ setting, path, read, clock, log, meter }: Options<T>): ReloadedFile<T> {
  let text = readText(path);
  let value = fromFile(setting, path, read);
  meter?.holds(text ?? "");
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
            text = now; // told of once
            value = fromFile(setting, path, read);
            meter?.reloaded("success");
            meter?.holds(text ?? "");
            log.info("a configuration file was read again", { setting, path });
          } catch (error) {
            meter?.reloaded("failure");
            log.error("a configuration file cannot be used; the one before still holds", { setting, path, error });
          }
        }
      },
    },
  };
}
