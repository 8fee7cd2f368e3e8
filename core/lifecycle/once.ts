/** What is made when it is first asked for, and stays: also when that is undefined. What `make` throws is thrown, and it is tried again. */
export function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined;
  return () => (made ??= { value: make() }).value;
}
