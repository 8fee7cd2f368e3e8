/** The kubelet's settings from ours: flags of our own, and --kubelet-arg k=v under upstream's names. */
import { createHash } from "node:crypto";
import { accessSync, constants, existsSync, lstatSync, readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { dirname, isAbsolute, join, resolve } from "node:path";
import { parseStrictYaml } from "../core/api/codec/yaml.ts";
import { aggregate } from "../core/api/meta/aggregate.ts";
import { parseDurationMs } from "../core/api/meta/duration.ts";
import { goQuote } from "../core/api/meta/go-quote.ts";
import { applyConfiguration, type Configuration, mergeConfigurations } from "../node/kubelet/configuration/decode.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import { ifThereSync } from "../core/lifecycle/if-there.ts";
import type { Log } from "../core/observe/log.ts";
import type { Metrics } from "../core/observe/metrics.ts";
import { type CredentialProviders, credentialProviders } from "../node/kubelet/images/credential-provider.ts";
import { checkedProviders, type Provider, readProviders } from "../node/kubelet/images/credential-provider-config.ts";
import { type AccessSettings, KUBELET_DEFAULTS, type KubeletSettings } from "../node/kubelet/settings.ts";
import { exec } from "../node/os/exec.ts";
import { priorityOfClass } from "../node/os/process-priority.ts";
import { ConfigError } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { gateProblems } from "./kubelet-gates.ts";
import { isConfigurationFlag, kubeletFlags, truth } from "./kubelet-flags.ts";
import type { ThisNode } from "./node-identity.ts";
import { checkOther, OTHER_KUBELET_SETTINGS } from "./other-settings.ts";
import { nodeLabels } from "./node-labels.ts";
import { nodeTaint } from "./node-taint.ts";
import { pair } from "./pair.ts";
import { type Paths, withoutLinks } from "./paths.ts";
import { gitVersion } from "./version.ts";

/** systemd-resolved keeps the real servers here, and a loopback address that no pod can use in /etc/resolv.conf. */
const RESOLVED_CONF = "/run/systemd/resolve/resolv.conf";
const RESOLVED_STUB = /\/systemd\/resolve\//;

/** As upstream advises: pods that say nothing of their operating system are meant for Linux, and must not land on Windows (installers/windows/README.md). */
const WINDOWS_TAINTS: readonly string[] = ["os=windows:NoSchedule"];

/** Where what collects logs looks, in every cluster. */
const LOGS = {
  linux: { podLogsDir: "/var/log/pods", containerLogsDir: "/var/log/containers" },
  windows: { podLogsDir: "C:\\var\\log\\pods", containerLogsDir: "C:\\var\\log\\containers" },
} as const;

type Writable = { -readonly [K in keyof KubeletSettings]: KubeletSettings[K] };

const access = (change: (value: string) => Partial<AccessSettings>) => (settings: Writable, value: string): void => { settings.access = { ...settings.access, ...change(value) }; };

/** Those that are no field of the configuration, or within one: fields are kubelet-flags.ts's. */
const ARGUMENTS: Readonly<Record<string, (settings: Writable, value: string) => void>> = {
  "anonymous-auth": access((value) => ({ anonymous: truth("anonymous-auth", value) })),
  "authentication-token-webhook": access((value) => ({ tokens: truth("authentication-token-webhook", value) })),
  "authentication-token-webhook-cache-ttl": access((value) => ({ tokenTtlMs: duration("authentication-token-webhook-cache-ttl", value) })),
  "authorization-mode": access((value) => ({ authorizes: mode(value) === "Webhook" })),
  "authorization-webhook-cache-authorized-ttl": access((value) => ({ allowedTtlMs: duration("authorization-webhook-cache-authorized-ttl", value) })),
  "authorization-webhook-cache-unauthorized-ttl": access((value) => ({ deniedTtlMs: duration("authorization-webhook-cache-unauthorized-ttl", value) })),
  "root-dir": (settings, value) => void Object.assign(settings, { dataDir: withoutLinks(value), seccompDir: join(value, "seccomp") }),
  "maximum-dead-containers-per-container": (settings, value) => void (settings.deadContainers = {
    ...settings.deadContainers, perContainer: value === "-1" ? -1 : Math.max(1, wholeNumber("maximum-dead-containers-per-container", value)),
  }), // the newest tells how the container ended
  "minimum-container-ttl-duration": (settings, value) => void (settings.deadContainers = { ...settings.deadContainers, ageMinMs: duration("minimum-container-ttl-duration", value) }),
  "windows-priorityclass": (settings, value) => void (settings.processPriority = processPriority(value)),
  "node-labels": (settings, value) => void (settings.labels = { ...settings.labels, ...nodeLabels(value.split(","), "--kubelet-arg node-labels") }),
  "register-schedulable": (settings, value) => void (settings.unschedulable = !truth("register-schedulable", value)),
};

function mode(value: string): string {
  if (value === "Webhook" || value === "AlwaysAllow") return value;
  throw new ConfigError(`--kubelet-arg authorization-mode=${value}: unknown authorization mode ${value}`);
}

function processPriority(value: string): number {
  if (process.platform !== "win32") throw new ConfigError(`--kubelet-arg windows-priorityclass=${value}: this is no Windows`);
  try {
    return priorityOfClass(value);
  } catch (cause) {
    throw new ConfigError(`--kubelet-arg windows-priorityclass: ${(cause as Error).message}`, { cause });
  }
}

/** Which file has the servers of the machine, or will have: a network that comes up after us brings it, and each pod is given what it says by then. */
export function resolvConf(root = "/"): string {
  const usual = "/etc/resolv.conf";
  const leadsTo = ifThereSync(() => (lstatSync(join(root, usual)).isSymbolicLink() ? readlinkSync(join(root, usual)) : "")) ?? "";
  return existsSync(join(root, RESOLVED_CONF)) || RESOLVED_STUB.test(leadsTo) ? RESOLVED_CONF : usual;
}

/** Throws ConfigError for what cannot be used. */
export function kubeletSettings(settings: Settings, node: ThisNode, paths: Paths): KubeletSettings {
  const result: Writable = {
    ...KUBELET_DEFAULTS,
    nodeName: node.name,
    nodeIps: node.ips,
    hostname: node.name, // a name that is given stands for the machine's own in labels and addresses too
    version: gitVersion(),
    dataDir: withoutLinks(paths.kubelet),
    wellKnownDir: process.platform === "linux" ? "/var/lib/kubelet" : "",
    workingDir: process.cwd(),
    home: process.env[process.platform === "win32" ? "USERPROFILE" : "HOME"] ?? "",
    ...LOGS[process.platform === "win32" ? "windows" : "linux"],
    seccompDir: join(paths.kubelet, "seccomp"),
    clusterDns: [settings.clusterDns],
    clusterDomain: settings.clusterDomain,
    resolvConf: process.platform === "linux" ? resolvConf() : "",
    port: settings.kubeletPort,
    labels: nodeLabels(settings.nodeLabel),
    taints: (settings.nodeTaint.length === 0 && process.platform === "win32" ? WINDOWS_TAINTS : settings.nodeTaint).map((text) => nodeTaint(text)),
  };
  const given = settings.kubeletArg.map(argumentPair);
  const last = (wanted: string): string | undefined => given.findLast(([name]) => name === wanted)?.[1];
  const own = new Set([...(settings.nodeTaint.length > 0 ? ["registerWithTaints"] : []), ...(settings.kubeletPort === KUBELET_DEFAULTS.port ? [] : ["port"])]);
  const configured: Writable = { ...withConfiguration(result, { file: last("config"), directory: last("config-dir"), own, flags: kubeletFlags(given.filter(([name]) => !setterOf(name) && !isOther(name))) }) };
  for (const [name, value] of given) {
    const set = setterOf(name);
    if (!set && !isOther(name) && (CONFIGURATION.includes(name) || isConfigurationFlag(name))) continue;
    if (set) set(configured, value); // a flag wins over the file
    else checkOther("kubelet-arg", `${name}=${value}`, { others: OTHER_KUBELET_SETTINGS, known: [...Object.keys(ARGUMENTS), ...CONFIGURATION, "fields of KubeletConfiguration"] });
  }
  return configured;
}

function setterOf(name: string): (typeof ARGUMENTS)[string] | undefined { return Object.hasOwn(ARGUMENTS, name) ? ARGUMENTS[name] : undefined; }

/** A name alone is one that is true. Throws ConfigError. */
function argumentPair(text: string): [name: string, value: string] {
  const bare = text.replace(/^--/, "");
  return pair("--kubelet-arg", /^[a-z0-9-]+$/.test(bare) ? `${bare}=true` : bare);
}

/** There is something else to give instead: that is told, also of what is a field as well. */
function isOther(name: string): boolean { return Object.hasOwn(OTHER_KUBELET_SETTINGS, name); }

const CONFIGURATION: readonly string[] = ["config", "config-dir", "image-credential-provider-config", "image-credential-provider-bin-dir"];

/** Undefined: there are none. */
export function providersOf(settings: Settings, deps: { readonly metrics: Metrics; readonly clock: Clock; readonly log: Log }): CredentialProviders | undefined {
  const given = settings.kubeletArg.map(argumentPair);
  const last = (wanted: string): string | undefined => given.findLast(([name]) => name === wanted)?.[1];
  const [config, binDir] = [last("image-credential-provider-config"), last("image-credential-provider-bin-dir")];
  if (config === undefined && binDir === undefined) return undefined;
  if (config === undefined || binDir === undefined) throw new ConfigError("--kubelet-arg image-credential-provider-config and image-credential-provider-bin-dir go together");
  try {
    if (!existsSync(binDir)) throw new Error(`plugin binary directory ${binDir} did not exist`);
    const files = statSync(config).isDirectory() ? readdirSync(config, { withFileTypes: true }).filter((entry) => !entry.isDirectory() && /\.(json|yaml|yml)$/.test(entry.name)).map(({ name }) => join(config, name)).toSorted() : [config];
    if (files.length === 0) throw new Error(`no configuration files found in directory "${config}"`);
    const texts = files.map((path) => readFileSync(path));
    const providers = checkedProviders(files.flatMap((path, i) => providersIn(path, texts[i]!.toString())));
    for (const { name } of providers) checkProgram(join(binDir, name));
    const hash = hashOf(texts);
    deps.metrics.gaugeFrom("kubelet_credential_provider_config_info", "[ALPHA] Information about the last applied credential provider configuration with hash as label", () => [[{ hash }, 1]]);
    return credentialProviders({ providers, binDir, environment: process.env, exec, ...deps });
  } catch (cause) {
    throw new ConfigError(`--kubelet-arg image-credential-provider-config: ${(cause as Error).message}`, { cause });
  }
}

/** Throws an Error with the file's name. */
function providersIn(path: string, text: string): readonly Provider[] {
  try {
    return readProviders(parseStrictYaml(text));
  } catch (cause) {
    throw new Error(`error decoding config ${goQuote(path)}: ${(cause as Error).message}`, { cause });
  }
}

function checkProgram(path: string): void {
  const found = [path, `${path}.exe`].find((file) => statSync(file, { throwIfNoEntry: false })?.isFile());
  if (found === undefined) throw new Error(`plugin binary executable ${path} did not exist`);
  try {
    accessSync(found, constants.X_OK);
  } catch (cause) {
    throw new Error(`error inspecting binary executable ${path}: permission denied`, { cause });
  }
}

/** As it is shown to whoever watches for changes: each text with its length before it, eight bytes. Source: kubernetes v1.36 pkg/credentialprovider/plugin/config.go readCredentialProviderConfig */
function hashOf(texts: readonly Buffer[]): string {
  const hash = createHash("sha256");
  for (const text of texts) {
    const length = Buffer.alloc(8);
    length.writeBigUInt64BE(BigInt(text.length));
    hash.update(length).update(text);
  }
  return `sha256:${hash.digest("hex")}`;
}

interface Configured {
  readonly file: string | undefined;
  readonly directory: string | undefined;
  readonly flags: Readonly<Record<string, unknown>> | undefined;
  /** Fields that flags of our own stand for, of which files say nothing then. */
  readonly own: ReadonlySet<string>;
}

/** With what a KubeletConfiguration, those of a directory (*.conf, also further below) and flags say. */
function withConfiguration(settings: KubeletSettings, { file, directory, flags, own }: Configured): KubeletSettings {
  if (file === undefined && directory === undefined && flags === undefined) return settings;
  try {
    const dropIns = directory === undefined ? [] : filesBelow(directory).filter((path) => path.endsWith(".conf"));
    const read = (path: string): unknown => parseStrictYaml(readFileSync(path, "utf8"));
    const documents = [...(file === undefined ? [] : [{ path: file, value: besideFile(read(file), dirname(file)) }]), ...dropIns.map((path) => ({ path, value: read(path) }))];
    const files = Object.fromEntries(Object.entries(mergeConfigurations(documents)).filter(([name]) => !own.has(name)));
    const merged = withFlags(files, flags ?? {});
    checkGates(merged["featureGates"] as Readonly<Record<string, boolean>> | undefined);
    return applyConfiguration(settings, merged, { os: process.platform === "win32" ? "windows" : "linux", flags: new Set(Object.keys(flags ?? {})) });
  } catch (cause) {
    throw new ConfigError(`--kubelet-arg${file === undefined ? directory === undefined ? "" : " config-dir" : " config"}: ${(cause as Error).message}`, { cause });
  }
}

/** Paths of the one file that --config names are meant from where it is; those of others from where we run. Source: kubernetes v1.36 pkg/kubelet/kubeletconfig/configfiles/configfiles.go, apis/config/helpers.go */
function besideFile(value: unknown, directory: string): unknown {
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]: [string, unknown]) => [name, PATHS.includes(name) && typeof one === "string" && one !== "" && !isAbsolute(one) ? resolve(directory, one) : one]));
}

