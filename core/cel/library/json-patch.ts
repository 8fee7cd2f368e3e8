/** jsonpatch.escapeKey(text): a key as a part of a JSON pointer. Source: kubernetes v1.36 apiserver/pkg/cel/library/jsonpatch.go */
import { defineFunction, overload, type Library } from "../check/declarations.ts";
import { STRING } from "../check/type.ts";

export const jsonPatchLibrary: Library = {
  functions: [defineFunction("jsonpatch.escapeKey", overload("string_jsonpatch_escapeKey_string", [STRING], STRING, ([text]) => (text as string).replaceAll("~", "~0").replaceAll("/", "~1")))],
};
