/** Which pods use which volumes of CSI drivers, from before their first call to after their last, and which of these volumes are attached for that. */
import { volumeKey } from "./csi-volume.ts";

export class VolumeUsers {
  readonly #pods = new Map<string, Set<string>>(); // volume key → UIDs; none is empty
  readonly #attachable = new Set<string>(); // keys, until they are unstaged
  #told: ReadonlySet<string> = new Set(); // keys, as the cluster was told last of those in use
  readonly #onInUse: () => void;

  /** `onInUse`: another set of volumes is attached for somebody here. */
  constructor(onInUse: () => void) {
    this.#onInUse = onInUse;
  }

  claim(podUid: string, key: string, { attaches }: { readonly attaches: boolean }): void {
    this.#pods.set(key, (this.#pods.get(key) ?? new Set<string>()).add(podUid));
    if (this.#attachable.has(key) === attaches) return;
    if (attaches) this.#attachable.add(key);
    else this.#attachable.delete(key);
    this.#onInUse();
  }

  /** It is staged, for whoever it was: nobody detaches it until it is let go. */
  hold(key: string): void {
    if (this.#attachable.has(key)) return;
    this.#attachable.add(key);
    this.#onInUse();
  }

  /** The pod uses nothing any more but these. Returns what nobody uses since. */
  release(podUid: string, stuck: ReadonlySet<string> = new Set()): readonly string[] {
    const unused: string[] = [];
    for (const [key, pods] of this.#pods) if (!stuck.has(key) && pods.delete(podUid) && pods.size === 0) unused.push(key);
    for (const key of unused) this.#pods.delete(key);
    return unused;
  }

  isUsed(key: string): boolean { return this.#pods.has(key); }
  inUse(): readonly string[] { return [...this.#attachable].toSorted(); }

  /** The cluster knows that these are in use: nobody detaches them. */
  told(keys: readonly string[]): void { this.#told = new Set(keys); }

  /** Also since it is in use again. */
  isTold(key: string): boolean { return this.#told.has(key); }

  /** It may be detached. */
  letGo(key: string): void {
    this.#told = this.#told.difference(new Set([key]));
    if (this.#attachable.delete(key)) this.#onInUse();
  }

  /** Volumes of this driver need not be attached: nobody holds them. */
  letGoAllOf(driver: string): void {
    const held = [...this.#attachable].filter((key) => key.startsWith(volumeKey({ driver, handle: "" })));
    for (const key of held) this.#attachable.delete(key);
    if (held.length > 0) this.#onInUse();
  }
}
