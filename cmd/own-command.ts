/** How this program starts itself: compiled it is the executable; of a run from source, execPath is Bun, and the first argument a file. */
export function ownCommand(): readonly string[] {
  return Bun.main.startsWith("/$bunfs/") ? [process.execPath] : [process.execPath, Bun.main];
}
