/**
 * Impersonation: a caller who may asks to be taken for somebody else, with Impersonate-User, -Uid, -Group and -Extra-* headers.
 *
 * Two kinds of permission exist. The narrow ones are tried first, and allow to act as somebody for certain requests only
 * (verbs impersonate:<mode> and impersonate-on:<mode>:<verb>):
 *   associated-node   a service account may be the node its pod runs on
 *   arbitrary-node    … any node
 *   serviceaccount    … a service account
 *   user-info         … a user who is neither
 * Then the old one: the verb `impersonate`, for each user, group, uid and extra asked for, whatever the request is.
 *
 * Source: kubernetes v1.36 staging/src/k8s.io/apiserver/pkg/endpoints/filters/impersonation (ConstrainedImpersonation is on)
 */
import { isDomainPrefixedPath } from "../api/meta/domains.ts";
import { formatFieldErrors } from "../api/meta/field-error.ts";
import { goQuote } from "../api/meta/go-quote.ts";
import { dns1123Label, dns1123Subdomain } from "../api/meta/names.ts";
import { badRequest, isForbidden, notAllowed, type StatusError } from "../api/meta/status-error.ts";
import type { Attributes, ResourceAttributes } from "../api/request/attributes.ts";
import { headerText } from "../api/request/header-text.ts";
import { ANONYMOUS, GROUP_AUTHENTICATED, GROUP_MASTERS, GROUP_NODES, serviceAccountUser, type UserInfo } from "../api/request/user.ts";
import type { Authorizer } from "./authorizer.ts";

const USER = "impersonate-user";
const UID = "impersonate-uid";
const GROUP = "impersonate-group";
const EXTRA_PREFIX = "impersonate-extra-";
const UNAUTHENTICATED = ANONYMOUS.groups[0]!;
const AUTHENTICATION_GROUP = "authentication.k8s.io";
/** From so many groups or extras on, a permission for all of them is tried first. */
const MANY = 4;
/** Source: kubernetes v1.36 …/filters/impersonation/cache.go newModeIndexCache */
const CALLERS_MAX = 10_000;

type Wanted = Required<Pick<UserInfo, "name" | "groups">> & { readonly uid: string; readonly extra: Readonly<Record<string, readonly string[]>> };

/** Whom the headers ask for. Names in lower case, each as often as it was sent; of what there is one of the first counts, also if it is empty. Throws 400. */
export function impersonationOf(headers: Iterable<readonly [name: string, value: string]>): Wanted | undefined {
  let user: string | undefined;
  let asUid: string | undefined;
  const groups: string[] = [];
  const extras = new Map<string, string[]>(); // whose keys may be "constructor", too
  for (const [header, field] of headers) {
    if (!header.startsWith("impersonate-")) continue;
    const value = headerText(field);
    if (header === USER) user ??= value;
    else if (header === UID) asUid ??= value;
    else if (header === GROUP) groups.push(value);
    else if (header.startsWith(EXTRA_PREFIX)) {
      const key = unescapeKey(header.slice(EXTRA_PREFIX.length));
      extras.set(key, [...extras.get(key) ?? [], value]);
    }
  }
  const extra = Object.fromEntries(extras);
  const [name, uid] = [user ?? "", asUid ?? ""];
  if (name !== "") return { name, uid, groups, extra };
  if (uid !== "" || groups.length > 0 || Object.keys(extra).length > 0)
    throw badRequest(`requested ${goUser(uid, groups, extra)} without impersonating a user name`);
  return undefined;
}

function unescapeKey(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded; // taken as it is, as upstream does
  }
}

/** Which mode last let a caller be somebody else: it is tried first the next time, and says why it is not to be if all refuse. Source: kubernetes v1.36 …/filters/impersonation/cache.go modeIndexCache */
export class LastModes {
  readonly #modes = new Map<string, Mode>(); // those that were not used for longest come first

