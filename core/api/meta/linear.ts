/**
 * Small things that strangers' texts and lists are put through, in time that grows with their length and no faster: a body may be megabytes, and while one is looked at nobody
 * else is served. An expression that begins with what it repeats (/x+$/) tries again from each place; who compares each item of a list with all before it does as much.
 */

/** Without `character`, however often it stands there, at the end. */
export function withoutLast(text: string, character: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === character) end--;
  return text.slice(0, end);
}

/** Tells of items, given in their order, which have come before. */
export function repeats<T>(): (item: T) => boolean {
  const seen = new Set<T>();
  return (item) => seen.size === seen.add(item).size;
}
