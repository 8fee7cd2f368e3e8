/**
 * Programs that know credentials of registries: asked with an image on their standard input, they answer with docker credentials on their output, and for how
 * long these are good.
 *
 *   --kubelet-arg image-credential-provider-config=<file or directory>  --kubelet-arg image-credential-provider-bin-dir=<directory>
 *
 * API:    https://kubernetes.io/docs/reference/config-api/kubelet-credentialprovider.v1/
 * Source: kubernetes v1.36 pkg/credentialprovider/plugin
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import type { Clock } from "../../../core/lifecycle/clock.ts";
import type { Log } from "../../../core/observe/log.ts";
import type { AuthConfig } from "../../cri/gen/runtime.v1.ts";
import { parseGoDuration } from "../configuration/go-duration.ts";
import { repositoryOf } from "./image-name.ts";
import { credentialsFor, type Entry, keyMatches } from "./keyring.ts";

export interface CredentialProvider {
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheMs: number;
  readonly apiVersion: string;
  readonly args: readonly string[];
  readonly env: readonly { readonly name: string; readonly value: string }[];
  readonly token?: { readonly audience: string; readonly requiresServiceAccount: boolean; readonly requiredAnnotations: readonly string[]; readonly optionalAnnotations: readonly string[] } | undefined;
}

const API_VERSIONS = ["credentialprovider.kubelet.k8s.io/v1", "credentialprovider.kubelet.k8s.io/v1beta1", "credentialprovider.kubelet.k8s.io/v1alpha1"];
const CONFIG_VERSIONS = ["kubelet.config.k8s.io/v1", "kubelet.config.k8s.io/v1beta1", "kubelet.config.k8s.io/v1alpha1"];
const RUN_MS = 60_000;
const OUTPUT_BYTES_MAX = 1 << 20;
/** Answers are kept for this many images. */
const CACHE_MAX = 1_000;

/** Throws an Error for the user. `value`: a CredentialProviderConfig, parsed. */
export function decodeProviders(value: unknown): CredentialProvider[] {
  const { apiVersion = "", kind = "", providers = [] } = (value ?? {}) as { apiVersion?: string; kind?: string; providers?: Record<string, unknown>[] };
  if (kind !== "CredentialProviderConfig" || !CONFIG_VERSIONS.includes(apiVersion)) throw new Error(`no kind "${kind}" is registered for version "${apiVersion}"`);
  if (providers.length === 0) throw new Error("providers: Required value: at least 1 item in plugins is required");
  const seen = new Set<string>();
  return providers.map((provider, i) => {
    const at = `providers[${i}]`;
    const { name = "", matchImages = [], defaultCacheDuration, apiVersion: version = "", args = [], env = [], tokenAttributes } = provider as {
      name?: string; matchImages?: string[]; defaultCacheDuration?: string; apiVersion?: string; args?: string[]; env?: { name: string; value: string }[];
      tokenAttributes?: { serviceAccountTokenAudience?: string; requireServiceAccount?: boolean; requiredServiceAccountAnnotationKeys?: string[]; optionalServiceAccountAnnotationKeys?: string[] };
    };
    if (name === "") throw new Error(`${at}.name: Required value: name is required`);
    if (name.includes("/") || name === "." || name === "..") throw new Error(`${at}.name: Invalid value: "${name}": provider name cannot contain path separators`);
    if (seen.has(name)) throw new Error(`${at}.name: Duplicate value: "${name}"`);
    seen.add(name);
    if (!API_VERSIONS.includes(version)) throw new Error(`${at}.apiVersion: Unsupported value: "${version}": supported values: ${API_VERSIONS.map((one) => JSON.stringify(one)).join(", ")}`);
    if (matchImages.length === 0) throw new Error(`${at}.matchImages: Required value: at least 1 item in matchImages is required`);
    if (defaultCacheDuration === undefined) throw new Error(`${at}.defaultCacheDuration: Required value: defaultCacheDuration is required`);
    const token = tokenAttributes && { audience: tokenAttributes.serviceAccountTokenAudience ?? "", requiresServiceAccount: tokenAttributes.requireServiceAccount ?? false, requiredAnnotations: tokenAttributes.requiredServiceAccountAnnotationKeys ?? [], optionalAnnotations: tokenAttributes.optionalServiceAccountAnnotationKeys ?? [] };
    return { name, matchImages, defaultCacheMs: parseGoDuration(defaultCacheDuration), apiVersion: version, args, env, token };
  });
}

