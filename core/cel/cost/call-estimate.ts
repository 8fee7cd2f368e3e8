/** What is asked of those who estimate the cost of a call before it is made. */
import type { Type } from "../check/type.ts";
import type { Expr } from "../syntax/expr.ts";
import type { Estimate } from "./size-estimate.ts";

/** An expression as its cost is estimated. */
export interface CostNode {
  /** Where what it is comes from: ["self", "items", "@items", "name"]; undefined if it was computed. */
  readonly path: readonly string[] | undefined;
  readonly type: Type;
  /** Undefined for the elements of a list. */
  readonly expr: Expr | undefined;
  /** Undefined: not known. */
  readonly size: Estimate | undefined;
}

export interface CallEstimate {
  readonly cost: Estimate;
  /** Of what it returns. */
  readonly size?: Estimate;
}

/** How large what comes from somewhere can be; undefined if nothing is known. */
export type SizeOf = (node: Omit<CostNode, "size">) => Estimate | undefined;

/** Undefined: a call like any other. `sizeOf`: a size, however unknown. */
export type CallEstimator = (call: { readonly target: CostNode | undefined; readonly args: readonly CostNode[]; readonly sizeOf: (node: CostNode) => Estimate; readonly overload: string }) => CallEstimate | undefined;
