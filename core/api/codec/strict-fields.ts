/**
 * Reads configuration objects strictly: a field nobody has asked for is a mistake in the file, and is told.
 *
 *   const fields = fieldsOf(parseStrictYaml(text), { kind: "AdmissionConfiguration", apiVersions: ["apiserver.config.k8s.io/v1"] });
 *   for (const plugin of fields.objects("plugins")) { plugin.text("name"); …; plugin.end(); }
 *   fields.end();
 */

/** A configuration object being read. Reading throws for a value of another type; `end` for a field that was not read. */
export interface Fields {
  readonly path: string;
  text(name: string): string;
  strings(name: string): readonly string[];
  /** Undefined: not given. */
  number(name: string): number | undefined;
  boolean(name: string): boolean | undefined;
  any(name: string): unknown;
  /** Not given: one without fields. */
  object(name: string): Fields;
  objects(name: string): readonly Fields[];
  has(name: string): boolean;
  end(): void;
}

/** Throws when it is not of this kind. */
export function fieldsOf(value: unknown, { kind, apiVersions }: { readonly kind: string; readonly apiVersions: readonly string[] }): Fields {
  const fields = read(value, "");
  const given = { apiVersion: fields.text("apiVersion"), kind: fields.text("kind") };
  if (given.kind !== kind || !apiVersions.includes(given.apiVersion)) throw new Error(`no kind ${JSON.stringify(given.kind)} is registered for version ${JSON.stringify(given.apiVersion)}: expected ${kind} of ${apiVersions.join(" or ")}`);
  return fields;
}

function read(value: unknown, path: string): Fields {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error(`${path || "the configuration"}: expected an object`);
  const record = value as Readonly<Record<string, unknown>>;
  const seen = new Set<string>();
  const at = (name: string): string => (path === "" ? name : `${path}.${name}`);
  function typed<T>(name: string, type: string): T | undefined {
    seen.add(name);
    const found = Object.hasOwn(record, name) ? record[name] : undefined;
    if (found === undefined || found === null) return undefined;
    if (type !== "any" && (Array.isArray(found) ? "array" : typeof found) !== type) throw new Error(`${at(name)}: expected ${type === "array" ? "a list" : `a ${type}`}`);
    return found as T;
  }
  return {
    path,
    text: (name) => typed<string>(name, "string") ?? "",
    strings(name) {
      const list = typed<readonly unknown[]>(name, "array") ?? [];
      for (const [i, item] of list.entries()) if (typeof item !== "string") throw new Error(`${at(name)}[${i}]: expected a string`);
      return list as readonly string[];
    },
    number: (name) => typed<number>(name, "number"),
    boolean: (name) => typed<boolean>(name, "boolean"),
    any: (name) => typed<unknown>(name, "any"),
    object: (name) => read(typed<object>(name, "object") ?? {}, at(name)),
    objects: (name) => (typed<readonly unknown[]>(name, "array") ?? []).map((item, i) => read(item, `${at(name)}[${i}]`)),
    has: (name) => Object.hasOwn(record, name) && record[name] != null,
    end() {
      const unknown = Object.keys(record).find((name) => !seen.has(name));
      if (unknown !== undefined) throw new Error(`unknown field "${at(unknown)}"`);
    },
  };
}
