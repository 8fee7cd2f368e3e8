/**
 * Where a list goes on. The token is opaque to clients, and of the form of upstream's, so that tools which peek into it are not surprised.
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/continue.go
 */
import { isUtf8 } from "node:buffer";
import { posix } from "node:path";
import type { JsonValue } from "../../api/codec/json-document.ts";
import { jsonText, parseJson } from "../../api/codec/json.ts";
import { badRequest, type StatusError } from "../../api/meta/status-error.ts";
import { jsonKindOf } from "../../api/patch/json-value.ts";

const CONTINUE_VERSION = "meta.k8s.io/v1";

/** `after`: a key of the store, which begins with `prefix`. */
export function encodeContinue(revision: number, after: string, prefix: string): string {
  return Buffer.from(JSON.stringify({ v: CONTINUE_VERSION, rv: revision, start: `${after.slice(prefix.length)}\u0000` })).toString("base64url");
}

interface ContinueToken { readonly v?: string; readonly rv?: number; readonly start?: string }

/** At which revision a list goes on (-1: at the newest), and after which key. The token cannot lead out of `prefix`. Throws 400. */
export function decodeContinue(token: string, prefix: string): { readonly revision: number; readonly after: string } {
  const { v = "", rv = 0, start = "" } = readContinue(token);
  if (v !== CONTINUE_VERSION) throw badContinue(`: server does not recognize this encoded version ${v}`);
  if (rv === 0) throw badContinue(`: incorrect encoded start resourceVersion (version ${CONTINUE_VERSION})`);
  if (start === "") throw badContinue(`: encoded start key empty (version ${CONTINUE_VERSION})`);
  const path = start.startsWith("/") ? start : `/${start}`;
  if (posix.normalize(path) !== path) throw badContinue(`: ${start}`);
  return { revision: rv, after: prefix + path.slice(1).replace(/\u0000$/, "") };
}

function readContinue(token: string): ContinueToken {
  const written = token.replace(/[\r\n]/g, ""), wrong = token.search(/[^\w\r\n-]/);
  const illegal = wrong < 0 && written.length % 4 === 1 ? token.length - 1 : wrong;
  if (illegal >= 0) throw badContinue(`: illegal base64 data at input byte ${illegal}`);
  try {
    return tokenIn(parseJson(textOf(Buffer.from(written, "base64url"))).value);
  } catch (error) {
    throw badContinue(`: ${(error as Error).message}`);
  }
}

const TOKEN_FIELDS: Readonly<Record<string, string>> = { v: "string", rv: "int64", start: "string" };

/** As Go reads it: names in any case, null is nothing. Throws an Error in its words. */
function tokenIn(value: JsonValue): ContinueToken {
  if (value === null) return {};
  const kind = jsonKindOf(value);
  if (kind !== "object") throw new Error(`json: cannot unmarshal ${kind} into Go value of type storage.continueToken`);
  const token: Record<string, unknown> = {};
  for (const [key, given] of Object.entries(value)) {
    const name = key.toLowerCase(), type = Object.hasOwn(TOKEN_FIELDS, name) ? TOKEN_FIELDS[name] : undefined;
    if (type === undefined || given === null) continue;
    const isNumber = typeof given === "number" || typeof given === "bigint";
    if (type === "string" ? typeof given !== "string" : !isNumber || !isInt64(given))
      throw new Error(`json: cannot unmarshal ${jsonKindOf(given)}${type === "int64" && isNumber ? ` ${jsonText(given)}` : ""} into Go struct field continueToken.${name} of type ${type}`);
    token[name] = isNumber ? Number(given) : given;
  }
  return token;
}

function isInt64(value: number | bigint): boolean { return typeof value === "bigint" ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value); }

/** Throws for what begins as no text does: Go tells of the byte as of a character. */
function textOf(bytes: Buffer): string {
  if (bytes.length > 0 && bytes[0]! > 0x7f && !isUtf8(bytes)) throw new Error(`invalid character '${String.fromCharCode(bytes[0]!)}' looking for beginning of value`);
  return bytes.toString();
}

function badContinue(why: string): StatusError {
  return badRequest(`invalid continue token: continue key is not valid${why}`);
}
