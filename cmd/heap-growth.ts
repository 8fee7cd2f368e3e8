/**
 * How far the engine lets its heap grow before it collects garbage. By itself it lets that be three times what was in use on a machine of 16 GB, twice on a smaller one, and so
 * much again in between: 1 GB of a server with ten thousand pods. It takes no settings but from its environment, and those when it starts: the process becomes itself once more, with
 * them in it, which takes some 20 ms of processor time.
 *
 * Settings: JavaScriptCore's options.h, whose names Bun reads with BUN_JSC_ before them.
 */
import { ownCommand } from "./own-command.ts";

const SETTINGS: Readonly<Record<string, string>> = {
  BUN_JSC_heapGrowthFunctionThresholdInMB: "1000000", // of the machine's memory: a large machine is no reason to take more
  BUN_JSC_smallHeapGrowthFactor: "1.5", // of what was in use after a full collection
  BUN_JSC_minEdenToOldGenerationRatio: "0.25", // with a third, as it is by default, each collection would be a full one
};

type Env = Readonly<Record<string, string | undefined>>;

/** The environment to start with, where it is not that already. What somebody has set stays. */
export function withHeapGrowth(env: Env): Env | undefined {
  return Object.keys(SETTINGS).every((name) => env[name] !== undefined) ? undefined : { ...SETTINGS, ...env };
}

/** Returns in a process that has the settings, or cannot have them. They are not told to what it starts. */
export function limitHeapGrowth({ env, argv0, argv }: { readonly env: Record<string, string | undefined>; readonly argv0: string; readonly argv: readonly string[] }): void {
  if (process.platform === "win32" || process.execve === undefined || ownCommand().length > 1) return; // from source Bun's own arguments count, too
  const wanted = withHeapGrowth(env);
  if (wanted) {
    try {
      process.execve(process.execPath, [argv0, ...argv], wanted as NodeJS.ProcessEnv);
    } catch {
      // the file has been replaced meanwhile: it runs as it is
    }
  }
  for (const name of Object.keys(SETTINGS)) delete env[name];
}
