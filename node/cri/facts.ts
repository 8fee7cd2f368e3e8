/**
 * The messages of a gRPC service as a table, read once from a text: cri-facts.txt for CRI v1. The codec walks this table; nothing is generated at run time.
 *
 *   M Mount                                   a message, its fields follow, indented: name, number, type
 *    container_path 1 string                  []T repeated, {string}T a map, a capitalised type is a message or an enum
 *   E PodSandboxState SANDBOX_READY=0 …       an enum
 *   S RuntimeService.Version Request Response a method; "stream" before the response: the server streams
 */
import text from "./cri-facts.txt" with { type: "text" };

export type Scalar = "string" | "bytes" | "bool" | "int32" | "int64" | "uint32" | "uint64" | "double" | "float";

export interface Enum { readonly numbers: ReadonlyMap<string, number>; readonly names: ReadonlyMap<number, string> }

export type FieldType =
  | { readonly kind: "scalar"; readonly scalar: Scalar }
  | { readonly kind: "enum"; readonly values: Enum }
  | { readonly kind: "message"; readonly message: Message }
  | { readonly kind: "map"; readonly value: FieldType };

export interface Field { readonly name: string; readonly number: number; readonly repeated: boolean; readonly type: FieldType }

export interface Message { readonly name: string; readonly fields: readonly Field[]; readonly byNumber: ReadonlyMap<number, Field> }

export interface Method { readonly path: string; readonly request: Message; readonly response: Message; readonly stream: boolean }

const SCALARS: ReadonlySet<string> = new Set<Scalar>(["string", "bytes", "bool", "int32", "int64", "uint32", "uint64", "double", "float"]);

export function criMethods(): ReadonlyMap<string, Method> {
  return serviceMethods(text, "runtime.v1");
}

/** Methods by name, as in `Methods` of gen/runtime.v1.ts: "RuntimeService/RunPodSandbox". `protoPackage` is what every path starts with. */
export function serviceMethods(facts: string, protoPackage: string): ReadonlyMap<string, Method> {
  const messages = new Map<string, { name: string; fields: Field[]; byNumber: Map<number, Field> }>();
  const enums = new Map<string, Enum>();
  const lines = facts.split("\n").filter((line) => line !== "");

  for (const line of lines) {
    const [sort, name = "", ...rest] = line.split(" ");
    if (sort === "M") messages.set(name, { name, fields: [], byNumber: new Map() });
    if (sort === "E") {
      const pairs = rest.map((pair) => [pair.slice(0, pair.indexOf("=")), Number(pair.slice(pair.indexOf("=") + 1))] as const);
      const values = { numbers: new Map(pairs), names: new Map(pairs.map(([value, number]) => [number, value])) };
      enums.set(name, values).set(name.slice(name.lastIndexOf(".") + 1), values); // one within a message may be named without it
    }
  }

  function fieldType(type: string): FieldType {
    const map = /^\{string\}(.+)$/.exec(type);
    if (map) return { kind: "map", value: fieldType(map[1]!) };
    if (SCALARS.has(type)) return { kind: "scalar", scalar: type as Scalar };
    const values = enums.get(type);
    return values ? { kind: "enum", values } : { kind: "message", message: messageNamed(type) };
  }

  function messageNamed(name: string): Message {
    const message = messages.get(name);
    if (!message) throw new Error(`the facts of ${protoPackage} name ${name} and do not define it`);
    return message;
  }

  let open: { fields: Field[]; byNumber: Map<number, Field> } | undefined;
  const methods = new Map<string, Method>();
  for (const line of lines) {
    const words = line.trim().split(" ");
    if (line.startsWith("M ")) open = messages.get(words[1]!);
    else if (line.startsWith("S ")) {
      const name = words[1]!.replace(".", "/");
      methods.set(name, { path: `/${protoPackage}.${name}`, request: messageNamed(words[2]!), response: messageNamed(words.at(-1)!), stream: words.includes("stream") });
    } else if (line.startsWith(" ") && open) {
      const [name, number, type] = words as [string, string, string];
      const repeated = type.startsWith("[]");
      const field = { name, number: Number(number), repeated, type: fieldType(repeated ? type.slice(2) : type) };
      open.fields.push(field);
      open.byNumber.set(field.number, field);
    }
  }
  return methods;
}
