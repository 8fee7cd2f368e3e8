import { jsonKindOf } from "../../../core/api/patch/json-value.ts";
/**
 * A docker configuration: which user and password each place has. Read as Go reads JSON: names of fields in any case, null as nothing said, and one value of a
 * wrong type makes it none at all.
 *
 * Source: kubernetes v1.36 pkg/credentialprovider/config.go (DockerConfigJSON, DockerConfigEntry)
 */

export interface User { readonly username: string; readonly password: string }

/** By place, as it is written. Throws an Error when the text is no docker configuration. `legacy`: the older form, without "auths". */
export function dockerUsers(text: string, { legacy }: { readonly legacy: boolean }): Map<string, User> {
  const whole = objectOf(JSON.parse(text), "DockerConfig");
  const places = legacy ? [whole] : fieldsNamed(whole, "auths").map((value) => objectOf(value, "DockerConfig"));
  return new Map(places.flatMap((of) => Object.entries(of).map(([place, value]) => [place, userOf(objectOf(value, "dockerConfigEntryWithAuth"))] as const)));
}

function userOf(entry: Readonly<Record<string, unknown>>): User {
  const [username, password, , auth] = ["username", "password", "email", "auth"].map((name) => lastText(entry, name)) as [string, string, string, string];
  return auth === "" ? { username, password } : userIn(auth);
}

/** user:password in base64, whose last group may be filled up or not. */
function userIn(auth: string): User {
  const text = auth.replace(/[\r\n]/g, "");
  const form = /=\s*$/.test(auth) ? /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/ : /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2,3})?$/;
  if (!form.test(text)) throw new Error(`illegal base64 data at input byte ${/^[A-Za-z0-9+/]*/.exec(text)![0].length}`);
  const decoded = Buffer.from(text, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  if (colon < 0) throw new Error("unable to parse auth field, must be formatted as base64(username:password)");
  return { username: decoded.slice(0, colon), password: decoded.slice(colon + 1) };
}

function fieldsNamed(object: Readonly<Record<string, unknown>>, name: string): unknown[] {
  return Object.entries(object).flatMap(([key, value]) => (key.toLowerCase() === name ? [value] : []));
}

function lastText(object: Readonly<Record<string, unknown>>, name: string): string {
  const texts = fieldsNamed(object, name).filter((value) => value !== null);
  for (const value of texts) if (typeof value !== "string") throw wrongType(value, `field dockerConfigEntryWithAuth.${name} of type string`);
  return (texts.at(-1) as string | undefined) ?? "";
}

function objectOf(value: unknown, type: string): Readonly<Record<string, unknown>> {
  if (value === null) return {};
  if (typeof value !== "object" || Array.isArray(value)) throw wrongType(value, `value of type credentialprovider.${type}`);
  return value as Readonly<Record<string, unknown>>;
}

/** Without the value, which may be a secret. */
function wrongType(value: unknown, wanted: string): Error {
  return new Error(`json: cannot unmarshal ${jsonKindOf(value)} into Go ${wanted.startsWith("field") ? wanted.replace("field", "struct field") : wanted}`);
}
