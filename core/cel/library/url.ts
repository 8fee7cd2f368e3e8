/** URLs: url(text).getHost() and so on, isURL(text). Source: kubernetes v1.36 apiserver/pkg/cel/library/urls.go */
import { defineFunction, method, overload, type FunctionDeclaration, type Library } from "../check/declarations.ts";
import { BOOL, STRING, listOf, mapOf, struct, type Type } from "../check/type.ts";
import { parseQuery, parseUrl, UrlError, type GoUrl } from "../../api/meta/go-url.ts";
import { isRequestUri } from "../string-formats.ts";
import { EvalError, listFrom, mapFrom, noSuchOverload, Opaque, type Value } from "../value/value.ts";

const URL_TYPE = struct("kubernetes.URL");

class Url extends Opaque {
  override readonly type = URL_TYPE;
  override readonly goType = "cel.URL";
  readonly url: GoUrl;
  constructor(url: GoUrl) { super(); this.url = url; }
  override equals(other: Value): boolean | EvalError {
    if (!(other instanceof Url)) return noSuchOverload(other);
    return (["scheme", "opaque", "user", "host", "escapedPath", "rawQuery", "fragment"] as const).every((part) => this.url[part] === other.url[part]);
  }
}

export const urlLibrary: Library = {
  functions: [
    defineFunction("url", overload("string_to_url", [STRING], URL_TYPE, ([text]) => urlOf(text as string))),
    defineFunction("isURL", overload("is_url_string", [STRING], BOOL, ([text]) => isRequestUri(text as string))),
    getter("getScheme", "url_get_scheme", STRING, ({ scheme }) => scheme),
    getter("getHost", "url_get_host", STRING, ({ host }) => host),
    getter("getHostname", "url_get_hostname", STRING, ({ hostname }) => hostname),
    getter("getPort", "url_get_port", STRING, ({ port }) => port),
    getter("getEscapedPath", "url_get_escaped_path", STRING, ({ escapedPath }) => escapedPath),
    getter("getQuery", "url_get_query", mapOf(STRING, listOf(STRING)), ({ rawQuery }) => mapFrom([...parseQuery(rawQuery)].map(([name, values]) => [name, listFrom(values)] as const))),
  ],
};

function urlOf(text: string): Value {
  try {
    parseUrl(text, { request: true });
    return new Url(parseUrl(text));
  } catch (error) {
    if (error instanceof UrlError) return new EvalError(`URL parse error during conversion from string: ${error.message}`);
    throw error;
  }
}

function getter(name: string, id: string, result: Type, get: (url: GoUrl) => Value): FunctionDeclaration {
  return defineFunction(name, method(id, [URL_TYPE], result, ([url]) => get((url as Url).url)));
}
