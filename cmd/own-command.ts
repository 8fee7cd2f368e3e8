/** What others of this machine's kind can run; undefined: this runs from source. It is the one that runs, also when its file has been replaced meanwhile. */
export function ownExecutable(): { readonly target: string; readonly path: string } | undefined {
  return ownCommand().length === 1 && process.platform === "linux" ? { target: `linux-${process.arch}`, path: "/proc/self/exe" } : undefined;
}

/** How this program starts itself: compiled it is the executable; of a run from source, execPath is Bun, and the first argument a file. */
export function ownCommand(): readonly string[] {
  return Bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, Bun.main];
}
