/** What a file of manifests asks for, in the order in which it can be made, and what it no longer asks for. */
import { parseApiVersion } from "../../api/meta/gvk.ts";
import type { ApiObject, NewObject } from "../../api/meta/object-meta.ts";
import { parseYaml } from "../../api/codec/yaml.ts";

/** An object of a manifest: of any kind, with a name. */
export type Manifest = NewObject<ApiObject> & { readonly metadata: { readonly name: string } };

/** Which object, whatever its version. */
export interface Asked {
  readonly apiVersion: string;
  readonly kind: string;
  /** "" for what is in no namespace. */
  readonly namespace: string;
  readonly name: string;
}

/** What others need comes first; all else as the file has it. */
const FIRST: readonly string[] = ["Namespace", "CustomResourceDefinition", "PriorityClass", "StorageClass", "ServiceAccount"];

/** The objects of a file, Lists taken apart. Throws an Error that says which document is not an object of the API. */
export function manifestsIn(text: string): readonly Manifest[] {
  const documents = text.split(/^---(?:[ \t].*)?$/m).map((document, i) => within(i + 1, () => parseYaml(document)));
  const found = documents.flatMap((document, i) => (document === null ? [] : within(i + 1, () => objectsOf(document))));
  const rank = ({ kind }: Manifest): number => (FIRST.includes(kind) ? FIRST.indexOf(kind) : FIRST.length);
  return found.toSorted((a, b) => rank(a) - rank(b));
}

function within<T>(document: number, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new Error(`document ${document}: ${(error as Error).message}`, { cause: error });
  }
}

function objectsOf(value: unknown): Manifest[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw new Error("it is not an object");
  const { apiVersion, kind, metadata, items } = value as { apiVersion?: unknown; kind?: unknown; metadata?: { name?: unknown }; items?: unknown };
  if (typeof apiVersion !== "string" || apiVersion === "") throw new Error("apiVersion not set");
  if (typeof kind !== "string" || kind === "") throw new Error("kind not set");
  if (kind.endsWith("List") && Array.isArray(items)) return items.flatMap(objectsOf);
  if (typeof metadata?.name !== "string" || metadata.name === "") throw new Error(`${kind} without a metadata.name`);
  return [value as unknown as Manifest];
}

/** What stands in `before` and not in `now`, the last first: what came first is what others needed. */
export function noLongerAsked(before: readonly Asked[], now: readonly Asked[]): readonly Asked[] {
  const asked = new Set(now.map(identity));
  return before.filter((one) => !asked.has(identity(one))).toReversed();
}

/** Those of both, each once. */
export function united(a: readonly Asked[], b: readonly Asked[]): readonly Asked[] { return [...new Map([...a, ...b].map((one) => [identity(one), one])).values()]; }

function identity({ apiVersion, kind, namespace, name }: Asked): string { return `${parseApiVersion(apiVersion).group} ${kind} ${namespace}/${name}`; }

/** One a line, as people read it: "apps/v1 Deployment default/web". */
export function formatAsked(all: readonly Asked[]): string { return all.map(({ apiVersion, kind, namespace, name }) => `${apiVersion} ${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`).join("\n"); }

/** The reverse; lines of another form are passed over. */
export function parseAsked(text: string): readonly Asked[] {
  return text.split("\n").flatMap((line) => {
    const [, apiVersion, kind, namespace = "", name] = /^(\S+) (\S+) (?:([^\s/]+)\/)?([^/]+)$/.exec(line) ?? [];
    return apiVersion && kind && name ? [{ apiVersion, kind, namespace, name }] : [];
  });
}

/** A file's name as a key of a ConfigMap, which may have no spaces, umlauts or brackets: their bytes in hexadecimal. No two files have the same. */
export function inventoryKey(file: string): string {
  return file.replace(/_(?=\.[0-9a-f]{2})|[^-._a-zA-Z0-9]/gu, (text) => [...Buffer.from(text)].map((byte) => `_.${byte.toString(16).padStart(2, "0")}`).join(""));
}
