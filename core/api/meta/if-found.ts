/**
 * What is asked of the API about objects that may be gone: that there is none is an answer, whatever else goes wrong is thrown.
 *
 *   const node = await ifFound(nodes.get({ metadata: { name } }, { signal }));
 *   await ifFound(jobs.delete(job, {}, { signal })); // gone is what was wanted
 */
import { isNotFound } from "./status-error.ts";

/** Undefined: there is no such object. */
export async function ifFound<T>(asked: Promise<T>): Promise<T | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return undefined;
  }
}
