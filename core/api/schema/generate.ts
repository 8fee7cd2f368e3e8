/**
 * Writes core/api/gen/<group>.<version>.ts from facts.txt: TypeScript types of the API, no behaviour. Run with `npm run gen`.
 *
 * What the types say of objects as they come from the API: a kind always has apiVersion, kind and complete metadata, and its spec; a draft to
 * be created is a `NewObject` (core/api/meta). Optional fields may also be written as undefined. Lists and drafts of kinds are generic types elsewhere.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { basename } from "node:path";

const SCALARS: Record<string, string> = { s: "string", b: "boolean", i: "number", l: "number", y: "string", f: "number", int: "number", uint32: "number", uint64: "number", int64: "number" };
const SPECIAL: Record<string, string> = {
  "m.Time": "string", "m.MicroTime": "string", "m.Duration": "string", "m.FieldsV1": "Record<string, unknown>", "m.Timestamp": "string", "m.Verbs": "string[]",
  "resource.Quantity": "string", "intstr.IntOrString": "number | string", "io.k8s.apimachinery.pkg.runtime.RawExtension": "unknown",
  "io.k8s.apimachinery.pkg.types.UID": "string", "io.k8s.apimachinery.pkg.types.NodeName": "string", "core/v1.ResourceName": "string",
};
/** Hand-written in core/api/meta, because code and not only data speaks of them. */
const META = new Set(["ObjectMeta", "OwnerReference", "TypeMeta", "ListMeta", "ManagedFieldsEntry"]);
/** JSON schema values that are themselves JSON. */
const JSON_TYPES = new Set(["JSON", "JSONSchemaPropsOrBool", "JSONSchemaPropsOrArray", "JSONSchemaPropsOrStringArray"]);

interface Field { json: string; type: string; optional: boolean; pointer: boolean; inline: boolean }
interface Type { name: string; alias?: string; values?: string[]; fields: Field[] }
interface Package { path: string; types: Type[] }

/** Fields of statuses that are always written, whatever their "?" says: a reader may count on them. */
const ALWAYS = new Set([...readFileSync("core/api/schema/facts-emission.txt", "utf8").matchAll(/^J (\w+Status\.\S+) always$/gm)].map((match) => match[1]!));

function parse(texts: readonly string[]): { packages: Package[]; kinds: Map<string, Set<string>> } {
  const packages: Package[] = [];
  const kinds = new Map<string, Set<string>>();
  for (const line of texts.join("\n").split("\n")) {
    const words = line.trim().split(" ");
    if (line.startsWith("G ")) kinds.set(words[1]!, new Set(words.slice(4)));
    else if (line.startsWith("P ")) packages.push({ path: words[1]!, types: [] });
    else if (line.startsWith("T ")) packages.at(-1)!.types.push({ name: words[1]!, fields: [] });
    else if (line.startsWith("A ")) {
      const values = words.find((word) => word.startsWith("e="))?.slice(2).split("|");
      packages.at(-1)!.types.push({ name: words[1]!, alias: words[2]!, fields: [], ...(values && { values }) });
    } else if (line.startsWith(" ")) {
      const flags = words.slice(3);
      packages.at(-1)!.types.at(-1)!.fields.push({ json: words[0]!, type: words[2]!, optional: flags.includes("?") || flags.includes("*"), pointer: flags.includes("*"), inline: flags.includes("^") });
    }
  }
  return { packages, kinds };
}

/** api/core/v1 → core.v1 */
function moduleOf(path: string): string {
  return path.split("/").slice(-2).join(".");
}

