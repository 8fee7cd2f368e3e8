/** Reads a kubeconfig: the server, and the credentials of its current context. Credentials that a program would have to fetch (exec, auth providers) are not supported. */
import { delimiter, dirname, resolve } from "node:path";
import type { WebhookUser, WebhookUsers } from "../core/admission/webhook/users.ts";
import type { Credentials } from "../core/client/http-transport.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { ConfigError, readText } from "./config/config.ts";
import { readYamlSettings } from "./config/yaml-settings.ts";

/** `path`: the file it stands in. */
interface Named<T> { readonly name?: string; readonly cluster?: T; readonly user?: T; readonly context?: T; readonly path?: string }
interface Cluster { readonly server?: string; readonly "certificate-authority"?: string; readonly "certificate-authority-data"?: string; readonly "tls-server-name"?: string; readonly "insecure-skip-tls-verify"?: boolean }
interface User {
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
}
interface Context { readonly cluster?: string; readonly user?: string }
interface Config { readonly clusters?: readonly Named<Cluster>[]; readonly users?: readonly Named<User>[]; readonly contexts?: readonly Named<Context>[]; readonly "current-context"?: string }

export interface KubeconfigFile { readonly server: string; readonly credentials: Credentials }

/** Throws ConfigError for what cannot be used. `anonymous`: a server that asks for no credentials will do. Of several files, as $KUBECONFIG may name them, the first to say something has it. */
export function readKubeconfig(given: string | readonly string[], { anonymous = false }: { readonly anonymous?: boolean } = {}): KubeconfigFile {
  const files = [given].flat();
  const all = files.join(delimiter);
  const config = merged(files.map(read));
  const { context = {} } = named(config.contexts, config["current-context"]);
  const { cluster = {}, path: clusterPath = "" } = named(config.clusters, context.cluster);
  const { user = {}, path: userPath = "" } = named(config.users, context.user);
  if (!cluster.server) throw new ConfigError(`--kubeconfig ${all}: its current context names no server`);
  const { cert, key, token } = userOf(user, userPath);
  const credentials: Credentials = { ca: material(clusterPath, cluster["certificate-authority-data"], cluster["certificate-authority"]), cert, key, token, serverName: cluster["tls-server-name"], insecure: cluster["insecure-skip-tls-verify"] };
  if (!anonymous && credentials.token === undefined && credentials.cert === undefined) throw new ConfigError(`--kubeconfig ${all}: its current context has neither a certificate nor a token`);
  return { server: cluster.server, credentials };
}

/**
 * Of one that asks no person: certificates and tokens in files are renewed by others, who tell nobody, so they are read each time they are asked for. While they cannot be used the last that could are.
 * Source: kubernetes v1.36 client-go/transport/{cert_rotation,token_source}.go
 */
export function followKubeconfig(path: string): { readonly server: string; credentials(): Credentials } {
  const { server, credentials } = readKubeconfig(path, { anonymous: true });
  let last = credentials;
  return {
    server,
    credentials: () => (last = unlessUnusable(() => readKubeconfig(path, { anonymous: true }).credentials) ?? last),
  };
}

function merged(configs: readonly Config[]): Config {
  const current = configs.map((config) => config["current-context"]).find(Boolean);
  return {
    clusters: configs.flatMap(({ clusters }) => clusters ?? []), users: configs.flatMap(({ users }) => users ?? []), contexts: configs.flatMap(({ contexts }) => contexts ?? []),
    ...(current === undefined ? {} : { "current-context": current }),
  };
}

/** All its users, each named after whom it is shown to. Throws ConfigError for what cannot be used. */
function readWebhookUsers(path: string): WebhookUsers {
  const { users = [], contexts, "current-context": current } = read(path);
  const found = new Map(users.map(({ name = "", user = {} }) => [name, userOf(user, path)]));
  return { named: found, current: found.get(named(contexts, current).context?.user ?? "") };
}

/** So long what was read of a file is taken for what stands there: each admitted object asks. Source: kubernetes v1.36 client-go/transport/token_source.go */
const READ_AGAIN_MS = 60_000;

/** As followKubeconfig. */
export function followWebhookUsers(path: string, clock: Pick<Clock, "uptimeMs">): WebhookUsers {
  let last = readWebhookUsers(path), readMs = clock.uptimeMs();
  function now(): WebhookUsers {
    if (clock.uptimeMs() - readMs < READ_AGAIN_MS) return last;
    readMs = clock.uptimeMs();
    return (last = unlessUnusable(() => readWebhookUsers(path)) ?? last);
  }
  return { get named() { return now().named; }, get current() { return now().current; } };
}

function unlessUnusable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return undefined;
  }
}

function read(path: string): Config {
  const text = readText(path);
  if (text === undefined) throw new ConfigError(`--kubeconfig ${path}: no such file`);
  try {
    const config = (readYamlSettings(text) as Config | null) ?? {};
    const of = <T>(list: readonly Named<T>[] | null | undefined): readonly Named<T>[] => (list ?? []).map((one) => ({ ...one, path }));
    return { ...config, clusters: of(config.clusters), users: of(config.users), contexts: of(config.contexts) };
  } catch (cause) {
    throw new ConfigError(`--kubeconfig ${path}: ${(cause as Error).message}`, { cause });
  }
}

function named<T>(list: readonly Named<T>[] | undefined, name: string | undefined): Named<T> { return list?.find((one) => one.name === name) ?? {}; }

function userOf(user: User, path: string): WebhookUser {
  return {
    cert: material(path, user["client-certificate-data"], user["client-certificate"]), key: material(path, user["client-key-data"], user["client-key"]),
    token: user.token ?? material(path, undefined, user.tokenFile)?.trim(), username: user.username, password: user.password,
  };
}

/** What is in the file itself, in base64, or in another beside it. */
function material(path: string, data: string | undefined, file: string | undefined): string | undefined {
  if (data) return Buffer.from(data, "base64").toString();
  if (!file) return undefined;
  const content = readText(resolve(dirname(path), file));
  if (content === undefined) throw new ConfigError(`--kubeconfig ${path}: ${file}: no such file`);
  return content;
}
