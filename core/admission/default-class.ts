/** Which of several classes is the default: the newest of those marked so, by name if they are of the same moment. */
import type { ApiObject } from "../api/meta/object-meta.ts";

export function newestMarked<T extends ApiObject>(classes: readonly Readonly<T>[], annotations: readonly string[]): Readonly<T> | undefined {
  const marked = classes.filter(({ metadata }) => annotations.some((annotation) => metadata.annotations?.[annotation] === "true"));
  return marked.sort((a, b) => (
    Date.parse(b.metadata.creationTimestamp) - Date.parse(a.metadata.creationTimestamp) || (a.metadata.name < b.metadata.name ? -1 : 1)
  ))[0];
}
