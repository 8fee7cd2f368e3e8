/**
 * What is asked of files and directories that may be gone: that nothing is there is an answer, whatever else goes wrong is thrown.
 *
 *   for (const name of (await ifThere(readdir(directory))) ?? []) …
 */

/** Undefined: nothing is there. */
export async function ifThere<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    return nothing(error);
  }
}

/** As ifThere. */
export function ifThereSync<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch (error) {
    return nothing(error);
  }
}

export function isNotThere(error: unknown): boolean { return (error as NodeJS.ErrnoException | undefined)?.code === "ENOENT"; }

function nothing(error: unknown): undefined {
  if (!isNotThere(error)) throw error;
}
