/** Which images to remove. No I/O and no clock: everything it knows is in its arguments. */
export interface KnownImage { readonly id: string; readonly sizeBytes: number; readonly pinned: boolean }

const SIZE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

export type Seen = ReadonlyMap<string, { readonly firstMs: number; readonly usedMs: number }>; // by image id

/** Remembers when each image was first seen and last used; forgets images that are gone. */
export function observe(before: Seen, images: readonly KnownImage[], inUse: ReadonlySet<string>, nowMs: number): Seen {
  return new Map(images.map(({ id }) => {
    const old = before.get(id) ?? { firstMs: nowMs, usedMs: 0 };
    return [id, inUse.has(id) ? { ...old, usedMs: nowMs } : old];
  }));
}

/** The idle images that may go for want of space, longest unused first. Seen for the first time after `cutoffMs`: spared, a container may be about to use it. */
export function victims(images: readonly KnownImage[], seen: Seen, cutoffMs: number): KnownImage[] {
  return images
    .map((image) => ({ image, ...(seen.get(image.id) ?? { firstMs: Number.POSITIVE_INFINITY, usedMs: Number.POSITIVE_INFINITY }) }))
    .filter(({ image, firstMs }) => !image.pinned && firstMs <= cutoffMs)
    .toSorted((a, b) => a.usedMs - b.usedMs || a.firstMs - b.firstMs)
    .map(({ image }) => image);
}

/** The idle images nobody has used for so long. */
export function aged(images: readonly KnownImage[], seen: Seen, sinceMs: number): KnownImage[] {
  return images.filter((image) => {
    const { firstMs, usedMs } = seen.get(image.id) ?? { firstMs: Number.POSITIVE_INFINITY, usedMs: 0 };
    return !image.pinned && Math.max(firstMs, usedMs) < sinceMs;
  });
}

/** What only root may still write counts as used. */
export function fullness({ capacityBytes, availableBytes }: { readonly capacityBytes: number; readonly availableBytes: number }, lowPercent: number): { readonly usedPercent: number; readonly excessBytes: number } {
  const available = Math.min(availableBytes, capacityBytes);
  return { usedPercent: 100 - Math.floor((available * 100) / capacityBytes), excessBytes: Math.floor((capacityBytes * (100 - lowPercent)) / 100) - available };
}

/** As people read it: 1.5 GiB. */
export function shownSize(bytes: number): string {
  const power = SIZE_UNITS.findLastIndex((_, i) => bytes >= 1024 ** i);
  return power <= 0 ? `${bytes} B` : `${(bytes / 1024 ** power).toFixed(1)} ${SIZE_UNITS[power]}`;
}
