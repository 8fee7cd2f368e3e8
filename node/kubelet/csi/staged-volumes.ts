/**
 * CSI volumes that are staged on this node: once for all pods that use them, until the last of these is gone.
 *
 *   use ─▶ stage (NodeStageVolume) ─▶ … ─▶ release ─▶ unstage (NodeUnstageVolume), again and again until the driver has done it or a pod wants the volume
 *
 * Who used what before this process is read from the disk, before anything else.
 */
import type { CSIDriver } from "../../../core/api/gen/storage.v1.ts";
import { backoffMs } from "../../../core/lifecycle/backoff.ts";
import { stagingDirectory, volumeKey } from "./csi-volume.ts";
import type { CsiVolumesDeps } from "./csi-volumes-deps.ts";
import type { InTurn } from "../../../core/lifecycle/keyed-turns.ts";
import type { NodeCalls, Staging } from "./node-calls.ts";
import { keyOfNote, podsOnDisk, publishedVolumes, stagedVolumes } from "./noted-volumes.ts";
import type { VolumeNote } from "./volume-note.ts";
import { VolumeUsers } from "./volume-users.ts";

interface Deps extends Pick<CsiVolumesDeps, "dataDir" | "clock" | "log" | "signal" | "onInUse"> {
  readonly calls: NodeCalls;
  /** Work on one volume, by its key. */
  readonly inTurn: InTurn;
}

const RETRY = { minMs: 500, maxMs: 122_000 };

export class StagedVolumes {
  readonly #deps: Deps;
  readonly #users: VolumeUsers;
  readonly #staged = new Set<string>(); // keys, in this process's life
  #adopted: Promise<void> | undefined;

  constructor(deps: Deps) {
    this.#deps = deps;
    this.#users = new VolumeUsers(deps.onInUse);
  }

  /** Resolves once it is known who used what before this process. To be waited for before anything else. */
  adopted(): Promise<void> {
    return (this.#adopted ??= this.#adopt().catch((error: unknown) => {
      this.#adopted = undefined; // too many open files, for one, is no reason to know nothing for good
      throw error;
    }));
  }

  /** A pod uses the volume from now on. */
  use(podUid: string, key: string, options: { readonly attaches: boolean }): void { this.#users.claim(podUid, key, options); }

  has(key: string): boolean { return this.#staged.has(key); }

  /** It was staged by a process before this one. */
  takeOver(key: string): void { this.#staged.add(key); }

  /** Returns the staging path. Undefined: this driver does not stage. */
  async stage(staging: Staging, signal: AbortSignal): Promise<string | undefined> {
    const key = volumeKey(staging.volume);
    if (!(await staging.driver.can("STAGE_UNSTAGE_VOLUME", signal))) return undefined;
    if (this.#staged.has(key)) return stagingDirectory(this.#deps.dataDir, staging.volume).target;
    const target = await this.#deps.calls.stage(staging, signal);
    this.#staged.add(key);
    return target;
  }

  /** The pod uses nothing any more but these. What nobody uses is unstaged in the background: pods that are gone do not wait for that. */
  release(podUid: string, stuck: ReadonlySet<string>): void {
    for (const key of this.#users.release(podUid, stuck)) void this.#unstageUntilDone(key);
  }

  /** Ends what a kubelet that was killed has left staged. */
  async sweep(signal: AbortSignal): Promise<void> {
    const { dataDir, inTurn, log } = this.#deps;
    await this.adopted();
    for (const { note } of await stagedVolumes(dataDir)) {
      const key = keyOfNote(note);
      if (this.#users.isUsed(key)) continue;
      await inTurn(key, async () => {
        if (this.#users.isUsed(key)) return;
        await this.#unstage(key, signal);
        this.#users.letGo(key);
      }).catch((error: unknown) => log.debug("volume not unstaged, next try at the next look", { driver: note.driverName, volume: note.volumeHandle, error }));
    }
  }

  async inUse(): Promise<readonly string[]> {
    await this.adopted();
    return this.#users.inUse();
  }

  /** The cluster knows that these are in use. */
  told(keys: readonly string[]): void { this.#users.told(keys); }

  isTold(key: string): boolean { return this.#users.isTold(key); }

  /** The driver may need no attaching any more: what is in use of it is then held by nobody. */
  reconsider({ metadata: { name }, spec: { attachRequired = true } }: Readonly<CSIDriver>): void {
    if (!attachRequired) this.#users.letGoAllOf(name);
  }

  async #adopt(): Promise<void> {
    const { dataDir } = this.#deps;
    const attaches = ({ attachmentID }: VolumeNote): boolean => attachmentID !== undefined && attachmentID !== "";
    for (const { note } of await stagedVolumes(dataDir)) if (attaches(note)) this.#users.hold(keyOfNote(note)); // whether or not a pod uses it
    for (const uid of await podsOnDisk(dataDir)) for (const { note } of await publishedVolumes(dataDir, uid)) this.#users.claim(uid, keyOfNote(note), { attaches: attaches(note) });
  }

  async #unstageUntilDone(key: string): Promise<void> {
    const { inTurn, clock, log, signal } = this.#deps;
    for (let failures = 0; !signal.aborted && !this.#users.isUsed(key); ) {
      try {
        await inTurn(key, async () => {
          if (this.#users.isUsed(key)) return;
          this.#staged.delete(key); // whatever comes of it: the next one to use it stages it
          await this.#unstage(key, signal);
          this.#users.letGo(key);
        });
        return;
      } catch (error) {
        log.warn("volume not unstaged, next try later", { volume: key, error });
        await clock.sleep(backoffMs(++failures, RETRY), signal);
      }
    }
  }

  /** All that is staged of it: nobody uses it any more. */
  async #unstage(key: string, signal: AbortSignal): Promise<void> {
    for (const noted of await stagedVolumes(this.#deps.dataDir)) if (keyOfNote(noted.note) === key) await this.#deps.calls.unstage(noted, signal);
  }
}
