/**
 * `coracle token create|list|delete`: tokens with which machines join, as Secrets of type bootstrap.kubernetes.io/token. Run it on the server, or with a
 * kubeconfig of an administrator.
 *
 * What is printed carries the hash of the cluster's CA, so that the machine knows the server before it tells it the secret: core/pki/join-token.ts.
 */
import type { Secret } from "../core/api/gen/core.v1.ts";
import type { NewObject } from "../core/api/meta/object-meta.ts";
import { isNotFound } from "../core/api/meta/status-error.ts";
import type { Client } from "../core/client/client.ts";
import { SECRETS } from "../core/client/resources.ts";
import { systemClock, timestamp } from "../core/lifecycle/clock.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { formatJoinToken } from "../core/pki/join-token.ts";
import { connect } from "./admin-client.ts";
import { joinCommand } from "./join-command.ts";
import { ConfigError } from "./config/config.ts";
import { terminalText } from "./terminal-text.ts";

const USAGE = `Usage: coracle token create [--ttl 24h] [--description TEXT]   prints a token for: coracle agent --server … --token …
                            [--print-join-command]               prints what to run as root on a Linux machine that has nothing yet
       coracle token list                                       tokens there are, without their secrets
       coracle token delete ID…                                 makes tokens invalid at once

  --ttl            how long the token is good, as 30m, 24h or 7d; 0: until it is deleted (default 24h)
  --description    what it is for
  --kubeconfig     default: $KUBECONFIG, else the one the server wrote

The cluster also has a token that is good for ever: <data-dir>/server/token on the server. Another takes its place when the server starts with --token.`;

const NAMESPACE = "kube-system";
const PREFIX = "bootstrap-token-";
const GROUP = "system:bootstrappers:coracle:default-node-token";
const ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz";
const JOIN_COMMAND = "print-join-command"; // as kubeadm calls it
const UNITS_MS: Readonly<Record<string, number>> = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

export async function token(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  if (command === undefined || command === "help" || argv.includes("--help") || argv.includes("-h")) {
    console.log(USAGE);
    return command === undefined ? 2 : 0;
  }
  const known = new Map(Object.entries({ create: ["ttl", "description", "kubeconfig", JOIN_COMMAND], list: ["kubeconfig"], delete: ["kubeconfig"] })).get(command);
  if (!known) throw new ConfigError(`unknown command ${JSON.stringify(command)}\n\n${USAGE}`);
  const { flags, words } = readFlags(rest, known);
  if (command !== "delete" && words.length > 0) throw new ConfigError(`"coracle token ${command}" takes flags alone, and ${JSON.stringify(words[0])} is none; see "coracle token --help"`);
  const { client, ca } = connect(flags.get("kubeconfig"), "coracle-token");
  const signal = AbortSignal.timeout(30_000);
  switch (command) {
    case "create": return await create(client, ca, { ttlMs: durationMs(flags.get("ttl") ?? "24h"), description: flags.get("description") ?? "", printsCommand: flags.has(JOIN_COMMAND) }, signal);
    case "list": return await list(client, signal);
    default: return await remove(client, words, signal);
  }
}

async function create(client: Client, ca: string | undefined, { ttlMs, description, printsCommand }: { readonly ttlMs: number; readonly description: string; readonly printsCommand: boolean }, signal: AbortSignal): Promise<number> {
  if (ca === undefined) throw new ConfigError("the kubeconfig does not say which CA vouches for the server, and a token does: run this on the server");
  const id = letters(6), secret = letters(16);
  const object: NewObject<Secret> = {
    apiVersion: "v1", kind: "Secret", metadata: { name: PREFIX + id, namespace: NAMESPACE }, type: "bootstrap.kubernetes.io/token",
    stringData: {
      "token-id": id, "token-secret": secret, "usage-bootstrap-authentication": "true", "auth-extra-groups": GROUP, ...(description === "" ? {} : { description }),
      ...(ttlMs === 0 ? {} : { expiration: timestamp(systemClock.nowMs() + ttlMs) }),
    },
  };
  const given = formatJoinToken(ca, `${id}.${secret}`);
  const line = printsCommand ? await joinCommand(client, given, ca, signal) : given; // before there is a token that nobody has been told
  await client.resource(SECRETS).create(object, { signal });
  console.log(line);
  return 0;
}

