import { isNotFound } from "../../../core/api/meta/status-error.ts";

/** What a pod refers to; undefined if it is not there and need not be. */
export async function unlessMissing<T>(optional: boolean | undefined, object: Promise<T>): Promise<T | undefined> {
  try {
    return await object;
  } catch (error) {
    if (optional && isNotFound(error)) return undefined;
    throw error;
  }
}