  of({ name }: UserInfo): Mode | undefined { return this.#modes.get(name); }
  note({ name }: UserInfo, mode: Mode): void {
    this.#modes.delete(name);
    this.#modes.set(name, mode);
    const [oldest] = this.#modes.keys();
    if (this.#modes.size > CALLERS_MAX) this.#modes.delete(oldest!);
  }
}

/** `constraint`: the verb that allowed it; "" for the old one. */
export interface Impersonated { readonly user: UserInfo; readonly constraint: string }

/** The user to go on as, for this request (`attributes.user` is who really calls). Throws 403. */
export async function impersonate(wanted: Wanted, attributes: Attributes, { authorizer, lastModes }: { readonly authorizer: Authorizer; readonly lastModes: LastModes }): Promise<Impersonated> {
  let first: unknown;
  const last = lastModes.of(attributes.user);
  for (const mode of last ? [last, ...MODES.filter((one) => one !== last)] : MODES) {
    if (!mode.applies(wanted, attributes.user)) continue;
    try {
      const user = await impersonateBy(mode, wanted, attributes, authorizer);
      lastModes.note(attributes.user, mode);
      return { user, constraint: mode.narrow ? `impersonate:${mode.name}` : "" };
    } catch (error) {
      if (!isForbidden(error)) throw error;
      first ??= error;
    }
  }
  throw first;
}

interface Mode {
  readonly name: string;
  /** Narrow modes check the request too, and are stricter about what may be asked for. */
  readonly narrow: boolean;
  applies(wanted: Wanted, requestor: UserInfo): boolean;
}

const MODES: readonly Mode[] = [
  { name: "associated-node", narrow: true, applies: (wanted, requestor) => onlyName(wanted) && isAssociated(requestor, nodeOf(wanted.name)) },
  { name: "arbitrary-node", narrow: true, applies: (wanted) => onlyName(wanted) && nodeOf(wanted.name) !== undefined },
  { name: "serviceaccount", narrow: true, applies: (wanted) => onlyName(wanted) && serviceAccountOf(wanted.name) !== undefined },
  { name: "user-info", narrow: true, applies: ({ name }) => nodeOf(name) === undefined && serviceAccountOf(name) === undefined },
  { name: "", narrow: false, applies: () => true },
];

async function impersonateBy({ name: modeName, narrow }: Mode, wanted: Wanted, attributes: Attributes, authorizer: Authorizer): Promise<UserInfo> {
  const associated = modeName === "associated-node";
  const requestor = associated ? withoutExtra(attributes.user) : attributes.user;
  const verb = narrow ? `impersonate:${modeName}` : "impersonate";
  const group = narrow ? AUTHENTICATION_GROUP : "";
  const check = (what: Partial<ResourceAttributes> & { readonly resource: string; readonly name: string }): Promise<void> =>
    ensureAllowed(authorizer, { isResource: true, verb, group, version: "v1", subresource: "", namespace: "", path: "", user: requestor, ...what });

  if (narrow) await ensureAllowed(authorizer, { ...attributes, user: requestor, verb: `impersonate-on:${modeName}:${attributes.verb}` });
  let groups = wanted.groups;
  const node = narrow ? nodeOf(wanted.name) : undefined;
  const account = serviceAccountOf(wanted.name);
  if (node !== undefined) {
    groups = [GROUP_NODES];
    await check({ resource: "nodes", name: associated ? "*" : node });
  } else if (account) {
    if (groups.length === 0) groups = serviceAccountUser(account.namespace, account.name).groups.slice(0, 2);
    await check({ resource: "serviceaccounts", namespace: account.namespace, name: account.name });
  } else {
    await check({ resource: "users", name: wanted.name });
  }
  if (wanted.uid !== "") await check({ resource: "uids", name: wanted.uid, group: AUTHENTICATION_GROUP });
  await checkGroups(wanted.groups, { narrow, verb, group, check, requestor });
  await checkExtra(wanted.extra, { narrow, verb, check, requestor });
  return { name: wanted.name, uid: wanted.uid === "" ? undefined : wanted.uid, groups: withLoginGroup(wanted.name, groups), extra: wanted.extra };
}

interface CheckContext { readonly narrow: boolean; readonly verb: string; readonly requestor: UserInfo; check(what: { readonly resource: string; readonly name: string; readonly subresource?: string; readonly group?: string }): Promise<void> }

async function checkGroups(groups: readonly string[], { narrow, verb, group, check, requestor }: CheckContext & { readonly group: string }): Promise<void> {
  if (narrow) {
    const refuse = (name: string, reason: string): StatusError => notAllowed({ user: requestor.name, verb, group, resource: "groups", name }, reason);
    if (groups.includes("")) throw refuse("", "impersonating the empty string group is not allowed");
    if (groups.includes(GROUP_MASTERS)) throw refuse(GROUP_MASTERS, "impersonating the system:masters group is not allowed");
    if (groups.length >= MANY && await succeeds(check({ resource: "groups", name: "*" }))) return;
  }
  for (const name of groups) await check({ resource: "groups", name });
}

async function checkExtra(extra: Wanted["extra"], { narrow, verb, check, requestor }: CheckContext): Promise<void> {
  const entries = Object.entries(extra);
  if (narrow) {
    const problem = extraProblem(entries);
    if (problem !== undefined) throw notAllowed({ user: requestor.name, verb, group: AUTHENTICATION_GROUP, resource: "userextras" }, problem);
    const many = entries.length >= MANY || entries.flatMap(([, values]) => values).length >= MANY;
    if (many && await succeeds(check({ resource: "userextras", subresource: "*", name: "*", group: AUTHENTICATION_GROUP }))) return;
  }
  for (const [key, values] of entries) for (const name of values) await check({ resource: "userextras", subresource: key, name, group: AUTHENTICATION_GROUP });
}

function extraProblem(entries: readonly (readonly [string, readonly string[]])[]): string | undefined {
  for (const [key, values] of entries) {
    if (key === "") return "impersonating the empty string key in extra is not allowed";
    const problems = [...isDomainPrefixedPath("extra.key", key)];
    if (problems.length > 0) return `impersonating an invalid key in extra is not allowed: ${formatFieldErrors(problems)}`;
    if (key !== key.toLowerCase()) return `impersonating a non-lowercase key in extra is not allowed: ${JSON.stringify(key)}`;
    if (values.length === 0) return "impersonating empty values in extra is not allowed";
    if (values.includes("")) return "impersonating the empty string value in extra is not allowed";
  }
  return undefined;
}

/** Who is impersonated counts as logged in, unless anonymous or asked for otherwise. */
function withLoginGroup(name: string, groups: readonly string[]): readonly string[] {
  if (name === ANONYMOUS.name) return groups.includes(UNAUTHENTICATED) ? groups : [...groups, UNAUTHENTICATED];
  return groups.includes(UNAUTHENTICATED) || groups.includes(GROUP_AUTHENTICATED) ? groups : [...groups, GROUP_AUTHENTICATED];
}

async function ensureAllowed(authorizer: Authorizer, attributes: Attributes): Promise<void> {
  const { decision, reason, error } = await authorizer.authorize(attributes);
  if (decision === "allow") return;
  const why = error === undefined ? reason : reason === "" ? error : `${error}: ${reason}`;
  const { user, verb } = attributes;
  if (!attributes.isResource) throw notAllowed({ user: user.name, verb, path: attributes.path }, why);
  const { group, resource, subresource, namespace, name } = attributes;
  throw notAllowed({ user: user.name, verb, group, resource, subresource, namespace, name }, why);
}

async function succeeds(check: Promise<void>): Promise<boolean> {
  try {
    await check;
    return true;
  } catch (error) {
    if (isForbidden(error)) return false;
    throw error;
  }
}

function onlyName({ uid, groups, extra }: Wanted): boolean { return uid === "" && groups.length === 0 && Object.keys(extra).length === 0; }

function nodeOf(userName: string): string | undefined {
  const name = userName.startsWith("system:node:") ? userName.slice("system:node:".length) : "";
  return name !== "" && dns1123Subdomain(name).length === 0 ? name : undefined;
}

function serviceAccountOf(userName: string): { readonly namespace: string; readonly name: string } | undefined {
  const [system, kind, namespace = "", name = "", ...rest] = userName.split(":");
  if (system !== "system" || kind !== "serviceaccount" || rest.length > 0 || dns1123Label(namespace).length > 0 || dns1123Subdomain(name).length > 0) return undefined;
  return { namespace, name };
}

function isAssociated(requestor: UserInfo, node: string | undefined): boolean {
  const own = requestor.extra?.["authentication.kubernetes.io/node-name"];
  return node !== undefined && serviceAccountOf(requestor.name) !== undefined && own?.length === 1 && own[0] === node;
}

/** The check is about the service account on whichever node: authorizers see the names of its extras only. */
function withoutExtra(user: UserInfo): UserInfo {
  return { ...user, extra: { "authentication.kubernetes.io/associated-node-keys": Object.keys(user.extra ?? {}).sort() } };
}

/** As Go shows a user with %#v. */
function goUser(uid: string | undefined, groups: readonly string[], extra: Readonly<Record<string, readonly string[]>>): string {
  const texts = (list: readonly string[]): string => (list.length === 0 ? "[]string(nil)" : `[]string{${list.map(goQuote).join(", ")}}`);
  const keys = Object.keys(extra).sort();
  const more = keys.length === 0 ? "map[string][]string(nil)" : `map[string][]string{${keys.map((key) => `${goQuote(key)}:${texts(extra[key]!)}`).join(", ")}}`;
  return `&user.DefaultInfo{Name:"", UID:${goQuote(uid ?? "")}, Groups:${texts(groups)}, Extra:${more}}`;
}
