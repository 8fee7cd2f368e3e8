/** `coracle install`: installers/linux/install.sh, which the executable carries, of the executable itself. */
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installScripts } from "./assets.ts";
import { ConfigError } from "./config/config.ts";
import { ownCommand } from "./own-command.ts";

const USAGE = `Usage: coracle install [server|agent] [flags]     installs this executable as a service, starts it and waits until the node is Ready

  coracle install --node-name edge-1                                    a server with a node
  CORACLE_URL=https://server:6443 CORACLE_TOKEN=… coracle install       an agent of that server

Run it again to upgrade or to change settings; without flags and variables the settings stay, but for proxies. What it heeds besides:

  CORACLE_*                    settings, as coracle server --help lists them
  INSTALL_CORACLE_EXEC         "server …" or "agent …", or only flags; flags of the command line are added
  INSTALL_CORACLE_BIN_DIR      default /usr/local/bin
  INSTALL_CORACLE_SKIP_START   "true": do not start it; the next boot does
  INSTALL_CORACLE_TIMEOUT      seconds to wait for the node to be Ready, default 180

coracle-uninstall removes all of it.`;

/** Returns the script's own exit code. */
export async function install(argv: readonly string[]): Promise<number> {
  if (argv[0] === "--help" || argv[0] === "-h" || argv[0] === "help") {
    console.log(USAGE);
    return 0;
  }
  const [executable = "", ...more] = ownCommand();
  if (process.platform === "win32") throw new ConfigError("on Windows a machine is joined by install.ps1, which lies beside this program's sources in installers/windows");
  if (process.geteuid?.() !== 0) throw new ConfigError("a service is installed by root: run this as root");
  if (more.length > 0) throw new ConfigError("this runs from source: sh installers/linux/install.sh");
  const directory = mkdtempSync(join(tmpdir(), "coracle-install-"));
  try {
    for (const [name, text] of Object.entries(installScripts())) writeFileSync(join(directory, name), text);
    return await runScript(join(directory, "install.sh"), argv, { ...process.env, INSTALL_CORACLE_BINARY: executable });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function runScript(path: string, argv: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  const child = spawn("sh", [path, ...argv], { stdio: "inherit", env });
  const ignore = (): void => undefined; // the terminal has told the script, too: it ends first
  process.on("SIGINT", ignore);
  return new Promise<number>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => resolve(code ?? 1));
  }).finally(() => process.off("SIGINT", ignore));
}
