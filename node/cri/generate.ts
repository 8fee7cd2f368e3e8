/** Writes node/cri/gen/runtime.v1.ts from cri-facts.txt: the messages of CRI v1 as TypeScript types. Run with `npm run gen`. */
import { readFileSync, writeFileSync } from "node:fs";

const SCALARS: Record<string, string> = {
  string: "string", bool: "boolean", int32: "number", int64: "number", uint32: "number", uint64: "number", double: "number", float: "number", bytes: "Uint8Array",
};

const out = ["// Written by node/cri/generate.ts from cri-facts.txt.", "// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53."];
const methods: string[] = [];
let open = false;
for (const line of readFileSync("node/cri/cri-facts.txt", "utf8").split("\n")) {
  const words = line.trim().split(" ");
  if (open && !line.startsWith(" ")) {
    out.push("}");
    open = false;
  }
  if (line.startsWith("S ")) methods.push(`  "${words[1]!.replace(".", "/")}": { request: ${words[2]}; response: ${words.at(-1)}; stream: ${words.includes("stream")} };`);
  else if (line.startsWith("E ")) out.push(`export type ${typeName(words[1]!)} = ${words.slice(2).map((pair) => `"${pair.split("=")[0]}"`).join(" | ")};`);
  else if (line.startsWith("M ")) {
    out.push(`export interface ${typeName(words[1]!)} {`);
    open = true;
  } else if (line.startsWith(" ")) out.push(`  ${words[0]}?: ${fieldType(words[2]!)} | undefined;`);
}
if (open) out.push("}");
out.push("export interface Methods {", ...methods, "}");
writeFileSync("node/cri/gen/runtime.v1.ts", `${out.join("\n")}\n`);

function typeName(name: string): string {
  return name.replaceAll(".", "");
}

function fieldType(type: string): string {
  if (type.startsWith("[]")) return `${fieldType(type.slice(2))}[]`;
  const map = /^\{(\w+)\}(.+)$/.exec(type);
  if (map) return `Record<string, ${fieldType(map[2]!)}>`;
  return SCALARS[type] ?? (type === "ProfileType" ? "SecurityProfileProfileType" : typeName(type));
}
