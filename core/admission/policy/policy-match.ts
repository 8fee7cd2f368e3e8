/** Whether a policy concerns a request, before its bindings are asked. */
import type { AdmissionRequest } from "../plugin.ts";
import { type Matched, type MatchDeps, matchOf } from "./match.ts";
import { checkParamKind, type ParamDeps } from "./params.ts";

type Constraints = Parameters<typeof matchOf>[0];
interface PolicySpec { readonly matchConstraints?: Constraints | undefined; readonly paramKind?: Parameters<typeof checkParamKind>[0] | undefined }

/** Throws an Error for a policy that cannot be applied. */
export async function matchPolicy({ matchConstraints, paramKind }: PolicySpec, request: AdmissionRequest, deps: MatchDeps & ParamDeps): Promise<Matched | undefined> {
  if (!matchConstraints) throw new Error("policy contained no match constraints, a required field");
  const found = await matchOf(matchConstraints, request, deps);
  if (found) checkParamKind(paramKind, deps);
  return found;
}
