/**
 * The cluster's own token: made at the first start, kept in <data-dir>/server/token for the administrator to hand out, together with the CA's hash.
 * --token (or --token-file) takes its place; the file then says what was given. The one of before is kept beside it: snapshots that were taken until then are sealed with it.
 */
import { readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileText } from "../core/lifecycle/file-text.ts";
import type { Random } from "../core/lifecycle/random.ts";
import { ensurePrivateDirectory, writeDurably } from "../core/pki/durable-file.ts";
import { formatJoinToken, parseJoinToken } from "../core/pki/join-token.ts";
import { copyKept, type KeptFiles, mendKept } from "../core/pki/kept-twice.ts";
import type { Log } from "../core/observe/log.ts";
import { ConfigError, readText } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { freePath } from "./snapshot-files.ts";

/** What was given, else what is in the file, or in its copy if it is damaged, else a new secret; of that nothing is written yet. Throws ConfigError. */
export async function clusterSecret({ path, given, random, log }: { readonly path: string; readonly given: string | undefined; readonly random: Random; readonly log: Pick<Log, "error"> }): Promise<string> {
  if (given !== undefined) return parse(given);
  await mendKept(kept(path), log);
  const found = await fileText(path);
  if (found === undefined) return Buffer.from(random.bytes(16)).toString("hex");
  try {
    return parseJoinToken(found).secret;
  } catch (cause) {
    throw new ConfigError(`${path}: ${(cause as Error).message}. Write the cluster's token there, which snapshots are sealed with; or remove the file, and a new one is made`, { cause });
  }
}

function kept(path: string): KeptFiles {
  return { dir: dirname(path), names: [basename(path)], isWhole: (_, text) => isToken(text) };
}

function isToken(text: string): boolean {
  try {
    return !parseJoinToken(text).secret.includes("\0");
  } catch {
    return false;
  }
}

/** Secrets that others have taken the place of, the newest first. */
export async function formerSecrets(path: string): Promise<string[]> {
  const names = await readdir(dirname(path)).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
    throw error;
  });
  const texts = await Promise.all(names.filter((name) => FORMER.test(name)).sort((a, b) => numberOf(b) - numberOf(a)).map((name) => fileText(join(dirname(path), name))));
  return texts.flatMap((text) => (text !== undefined && isToken(text) ? [parseJoinToken(text).secret] : []));
}

/** As freePath numbers them. */
const FORMER = /^token\.before(?:-(\d+))?$/;
function numberOf(name: string): number { return Number(FORMER.exec(name)?.[1] ?? 1); }

/** Returns the secret. */
export async function clusterToken({ path, given, caPem, random, log }: { readonly path: string; readonly given: string | undefined; readonly caPem: string; readonly random: Random; readonly log: Pick<Log, "warn"> }): Promise<string> {
  const found = await fileText(path);
  const secret = parse(given ?? found ?? Buffer.from(random.bytes(16)).toString("hex"));
  const text = `${formatJoinToken(caPem, secret)}\n`;
  if (text !== found) {
    await ensurePrivateDirectory(dirname(path));
    if (found !== undefined && isToken(found) && parseJoinToken(found).secret !== secret) {
      const before = await freePath(`${path}.before`);
      await writeDurably(before, found);
      log.warn("another token takes the place of the cluster's: snapshots that were taken until now need the one of before, on another machine, too", { keptIn: before });
    }
    await writeDurably(path, text);
  }
  await copyKept(kept(path));
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
