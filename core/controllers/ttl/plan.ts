/**
 * For how many seconds a node may go on with the copies of Secrets and ConfigMaps it has: the more nodes there are, the longer, or they would ask all the time.
 * Sizes overlap, so that a cluster at an edge does not go to and fro.
 *
 * Source: kubernetes v1.36 pkg/controller/ttl/ttl_controller.go
 */
const STEPS = [
  { nodesMin: 0, nodesMax: 100, ttlSeconds: 0 },
  { nodesMin: 90, nodesMax: 500, ttlSeconds: 15 },
  { nodesMin: 450, nodesMax: 1000, ttlSeconds: 30 },
  { nodesMin: 900, nodesMax: 2000, ttlSeconds: 60 },
  { nodesMin: 1800, nodesMax: Number.POSITIVE_INFINITY, ttlSeconds: 300 },
] as const;

/** The step that is in force after `step`, with so many nodes. */
export function stepFor(step: number, nodes: number): number {
  let next = step;
  while (nodes > STEPS[next]!.nodesMax) next++;
  while (nodes < STEPS[next]!.nodesMin) next--;
  return next;
}

export function ttlSecondsOf(step: number): number { return STEPS[step]!.ttlSeconds; }
