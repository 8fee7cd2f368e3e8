/**
 * How the engine is to work in a process that goes on for long. It takes settings from its environment alone, and those when it starts: the process becomes itself once more, with them
 * in it, which takes some 20 ms of processor time.
 *
 * How far it lets its heap grow before it collects garbage: by itself three times what was in use on a machine of 16 GB, twice on a smaller one, and so much again in between, which is
 * 1 GB of a server with ten thousand pods.
 *
 * When it looks for garbage: by itself when so much has come that it might be worth while, and when nothing else is to be done. Bun has it look besides, every 16 ms as long as the heap is not
 * of the size it was, which under load is always: nearly all that was looked for was not there yet, and a server spent a fifth of its processor time on that.
 *
 * How soon it compiles once more, and best, what runs often: by itself so soon that a server spends a fifth of its processor time on that for as long as what it runs is new to it,
 * beside the main thread that all wait for, and gains little.
 *
 * How many threads there may be that wait for the disk, compress and look up names: by itself as many as processors, and with two of them a disk that hangs has them both. Others are
 * started when all that there are have something to do.
 *
 * Whom the machine trusts (webhooks without a caBundle, an issuer of tokens without a CA file): by itself it looks where Debian keeps a file for each, and in none of the places where others
 * keep all in one.
 *
 * Settings: JavaScriptCore's options.h, whose names Bun reads with BUN_JSC_ before them; Bun's src/bun.js/event_loop/GarbageCollectionController.zig.
 */
import { existsSync } from "node:fs";
import { ownCommand } from "./own-command.ts";

const SETTINGS: Readonly<Record<string, string>> = {
  BUN_JSC_heapGrowthFunctionThresholdInMB: "1000000", // of the machine's memory: a large machine is no reason to take more
  BUN_JSC_smallHeapGrowthFactor: "1.5", // of what was in use after a full collection
  BUN_JSC_minEdenToOldGenerationRatio: "0.25", // with a third, as it is by default, each collection would be a full one
  BUN_GC_TIMER_DISABLE: "1", // whatever its value
  BUN_JSC_thresholdForFTLOptimizeAfterWarmUp: "400000", // four times what it is by default, and so is the next
  BUN_JSC_thresholdForFTLOptimizeSoon: "4000",
  UV_THREADPOOL_SIZE: "64", // a node has some dozens of pods whose files may all be waited for; a thread that has nothing to do takes 100 kB
};

/** Of these the first that is there. What the process starts would find the same. Source: Go crypto/x509/root_linux.go */
const TRUSTED = ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/pki/tls/cacert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "/etc/ssl/cert.pem"];

type Env = Readonly<Record<string, string | undefined>>;

/** The environment to start with, where it is not that already. What somebody has set stays. */
export function withEngineSettings(env: Env, isThere: (path: string) => boolean = existsSync): Env | undefined {
  const trusted = TRUSTED.find(isThere);
  const settings: Env = trusted === undefined ? SETTINGS : { ...SETTINGS, SSL_CERT_FILE: trusted };
  return Object.keys(settings).every((name) => env[name] !== undefined) ? undefined : { ...settings, ...env };
}

/** Returns in a process that has the settings, or cannot have them. They are not told to what it starts. */
export function setEngine({ env, argv0, argv }: { readonly env: Record<string, string | undefined>; readonly argv0: string; readonly argv: readonly string[] }): void {
  if (process.platform === "win32" || process.execve === undefined || ownCommand().length > 1) return; // from source Bun's own arguments count, too
  const wanted = withEngineSettings(env);
  if (wanted) {
    try {
      process.execve(process.execPath, [argv0, ...argv], wanted as NodeJS.ProcessEnv);
    } catch {
      // the file has been replaced meanwhile: it runs as it is
    }
  }
  for (const name of Object.keys(SETTINGS)) delete env[name];
}
