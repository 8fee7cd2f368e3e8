/** Whether an answer will be in an encoding the client reads: found out before anything is done, because afterwards it is too late to refuse. */
import { checkRoute, convertibleToMeta, ENCODINGS, ENCODINGS_CUSTOM, negotiateOutput, negotiateStream } from "../api/codec/negotiate.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import type { Scope } from "./scope.ts";

/** Throws 406. `printable`: the answer can be a Table. */
export function checkAcceptable({ request, info, served }: Scope, printable: boolean): void {
  const accept = request.header("accept");
  const isBuiltIn = builtInFacts.typeOf(served.row) !== undefined;
  if (isBuiltIn) checkRoute(accept ?? "", { streams: info.verb === "list" || info.verb === "watch" });
  const wanted = {
    accept,
    encodings: isBuiltIn ? ENCODINGS : ENCODINGS_CUSTOM,
    convertible: printable ? convertibleToMeta : (target: Parameters<typeof convertibleToMeta>[0], encoding: Parameters<typeof convertibleToMeta>[1]) => target.kind !== "Table" && convertibleToMeta(target, encoding),
  };
  negotiateOutput(wanted);
  if (info.verb === "watch") negotiateStream(wanted);
}
