/**
 * The cluster's own token: made at the first start, kept in <data-dir>/server/token for the administrator to hand out, together with the CA's hash.
 * --token (or --token-file) takes its place; the file then says what was given.
 */
import { dirname } from "node:path";
import type { Random } from "../core/lifecycle/random.ts";
import { ensurePrivateDirectory, readIfExists, writeDurably } from "../core/pki/durable-file.ts";
import { formatJoinToken, parseJoinToken } from "../core/pki/join-token.ts";
import { ConfigError, readText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";

/** What was given, else what is in the file, else a new secret; nothing is written yet. */
export async function clusterSecret({ path, given, random }: { readonly path: string; readonly given: string | undefined; readonly random: Random }): Promise<string> {
  return parse(given ?? (await readIfExists(path)) ?? Buffer.from(random.bytes(16)).toString("hex"));
}

/** Returns the secret. */
export async function clusterToken({ path, given, caPem, random }: { readonly path: string; readonly given: string | undefined; readonly caPem: string; readonly random: Random }): Promise<string> {
  const found = await readIfExists(path);
  const secret = parse(given ?? found ?? Buffer.from(random.bytes(16)).toString("hex"));
  const text = `${formatJoinToken(caPem, secret)}\n`;
  if (text !== found) {
    await ensurePrivateDirectory(dirname(path));
    await writeDurably(path, text);
  }
  return secret;
}

/** What --token or --token-file say. */
export function givenToken({ token, tokenFile }: Pick<Settings, "token" | "tokenFile">): string | undefined {
  if (token !== undefined || tokenFile === undefined) return token;
  const text = readText(tokenFile)?.trim();
  if (!text) throw new ConfigError(`--token-file ${tokenFile}: ${text === undefined ? "no such file" : "the file is empty"}`);
  return text;
}

function parse(text: string): string {
  try {
    return parseJoinToken(text).secret;
  } catch (cause) {
    throw new ConfigError(`--token: ${(cause as Error).message}`, { cause });
  }
}
