/** Whether an answer will be in an encoding the client reads: found out before anything is done, because afterwards it is too late to refuse. */
import { convertibleToMeta, ENCODINGS, ENCODINGS_CUSTOM, negotiateOutput, negotiateStream } from "../api/codec/negotiate.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import type { Scope } from "./handler.ts";

/** Throws 406. `printable`: the answer can be a Table. */
export function checkAcceptable({ request, info, served }: Scope, printable: boolean): void {
  const wanted = {
    accept: request.header("accept"),
    encodings: builtInFacts.typeOf(served.row) ? ENCODINGS : ENCODINGS_CUSTOM,
    convertible: printable ? convertibleToMeta : (target: Parameters<typeof convertibleToMeta>[0], encoding: Parameters<typeof convertibleToMeta>[1]) => target.kind !== "Table" && convertibleToMeta(target, encoding),
  };
  if (info.verb === "watch") negotiateStream(wanted);
  else negotiateOutput(wanted);
}
