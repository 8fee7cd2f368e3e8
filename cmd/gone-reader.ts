/**
 * A command whose output nobody reads any more (`coracle crictl logs web | head`) ends without a word, as programs do that the system ends for it; one whose output finds no room says so.
 */

/** 128 and the number of SIGPIPE: what a shell makes of such an end. */
const BROKEN_PIPE = 141;

export function endWithReader({ stdout, exit }: Pick<NodeJS.Process, "stdout" | "exit">, tell: (message: string) => void = console.error): void {
  stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") return exit(BROKEN_PIPE);
    tell(`coracle: standard output: ${error.message}`);
    exit(1);
  });
}
