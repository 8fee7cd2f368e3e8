/**
 * The facts about every API type: one table that drives the codecs, defaulting, pruning, patches, server-side apply and OpenAPI.
 *
 * The table is text (facts.txt and its supplements), indexed by line on first use; a type is parsed when somebody first asks for it,
 * so a process that never sees a ResourceSlice never pays for one. Types are shared nodes of a graph that may be cyclic
 * (JSONSchemaProps); compare them by identity.
 *
 * Lines of the text
 *   G <package> <group> <version> <Kind>…      the kinds a group version registers ("" is the core group; FooList exists if its type does)
 *   P <package>                                the package the following types belong to
 *   T <Name> [atomic]                          a struct
 *    <json name|-> <protobuf number|->[:<protobuf name>] <type> <flag>…      its fields, in Go's order
 *   A <Name> <type> [e=<value>|<value>…]       a named type; e= lists an enum's values
 *   J <Name>.<json name> <flag>,…              corrections to a field: always (written even if empty), omitzero (left out if zero, even a struct),
 *                                              required (though the encoder leaves it out when empty), granular (as mg)
 * Types   s string · b bool · i int32 · l int64 · f float64 · y bytes · []x list · {}x map · any · m.X meta/v1 · group/v1.X · X (same package)
 * Flags   ? optional · * pointer · ^ inlined in JSON (a message of its own in protobuf when it has a number) · n nullable
 *         la ls lm:k,k list type · ma mg map type · p:strategy[,strategy][@key] patch strategy and merge key · d=JSON default · g=Gate
 */
import type { GroupVersionKind } from "../meta/gvk.ts";
import apiregistrationText from "./facts-apiregistration.txt" with { type: "text" };
import emissionText from "./facts-emission.txt" with { type: "text" };
import factsText from "./facts.txt" with { type: "text" };

export type Scalar = "string" | "bool" | "int32" | "int64" | "float64" | "bytes";

/** Types whose JSON is not what their Go struct suggests. `any` and `json` are arbitrary JSON values; `rawExtension` and `fieldsV1` are objects. */
export type Special =
  | "time" | "microTime" | "duration" | "quantity" | "intOrString" | "rawExtension" | "fieldsV1" | "json" | "any"
  | "schemaOrBool" | "schemaOrArray" | "schemaOrStringArray";

export interface ScalarType { readonly kind: "scalar"; readonly scalar: Scalar; readonly named: NamedType | undefined }
export interface SpecialType {
  readonly kind: "special";
  readonly special: Special;
  readonly name: string;
  /** JSONSchemaProps, for the three types that are a schema or something simpler. */
  readonly schema: StructType | undefined;
}
export interface ListType { readonly kind: "list"; readonly items: Type; readonly named: NamedType | undefined }
export interface MapType { readonly kind: "map"; readonly values: Type; readonly named: NamedType | undefined }
export interface StructType {
  readonly kind: "struct";
  /** OpenAPI's name of it, for example io.k8s.api.core.v1.Pod. */
  readonly name: string;
  readonly goName: string;
  /** `+structType=atomic` on the type itself. A field's mapType overrides it. */
  readonly atomic: boolean;
  /** The fields as JSON shows them, inlined ones flattened, in the order Go writes them. */
  readonly fields: readonly FieldInfo[];
  /** The fields as declared: an inlined one is a single member with `inline` set and an empty name. What protobuf needs. */
  readonly members: readonly FieldInfo[];
  /** By JSON name; exact, as the API server's decoder is case-sensitive. */
  field(jsonName: string): FieldInfo | undefined;
}
export type Type = ScalarType | SpecialType | ListType | MapType | StructType;

/** A Go type with a name of its own: `type Protocol string`. Errors print the Go name, OpenAPI the enum. */
export interface NamedType { readonly name: string; readonly goName: string; readonly enum: readonly string[] | undefined }

