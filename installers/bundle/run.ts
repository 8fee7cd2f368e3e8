/** Runs a build tool and waits for it. Not for the product: that is node/os/exec.ts. */
import { spawn, spawnSync } from "node:child_process";
import { text } from "node:stream/consumers";

export interface RunOptions {
  readonly directory?: string;
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Exit codes that are no failure, besides 0. */
  readonly allow?: readonly number[];
  /** Show output while it runs instead of returning it. */
  readonly show?: boolean;
}

/** Standard output of the program; throws with its standard error when it fails. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): string {
  const result = spawnSync(command, args, {
    cwd: options.directory, env: { ...process.env, ...options.env }, encoding: "utf8", maxBuffer: 256 << 20, stdio: options.show ? ["ignore", "inherit", "inherit"] : ["ignore", "pipe", "pipe"],
  });
  if (result.error) throw new Error(`${command}: ${(result.error as NodeJS.ErrnoException).code === "ENOENT" ? "not installed on this machine" : result.error.message}`, { cause: result.error });
  if (result.status !== 0 && !options.allow?.includes(result.status ?? -1))
    throw new Error(`${[command, ...args].join(" ").slice(0, 400)}: exit code ${result.status ?? result.signal}\n${result.stderr ?? ""}`.trim());
  return result.stdout ?? "";
}

/** Runs the program once for each list of arguments, as many at a time as there are processors. Throws what failed first. */
export async function runEach(command: string, argLists: readonly (readonly string[])[], { env }: Pick<RunOptions, "env"> = {}): Promise<void> {
  const waiting = argLists.values();
  const worker = async (): Promise<void> => {
    for (const args of waiting) {
      const child = spawn(command, args, { env: { ...process.env, ...env }, stdio: ["ignore", "ignore", "pipe"] });
      const [stderr, exitCode] = await Promise.all([text(child.stderr), new Promise((resolve, reject) => child.once("error", reject).once("close", resolve))]);
      if (exitCode !== 0) throw new Error(`${[command, ...args].join(" ").slice(0, 400)}: exit code ${String(exitCode)}\n${stderr}`.trim());
    }
  };
  await Promise.all(Array.from({ length: navigator.hardwareConcurrency }, worker));
}

export function has(command: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${command}`], { stdio: "ignore" }).status === 0;
}
