/**
 * Which flow a request belongs to: the first FlowSchema, by precedence, one of whose rules fits.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/flowcontrol/rule.go
 */
import type { FlowSchema, NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject } from "../../api/gen/flowcontrol.v1.ts";
import type { UserInfo } from "../../api/request/user.ts";
import type { RequestInfo } from "../request-info.ts";

const ALL = "*";

/** Lower numbers first, then by name. */
export function inOrder(schemas: readonly Readonly<FlowSchema>[]): Readonly<FlowSchema>[] {
  return schemas.toSorted((a, b) => (a.spec?.matchingPrecedence ?? 0) - (b.spec?.matchingPrecedence ?? 0) || (a.metadata.name < b.metadata.name ? -1 : 1));
}

/** Whether any of its rules is about this user, whatever the request. */
export function concerns({ spec }: Readonly<FlowSchema>, user: UserInfo): boolean {
  return spec?.rules?.some(({ subjects }) => subjects?.some((subject) => isSubject(subject, user))) ?? false;
}

export function matches({ spec }: Readonly<FlowSchema>, info: RequestInfo, user: UserInfo): boolean {
  return spec?.rules?.some((rule) => fits(rule, info, user)) ?? false;
}

function fits({ subjects, resourceRules, nonResourceRules }: PolicyRulesWithSubjects, info: RequestInfo, user: UserInfo): boolean {
  if (!subjects?.some((subject) => isSubject(subject, user))) return false;
  return (info.isResource ? resourceRules?.some((rule) => fitsResource(rule, info)) : nonResourceRules?.some((rule) => fitsPath(rule, info.verb, info.path))) ?? false;
}

function isSubject({ kind, user: wanted, group, serviceAccount }: Subject, { name, groups }: UserInfo): boolean {
  switch (kind) {
    case "User": return wanted !== undefined && (wanted.name === ALL || wanted.name === name);
    case "Group": return group !== undefined && (group.name === ALL || groups.includes(group.name));
    case "ServiceAccount": {
      if (!serviceAccount) return false;
      const prefix = `system:serviceaccount:${serviceAccount.namespace}:`;
      return serviceAccount.name === ALL ? name.startsWith(prefix) : name === prefix + serviceAccount.name;
    }
    default: return false;
  }
}

function fitsResource({ verbs, apiGroups, resources, namespaces, clusterScope }: ResourcePolicyRule, { verb, group, resource, subresource, namespace }: Extract<RequestInfo, { isResource: true }>): boolean {
  return contains(verbs, verb) && contains(apiGroups, group) && contains(resources, subresource === "" ? resource : `${resource}/${subresource}`)
    && (namespace === "" ? clusterScope === true : contains(namespaces, namespace));
}

function fitsPath({ verbs, nonResourceURLs }: NonResourcePolicyRule, verb: string, path: string): boolean {
  return contains(verbs, verb) && (nonResourceURLs ?? []).some((url) => {
    if (url === ALL || url === path) return true;
    const prefix = url.endsWith("*") ? url.slice(0, -1) : url;
    return path.startsWith(prefix.endsWith("/") ? prefix : `${prefix}/`);
  });
}

function contains(list: readonly string[] | null | undefined, value: string): boolean {
  return list ? (list.length === 1 && list[0] === ALL) || list.includes(value) : false;
}