const PATHS: readonly string[] = ["staticPodPath", "tlsCertFile", "tlsPrivateKeyFile", "resolvConf", "volumePluginDir", "podLogsDir"];

/** What a flag says stands for all that files say of its field: but feature gates stand beside each other. Source: kubernetes v1.36 cmd/kubelet/app/server.go kubeletConfigFlagPrecedence */
function withFlags(files: Configuration, flags: Configuration): Configuration {
  const gates = { ...(files["featureGates"] as object | undefined), ...(flags["featureGates"] as object | undefined) };
  return { ...files, ...flags, ...(Object.keys(gates).length > 0 ? { featureGates: gates } : {}) };
}

/** In the order of their names, those of a directory in its place. */
function filesBelow(directory: string): string[] {
  const entries = readdirSync(directory, { withFileTypes: true }).toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => { const path = join(directory, entry.name); return entry.isDirectory() ? filesBelow(path) : [path]; });
}

/** Throws for gates that upstream's kubelet would not start with. */
function checkGates(gates: Readonly<Record<string, boolean>> = {}): void {
  const problems = gateProblems(gates);
  if (problems.length > 0) throw new Error(`failed to set feature gates from initial flags-based config: ${aggregate(problems)}`);
}

function duration(flag: string, text: string): number {
  try {
    return parseDurationMs(text);
  } catch (cause) {
    throw new ConfigError(`--kubelet-arg ${flag}: ${(cause as Error).message}`, { cause });
  }
}

function wholeNumber(flag: string, text: string): number {
  if (!/^\d+$/.test(text)) throw new ConfigError(`--kubelet-arg ${flag} must be a whole number, not ${JSON.stringify(text)}`);
  return Number(text);
}