async function list(client: Client, signal: AbortSignal): Promise<number> {
  const { items } = await client.resource(SECRETS).list({ namespace: NAMESPACE, fieldSelector: "type=bootstrap.kubernetes.io/token" }, { signal });
  const value = (secret: Secret, key: string): string => Buffer.from(secret.data?.[key] ?? "", "base64").toString();
  const rows = items.filter(({ metadata }) => metadata.name.startsWith(PREFIX)).map((secret) => {
    const expiration = value(secret, "expiration");
    const leftMs = Date.parse(expiration) - systemClock.nowMs();
    return [value(secret, "token-id"), expiration === "" ? "forever" : leftMs > 0 ? `${shortDuration(leftMs)} left` : "expired", expiration || "-", secret.metadata.creationTimestamp, value(secret, "description") || "-"];
  });
  const table = [["ID", "TTL", "EXPIRES", "CREATED", "DESCRIPTION"], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  for (const row of table) console.log(terminalText(row.map((cell, column) => cell.padEnd(widths[column]!)).join("   ").trimEnd()));
  return 0;
}

async function remove(client: Client, words: readonly string[], signal: AbortSignal): Promise<number> {
  if (words.length === 0) throw new ConfigError("which token? see: coracle token list");
  let missing = 0;
  for (const word of words) {
    const id = /^(?:K10[0-9a-f]{64}::)?([a-z0-9]{6})(?:\.[a-z0-9]{16})?$/.exec(word)?.[1];
    if (id === undefined) throw new ConfigError(`${JSON.stringify(word)} is no token: neither its id (six letters and digits) nor the whole of it`);
    try {
      await client.resource(SECRETS).delete({ metadata: { name: PREFIX + id, namespace: NAMESPACE } }, {}, { signal });
      console.log(`token ${id} deleted`);
    } catch (error) {
      if (!isNotFound(error)) throw error;
      console.error(`there is no token ${id}`);
      missing++;
    }
  }
  return missing === 0 ? 0 : 1;
}

function readFlags(argv: readonly string[], known: readonly string[]): { readonly flags: ReadonlyMap<string, string>; readonly words: readonly string[] } {
  const flags = new Map<string, string>();
  const words: string[] = [];
  for (let i = 0; i < argv.length; i++) {
    const [, name, value] = /^--([a-z-]+)(?:=([\s\S]*))?$/.exec(argv[i]!) ?? [];
    if (name === undefined) words.push(argv[i]!);
    else if (!known.includes(name)) throw new ConfigError(`unknown flag --${name}\n${USAGE}`);
    else if (name === JOIN_COMMAND && value === undefined) flags.set(name, "true");
    else {
      const text = value ?? argv[++i];
      if (text === undefined) throw new ConfigError(`--${name} needs a value`);
      flags.set(name, text);
    }
  }
  return { flags, words };
}

/** As Go writes durations, and days. */
function durationMs(text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)([smhd])/g)];
  if (text === "0") return 0;
  if (parts.length === 0 || parts.map(([part]) => part).join("") !== text) throw new ConfigError(`--ttl ${JSON.stringify(text)}: must be a time such as 30m, 24h or 7d, or 0`);
  return Math.round(parts.reduce((sum, [, amount, unit]) => sum + Number(amount) * UNITS_MS[unit!]!, 0));
}

function shortDuration(ms: number): string {
  const unit = (["d", "h", "m"] as const).find((one) => ms >= 2 * UNITS_MS[one]!) ?? "s";
  return `${Math.floor(ms / UNITS_MS[unit]!)}${unit}`;
}

/** Uniform: bytes that would favour the first letters are dropped. */
function letters(length: number): string {
  let text = "";
  while (text.length < length) for (const byte of systemRandom.bytes(length)) if (byte < 252 && text.length < length) text += ALPHABET[byte % 36];
  return text;
}
