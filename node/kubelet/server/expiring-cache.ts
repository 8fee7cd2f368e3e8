/** Answers that hold for a while. At its limit the oldest goes. */
import type { Clock } from "../../../core/lifecycle/clock.ts";

export interface ExpiringCache<V> {
  get(key: string): { readonly value: V } | undefined;
  set(key: string, value: V, ttlMs: number): void;
}

export function expiringCache<V>({ clock, entriesMax }: { readonly clock: Clock; readonly entriesMax: number }): ExpiringCache<V> {
  const entries = new Map<string, { readonly value: V; readonly untilMs: number }>();
  return {
    get(key) {
      const found = entries.get(key);
      if (found && clock.uptimeMs() < found.untilMs) return found;
      entries.delete(key);
      return undefined;
    },
    set(key, value, ttlMs) {
      entries.delete(key);
      if (entries.size >= entriesMax) entries.delete(entries.keys().next().value!);
      entries.set(key, { value, untilMs: clock.uptimeMs() + ttlMs });
    },
  };
}
