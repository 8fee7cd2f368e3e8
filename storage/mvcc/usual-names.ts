/**
 * Names of members that were met lately, as all those of the API's own kinds are: their texts, and the tables of those who have them, are in memory once for all.
 *
 * Only so many can be known. Whatever is read first, as definitions with thousands of fields are when a store opens, or somebody's keys: names that are still met stay known, others are forgotten.
 */
const NAMES_MAX = 4096;
const LENGTH_MAX = 64;

export class UsualNames {
  #met = new Set<string>();
  #before = new Set<string>(); // met before those

  has(name: string): boolean {
    if (this.#met.has(name)) return true;
    if (!this.#before.has(name)) return false;
    this.add(name);
    return true;
  }

  add(name: string): void {
    if (name.length > LENGTH_MAX) return;
    if (this.#met.size >= NAMES_MAX) [this.#before, this.#met] = [this.#met, new Set()];
    this.#met.add(name);
  }
}
