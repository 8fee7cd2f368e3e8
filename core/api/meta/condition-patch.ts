/**
 * A condition as part of a strategic merge patch of a status: in the place of the one of its type, and if there is none, the last.
 * Without the order a new one would become the first.
 *
 * Source: kubernetes v1.36 pkg/api/v1/pod UpdatePodCondition, strategicpatch $setElementOrder
 */
interface Typed { readonly type: string }

export function conditionPatch<C extends Typed>(known: readonly Typed[] | undefined, condition: C): { readonly conditions: readonly C[]; readonly "$setElementOrder/conditions": readonly Typed[] } {
  const types = new Set([...(known ?? []).map(({ type }) => type), condition.type]);
  return { conditions: [condition], "$setElementOrder/conditions": [...types].map((type) => ({ type })) };
}
