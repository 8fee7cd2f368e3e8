/** Programs beside a test: started, waited for by what they print or serve, ended with their scope. */
import { createServer } from "node:net";

/** How long anything may take: emulated, on a machine that is busy with much else. */
const PATIENCE_MS = 300_000;

export interface Finished { readonly code: number; readonly stdout: string; readonly stderr: string }

/** Runs to the end. */
export async function finish(command: readonly string[], { env = {}, input, timeoutMs = PATIENCE_MS }: { readonly env?: Readonly<Record<string, string>>; readonly input?: string; readonly timeoutMs?: number } = {}): Promise<Finished> {
  const child = Bun.spawn([...command], { env: { ...process.env, ...env }, stdin: input === undefined ? "ignore" : Buffer.from(input), stdout: "pipe", stderr: "pipe", timeout: timeoutMs, killSignal: "SIGKILL" });
  const [stdout, stderr, code] = await Promise.all([new Response(child.stdout).text(), new Response(child.stderr).text(), child.exited]);
  return { code, stdout, stderr };
}

/** Like `finish`, for what must succeed. Returns standard output. */
export async function ok(command: readonly string[], options: Parameters<typeof finish>[1] = {}): Promise<string> {
  const { code, stdout, stderr } = await finish(command, options);
  if (code !== 0) throw new Error(`${command.join(" ")}: exit ${code}\n${stdout}${stderr}`);
  return stdout;
}

export class Running implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "pipe">;
  readonly #name: string;
  #output = "";

  constructor(command: readonly string[], { name, env = {} }: { readonly name: string; readonly env?: Readonly<Record<string, string>> }) {
    this.#name = name;
    this.#child = Bun.spawn([...command], { env: { ...process.env, ...env }, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
    for (const stream of [this.#child.stdout, this.#child.stderr]) void this.#read(stream);
  }

  async #read(stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) this.#output += decoder.decode(chunk, { stream: true });
  }

  /** All it has printed so far. */
  get output(): string { return this.#output; }

  /** Waits until `look` gives something; throws with what the program has printed when it ends before, or after `withinMs`. */
  async until<T>(what: string, look: () => Promise<T | undefined> | T | undefined, withinMs = PATIENCE_MS): Promise<T> {
    const endMs = performance.now() + withinMs;
    for (;;) {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      if (this.#child.exitCode !== null) throw new Error(`${this.#name} ended (${this.#child.exitCode}) before ${what}:\n${this.#output.slice(-4000)}`);
      if (performance.now() > endMs) throw new Error(`${this.#name}: not ${what} within ${withinMs} ms:\n${this.#output.slice(-4000)}`);
      await Bun.sleep(100);
    }
  }

  /** Asks it to end, and insists after a while. The exit code. */
  async stop(graceMs = PATIENCE_MS): Promise<number> {
    this.#child.kill("SIGTERM");
    const insist = setTimeout(() => this.#child.kill("SIGKILL"), graceMs);
    const code = await this.#child.exited;
    clearTimeout(insist);
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> { await this.stop(); }
}

/** A port nobody listens on. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}
