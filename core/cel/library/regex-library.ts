/** text.find(pattern) and text.findAll(pattern, limit). Source: kubernetes v1.36 apiserver/pkg/cel/library/regex.go */
import { definePattern, method, type Implementation, type Library } from "../check/declarations.ts";
import { INT, STRING, listOf } from "../check/type.ts";
import { compileRegex, type RegexError } from "../regex.ts";
import { listFrom } from "../value/value.ts";

const STRINGS = listOf(STRING);

export const regexLibrary: Library = {
  functions: [
    definePattern("find", finding, illegal, method("string_find_string", [STRING, STRING], STRING)),
    definePattern("findAll", findingAll, illegal, method("string_find_all_string", [STRING, STRING], STRINGS), method("string_find_all_string_int", [STRING, STRING, INT], STRINGS)),
  ],
};

function illegal({ message }: RegexError): string { return `Illegal regex: ${message}`; }

function finding(pattern: string): Implementation {
  const regex = compileRegex(pattern);
  return ([text]) => regex.exec(text as string)?.groups[0] ?? "";
}

function findingAll(pattern: string): Implementation {
  const regex = compileRegex(pattern);
  return ([text, , limit]) => listFrom(regex.all(text as string, limit === undefined ? -1 : Number(limit as bigint)).map(({ groups }) => groups[0] ?? ""));
}
