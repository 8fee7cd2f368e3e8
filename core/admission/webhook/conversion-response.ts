/**
 * What a conversion webhook answers, read as Go's decoder does: null is nothing, and what is of another type is refused in its words.
 *
 *   const { response } = decodeReview(answer, "v1");
 *
 * Source: kubernetes v1.36 apiextensions-apiserver/pkg/apis/apiextensions/v1/types.go; Go encoding/json
 */
import { jsonText } from "../../api/codec/json.ts";
import { isMap, jsonKindOf, textOf } from "../../api/patch/json-value.ts";
import { isText, member } from "../typed-member.ts";

export interface ConversionReview { readonly apiVersion: string; readonly kind: string; readonly response: ConversionResponse | undefined }
export interface ConversionResponse { readonly uid: string; readonly status: string; readonly message: string; readonly convertedObjects: readonly unknown[] }

/** Throws an Error. */
export function decodeReview(answer: unknown, version: string): ConversionReview {
  if (answer === null) return { apiVersion: "", kind: "", response: undefined };
  const { apiVersion, kind, response } = answer as Readonly<Record<string, unknown>>;
  return { apiVersion: textOf(apiVersion), kind: textOf(kind), response: decodeResponse(member(response, isMap, "ConversionReview.response", `${version}.ConversionResponse`)) };
}

function decodeResponse(response: Readonly<Record<string, unknown>> | undefined): ConversionResponse | undefined {
  if (!response) return undefined;
  const uid = member(response["uid"], isText, "ConversionResponse.response.uid", "types.UID") ?? "";
  const convertedObjects = member(response["convertedObjects"], isList, "ConversionResponse.response.convertedObjects", "[]runtime.RawExtension") ?? [];
  const result = member(response["result"], isMap, "ConversionResponse.response.result", "v1.Status") ?? {};
  const status = member(result["status"], isText, "Status.response.result.status", "string") ?? "";
  const message = member(result["message"], isText, "Status.response.result.message", "string") ?? "";
  return { uid, status, message, convertedObjects };
}

/** One of those that were converted. Throws an Error. */
export function decodeObject(value: unknown): Readonly<Record<string, unknown>> {
  if (value === undefined || value === null) throw new Error("unexpected end of JSON input");
  if (!isMap(value)) throw new Error(`json: cannot unmarshal ${jsonKindOf(value)} into Go value of type map[string]interface {}`);
  const { kind, apiVersion } = value;
  if (textOf(kind) === "" || textOf(apiVersion).split("/").length > 2) throw new Error(`Object 'Kind' is missing in '${jsonText(value)}'`);
  return value;
}

function isList(value: unknown): value is readonly unknown[] { return Array.isArray(value); }
