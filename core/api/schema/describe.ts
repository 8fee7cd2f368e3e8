/**
 * Writes descriptions.json.zst, the texts of OpenAPI and `kubectl explain`: { type: { field: text } }, "" being the type itself. A build-time script.
 *
 *   bun core/api/schema/describe.ts
 *
 * The texts are upstream's and are not committed. They come from published packages, fetched by `npm pack` and checked against the digests below:
 * kubernetes-models keeps line breaks, @kubernetes/client-node has what the other leaves out, query parameters among it; what a quantity is
 * stands in kubernetes-types alone. A field that none describes gets the text of the same field in another version of its group, or else the text
 * most fields of that name and type have.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { builtInFacts, type FieldInfo, packagePrefix, type StructType } from "./facts.ts";

const PACKAGES = {
  models: { name: "kubernetes-models@5.1.0", integrity: "sha512-ym4Kiyr8BzGIWj4f853ytVYES1B8C1BdONRP5zodItPD1o//OEKuTwC5nFV3ZJtFGeMqOFbIYkpunSVXSlHS8g==" },
  apimachinery: { name: "@kubernetes-models/apimachinery@2.2.0", integrity: "sha512-7Yj3aMz/nCTdr221wHOMsw5vAMJnLqANMI3BTuCmYjbP+7/tGAaOsiFwT75F4TJH45Dk1P6wcAEqDeCD1ur82Q==" },
  clientNode: { name: "@kubernetes/client-node@2.0.1", integrity: "sha512-evJgmEtgArEYlj6DNkMGjK41IrFK/hEwb5lWVxx0VRBWybQpnvi+2TtA19mLgVfRHfqX5yjHObX6e9W7LEZBjw==" },
  types: { name: "kubernetes-types@1.30.0", integrity: "sha512-Dew1okvhM/SQcIa2rcgujNndZwU8VnSapDgdxlYoB84ZlpAD43U6KLAFqYo17ykSFGHNPrg0qry0bP+GJd9v7Q==" },
} as const;

const META = "io.k8s.apimachinery.pkg.apis.meta.v1.";
const COMPRESSION_LEVEL = 19;

/** Options types have no model of their own; their texts stand at the parameters of an operation that takes them. */
const OPTIONS_OPERATIONS: Readonly<Record<string, string>> = {
  [`${META}ListOptions`]: "listNamespacedPod", [`${META}CreateOptions`]: "createNamespacedPod", [`${META}UpdateOptions`]: "replaceNamespacedPod",
  [`${META}PatchOptions`]: "patchNamespacedPod", "io.k8s.api.core.v1.PodLogOptions": "readNamespacedPodLog",
  "io.k8s.api.core.v1.PodExecOptions": "connectGetNamespacedPodExec", "io.k8s.api.core.v1.PodAttachOptions": "connectGetNamespacedPodAttach",
  "io.k8s.api.core.v1.PodPortForwardOptions": "connectGetNamespacedPodPortforward", "io.k8s.api.core.v1.PodProxyOptions": "connectGetNamespacedPodProxy",
  "io.k8s.api.core.v1.NodeProxyOptions": "connectGetNodeProxy", "io.k8s.api.core.v1.ServiceProxyOptions": "connectGetNamespacedServiceProxy",
};

/** Fields that upstream says nothing of: what most fields of that name say would be wrong, and v3 wraps references that have a text. */
const SILENT: Readonly<Record<string, readonly string[]>> = {
  "io.k8s.api.certificates.v1.CertificateSigningRequest": ["metadata"],
  "io.k8s.api.certificates.v1.CertificateSigningRequestList": ["metadata"],
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ExternalDocumentation": ["description", "url"],
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps": ["additionalItems", "additionalProperties", "description", "example", "items", "type"],
  [`${META}WatchEvent`]: ["type"],
};

/** "<file>#<field>" → text. */
type Texts = ReadonlyMap<string, string>;

