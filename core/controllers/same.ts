/** Whether two parts of objects are one and the same to the API: what is absent, null or an empty list is alike, and the order of keys does not count (template-hash.ts: canonical). */
export function sameToApi(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (isAbsent(a) || isAbsent(b)) return isAbsent(a) && isAbsent(b);
  if (typeof a !== "object" || typeof b !== "object") return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && a.length === b.length && a.every((item, i) => sameToApi(item, b[i]));
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key of Object.keys(left)) if (!sameToApi(left[key], Object.hasOwn(right, key) ? right[key] : undefined)) return false;
  for (const key of Object.keys(right)) if (!Object.hasOwn(left, key) && !isAbsent(right[key])) return false;
  return true;
}

function isAbsent(value: unknown): boolean { return value === undefined || value === null || (Array.isArray(value) && value.length === 0); }