export interface FieldInfo {
  /** JSON name; empty for an inlined member. */
  readonly name: string;
  readonly type: Type;
  /** OpenAPI's notion: not in `required`. */
  readonly optional: boolean;
  readonly pointer: boolean;
  readonly nullable: boolean;
  /** Embedded: flattened in JSON; a nested message in protobuf if it has a number. */
  readonly inline: boolean;
  /** Go's encoder leaves out an empty value: "", 0, false, null, [] and {} — a struct only with omitZero. */
  readonly omitEmpty: boolean;
  /** Go's encoder leaves out a zero value, structs included. */
  readonly omitZero: boolean;
  /** undefined: atomic, as upstream treats an unmarked list. */
  readonly listType: "atomic" | "set" | "map" | undefined;
  readonly listMapKeys: readonly string[];
  /** undefined: granular for maps; for a struct whatever its type says. */
  readonly mapType: "atomic" | "granular" | undefined;
  /** Strategic merge patch: "merge", "replace", "retainKeys". */
  readonly patchStrategy: readonly string[];
  readonly patchMergeKey: string | undefined;
  /** Declarative default (`+default`), undefined if none. */
  readonly default: unknown;
  readonly featureGate: string | undefined;
  /** undefined: not in protobuf. */
  readonly protobuf: number | undefined;
  readonly protobufName: string;
}

/** What one group version of the API registers. */
export interface RegisteredGroupVersion { readonly group: string; readonly version: string; readonly kinds: readonly string[]; readonly packageName: string }

const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
const SPECIALS: Readonly<Record<string, Special>> = {
  [`${META}Time`]: "time", [`${META}MicroTime`]: "microTime", [`${META}Duration`]: "duration", [`${META}FieldsV1`]: "fieldsV1",
  "io.k8s.apimachinery.pkg.api.resource.Quantity": "quantity", "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "intOrString",
  "io.k8s.apimachinery.pkg.runtime.RawExtension": "rawExtension", any: "any",
  [`${APIEXTENSIONS}JSON`]: "json", [`${APIEXTENSIONS}JSONSchemaPropsOrBool`]: "schemaOrBool",
  [`${APIEXTENSIONS}JSONSchemaPropsOrArray`]: "schemaOrArray", [`${APIEXTENSIONS}JSONSchemaPropsOrStringArray`]: "schemaOrStringArray",
};
const SCALARS: Readonly<Record<string, Scalar>> = { s: "string", b: "bool", i: "int32", l: "int64", f: "float64", y: "bytes" };

/** Constants that `+default=ref(…)` names. */
const DEFAULT_CONSTANTS: Readonly<Record<string, unknown>> = { AzureDataDiskCachingReadWrite: "ReadWrite", AzureSharedBlobDisk: "Shared" };

