/**
 * Programs that know credentials of registries: asked with an image on their standard input, they answer with docker credentials on their output, and for how
 * long these are good.
 *
 *   --kubelet-arg image-credential-provider-config=<file or directory>  --kubelet-arg image-credential-provider-bin-dir=<directory>
 *
 * An answer for one service account is for no other, and may hold secrets whatever is wrong with it: nothing of it is logged.
 *
 * API:    https://kubernetes.io/docs/reference/config-api/kubelet-credentialprovider.v1/
 * Source: kubernetes v1.36 pkg/credentialprovider/plugin/{plugin,metrics}.go
 */
import { createHash } from "node:crypto";
import { join } from "node:path";
import { parseDurationMs } from "../../../core/api/meta/duration.ts";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import { DEFAULT_BUCKETS, type Metrics } from "../../../core/observe/metrics.ts";
import type { Exec } from "../../os/exec.ts";
import type { CredentialProvider } from "./credential-provider-config.ts";
import { repositoryOf } from "../../cri/image-name.ts";
import { credentialsFor, type Entry, entryOf, keyMatches } from "./keyring.ts";
import type { AccountReference } from "./pull-records.ts";
import { SharedRuns } from "./shared-run.ts";

const RUN_MS = 60_000;
/** Answers are kept for this many images. */
const CACHE_MAX = 1_000;

/** Who pulls, for providers that want to know. */
export interface Puller {
  readonly account: AccountReference;
  readonly annotations: Readonly<Record<string, string>>;
  token(audience: string): Promise<string>;
}

/** `serviceAccount`: whose they are; absent: everybody's on this node. */
export interface ProvidedEntry extends Entry { readonly serviceAccount?: AccountReference }

export interface CredentialProviders {
  credentials(image: string, puller: () => Promise<Puller | undefined>, signal: AbortSignal): Promise<readonly ProvidedEntry[]>;
}

interface Deps {
  readonly providers: readonly CredentialProvider[];
  readonly binDir: string;
  /** Of the programs, beside what their configuration says. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly exec: Exec;
  readonly metrics: Metrics;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a provider is told of who pulls. */
interface Identity { readonly account: AccountReference; readonly annotations: Readonly<Record<string, string>>; readonly token: string }

const CACHE_KEY_TYPES = ["Image", "Registry", "Global"] as const;
interface Answer { readonly entries: readonly Entry[]; readonly keyType: (typeof CACHE_KEY_TYPES)[number]; readonly cacheMs: number }

export function credentialProviders({ providers, binDir, environment, exec, metrics, clock, log }: Deps): CredentialProviders {
  const errors = metrics.counter("kubelet_credential_provider_plugin_errors_total", "[ALPHA] Number of errors from credential provider plugin");
  const durations = metrics.histogram("kubelet_credential_provider_plugin_duration", "[ALPHA] Duration of execution in seconds for credential provider plugin", DEFAULT_BUCKETS);
  const cache = new Map<string, { readonly entries: readonly Entry[]; readonly untilMs: number }>();
  const runs = new SharedRuns<Answer>();

  async function ask(provider: CredentialProvider, repository: string, who: Identity | undefined, signal: AbortSignal): Promise<readonly Entry[]> {
    const keys = cacheKeys(provider, repository, who);
    const known = Object.values(keys).map((key) => cache.get(key)).find((entry) => entry && clock.uptimeMs() < entry.untilMs);
    if (known) return known.entries;
    const { entries, keyType, cacheMs } = await runs.do(JSON.stringify([provider.name, repository, who?.token, who?.annotations]), (shared) => run(provider, repository, who, shared), signal);
    if (who && provider.token?.cacheType !== "Token" && entries.some(({ auth }) => auth.password === who.token))
      throw new Error("credential provider plugin returned the service account token as the password which is not allowed when service account cache type is not set to 'Token'");
    if (cacheMs > 0) {
      if (cache.size >= CACHE_MAX) cache.clear();
      cache.set(keys[keyType], { entries, untilMs: clock.uptimeMs() + cacheMs });
    }
    return entries;
  }

  async function run(provider: CredentialProvider, repository: string, who: Identity | undefined, signal: AbortSignal): Promise<Answer> {
    const request = { kind: "CredentialProviderRequest", apiVersion: provider.apiVersion, image: repository, ...(who ? { serviceAccountToken: who.token, serviceAccountAnnotations: who.annotations } : {}) };
    const env = Object.fromEntries([...Object.entries(environment).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])), ...provider.env.map(({ name, value }) => [name, value])]) as Record<string, string>;
    const failure = (why: string): Error => {
      errors.inc({ plugin_name: provider.name });
      return new Error(`error execing credential provider plugin ${provider.name} for image ${repository}: ${why}`);
    };
    const beganMs = clock.uptimeMs();
    const { exitCode, stdout, stderr } = await exec(join(binDir, provider.name), provider.args, { env, stdin: JSON.stringify(request), timeoutMs: RUN_MS, signal }).catch((error: unknown) => {
      throw failure((error as Error).message); // not as the cause: that one has what the program has answered
    }).finally(() => durations.observe((clock.uptimeMs() - beganMs) / 1000, { plugin_name: provider.name }));
    if (exitCode !== 0) throw failure(`exit status ${exitCode}: ${stderr.trim().slice(-1000)}`);
    return decodeAnswer(stdout, provider);
  }

  return {
    async credentials(image, puller, signal) {
      const repository = repositoryOf(image);
      const found: ProvidedEntry[] = [];
      for (const provider of providers.filter(({ matchImages }) => matchImages.some((pattern) => keyMatches(pattern, repository)))) {
        try {
          const who = provider.token && (await identityFor(provider.token, await puller()));
          if (who === "not asked") continue;
          found.push(...(await ask(provider, repository, who, signal)).map((entry) => ({ ...entry, ...(who ? { serviceAccount: who.account } : {}) })));
        } catch (error) {
          signal.throwIfAborted();
          log.error("credentials not got from a provider", { provider: provider.name, image, error }); // the image may be public
        }
      }
      return credentialsFor(image, found);
    },
  };
}

