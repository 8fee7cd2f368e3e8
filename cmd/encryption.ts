/**
 * Encryption at rest, as the server is told to do it:
 *
 *   --secrets-encryption                                       Secrets are sealed under a key of our own, in <data-dir>/server/encryption.yaml
 *   --kube-apiserver-arg encryption-provider-config=FILE       an EncryptionConfiguration, as for kube-apiserver
 *
 * The file is read again when it changes: at once for our own, with encryption-provider-config-automatic-reload=true for another. What is not sealed as
 * the file says is then sealed anew, in the background; what was done is written beside our own file, for `coracle secrets-encrypt status`.
 *
 * A key service that is not there when the server starts is waited for while everything else begins: it may be a pod of this very node. One that a file names which is read again must be well.
 *
 * Without a file the store is read through all the same, so that a value that is sealed is an error that says so.
 */
import { createHash } from "node:crypto";
import { basename, dirname } from "node:path";
import { stringify } from "yaml";
import { parseStrictYaml } from "../core/api/codec/yaml.ts";
import { aborted } from "../core/lifecycle/aborted.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { fileText } from "../core/lifecycle/file-text.ts";
import type { Random } from "../core/lifecycle/random.ts";
import type { Runnable } from "../core/lifecycle/run-all.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import { writeDurably } from "../core/pki/durable-file.ts";
import { copyKept, type KeptFiles, mendKept, putBackKept } from "../core/pki/kept-twice.ts";
import { closeRules, encryptionRules, encryptionSettings } from "../storage/encryption/configuration.ts";
import { type EncryptionRule, encryptedStore, providersOf } from "../storage/encryption/encryption.ts";
import type { KmsMeter } from "../storage/encryption/kms.ts";
import type { Provider, TransformTrace } from "../storage/encryption/provider.ts";
import { type Rewritten, rewriteStale } from "../storage/encryption/rewrite.ts";
import type { Store } from "../storage/store.ts";
import { ConfigError, fromFile } from "./config/config.ts";
import { keyServiceMeter } from "./key-service-metrics.ts";
import { reloadMeter } from "./reload-meter.ts";
import { transformationMeter } from "./transformation-metrics.ts";

const LOOK_EVERY_MS = 5_000;
/** So long after it could not be finished, as on a disk without room, values are sealed anew again: it reads all there is. */
const REWRITE_AGAIN_MS = 60_000;
/** Values sealed with the rules before may still be on their way. */
const OLD_RULES_MS = 60_000;
const KEY_BYTES = 32;

interface Options {
  readonly beneath: Store;
  /** --secrets-encryption */
  readonly on: boolean;
  /** encryption-provider-config */
  readonly given: string | undefined;
  readonly reload: boolean;
  /** <data-dir>/server/encryption.yaml */
  readonly own: string;
  /** Other servers have the store open, too. */
  readonly isShared: boolean;
  /** This server's, among several. */
  readonly serverId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Absent: nothing is traced. */
  readonly trace?: TransformTrace | undefined;
}

export interface Encryption {
  readonly store: Store;
  readonly parts: readonly Runnable[];
  /** Why a key service cannot be used, undefined: all can. Absent: there is none, nor may a file that is read again name one. */
  readonly trouble?: (() => string | undefined) | undefined;
  close(): void;
}

/** What a rewriting has done, and under which file. */
export interface EncryptionState extends Rewritten { readonly file: string; readonly at: string }