/** Who pulls, for providers that want to know. */
export interface Puller {
  readonly serviceAccount: string;
  readonly annotations: Readonly<Record<string, string>>;
  token(audience: string): Promise<string>;
}

export interface CredentialProviders {
  credentials(image: string, puller: () => Promise<Puller | undefined>, signal: AbortSignal): Promise<readonly AuthConfig[]>;
}

interface Answer { readonly kind?: string; readonly cacheKeyType?: string; readonly cacheDuration?: string; readonly auth?: Readonly<Record<string, { readonly username?: string; readonly password?: string }>> }

export function credentialProviders({ providers, binDir, environment, clock, log }: { readonly providers: readonly CredentialProvider[]; readonly binDir: string; readonly environment: Readonly<Record<string, string | undefined>>; readonly clock: Clock; readonly log: Log }): CredentialProviders {
  const cache = new Map<string, { readonly entries: readonly Entry[]; readonly untilMs: number }>();

  async function ask(provider: CredentialProvider, image: string, who: Puller | undefined, signal: AbortSignal): Promise<readonly Entry[]> {
    const repository = repositoryOf(image);
    const scope = who ? `${provider.name} ${who.serviceAccount}` : provider.name;
    const keys = [`${scope} image ${image}`, `${scope} registry ${repository.split("/")[0]}`, `${scope} global`];
    const known = keys.map((key) => cache.get(key)).find((entry) => entry && clock.nowMs() < entry.untilMs);
    if (known) return known.entries;
    const request = {
      apiVersion: provider.apiVersion, kind: "CredentialProviderRequest", image,
      ...(who && provider.token ? { serviceAccountToken: await who.token(provider.token.audience), serviceAccountAnnotations: Object.fromEntries(Object.entries(who.annotations).filter(([key]) => [...provider.token!.requiredAnnotations, ...provider.token!.optionalAnnotations].includes(key))) } : {}),
    };
    const answer = JSON.parse(await runProgram(join(binDir, provider.name), provider, { environment, input: JSON.stringify(request), signal })) as Answer;
    if (answer.kind !== "CredentialProviderResponse") throw new Error(`credential provider plugin ${provider.name} returned kind ${JSON.stringify(answer.kind)}`);
    const entries = Object.entries(answer.auth ?? {}).map(([key, { username = "", password = "" }]) => ({ key, auth: { username, password } }));
    const type = ["Image", "Registry", "Global"].indexOf(answer.cacheKeyType ?? "");
    const cacheMs = answer.cacheDuration === undefined ? provider.defaultCacheMs : parseGoDuration(answer.cacheDuration);
    if (type >= 0 && cacheMs > 0) {
      if (cache.size >= CACHE_MAX) cache.clear();
      cache.set(keys[type]!, { entries, untilMs: clock.nowMs() + cacheMs });
    }
    return entries;
  }

  return {
    async credentials(image, puller, signal) {
      const repository = repositoryOf(image);
      const found: Entry[] = [];
      for (const provider of providers) {
        if (!provider.matchImages.some((pattern) => keyMatches(pattern, repository))) continue;
        try {
          const who = provider.token ? await puller() : undefined;
          if (provider.token && (!who || provider.token.requiredAnnotations.some((key) => who.annotations[key] === undefined)) && (provider.token.requiresServiceAccount || who)) continue;
          found.push(...(await ask(provider, image, who, signal)));
        } catch (error) {
          signal.throwIfAborted();
          log.error("credentials not got from a provider", { provider: provider.name, image, error }); // the image may be public
        }
      }
      return credentialsFor(image, found);
    },
  };
}

async function runProgram(program: string, { args, env }: CredentialProvider, { environment, input, signal }: { readonly environment: Readonly<Record<string, string | undefined>>; readonly input: string; readonly signal: AbortSignal }): Promise<string> {
  return await new Promise((resolve, reject) => {
    const child = spawn(program, [...args], { env: { ...environment, ...Object.fromEntries(env.map(({ name, value }) => [name, value])) }, stdio: ["pipe", "pipe", "pipe"], timeout: RUN_MS, signal });
    let output = "";
    let errors = "";
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (output.length > OUTPUT_BYTES_MAX) child.kill();
    });
    child.stderr.on("data", (chunk: Buffer) => { errors = (errors + chunk.toString()).slice(-1000); });
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(output) : reject(new Error(`error execing credential provider plugin ${program}: exit status ${code}: ${errors.trim()}`))));
    child.stdin.on("error", () => undefined); // it has ended without reading: its exit status says why
    child.stdin.end(input);
  });
}