/** Registered in every group version by meta/v1's AddToGroupVersion, and only under "v1" of the core group. */
const META_KINDS_ANY = ["WatchEvent", "ListOptions", "GetOptions", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions"];
const META_KINDS_CORE = ["Status", "APIVersions", "APIGroup", "APIGroupList", "APIResourceList", "List"];
const META_KINDS_OWN = ["Table", "TableOptions", "PartialObjectMetadata", "PartialObjectMetadataList"];

/** The facts of one or more texts. Later texts add packages; they do not change earlier ones. */
export class Facts {
  readonly #texts: readonly string[];
  #index: FactsIndex | undefined;
  readonly #types = new Map<string, Type>();
  readonly #typesOfKinds = new Map<string, StructType>();

  constructor(texts: readonly string[]) { this.#texts = texts; }

  /** The type behind a kind, meta kinds and lists included; undefined if the facts do not know it. */
  typeOf({ group, version, kind }: GroupVersionKind): StructType | undefined {
    const key = `${group}/${version}/${kind}`;
    let found = this.#typesOfKinds.get(key);
    if (found === undefined && (found = this.#typeOf({ group, version, kind }))) this.#typesOfKinds.set(key, found); // kinds nobody knows have no end, and are not kept
    return found;
  }

  #typeOf({ group, version, kind }: GroupVersionKind): StructType | undefined {
    const row = this.#lines().groupVersions.get(`${group}/${version}`);
    if (row) {
      const item = kind.endsWith("List") ? kind.slice(0, -4) : kind;
      if (row.kinds.includes(kind) || (item !== kind && row.kinds.includes(item))) {
        const type = this.structNamed(`${packagePrefix(row.packageName)}${kind}`);
        if (type) return type;
      }
    }
    const meta = META_KINDS_ANY.includes(kind) || (group === "" && version === "v1" && META_KINDS_CORE.includes(kind)) ||
      (group === "meta.k8s.io" && version === "v1" && [...META_KINDS_OWN, ...META_KINDS_CORE].includes(kind));
    return meta ? this.structNamed(META + kind) : undefined;
  }

  /** A struct by its OpenAPI name, for example io.k8s.api.core.v1.PodSpec. */
  structNamed(name: string): StructType | undefined {
    const type = this.#named(name);
    return type?.kind === "struct" ? type : undefined;
  }

  /** Any named type (struct, special or alias target) by its OpenAPI name. */
  typeNamed(name: string): Type | undefined { return this.#named(name); }

  /** Every struct and named type, by its OpenAPI name. */
  typeNames(): readonly string[] { return [...this.#lines().types.keys()]; }

  groupVersions(): readonly RegisteredGroupVersion[] { return [...this.#lines().groupVersions.values()]; }

  #lines(): FactsIndex { return (this.#index ??= indexFacts(this.#texts)); }

  #named(name: string): Type | undefined {
    const known = this.#types.get(name);
    if (known) return known;
    const built = this.#build(name);
    if (built) this.#types.set(name, built);
    return built;
  }

  #build(name: string): Type | undefined {
    const special = SPECIALS[name];
    if (special) return new SpecialNode(special, name, () => special.startsWith("schemaOr") ? this.structNamed(`${APIEXTENSIONS}JSONSchemaProps`) : undefined);
    const lines = this.#lines();
    const entry = lines.types.get(name);
    if (!entry) return undefined;
    const [mark, goName = "", third = ""] = entry.head.split(" ", 3);
    if (mark === "T") return new Struct(name, goName, third === "atomic", () => this.#parseMembers(name, entry));
    const enumAt = entry.head.indexOf(" e=");
    const named: NamedType = { name, goName, enum: enumAt < 0 ? undefined : entry.head.slice(enumAt + 3).split("|") };
    const target = this.#resolve(third, entry.prefix);
    // type ReinvocationPolicyType = admissionregistration/v1.ReinvocationPolicyType keeps the values where they are listed
    return "named" in target ? { ...target, named: { ...named, enum: named.enum ?? target.named?.enum } } : target;
  }

  #resolve(ref: string, prefix: string): Type {
    if (ref.startsWith("[]")) return { kind: "list", items: this.#resolve(ref.slice(2), prefix), named: undefined };
    if (ref.startsWith("{}")) return { kind: "map", values: this.#resolve(ref.slice(2), prefix), named: undefined };
    const scalar = SCALARS[ref];
    if (scalar) return { kind: "scalar", scalar, named: undefined };
    const type = this.#named(expandName(ref, prefix));
    if (!type) throw new Error(`facts: unknown type ${ref} in ${prefix}`);
    return type;
  }

  #parseMembers(typeName: string, entry: TypeEntry): FieldInfo[] {
    const emission = this.#lines().emission;
    return entry.body.map((line) => {
      const [name = "", numberAndName = "-", ref = "", ...flags] = line.split(" ").filter((word) => word !== "");
      const inline = flags.includes("^");
      const type = this.#resolve(ref, entry.prefix);
      const [number = "-", protobufName = name] = numberAndName.split(":");
      const optional = flags.includes("?");
      const corrected = emission.get(`${typeName}.${name}`) ?? [];
      const value = (mark: string): string | undefined => flags.find((flag) => flag.startsWith(mark))?.slice(mark.length);
      const [strategies, mergeKey] = (value("p:") ?? "").split("@");
      const defaultText = value("d=");
      return {
        name: inline ? "" : name, type, optional: optional && !corrected.includes("required"), inline,
        pointer: flags.includes("*"), nullable: flags.includes("n"),
        omitEmpty: optional && !corrected.includes("always"), omitZero: corrected.includes("omitzero"),
        listType: flags.includes("la") ? "atomic" : flags.includes("ls") ? "set" : value("lm:") !== undefined ? "map" : undefined,
        listMapKeys: value("lm:")?.split(",") ?? [],
        mapType: flags.includes("ma") ? "atomic" : flags.includes("mg") || corrected.includes("granular") ? "granular" : undefined,
        patchStrategy: strategies ? strategies.split(",") : [],
        patchMergeKey: mergeKey ?? value("pk:"),
        default: defaultText === undefined ? undefined : parseDefault(defaultText),
        featureGate: value("g="),
        protobuf: number === "-" ? undefined : Number(number),
        protobufName,
      };
    });
  }
}

class SpecialNode implements SpecialType {
  readonly kind = "special";
  readonly special: Special;
  readonly name: string;
  readonly #schema: () => StructType | undefined;

  constructor(special: Special, name: string, schema: () => StructType | undefined) { this.special = special; this.name = name; this.#schema = schema; }

  get schema(): StructType | undefined { return this.#schema(); }
}

/** A struct whose members are parsed when first looked at: types may refer to themselves. */
class Struct implements StructType {
  readonly kind = "struct";
  readonly name: string;
  readonly goName: string;
  readonly atomic: boolean;
  readonly #parse: () => FieldInfo[];
  #members: readonly FieldInfo[] | undefined;
  #fields: readonly FieldInfo[] | undefined;
  #byName: Map<string, FieldInfo> | undefined;

  constructor(name: string, goName: string, atomic: boolean, parse: () => FieldInfo[]) {
    this.name = name; this.goName = goName; this.atomic = atomic; this.#parse = parse;
  }

  get members(): readonly FieldInfo[] { return (this.#members ??= Object.freeze(this.#parse())); }

  get fields(): readonly FieldInfo[] {
    return (this.#fields ??= Object.freeze(this.members.flatMap((member) =>
      member.inline && member.type.kind === "struct" ? member.type.fields : [member])));
  }

  field(jsonName: string): FieldInfo | undefined {
    this.#byName ??= new Map(this.fields.map((field) => [field.name, field]));
    return this.#byName.get(jsonName);
  }
}

interface TypeEntry { readonly head: string; readonly prefix: string; readonly body: readonly string[] }
interface FactsIndex {
  readonly groupVersions: ReadonlyMap<string, RegisteredGroupVersion>;
  readonly types: ReadonlyMap<string, TypeEntry>;
  readonly emission: ReadonlyMap<string, readonly string[]>;
}

function indexFacts(texts: readonly string[]): FactsIndex {
  const groupVersions = new Map<string, RegisteredGroupVersion>();
  const types = new Map<string, TypeEntry>();
  const emission = new Map<string, readonly string[]>();
  let prefix = "";
  let body: string[] = [];
  for (const line of texts.flatMap((text) => text.split("\n"))) {
    switch (line[0]) {
      case " ": body.push(line.slice(1)); break;
      case "P": prefix = packagePrefix(line.slice(2)); break;
      case "T": case "A":
        types.set(prefix + line.split(" ", 2)[1], { head: line, prefix, body: (body = []) });
        break;
      case "J": {
        const [, name = "", flags = ""] = line.split(" ");
        emission.set(prefix + name, flags.split(","));
        break;
      }
      case "G": {
        const [, packageName = "", quoted = "", version = "", ...kinds] = line.split(" ");
        const group = quoted === '""' ? "" : quoted;
        groupVersions.set(`${group}/${version}`, { group, version, kinds, packageName });
        break;
      }
      default: break; // a comment or an empty line
    }
  }
  return { groupVersions, types, emission };
}

export function packagePrefix(packageName: string): string { return `io.k8s.${packageName.replaceAll("/", ".")}.`; }

function expandName(ref: string, prefix: string): string {
  if (ref === "any" || ref.startsWith("io.k8s.")) return ref;
  if (ref.startsWith("m.")) return META + ref.slice(2);
  if (ref.startsWith("resource.")) return `io.k8s.apimachinery.pkg.api.${ref}`;
  if (ref.startsWith("intstr.")) return `io.k8s.apimachinery.pkg.util.${ref}`;
  if (ref.includes("/")) return `io.k8s.api.${ref.replace("/", ".")}`;
  return prefix + ref;
}

function parseDefault(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (typeof value !== "object" || value === null || !("$ref" in value)) return value;
  const constant = DEFAULT_CONSTANTS[String(value.$ref)];
  if (constant === undefined) throw new Error(`facts: unknown constant ${String(value.$ref)}`);
  return constant;
}

/** The built-in API, v1.36. */
export const builtInFacts: Facts = new Facts([factsText, apiregistrationText, emissionText]);