/** Throws ConfigError for a file that cannot be used. */
export async function openEncryption(options: Options): Promise<Encryption> {
  const { beneath, given, own, reload, serverId, clock, log, metrics } = options;
  if (given !== undefined && options.on) throw new ConfigError("--secrets-encryption and encryption-provider-config cannot be given together: the file says what is encrypted");
  if (reload && given === undefined && !options.on) throw new ConfigError("--kube-apiserver-arg encryption-provider-config-automatic-reload must be set with --encryption-provider-config");
  await mendKept(kept(own), log);
  if (options.on) await ensureOwnFile(options);
  const path = given ?? ((await fileText(own)) === undefined ? undefined : own);
  const counted = { metered: transformationMeter(metrics, clock), meter: keyServiceMeter(metrics, { serverId, clock }) };
  let { text, rules }: Read = path === undefined ? { text: "", rules: [] } : await readRules(path, options, { ...counted, mayComeLater: true });
  if (path === own) await copyKept(kept(own));
  const store = encryptedStore(beneath, (key) => providersOf(rules, key));
  const close = (): void => closeRules(rules);
  if (path === undefined) return { store, parts: [], close };
  log.info("values are encrypted at rest", { file: path, resources: rules.flatMap(({ resources }) => resources) });

  async function rewrite(signal: AbortSignal): Promise<void> {
    await Promise.race([store.written(), aborted(signal)]); // by the rules before: behind the pass they would stay as they are, and nobody know of it
    const done = await rewriteStale({ beneath, store, rules: () => rules, signal });
    if (signal.aborted) return;
    if (done.rewritten > 0) log.info("values were encrypted anew", { count: done.rewritten });
    if (path === own) await writeDurably(stateFile(own), JSON.stringify({ ...done, file: fileHash(text), at: new Date(clock.nowMs()).toISOString() } satisfies EncryptionState));
  }

  const meter = reloadMeter(metrics, "encryption", { serverId, clock });
  meter.holds(text);
  let told = ""; // what is wrong is told once, and tried again: a key service may answer the next time
  let notBeforeMs = 0; // by uptime: values are sealed anew

  /** Whether other rules hold from now on. */
  async function look(): Promise<boolean> {
    if ((await fileText(path!)) === text) {
      told = "";
      return false;
    }
    const next = await readRules(path!, options, { ...counted, mayComeLater: false });
    const before = rules;
    try {
      if (path === own) await copyKept(kept(own)); // nothing is sealed by what could not be kept twice
    } catch (error) {
      closeRules(next.rules);
      throw error;
    }
    ({ text, rules } = next);
    meter.reloaded("success");
    meter.holds(text);
    clock.after(OLD_RULES_MS, () => closeRules(before));
    log.info("the encryption configuration was read again", { file: path });
    return true;
  }

  const part: Runnable = {
    name: "encryption at rest",
    async run(signal, ready) {
      ready();
      const follows = reload || path === own;
      let isDue = !(await rewriteIfWell(signal));
      if (follows || isDue)
        for await (const _ of clock.every(LOOK_EVERY_MS, signal)) {
          if (isDue) isDue = !(await rewriteIfWell(signal));
          if (!follows && !isDue) break;
          const isOther = follows && (await look().catch((error: unknown) => {
            meter.reloaded("failure");
            const { message } = error as Error;
            if (message !== told) log.error("the encryption configuration cannot be used; the one before still holds", { file: path, error });
            told = message;
            return false;
          }));
          if (!isOther) continue;
          notBeforeMs = 0;
          isDue = !(await rewriteIfWell(signal));
        }
      await aborted(signal);
    },
  };
  const providers = (): Provider[] => rules.flatMap((rule) => [...rule.providers]);
  const trouble = (): string | undefined => providers().flatMap((provider) => provider.trouble?.() ?? [])[0];

  /** Whether there is no more to be done: without its key service nothing can be, and what fails is tried again later. */
  async function rewriteIfWell(signal: AbortSignal): Promise<boolean> {
    if (trouble() !== undefined || clock.uptimeMs() < notBeforeMs) return false;
    try {
      await rewrite(signal);
      return true;
    } catch (error) {
      log.error("values could not be encrypted anew, it is tried again", { error });
      notBeforeMs = clock.uptimeMs() + REWRITE_AGAIN_MS;
      return false;
    }
  }

  return { store, parts: [part], close, ...(reload || providers().some((provider) => provider.trouble) ? { trouble } : {}) };
}

interface Reading { readonly metered: (provider: Provider) => Provider; readonly meter: (name: string) => KmsMeter; readonly mayComeLater: boolean }

/** A file, as it was read, and what it says. */
interface Read { readonly text: string; readonly rules: readonly EncryptionRule[] }

async function readRules(path: string, { clock, log, reload, trace }: Options, { metered, meter, mayComeLater }: Reading): Promise<Read> {
  const { text, settings } = fromFile("encryption-provider-config", path, (text) => ({ text, settings: encryptionSettings(parseStrictYaml(text), { reloads: reload }) }));
  try {
    const rules = await encryptionRules(settings, { mayComeLater, clock, trace, meter, onTrouble: (name, reason) => (reason === undefined ? log.info("the key service is well", { name }) : log.error("the key service cannot be used", { name, reason })) });
    return { text, rules: rules.map(({ resources, providers }) => ({ resources, providers: providers.map(metered) })) };
  } catch (cause) {
    throw new ConfigError(`encryption-provider-config ${path}: ${(cause as Error).message}`, { cause });
  }
}

async function ensureOwnFile({ own, isShared, random, log }: Options): Promise<void> {
  if (isShared) throw new ConfigError("--secrets-encryption makes a key for one server: with --datastore-endpoint give all servers the same file, --kube-apiserver-arg encryption-provider-config=FILE");
  if ((await fileText(own)) !== undefined || (await putBackKept(kept(own), log))) return; // another key, and its copy, would open nothing that is there
  await writeDurably(own, stringify(ownConfiguration([newKey("key1", random)], { enabled: true })));
}

export interface OwnKey { readonly name: string; readonly secret: string }

export function newKey(name: string, random: Random): OwnKey { return { name, secret: Buffer.from(random.bytes(KEY_BYTES)).toString("base64") }; }

/** Our own file: Secrets under the first key; those that are not sealed yet, or under another key, can be read. */
export function ownConfiguration(keys: readonly OwnKey[], { enabled }: { readonly enabled: boolean }): object {
  const [box, plain] = [{ secretbox: { keys } }, { identity: {} }];
  return { apiVersion: "apiserver.config.k8s.io/v1", kind: "EncryptionConfiguration", resources: [{ resources: ["secrets"], providers: enabled ? [box, plain] : [plain, box] }] };
}

/** Without it no Secret can be read again. */
function kept(own: string): KeptFiles { return { dir: dirname(own), names: [basename(own)], isWhole: (_, text) => isConfiguration(text) }; }

function isConfiguration(text: string): boolean {
  try {
    return encryptionSettings(parseStrictYaml(text), { reloads: true }).length > 0;
  } catch {
    return false;
  }
}

export function stateFile(own: string): string { return own.replace(/\.yaml$/, "-state.json"); }

export function fileHash(text: string): string { return createHash("sha256").update(text).digest("hex").slice(0, 16); }
