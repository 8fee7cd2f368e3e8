/** Which images to remove. No I/O and no clock: everything it knows is in its arguments. */
export interface KnownImage { readonly id: string; readonly sizeBytes: number; readonly pinned: boolean }

export type Seen = ReadonlyMap<string, { readonly firstMs: number; readonly usedMs: number }>; // by image id

/** Remembers when each image was first seen and last used; forgets images that are gone. */
export function observe(before: Seen, images: readonly KnownImage[], inUse: ReadonlySet<string>, nowMs: number): Seen {
  return new Map(images.map(({ id }) => {
    const old = before.get(id) ?? { firstMs: nowMs, usedMs: 0 };
    return [id, inUse.has(id) ? { ...old, usedMs: nowMs } : old];
  }));
}

/** Which of the idle images to remove until `excessBytes` are free, longest unused first. What came after `cutoffMs` may be somebody's who has not begun yet. */
export function victims(images: readonly KnownImage[], seen: Seen, excessBytes: number, cutoffMs: number): KnownImage[] {
  const idle = images
    .map((image) => ({ image, ...(seen.get(image.id) ?? { firstMs: Number.POSITIVE_INFINITY, usedMs: Number.POSITIVE_INFINITY }) }))
    .filter(({ image, firstMs }) => !image.pinned && firstMs <= cutoffMs)
    .toSorted((a, b) => a.usedMs - b.usedMs || a.firstMs - b.firstMs);
  const chosen: KnownImage[] = [];
  let freedBytes = 0;
  for (const { image } of idle) {
    if (freedBytes >= excessBytes) break;
    chosen.push(image);
    freedBytes += image.sizeBytes;
  }
  return chosen;
}

/** The idle images nobody has used for so long. */
export function aged(images: readonly KnownImage[], seen: Seen, sinceMs: number): KnownImage[] {
  return images.filter((image) => {
    const { firstMs, usedMs } = seen.get(image.id) ?? { firstMs: Number.POSITIVE_INFINITY, usedMs: 0 };
    return !image.pinned && Math.max(firstMs, usedMs) < sinceMs;
  });
}
