/**
 * A flow's hand of queues: of `deckSize` cards `handSize` different ones, which one the flow's hash decides.
 *
 * Source: kubernetes v1.36 apiserver/pkg/util/shufflesharding/dealer.go
 */
export function dealHand(hash: bigint, deckSize: number, handSize: number): number[] {
  const hand: number[] = [];
  const dealt: number[] = []; // ascending
  let rest = hash;
  for (let left = deckSize; left > deckSize - handSize; left--) {
    let card = Number(rest % BigInt(left));
    rest /= BigInt(left);
    let at = 0;
    for (; at < dealt.length && card >= dealt[at]!; at++) card++; // counted among those that are still in the deck
    dealt.splice(at, 0, card);
    hand.push(card);
  }
  return hand;
}

/** 64 bits of a flow's name. */
export function flowHash(schema: string, distinguisher: string): bigint {
  return Bun.hash.wyhash(`${schema}\n${distinguisher}`);
}
