/**
 * Policies of a file, one a line, each allowing something: attribute-based access control. The file is read once, when the server starts.
 *
 *   {"apiVersion": "abac.authorization.kubernetes.io/v1beta1", "kind": "Policy", "spec": {"user": "alice", "namespace": "*", "resource": "*", "apiGroup": "*", "readonly": true}}
 *
 * "*" as user or group is everybody who has proved who he is. Lines of the first format, without a version, name user, group, namespace, resource and readonly at once, and what they leave
 * out is not restricted. Empty lines and those that begin with # say nothing.
 *
 * Source: kubernetes v1.36 pkg/auth/authorizer/abac/abac.go, pkg/apis/abac/{v0,v1beta1}
 */
import { parseJsonDocument, jsonValueOf } from "../api/codec/json-document.ts";
import { parseStrictYaml } from "../api/codec/yaml.ts";
import { jsonKindOf } from "../api/patch/json-value.ts";
import type { Attributes } from "../api/request/attributes.ts";
import { GROUP_AUTHENTICATED, type UserInfo } from "../api/request/user.ts";
import type { Authorizer } from "./authorizer.ts";

const GROUP = "abac.authorization.kubernetes.io";
/** In bytes. Source: bufio.MaxScanTokenSize */
const LINE_MAX = 65_536;
const READ_VERBS: readonly string[] = ["get", "list", "watch"];

export interface Policy {
  readonly user: string;
  readonly group: string;
  readonly readonly: boolean;
  readonly apiGroup: string;
  readonly resource: string;
  readonly namespace: string;
  readonly nonResourcePath: string;
}

/** Throws for a line that is none. `old`: some have no version. */
export function readPolicies(text: string, path: string): { readonly policies: readonly Policy[]; readonly old: boolean } {
  const policies: Policy[] = [];
  let old = false;
  for (const [i, line] of text.split("\n").entries()) {
    if (Buffer.byteLength(line) >= LINE_MAX) throw new Error(`error reading policy file ${path}: bufio.Scanner: token too long`);
    const data = line.replace(/\r$/, "");
    if (data.trim() === "" || data.trim().startsWith("#")) continue;
    try {
      const { policy, isOld } = readPolicy(data);
      policies.push(policy);
      old ||= isOld;
    } catch (error) {
      throw new Error(`error reading policy file ${path}, line ${i + 1}: ${data}: ${(error as Error).message}`, { cause: error });
    }
  }
  return { policies, old };
}

function readPolicy(line: string): { readonly policy: Policy; readonly isOld: boolean } {
  const given = objectOf(line);
  const [apiVersion, kind] = [field(given, "apiVersion", "string"), field(given, "kind", "string")];
  if (apiVersion === `${GROUP}/v1beta1` && kind === "Policy") return { policy: everybody(fieldsOf(field(given, "spec", "object") ?? {}, "spec")), isOld: false };
  const isOld = apiVersion === undefined || apiVersion === "";
  if ((!isOld && apiVersion !== `${GROUP}/v0`) || (kind !== undefined && kind !== "" && kind !== "Policy")) throw new Error(`no kind ${JSON.stringify(kind ?? "")} is registered for version ${JSON.stringify(apiVersion ?? `${GROUP}/v0`)}`);
  return { policy: unrestricted(fieldsOf({ ...given, apiGroup: undefined, nonResourcePath: undefined }, "")), isOld };
}

function objectOf(line: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = line.trim().startsWith("{") ? jsonValueOf(parseJsonDocument(line)) : parseStrictYaml(line);
  } catch (error) {
    throw new Error(`couldn't get version/kind; json parse error: ${(error as Error).message}`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new Error(`couldn't get version/kind; json parse error: json: cannot unmarshal ${jsonKindOf(value)} into Go value of type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }`);
  return value as Record<string, unknown>;
}

interface Types { readonly string: string; readonly boolean: boolean; readonly object: Record<string, unknown> }
const GO_TYPES = { string: "string", boolean: "bool", object: "v1beta1.PolicySpec" } as const;

/** Undefined: not given, or null. */
function field<T extends keyof Types>(given: Readonly<Record<string, unknown>>, name: string, type: T, within = ""): Types[T] | undefined {
  const value = given[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== type || Array.isArray(value)) throw new Error(`json: cannot unmarshal ${jsonKindOf(value)} into Go struct field ${within === "" ? "Policy" : "PolicySpec"}.${within === "" ? "" : `${within}.`}${name} of type ${GO_TYPES[type]}`);
  return value as Types[T];
}

function fieldsOf(given: Readonly<Record<string, unknown>>, within: string): Policy {
  const text = (name: string): string => field(given, name, "string", within) ?? "";
  return {
    user: text("user"), group: text("group"), readonly: field(given, "readonly", "boolean", within) ?? false,
    apiGroup: text("apiGroup"), resource: text("resource"), namespace: text("namespace"), nonResourcePath: text("nonResourcePath"),
  };
}

function everybody(policy: Policy): Policy { return policy.user === "*" || policy.group === "*" ? { ...policy, user: "", group: GROUP_AUTHENTICATED } : policy; }

/** Of the first format. */
function unrestricted(policy: Policy): Policy {
  const { user, group, namespace, resource } = policy;
  return everybody({
    ...policy, group: user === "" && group === "" ? GROUP_AUTHENTICATED : group, namespace: namespace || "*", resource: resource || "*", apiGroup: "*",
    nonResourcePath: namespace === "" && resource === "" ? "*" : "",
  });
}

export function abacAuthorizer(policies: readonly Policy[]): Authorizer {
  return {
    authorize: (attributes) => (policies.some((policy) => allows(policy, attributes)) ? { decision: "allow", reason: "" } : { decision: "no-opinion", reason: "No policy matched." }),
    async rulesFor(user, namespace) {
      const own = policies.filter((policy) => isAbout(policy, user) && (policy.namespace === "*" || policy.namespace === namespace));
      const verbs = (policy: Policy): readonly string[] => (policy.readonly ? READ_VERBS : ["*"]);
      return {
        resourceRules: own.flatMap((policy) => (policy.resource === "" ? [] : [{ verbs: verbs(policy), apiGroups: [policy.apiGroup], resources: [policy.resource], resourceNames: [] }])),
        pathRules: own.flatMap((policy) => (policy.nonResourcePath === "" ? [] : [{ verbs: verbs(policy), nonResourceURLs: [policy.nonResourcePath] }])),
        incomplete: false,
      };
    },
  };
}

function allows(policy: Policy, attributes: Attributes): boolean {
  if (!isAbout(policy, attributes.user) || (policy.readonly && !READ_VERBS.includes(attributes.verb))) return false;
  const { namespace, resource, apiGroup, nonResourcePath } = policy;
  if (!attributes.isResource)
    return nonResourcePath === "*" || nonResourcePath === attributes.path || (nonResourcePath.endsWith("*") && attributes.path.startsWith(nonResourcePath.replace(/\*+$/, "")));
  return (namespace === "*" || namespace === attributes.namespace) && (resource === "*" || resource === attributes.resource) && (apiGroup === "*" || apiGroup === attributes.group);
}

/** Who is named by neither is nobody. */
function isAbout({ user, group }: Policy, { name, groups }: UserInfo): boolean {
  return (user !== "" || group !== "") && (user === "" || user === name) && (group === "" || groups.includes(group));
}