/** "not asked": the provider wants to know more of who pulls than there is. Undefined: nobody does, and it answers to that. */
async function identityFor({ audience, requiresServiceAccount, requiredAnnotations, optionalAnnotations }: NonNullable<CredentialProvider["token"]>, puller: Puller | undefined): Promise<Identity | "not asked" | undefined> {
  if (!puller) return requiresServiceAccount ? "not asked" : undefined;
  const { account, annotations } = puller;
  if (requiredAnnotations.some((key) => annotations[key] === undefined)) return "not asked";
  const told = [...requiredAnnotations, ...optionalAnnotations].toSorted().flatMap((key) => (annotations[key] === undefined ? [] : [[key, annotations[key]]]));
  return { account, annotations: Object.fromEntries(told) as Record<string, string>, token: await puller.token(audience) };
}

/** As JSON, so that no name can be made up that runs into the next one. */
function cacheKeys({ name, token }: CredentialProvider, repository: string, who: Identity | undefined): Readonly<Record<Answer["keyType"], string>> {
  const whose = who ? [who.account.namespace, who.account.name, who.account.uid, who.annotations, token?.cacheType === "Token" ? createHash("sha256").update(who.token).digest("hex") : ""] : [];
  const key = (type: Answer["keyType"], subject: string): string => JSON.stringify([name, type, subject, ...whose]);
  return { Image: key("Image", repository), Registry: key("Registry", repository.split("/")[0]!), Global: key("Global", "") };
}

function decodeAnswer(text: string, { apiVersion, defaultCacheMs }: CredentialProvider): Answer {
  const answer = parsedObject(text);
  if (answer?.["kind"] !== "CredentialProviderResponse") throw new Error("error decoding credential provider plugin response from stdout");
  if (answer["apiVersion"] !== apiVersion) throw new Error(`apiVersion from credential plugin response did not match expected apiVersion:${apiVersion}, actual apiVersion:${String(answer["apiVersion"])}`);
  const keyType = CACHE_KEY_TYPES.find((type) => type === answer["cacheKeyType"]);
  if (!keyType) throw new Error(`credential provider plugin did not return a valid cacheKeyType: ${String(answer["cacheKeyType"])}`);
  const auth = Object.entries((answer["auth"] ?? {}) as Readonly<Record<string, { readonly username?: unknown; readonly password?: unknown } | null>>);
  const entries = auth.flatMap(([place, of]) => entryOf(place, { username: String(of?.username ?? ""), password: String(of?.password ?? "") }) ?? []);
  return { entries, keyType, cacheMs: typeof answer["cacheDuration"] === "string" ? parseDurationMs(answer["cacheDuration"]) : defaultCacheMs };
}

function parsedObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined; // what was expected may show what is wrong, and secrets with it
  }
}
