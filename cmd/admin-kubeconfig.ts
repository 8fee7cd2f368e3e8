/**
 * The administrator's kubeconfig, written once this server listens (one that cannot leaves the file of another that does) and when its certificate is renewed.
 *
 * Where there was none and none can be written, the server ends: somebody has just installed it. Later on an old one is no reason not to start, as on a machine whose root has become read-only:
 * then it is told, and tried again.
 */
import { chmodSync, existsSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { aborted } from "../core/lifecycle/aborted.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import { type Kubeconfig, writeKubeconfig } from "../core/pki/kubeconfig.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";

const AGAIN_MS = 60_000;

interface Options {
  readonly path: string;
  readonly mode: number;
  readonly content: () => Kubeconfig;
}

/** Throws ConfigError. */
export function kubeconfigMode({ writeKubeconfigMode: text }: Pick<Settings, "writeKubeconfigMode">): number {
  if (!/^0?[0-7]{3}$/.test(text)) throw new ConfigError(`--write-kubeconfig-mode must be an octal mode such as 0600, not ${JSON.stringify(text)}`);
  return Number.parseInt(text, 8);
}

export interface AdminKubeconfig extends Runnable {
  /** Throws when it cannot be. */
  write(): Promise<void>;
}

export function adminKubeconfig(options: Options, { clock, log, put = putKubeconfig }: { readonly clock: Clock; readonly log: Log; readonly put?: ((options: Options) => Promise<void>) | undefined }): AdminKubeconfig {
  const { path } = options;

  async function write(): Promise<void> {
    try {
      await put(options);
    } catch (cause) {
      throw new ConfigError(`the administrator's kubeconfig cannot be written to ${path}: choose another place with --write-kubeconfig`, { cause });
    }
  }

  return {
    name: "administrator's kubeconfig",
    write,
    async run(signal, ready) {
      const wasThere = existsSync(path);
      for (let isWritten = false; !isWritten && !signal.aborted; ) {
        try {
          await write();
          isWritten = true;
        } catch (error) {
          if (!wasThere) throw error;
          log.error("the administrator's kubeconfig is an old one, which will not be good for ever: trying again", { path, error });
        }
        ready();
        if (!isWritten) await clock.sleep(AGAIN_MS, signal);
      }
      await aborted(signal);
    },
  };
}

/** Nothing is written that is as it should be. */
async function putKubeconfig({ path, mode, content }: Options): Promise<void> {
  if (!existsSync(dirname(path))) mkdirSync(dirname(path), { recursive: true, mode: 0o755 });
  await writeKubeconfig(path, content());
  if ((statSync(path).mode & 0o777) !== mode) chmodSync(path, mode);
}
