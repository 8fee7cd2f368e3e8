/**
 * Extension servers' OpenAPI v2 in ours: of each the paths of its group version and the definitions those use, renamed where ours has another
 * definition of that name.
 *
 * Source: kube-openapi pkg/aggregator/aggregator.go MergeSpecs
 */
import type { Swagger } from "../../api/openapi/v2.ts";

export interface SwaggerPart {
  readonly paths?: Readonly<Record<string, object>>;
  readonly definitions?: Readonly<Record<string, object>>;
  readonly parameters?: Readonly<Record<string, object>>;
}

const DEFINITION = "#/definitions/";
const PARAMETER = "#/parameters/";

/** Of `part` what stands below `prefix` (/apis/group/version). Neither document is changed. */
export function mergeOpenApi(own: Swagger, part: SwaggerPart, prefix: string): Swagger {
  const paths = Object.fromEntries(Object.entries(part.paths ?? {}).filter(([path]) => (path === prefix || path.startsWith(`${prefix}/`)) && !Object.hasOwn(own.paths, path)));
  if (Object.keys(paths).length === 0) return own;
  const inlined = replace(paths, (ref) => (ref.startsWith(PARAMETER) ? { content: part.parameters?.[ref.slice(PARAMETER.length)] ?? {} } : undefined)) as Record<string, object>;
  const used = usedDefinitions(inlined, part.definitions ?? {});
  const names = new Map<string, string>();
  for (const name of used) names.set(name, freeName(name, part.definitions![name]!, own.definitions, part.definitions!));
  const renamed = (value: unknown): unknown => replace(value, (ref) => {
    const name = ref.startsWith(DEFINITION) ? names.get(ref.slice(DEFINITION.length)) : undefined;
    return name === undefined ? undefined : { ref: `${DEFINITION}${name}` };
  });
  const definitions: Record<string, object> = {};
  for (const [name, given] of names) if (!Object.hasOwn(own.definitions, given)) definitions[given] = renamed(part.definitions![name]) as object;
  return { ...own, paths: { ...own.paths, ...(renamed(inlined) as Record<string, object>) }, definitions: { ...own.definitions, ...definitions } as Swagger["definitions"] };
}

function usedDefinitions(paths: object, definitions: Readonly<Record<string, object>>): Set<string> {
  const used = new Set<string>();
  const visit = (value: unknown): void => void replace(value, (ref) => {
    const name = ref.slice(DEFINITION.length);
    if (ref.startsWith(DEFINITION) && Object.hasOwn(definitions, name) && !used.has(name)) {
      used.add(name);
      visit(definitions[name]);
    }
    return undefined;
  });
  visit(paths);
  return used;
}

function freeName(name: string, definition: object, own: Readonly<Record<string, object>>, part: Readonly<Record<string, object>>): string {
  let found = name;
  for (let version = 2; Object.hasOwn(own, found) && !isSame(own[found]!, definition); version++) {
    found = `${name}_v${version}`;
    while (Object.hasOwn(part, found)) found = `${name}_v${++version}`;
  }
  return found;
}

/** Which kinds a definition stands for is no difference. */
function isSame(a: object, b: object): boolean {
  const GVK = "x-kubernetes-group-version-kind";
  const { [GVK]: _, ...left } = a as Record<string, unknown>;
  const { [GVK]: __, ...right } = b as Record<string, unknown>;
  return Bun.deepEquals(left, right);
}

/** A copy in which what `change` answers stands for each reference. */
function replace(value: unknown, change: (ref: string) => { readonly ref?: string; readonly content?: unknown } | undefined): unknown {
  if (Array.isArray(value)) return value.map((one) => replace(one, change));
  if (typeof value !== "object" || value === null) return value;
  const { $ref } = value as { $ref?: unknown };
  if (typeof $ref === "string") {
    const other = change($ref);
    if (other?.ref !== undefined) return { ...value, $ref: other.ref };
    if (other) return other.content; // as it is: what names itself would never end
    return value;
  }
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, replace(one, change)]));
}
