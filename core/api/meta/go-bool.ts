/** Truth as Go reads it. Source: go strconv.ParseBool */
const BOOLEANS: ReadonlyMap<string, boolean> = new Map([...["1", "t", "T", "TRUE", "true", "True"].map((text) => [text, true] as const), ...["0", "f", "F", "FALSE", "false", "False"].map((text) => [text, false] as const)]);

/** Undefined: neither. */
export function parseGoBool(text: string): boolean | undefined { return BOOLEANS.get(text); }