function main(): void {
  const scratch = mkdtempSync(join(tmpdir(), "describe-"));
  try {
    const quantity = readModel(join(unpack(PACKAGES.types, scratch), "api/resource.d.ts"), "apimachinery/api/resource/Quantity");
    const models = new Map([...readModels(unpack(PACKAGES.models, scratch), ""), ...readModels(unpack(PACKAGES.apimachinery, scratch), "apimachinery/"), ...quantity]);
    const clientNode = unpack(PACKAGES.clientNode, scratch);
    const texts = describe({ models, client: readClientModels(join(clientNode, "dist/gen/models")), parameters: readParameters(join(clientNode, "dist/gen/apis/CoreV1Api.d.ts")) });
    const json = JSON.stringify(texts);
    writeFileSync(join(import.meta.dirname, "descriptions.json.zst"), Bun.zstdCompressSync(Buffer.from(json), { level: COMPRESSION_LEVEL }));
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

function unpack({ name, integrity }: { readonly name: string; readonly integrity: string }, scratch: string): string {
  const directory = mkdtempSync(join(scratch, "package-"));
  spawn(["npm", "pack", "--silent", "--ignore-scripts", name], directory);
  const archive = readdirSync(directory).find((file) => file.endsWith(".tgz"));
  if (archive === undefined) throw new Error(`npm pack ${name} left no archive`);
  const found = `sha512-${createHash("sha512").update(readFileSync(join(directory, archive))).digest("base64")}`;
  if (found !== integrity) throw new Error(`${name}: integrity ${found} instead of ${integrity}`);
  spawn(["tar", "-xzf", archive], directory);
  return join(directory, "package");
}

function spawn(command: string[], cwd: string): void {
  const { exitCode, stderr } = Bun.spawnSync(command, { cwd, stderr: "pipe" });
  if (exitCode !== 0) throw new Error(`${command.join(" ")} failed: ${stderr.toString()}`);
}

interface Sources { readonly models: Texts; readonly client: Texts; readonly parameters: Texts }

export function describe(sources: Sources): Record<string, Record<string, string>> {
  const groups = new Map(builtInFacts.groupVersions().map(({ packageName, group }) => [packagePrefix(packageName), group]));
  const found: Record<string, Record<string, string>> = {};
  const siblings = new Map<string, string>();
  const usual = new Map<string, Map<string, number>>();
  const types = builtInFacts.typeNames().flatMap((name) => builtInFacts.typeNamed(name) ?? []);
  for (const type of types) {
    if (type.kind !== "struct" && type.kind !== "special") continue;
    const goName = type.name.split(".").at(-1)!;
    const text = lookUp(sources, { name: type.name, goName, group: groups.get(type.name.slice(0, -goName.length)) }, "");
    const own: Record<string, string> = (found[type.name] = text === undefined ? {} : { "": text });
    if (type.kind !== "struct") continue;
    for (const field of type.fields) {
      const description = lookUp(sources, { name: type.name, goName, group: groups.get(type.name.slice(0, -goName.length)) }, field.name);
      if (description === undefined) continue;
      own[field.name] = description;
      siblings.set(siblingKey(type, field), description);
      const counts = usual.get(alikeKey(field)) ?? new Map<string, number>();
      usual.set(alikeKey(field), counts.set(description, (counts.get(description) ?? 0) + 1));
    }
  }
  for (const type of types) {
    if (type.kind !== "struct") continue;
    for (const field of type.fields) {
      const description = siblings.get(siblingKey(type, field)) ?? [...usual.get(alikeKey(field)) ?? []].sort(([, a], [, b]) => b - a)[0]?.[0];
      if (description !== undefined) found[type.name]![field.name] ??= description;
    }
  }
  for (const [type, fields] of Object.entries(SILENT)) for (const field of fields) delete found[type]?.[field];
  const patch = sources.models.get("apimachinery/apis/meta/v1/Patch#");
  if (patch !== undefined) found[`${META}Patch`] = { "": patch };
  return found;
}

/** The same field of the same type in any version of the group. */
function siblingKey(type: StructType, field: FieldInfo): string { return `${type.name.split(".").slice(0, -2).join(".")}#${type.goName}#${field.name}`; }
function alikeKey({ name, type }: FieldInfo): string { return `${name}#${"name" in type ? type.name : type.kind}`; }

function lookUp({ models, client, parameters }: Sources, type: { readonly name: string; readonly goName: string; readonly group: string | undefined }, field: string): string | undefined {
  const operation = OPTIONS_OPERATIONS[type.name];
  const parts = type.name.split(".");
  const version = parts.at(-2)!, groupName = parts.at(-3)!;
  const model = type.name.startsWith("io.k8s.apimachinery.pkg.") ? `apimachinery/${parts.slice(4).join("/")}` : `${type.group ? `${type.group}/` : ""}${version}/${type.goName}`;
  const candidates = [
    operation === undefined ? undefined : parameters.get(`${operation}#${field}`),
    models.get(`${model}#${field}`), client.get(`${capitalize(groupName)}${capitalize(version)}${type.goName}#${field}`), client.get(`${capitalize(version)}${type.goName}#${field}`),
  ];
  return candidates.find((text) => text !== undefined && text !== "")?.replace(/\n@deprecated$/, "");
}

/** One interface a file: its comment, and those of the properties at its first level. */
export function readModels(root: string, prefix: string): Map<string, string> {
  const texts: [string, string][] = [];
  for (const path of new Bun.Glob("**/*.d.ts").scanSync({ cwd: root, absolute: true })) {
    if (path.endsWith("index.d.ts") || path.includes("_schemas")) continue;
    texts.push(...readModel(path, prefix + relative(root, path).replaceAll("\\", "/").replace(/\.d\.ts$/, "")));
  }
  return new Map(texts);
}

function readModel(path: string, key: string): Map<string, string> {
  const texts = new Map<string, string>();
  let depth = 0;
  for (const { comment, line } of commented(readFileSync(path, "utf8"), { escaped: /\\([*'_])/g })) {
    const property = /^"?([\w$-]+)"?\??:/.exec(line);
    if (depth === 0) {
      if (!/^export (?:interface|declare class|(?:declare )?type) /.test(line)) continue;
      if (!texts.has(`${key}#`)) texts.set(`${key}#`, comment);
    } else if (depth === 1 && property && !texts.get(`${key}#${property[1]}`)) texts.set(`${key}#${property[1]}`, comment);
    depth += (line.match(/\{/g)?.length ?? 0) - (line.match(/\}/g)?.length ?? 0);
  }
  return texts;
}

/** One class a file; names TypeScript reserves have an underscore in front. */
function readClientModels(directory: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const file of readdirSync(directory)) {
    if (!file.endsWith(".d.ts")) continue;
    const key = file.slice(0, -".d.ts".length);
    for (const { comment, line } of commented(readFileSync(join(directory, file), "utf8"))) {
      if (line.startsWith("export declare class")) texts.set(`${key}#`, comment);
      const property = /^'_?([^']+)'\??:/.exec(line);
      if (property && comment !== "") texts.set(`${key}#${property[1]}`, comment);
    }
  }
  return texts;
}

/** `@param` texts of the operations of the core API. */
function readParameters(path: string): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { comment, line } of commented(readFileSync(path, "utf8"))) {
    const operation = /^(\w+)\(/.exec(line)?.[1];
    if (operation === undefined) continue;
    for (const [, name = "", text = ""] of comment.matchAll(/@param _?(\w+) ([\s\S]*?)(?=\n@|$)/g)) {
      const plain = unescapeHtml(text).trim();
      texts.set(`${operation}#${name}`, WITHOUT_PARAGRAPHS.has(operation) ? plain : paragraphs(plain));
    }
  }
  return texts;
}

/** Whose parameters' texts have two spaces between sentences by themselves. */
const WITHOUT_PARAGRAPHS: ReadonlySet<string> = new Set(["readNamespacedPodLog"]);

/** Comments of parameters stand in one line, where each line break has become a space: an empty line is two, an indented one begins with as many more. */
export function paragraphs(text: string): string {
  return text.replaceAll(/ {5}/g, "\n    ").replaceAll(/ {4}(?=\S)(?<!\n {4})/g, "\n\n  ").replaceAll(/(?<!\n *) {3}(?=\S)/g, "\n  ")
    .replaceAll(/(\n {2}- \S+) {2}(?=\S)/g, "$1\n\n").replaceAll(/(\n {2}[^\n]*\.) - (?=`)/g, "$1\n- ").replaceAll(/([.)]) {2}(?=[A-Z])/g, "$1\n\n");
}

/** Each line of code with the comment above it. */
function* commented(source: string, { escaped = /\\([*'"_])/g }: { readonly escaped?: RegExp } = {}): Iterable<{ readonly comment: string; readonly line: string }> {
  let comment: string[] = [];
  let inside = false;
  for (const raw of source.split("\n")) {
    const line = raw.trim();
    if (line.startsWith("/**")) { inside = !line.endsWith("*/"); comment = [line.slice(3).replace(/\*\/$/, "")]; }
    else if (inside && line.endsWith("*/")) { inside = false; comment.push(line.slice(0, -2)); }
    else if (inside) comment.push(raw.replace(/^\s*\* ?/, ""));
    else { yield { comment: clean(comment.join("\n"), escaped), line }; comment = []; }
  }
}

function clean(comment: string, escaped: RegExp): string {
  return comment.replace(/^\s*\* ?/gm, "").replace(escaped, "$1").replace(/\*[\\_]\//g, "*/").trim();
}

const ENTITIES: Readonly<Record<string, string>> = { "&quot;": "\"", "&#39;": "'", "&lt;": "<", "&gt;": ">", "&amp;": "&", "&#x60;": "`", "&#x3D;": "=" };

function unescapeHtml(text: string): string { return text.replace(/\\?(&(?:quot|#39|lt|gt|amp|#x60|#x3D);)/g, (_, entity: string) => ENTITIES[entity] ?? entity); }

function capitalize(word: string): string { return word.charAt(0).toUpperCase() + word.slice(1); }

if (import.meta.main) main();
