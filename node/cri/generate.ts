/** Writes the messages of CRI v1 and of the kubelet's plugins as TypeScript types, from their facts. Run with `npm run gen`. */
import { readFileSync, writeFileSync } from "node:fs";

const PLUGINS = "node/kubelet/plugins";
const TABLES: readonly (readonly [facts: string, types: string])[] = [
  ["node/cri/cri-facts.txt", "node/cri/gen/runtime.v1.ts"],
  ...([["csi", "csi.v1"], ["device-plugin", "device-plugin.v1beta1"], ["dra", "dra.v1"], ["dra-health", "dra-health.v1alpha1"], ["pod-resources", "pod-resources.v1"], ["registration", "registration.v1"]] as const)
    .map(([facts, types]) => [`${PLUGINS}/${facts}-facts.txt`, `${PLUGINS}/gen/${types}.ts`] as const),
];

const SCALARS: Record<string, string> = {
  string: "string", bool: "boolean", int32: "number", int64: "number", uint32: "number", uint64: "number", double: "number", float: "number", bytes: "Uint8Array",
};

for (const [facts, types] of TABLES) generate(facts, types);

function generate(facts: string, types: string): void {
  const out = [`// Written by node/cri/generate.ts from ${facts.slice(facts.lastIndexOf("/") + 1)}.`, "// Field names are the proto's. Absent: the proto's default. 64-bit integers are numbers: none here exceeds 2^53."];
  const methods: string[] = [];
  let open = false;
  for (const line of readFileSync(facts, "utf8").split("\n")) {
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
  writeFileSync(types, `${out.join("\n")}\n`);
}

function typeName(name: string): string {
  return name.replaceAll(".", "");
}

function fieldType(type: string): string {
  if (type.startsWith("[]")) return `${fieldType(type.slice(2))}[]`;
  const map = /^\{(\w+)\}(.+)$/.exec(type);
  if (map) return `Record<string, ${fieldType(map[2]!)}>`;
  return SCALARS[type] ?? (type === "ProfileType" ? "SecurityProfileProfileType" : typeName(type));
}
