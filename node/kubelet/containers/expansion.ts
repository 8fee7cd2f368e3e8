/**
 * $(NAME) in environment values, commands and arguments. $$ is a dollar; a name nobody knows stays as it is written.
 *
 * Source: kubernetes v1.36 third_party/forked/golang/expansion/expand.go, pkg/kubelet/container/helpers.go
 */
type Lookup = (name: string) => string | undefined;

export function expand(text: string, lookup: Lookup): string {
  return text.replace(/\$(\$|\(([^)]*)\))/g, (written, what: string, name: string) => (what === "$" ? "$" : lookup(name) ?? written));
}

export function expandAll(texts: readonly string[] | undefined, lookup: Lookup): string[] {
  return (texts ?? []).map((text) => expand(text, lookup));
}

/** For paths, where a name nobody knows is an error, and so is one without a value. */
export function expandStrictly(text: string, lookup: Lookup): string {
  const missing = new Set<string>();
  const result = expand(text, (name) => {
    const value = lookup(name);
    if (!value) missing.add(name);
    return value;
  });
  if (missing.size > 0) throw new Error(`missing value for ${[...missing].toSorted().join(", ")}`);
  return result;
}
