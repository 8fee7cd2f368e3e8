/** The file of --token-auth-file: `token,user name,user uid,"group1,group2"`, a line each. Source: kubernetes v1.36 apiserver/pkg/authentication/token/tokenfile */
import type { StaticToken } from "./static-token.ts";

/** Throws for a line with too few columns. The last of several with one token counts. */
export function readTokenFile(text: string): readonly StaticToken[] {
  const tokens = new Map<string, StaticToken>();
  for (const line of text.split(/\r?\n/)) {
    if (line.trim() === "") continue;
    const columns = columnsOf(line);
    const [token = "", name = "", uid = "", groups] = columns;
    if (columns.length < 3) throw new Error(`a token file must have at least 3 columns (token, user name, user uid), found ${columns.length}`);
    if (token !== "") tokens.set(token, { token, user: { name, groups: groups ? groups.split(",") : [], ...(uid === "" ? {} : { uid }) } });
  }
  return [...tokens.values()];
}

/** CSV: a quoted column may hold commas, and "" for a quote. */
function columnsOf(line: string): string[] {
  return [...line.matchAll(/(?:^|,)(?:"((?:[^"]|"")*)"|([^,"]*))/g)].map(([, quoted, plain]) => (quoted === undefined ? plain ?? "" : quoted.replaceAll('""', '"')));
}
