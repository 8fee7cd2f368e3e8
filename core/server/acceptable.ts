/** Whether an answer will be in an encoding the client reads: found out before anything is done, because afterwards it is too late to refuse. */
import { checkRoute, convertibleToMeta, negotiateOutput, negotiateStream } from "../api/codec/negotiate.ts";
import { builtInFacts } from "../api/schema/facts.ts";
import { deprecation } from "./deprecation.ts";
import type { Scope } from "./scope.ts";

/** Subresources that upstream makes no Table of: who asks for one, as kubectl does, and for JSON besides, gets that. Source: the REST structs without ConvertToTable, pkg/registry/… */
const UNPRINTABLE: ReadonlySet<string> = new Set([
  "pods/ephemeralcontainers", "pods/resize", "namespaces/finalize", "certificatesigningrequests/approval", "customresourcedefinitions/status", "apiservices/status", "resourceclaims/status", "devicetaintrules/status",
  "resourcepoolstatusrequests/status",
]);

export function isPrintable({ info, served }: Scope): boolean { return served.custom !== undefined || !UNPRINTABLE.has(`${info.resource}/${info.subresource}`); }

/** Throws 406. `printable`: the answer can be a Table. Of what the router refuses nobody is told that it is deprecated, of what is refused after it they are. */
export function checkAcceptable(scope: Scope, printable: boolean): void {
  const { request, info, served, warnings } = scope;
  const accept = request.header("accept");
  const isBuiltIn = builtInFacts.typeOf(served.row) !== undefined;
  if (isBuiltIn) checkRoute(accept ?? "", { cbor: request.cbor, streams: info.verb === "list" || info.verb === "watch" });
  const deprecated = deprecation(served.row);
  if (deprecated !== undefined) warnings.push(deprecated);
  const wanted = {
    accept,
    cbor: request.cbor,
    custom: !isBuiltIn,
    convertible: printable ? convertibleToMeta : (target: Parameters<typeof convertibleToMeta>[0], encoding: Parameters<typeof convertibleToMeta>[1]) => target.kind !== "Table" && convertibleToMeta(target, encoding),
  };
  negotiateOutput(wanted);
  if (info.verb === "watch") negotiateStream(wanted);
}
