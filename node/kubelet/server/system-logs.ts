/**
 * GET /logs/…: the files below the log directory, directories as lists of links. Queries of services' logs: log-query.ts.
 *
 * Source: kubernetes v1.36 pkg/kubelet/kubelet.go ServeLogs
 */
import { createReadStream } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join, sep } from "node:path";
import { isNotThere } from "../../../core/lifecycle/if-there.ts";
import { type Answer, AnswerError } from "./answer.ts";

export async function systemLogs(logDir: string, below: string): Promise<Answer> {
  try {
    const root = await realpath(logDir);
    const found = await realpath(join(root, below));
    if (found !== root && !found.startsWith(root + sep)) throw new AnswerError(404, "404 page not found\n"); // a link that leads out
    const facts = await stat(found);
    if (facts.isFile()) return { status: 200, contentType: "text/plain; charset=utf-8", body: createReadStream(found) };
    if (!facts.isDirectory()) throw new AnswerError(404, "404 page not found\n");
    const names = (await readdir(found, { withFileTypes: true })).map((entry) => `${entry.name}${entry.isDirectory() ? "/" : ""}`).toSorted();
    return { status: 200, contentType: "text/html; charset=utf-8", body: `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${names.map((name) => `<a href="${linkTo(name)}">${escapeHtml(name)}</a>\n`).join("")}</pre>\n` };
  } catch (error) {
    if (isNotThere(error)) throw new AnswerError(404, "404 page not found\n");
    throw error;
  }
}

/** A name is no query, no fragment and no scheme. */
function linkTo(name: string): string {
  const path = encodeURI(name).replaceAll("?", "%3F").replaceAll("#", "%23");
  return path.includes(":") ? `./${path}` : path;
}

function escapeHtml(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&#34;");
}