function render(pkg: Package, kinds: ReadonlySet<string>): string {
  const here = moduleOf(pkg.path);
  const imports = new Map<string, Set<string>>();
  const local = new Set(pkg.types.map(({ name }) => name));
  const use = (module: string, name: string): string => {
    if (module === here && !(module === "meta.v1" && META.has(name))) return local.has(name) ? name : "Record<string, never>"; // an empty struct
    if (local.has(name) && !META.has(name)) return `import("./${module}.ts").${name}`; // the same name means another type here
    const from = META.has(name) && module === "meta.v1" ? "../meta/object-meta.ts" : `./${module}.ts`;
    (imports.get(from) ?? imports.set(from, new Set()).get(from)!).add(name);
    return name;
  };
  const typeOf = (type: string): string => {
    if (type.startsWith("[]")) return arrayOf(typeOf(type.slice(2)));
    if (type.startsWith("{}")) return `Record<string, ${typeOf(type.slice(2))}>`;
    if (SCALARS[type]) return SCALARS[type];
    if (here === "meta.v1" && SPECIAL[`m.${type}`]) return SPECIAL[`m.${type}`]!;
    if (SPECIAL[type]) return SPECIAL[type];
    if (JSON_TYPES.has(type)) return "unknown";
    const [module, name] = type.includes(".") ? [type.slice(0, type.lastIndexOf(".")), type.slice(type.lastIndexOf(".") + 1)] : [here, type];
    return use(module === "m" ? "meta.v1" : module.replace("/", "."), name);
  };

  const out: string[] = [];
  for (const { name, alias, values, fields } of pkg.types) {
    if (name.endsWith("List") && kinds.has(name.slice(0, -4))) continue;
    if (here === "meta.v1" && (META.has(name) || SPECIAL[`m.${name}`]) || JSON_TYPES.has(name)) continue;
    if (alias !== undefined) {
      out.push(`export type ${name} = ${values ? values.map((value) => JSON.stringify(value)).join(" | ") : typeOf(alias)};`);
      continue;
    }
    const isKind = kinds.has(name) || fields.some((field) => field.type === "m.TypeMeta");
    const lines = fields.flatMap(({ json, type, optional, pointer, inline }) => {
      if (type === "m.TypeMeta" || (here === "meta.v1" && type === "TypeMeta")) return ["  apiVersion: string;", "  kind: string;"];
      if (inline) return [];
      if (isKind && json === "metadata" && type.endsWith("ObjectMeta")) return [`  metadata: ${use("meta.v1", "ObjectMeta")};`];
      if (type.endsWith("ObjectMeta")) return [`  ${json}?: Partial<${use("meta.v1", "ObjectMeta")}> | undefined;`];
      const text = typeOf(type);
      return [!optional || (!pointer && ALWAYS.has(`${name}.${json}`)) || (isKind && json === "spec") ? `  ${key(json)}: ${text};` : `  ${key(json)}?: ${text} | undefined;`];
    });
    const parents = fields.filter(({ inline, type }) => inline && !type.endsWith("TypeMeta")).map(({ type }) => typeOf(type));
    out.push(`export interface ${name}${parents.length > 0 ? ` extends ${parents.join(", ")}` : ""} {${lines.length > 0 ? `\n${lines.join("\n")}\n` : ""}}`);
  }
  const head = [...imports].sort().map(([from, names]) => `import type { ${[...names].sort().join(", ")} } from "${from}";`);
  return `${[`// Written by core/api/schema/generate.ts from facts.txt.`, ...head, ...out].join("\n")}\n`;
}

function arrayOf(text: string): string {
  return text.includes("|") ? `(${text})[]` : `${text}[]`;
}

function key(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}

const { packages, kinds } = parse([readFileSync("core/api/schema/facts.txt", "utf8")]);
/** Versions that are not stable have types only where code speaks of them. */
const UNSTABLE = new Set(["apiserverinternal.v1alpha1", "certificates.v1beta1", "coordination.v1beta1", "metrics.v1beta1", "resource.v1alpha3", "resource.v1beta1", "scheduling.v1alpha2", "storagemigration.v1beta1"]);

for (const pkg of packages) {
  if (/alpha|beta/.test(moduleOf(pkg.path)) && !UNSTABLE.has(moduleOf(pkg.path))) continue;
  if (!/^(api|apiextensions-apiserver|metrics)\/|meta\/v1$/.test(pkg.path)) continue;
  writeFileSync(`core/api/gen/${basename(moduleOf(pkg.path))}.ts`, render(pkg, kinds.get(pkg.path) ?? new Set()));
}
