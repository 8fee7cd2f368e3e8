/** Randomness as a value that is passed in, so a failing seed replays. */
export interface Random {
  /** Uniform in [0, 1). */
  next(): number;
  uuid(): string;
  bytes(length: number): Uint8Array;
}

export const systemRandom: Random = {
  next: () => Math.random(),
  uuid: () => crypto.randomUUID(),
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
};

/** Letters and digits without vowels and look-alikes, so that a suffix never spells a word. Source: apimachinery util/rand. */
const SAFE_ALPHABET = "bcdfghjklmnpqrstvwxz2456789";

export function safeSuffix(random: Random, length: number): string {
  return Array.from({ length }, () => SAFE_ALPHABET[Math.floor(random.next() * SAFE_ALPHABET.length)]).join("");
}

/** The same for the same text. */
export function safeSuffixOf(text: string, length: number): string {
  const hash = Bun.hash.wyhash(text), letters = BigInt(SAFE_ALPHABET.length);
  return Array.from({ length }, (_, i) => SAFE_ALPHABET[Number((hash / letters ** BigInt(i)) % letters)]).join("");
}
