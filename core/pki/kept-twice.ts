/**
 * Small files that a machine cannot get again from anywhere are kept twice, in `copies` beside them: what a bad disk or a power cut does to one of them does not make the machine another one.
 *
 *   await mendKept(files, log)   puts the copies in the place of files that are damaged; what was damaged is kept as <name>.damaged
 *   await copyKept(files)        once they have been found good
 *
 * Files that are gone, all of them, were taken away by somebody, and stay away, unless whoever needs them asks for `putBackKept` before he makes others.
 */
import { rename } from "node:fs/promises";
import { join } from "node:path";
import { fileText } from "../lifecycle/file-text.ts";
import type { Log } from "../observe/log.ts";
import { ensurePrivateDirectory, writeDurably } from "./durable-file.ts";

export interface KeptFiles {
  readonly dir: string;
  /** What is good only together. */
  readonly names: readonly string[];
  /** By itself. */
  isWhole(name: string, text: string): boolean;
  /** Whether files that are whole go together, in the order of `names`. Absent: an operator may put others there, and what is whole and no copy is left to him. */
  readonly belong?: ((texts: readonly string[]) => boolean) | undefined;
}

/** In the directory of the files. */
const COPIES = "copies";

const PEM = "-----BEGIN ";
/** Characters. */
const FLIPPED_MAX = 4;

/** What cannot be mended stays as it is. */
export async function mendKept({ dir, names, isWhole, belong }: KeptFiles, log: Pick<Log, "error"> | undefined): Promise<void> {
  const texts = await readAll(dir, names);
  if (texts.every((text) => text === undefined)) return;
  const copies = await readAll(join(dir, COPIES), names);
  const damaged = names.filter((name, i) => texts[i] === undefined || !isWhole(name, texts[i]) || isFlipped(texts[i], copies[i]));
  if (damaged.length === 0 && (belong === undefined || belong(texts as string[]))) return;
  if (!areWhole(copies, { names, isWhole, belong })) return;
  const differing = names.filter((_, i) => texts[i] !== copies[i]);
  if (belong === undefined && differing.some((name) => !damaged.includes(name))) return;
  log?.error("files were damaged, and are as their copies again", { dir, files: differing, keptAs: differing.map((name) => `${name}.damaged`) });
  for (const [i, name] of names.entries()) {
    if (!differing.includes(name)) continue;
    if (texts[i] !== undefined) await rename(join(dir, name), join(dir, `${name}.damaged`));
    await writeKept(join(dir, name), copies[i]!);
  }
}

/** Whether files of which none is there are as their copies again. */
export async function putBackKept({ dir, names, isWhole, belong }: KeptFiles, log: Pick<Log, "error">): Promise<boolean> {
  const copies = await readAll(join(dir, COPIES), names);
  if (!areWhole(copies, { names, isWhole, belong })) return false;
  log.error("files were gone, and are as their copies again", { dir, files: names });
  for (const [i, name] of names.entries()) await writeKept(join(dir, name), copies[i]!);
  return true;
}

/** Writes nothing that is there already. */
export async function copyKept({ dir, names }: Pick<KeptFiles, "dir" | "names">): Promise<void> {
  const texts = await readAll(dir, names), copies = await readAll(join(dir, COPIES), names);
  for (const [i, name] of names.entries()) {
    const text = texts[i];
    if (!text /* the disk cannot read it now */ || text === copies[i]) continue;
    await ensurePrivateDirectory(join(dir, COPIES));
    await writeKept(join(dir, COPIES, name), text);
  }
}

/** The directory of copies of these files, to be removed before the files are. */
export function copiesIn(dir: string): string { return join(dir, COPIES); }

/** Whether a certificate or a key is its copy but for a byte or two: one that somebody has put there is another one all over. What has been changed so can still be read, and signs nothing that holds. */
function isFlipped(text: string, copy: string | undefined): boolean {
  if (copy === undefined || text === copy || text.length !== copy.length || !copy.startsWith(PEM)) return false;
  let differing = 0;
  for (let i = 0; i < text.length && differing <= FLIPPED_MAX; i++) if (text[i] !== copy[i]) differing++;
  return differing <= FLIPPED_MAX;
}

function areWhole(texts: readonly (string | undefined)[], { names, isWhole, belong }: Pick<KeptFiles, "names" | "isWhole" | "belong">): texts is readonly string[] {
  return names.every((name, i) => texts[i] !== undefined && isWhole(name, texts[i])) && (belong === undefined || belong(texts as readonly string[]));
}

function readAll(dir: string, names: readonly string[]): Promise<(string | undefined)[]> {
  return Promise.all(names.map((name) => fileText(join(dir, name))));
}

async function writeKept(path: string, text: string): Promise<void> {
  await writeDurably(path, text, path.endsWith(".crt") ? { mode: 0o644 } : {});
}
