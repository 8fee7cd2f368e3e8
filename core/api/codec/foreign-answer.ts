/**
 * What a server of somebody else's has answered, read as upstream's clients read it: JSON or YAML, whatever it is called, or a Status that says why not.
 *
 * Source: kubernetes v1.36 client-go/rest/request.go, apimachinery/pkg/runtime/serializer/json/json.go
 */
import { serverSaid } from "../meta/generic-response.ts";
import { typeMetaOf } from "./body.ts";
import { parseJson } from "./json.ts";
import { readYaml } from "./yaml.ts";

export interface ForeignAnswer { readonly status: number; readonly text: string; readonly contentType: string | undefined }

/** Source: kubernetes v1.36 client-go/rest/request.go maxUnstructuredResponseTextBytes */
const TOLD_BYTES_MAX = 2048;

/** Of an answer that is one. Throws an Error that says why it cannot be read. */
export function readForeign({ status, text: given, contentType = "application/json" }: ForeignAnswer): unknown {
  const text = given.replace(/^\uFEFF/, "");
  if (text === "") throw new Error(`0-length response with status code: ${status} and content type: ${contentType}`);
  const yaml = /^\s*\{/.test(text) ? undefined : readYaml(text);
  try {
    const value = yaml ? yaml.value : parseJson(text).value;
    typeMetaOf(value);
    return value;
  } catch (cause) {
    throw new Error(`couldn't get version/kind; json parse error: ${(cause as Error).message}`, { cause });
  }
}

/** Why there is none, of a server that said that it could not: what it says itself is told if it is a Status or for people. */
export function foreignFailure({ status, text, contentType }: ForeignAnswer): string {
  const isText = contentType === undefined || /^text\//i.test(contentType.trim());
  return failureTold(text) ?? serverSaid(status, isText ? Buffer.from(text).subarray(0, TOLD_BYTES_MAX).toString() : "unknown");
}

/** Of a Status: it says more than its code. */
function failureTold(text: string): string | undefined {
  try {
    const { kind = "Status", status, message } = parseJson(text).value as Partial<Record<string, unknown>>;
    return kind === "Status" && status === "Failure" && typeof message === "string" ? message : undefined;
  } catch {
    return undefined; // it is something else
  }
}
