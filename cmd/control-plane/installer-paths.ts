/**
 * What a machine fetches to become a node where there is no other network:
 *
 *   GET /install.sh                          installers/linux/join.sh, with the address in it at which it was asked for: for everyone, who can join with a token alone
 *   GET /executables/linux-arm64/coracle     for who holds a token: this server's own executable for machines of its kind, others out of its data directory
 *
 * Executables for other kinds of machines lie as the build makes them: <data-dir>/server/executables/linux-arm64/coracle.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { raw } from "../../core/server/answer.ts";
import type { PathHandler } from "../../core/server/scope.ts";

export interface InstallerPathsOptions {
  /** join.sh, in which @URL@ stands for the server's address. */
  readonly script: string;
  /** Where this server is reached by those who do not say where they have reached it: https://host:port */
  readonly url: string;
  /** Below it, <target>/coracle. */
  readonly directory: string;
  /** This server's own; undefined: it runs from source. */
  readonly own: { readonly target: string; readonly path: string } | undefined;
}

const EXECUTABLE = /^\/executables\/(linux-x64|linux-arm64|windows-x64)\/(coracle(?:\.exe)?)$/;
/** A name or address and a port: nothing a shell would take for more. */
const HOST = /^(?:[a-z0-9.-]+|\[[0-9a-f:.]+\])(?::\d{1,5})?$/i;

export function installerPaths({ script, url, directory, own }: InstallerPathsOptions): PathHandler {
  return async (request) => {
    if (request.method !== "GET") return undefined;
    if (request.path === "/install.sh") {
      const host = request.header("host") ?? request.header(":authority") ?? "";
      return raw(script.replace("@URL@", HOST.test(host) ? `https://${host}` : url), "text/x-shellscript; charset=utf-8");
    }
    const [, target, name] = EXECUTABLE.exec(request.path) ?? [];
    if (target === undefined || name === undefined) return undefined;
    for (const path of [join(directory, target, name), ...(own?.target === target ? [own.path] : [])]) {
      const found = await stat(path).catch(() => undefined);
      if (found?.isFile()) return { type: "raw", status: 200, headers: { "content-type": "application/octet-stream", "content-length": String(found.size) }, body: createReadStream(path) };
    }
    return raw(`there is no executable for ${target} here: \`npm run build -- --target ${target}\` makes dist/${target}, which belongs into ${directory} on the server\n`, undefined, 404);
  };
}
