/**
 * Variables in files of volumes (fileKeyRef): NAME='value', nothing expanded, nothing escaped; a value may run over several lines, a comment may follow it.
 *
 * Source: kubernetes v1.36 pkg/kubelet/util/env/env_util.go (what is accepted), pkg/kubelet/kubelet_pods.go (makeEnvironmentVariables)
 */
import { constants } from "node:fs";
import { lstat, open, readlink } from "node:fs/promises";
import { join, sep } from "node:path";
import { walk } from "../volumes/subpath.ts";
import { textOfBytes } from "./byte-text.ts";

/** Read anew for each variable: more than anybody writes by hand, twice what one may hold. */
const FILE_BYTES_MAX = 256 * 1024;

/**
 * Who wrote the file is a container: what it links to is looked for within its volume, and what is no file (a pipe, whose end would be waited for) or too large for
 * one is not read. Undefined: the key is not in it, or empty. Throws an Error when it is no such file.
 */
export async function readEnvFile(volumePath: string, path: string, key: string): Promise<string | undefined> {
  let text: string;
  try {
    text = await readWithin(volumePath, path);
  } catch (cause) {
    throw new Error("couldn't parse env file", { cause });
  }
  try {
    return parseEnvFile(text, key) || undefined;
  } catch (cause) {
    throw new Error("couldn't parse env file", { cause });
  }
}

/** Throws an Error with upstream's words. */
export function parseEnvFile(text: string, key: string): string {
  const lines = text.split("\n").map((line) => line.replace(/\r$/, "")); // of a value of several lines, too
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!.replace(/^[ \t]+/, "");
    const wrong = (what: string): Error => new Error(`invalid environment variable format at line ${at + 1}: ${what}`);
    if (line === "" || line.startsWith("#")) continue;
    const equals = line.indexOf("=");
    if (equals < 0) throw wrong("missing '='");
    const name = line.slice(0, equals);
    const rest = line.slice(equals + 1);
    if (name === "") throw wrong("empty variable name");
    if (/[ \t]$/.test(name)) throw wrong("whitespace before '=' is not allowed");
    if (/^[ \t]/.test(rest)) {
      if (name === key) return ""; // as a shell reads it
      continue;
    }
    if (!rest.startsWith("'")) throw wrong("value must be enclosed in single quotes");
    const begun = at;
    let value = rest.slice(1);
    let end = value.indexOf("'");
    while (end < 0) {
      at++;
      if (at >= lines.length || (at === lines.length - 1 && lines[at] === "")) throw new Error(`invalid environment variable format starting at line ${begun + 1}: unclosed single quote`);
      const quote = lines[at]!.indexOf("'");
      end = quote < 0 ? quote : value.length + 1 + quote;
      value += `\n${lines[at]!}`;
    }
    if (!/^[ \t]*(#|$)/.test(value.slice(end + 1))) throw new Error(`invalid environment variable format at line ${at + 1}: unexpected content after closing quote`);
    if (name === key) return value.slice(0, end);
  }
  return "";
}

/** Nothing that a container makes of the path meanwhile leads out of the volume. */
async function readWithin(root: string, path: string): Promise<string> {
  const inside = await within(root, path);
  const place = process.platform === "win32" ? undefined : await walk(root, inside.join(sep));
  try {
    const file = await open(place === undefined ? join(root, ...inside) : `/proc/self/fd/${place.fd}`, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
    try {
      const found = await file.stat();
      if (!found.isFile()) throw new Error(`${path} is no regular file`);
      if (found.size > FILE_BYTES_MAX) throw new Error(`${path} has more than ${FILE_BYTES_MAX} bytes`);
      const bytes = Buffer.alloc(found.size);
      return textOfBytes(bytes.subarray(0, (await file.read(bytes, 0, found.size, 0)).bytesRead));
    } finally {
      await file.close();
    }
  } finally {
    await place?.close();
  }
}

const LINKS_MAX = 255;

/** The steps of the path below `root`, with every link on the way taken as if `root` were "/". */
async function within(root: string, path: string): Promise<string[]> {
  let left = path.split("/");
  let at: string[] = [];
  for (let links = 0; left.length > 0;) {
    const [part = "", ...rest] = left;
    left = rest;
    if (part === "" || part === ".") continue;
    if (part === "..") {
      at = at.slice(0, -1);
      continue;
    }
    const target = await linkAt(join(root, ...at, part));
    if (target === undefined) {
      at = [...at, part];
      continue;
    }
    if (++links > LINKS_MAX) throw new Error(`too many links in ${path}`);
    if (target.startsWith("/")) at = [];
    left = [...target.split("/"), ...left];
  }
  return at;
}

async function linkAt(path: string): Promise<string | undefined> {
  try {
    return (await lstat(path)).isSymbolicLink() ? await readlink(path) : undefined;
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return undefined; // whoever opens it will see
    throw error;
  }
}
