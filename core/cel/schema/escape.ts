/**
 * Names of fields as expressions write them: `x-kubernetes` is `x__dash__kubernetes`, `namespace` is `__namespace__`.
 *
 * Source: kubernetes v1.36 apiserver/pkg/cel/escaping.go
 */
const RESERVED = new Set(["true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"]);
const WRITTEN: Readonly<Record<string, string>> = { "__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__" };
const MEANT = new Map(Object.entries(WRITTEN).map(([meant, written]) => [written, meant]));

/** Whether it is a word of the language. */
export function isReserved(name: string): boolean { return RESERVED.has(name); }

/** Undefined for a name that cannot be written. */
export function escapeName(name: string): string | undefined {
  if (RESERVED.has(name)) return `__${name}__`;
  if (!/^[A-Za-z_./-][A-Za-z0-9_./-]*$/.test(name)) return undefined;
  return name.replace(/__|[-./]/g, (part) => WRITTEN[part]!);
}

/** Undefined for what is the name of no field. */
export function unescapeName(written: string): string | undefined {
  let wrong = false;
  const name = written.replace(/__[^_]+__/g, (part) => {
    const meant = MEANT.get(part);
    if (meant !== undefined) return meant;
    const word = part.slice(2, -2);
    wrong ||= !RESERVED.has(word) || part.length !== written.length;
    return word;
  });
  return wrong ? undefined : name;
}
