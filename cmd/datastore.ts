/** Where the cluster's objects are kept: LevelDB in the data directory, or with --datastore-endpoint an etcd cluster that several servers share. */
import { totalmem } from "node:os";
import { aborted } from "../core/lifecycle/aborted.ts";
import type { Clock } from "../core/lifecycle/clock.ts";
import type { Log } from "../core/observe/log.ts";
import "../core/net/spent-connections.ts";
import { refuseLargeObject } from "../core/registry/generic/request-size.ts";
import { SharedParts } from "../core/registry/generic/shared-parts.ts";
import { memoryLimit } from "../node/os/memory-limit.ts";
import { plaintextOf } from "../storage/encryption/encryption.ts";
import { openEtcd } from "../storage/etcd/etcd.ts";
import type { EtcdTls } from "../storage/etcd/members.ts";
import { openStore } from "../storage/open.ts";
import { type Revision, type Store, StoreError, type Value } from "../storage/store.ts";
import { ConfigError, fromFile } from "./config/config.ts";
import type { Settings } from "./config/flags.ts";
import { diskWatch } from "./disk-watch.ts";
import { openMended } from "./mend-datastore.ts";
import { withoutLinks } from "./paths.ts";
import { keepReserve, openWithReserve } from "./reserve.ts";

export interface Datastore {
  readonly store: Store;
  /** Other servers may use it, too: what may run only once must be agreed upon. */
  readonly isShared: boolean;
  /** Why it cannot be used now; undefined: it can. */
  trouble(): Promise<string | undefined>;
  /** What was wrong with it when it was opened, and is no more. */
  readonly mended: string | undefined;
  /** What is missing from it, and what to do about it. */
  readonly behind: string | undefined;
  /** Who is to be told when nothing new can be written, for what reason, and what to do about it. */
  onUnwritable(tell: (reason: "DatastoreFull" | "DatastoreUnwritable", message: string) => void): void;
}

interface Options {
  readonly settings: Pick<Settings, "mendStore" | "datastoreEndpoint" | "datastoreCafile" | "datastoreCertfile" | "datastoreKeyfile">;
  /** Of the built-in store. */
  readonly path: string;
  /** Where snapshots of it are kept. */
  readonly snapshots: string;
  /** Whether this server has worked with it before. */
  readonly wasUsed: boolean;
  readonly clock: Clock;
  readonly log: Log;
  /** Ends waiting for etcd. */
  readonly signal: AbortSignal;
}

const TLS_FLAGS = ["datastoreCafile", "datastoreCertfile", "datastoreKeyfile"] as const;
/** As long as upstream's health check waits. */
const HEALTH_MS = 2_000;

/** All objects are in memory, where they take up to three times the bytes that they have as JSON; those that take more count for more. */
const MEMORY_SHARE = 1 / 4;
/** Beyond that etcd warns of its quota, too. Source: etcd v3.6 server/storage/quota.go maxQuotaSize */
const OBJECT_BYTES_MAX = 8 * 1024 ** 3;

/** What the server takes without any, and with what has just been: on a small machine that is not little. */
const SERVER_BYTES = 192 * 1024 ** 2;
/** Enough for what each cluster has. */
const OBJECT_BYTES_MIN = 16 * 1024 ** 2;

/** How many bytes all objects of the built-in store may have, where it may take so much memory. */
export function objectBytesMax(memoryBytes: number): number {
  return Math.max(OBJECT_BYTES_MIN, Math.min(OBJECT_BYTES_MAX, (memoryBytes - SERVER_BYTES) * MEMORY_SHARE));
}

export async function openDatastore({ settings, path: given, snapshots, wasUsed, clock, log: parentLog, signal }: Options): Promise<Datastore> {
  const log = parentLog.with({ part: "store" });
  const { datastoreEndpoint } = settings;
  const tls = checkedTls(settings);
  if (datastoreEndpoint === undefined) {
    const path = withoutLinks(given); // another one that takes its place is on its disk
    const tells: Parameters<Datastore["onUnwritable"]>[0][] = [];
    const reserve = (): void => void keepReserve(given).catch((error: unknown) => log.warn("no room could be kept back for a start on a full disk", { path, error }));
    const onRoom = (full: StoreError | undefined): void => {
      if (!full) {
        reserve();
        return log.info("the store has room again", { path });
      }
      if (full.fields["bytesMax"] !== undefined) {
        log.error("the cluster's objects take all the room there is for them: nothing new is stored, what is there can be read, changed and deleted", { path, ...full.fields });
        for (const tell of tells) tell("DatastoreFull", `The cluster's objects take ${String(full.fields["bytes"])} bytes, all that this machine's memory leaves for them: nothing new can be stored until some are deleted`);
        return;
      }
      log.error("the store's disk is full: nothing new is stored, what is there can be read and deleted", { path, ...full.fields });
      for (const tell of tells) tell("DatastoreFull", `The disk of the cluster's store (${path}) is full: objects can be read and deleted, but not written until there is space again`);
    };
    const onTrouble = (error: StoreError): void => void (error.code === "full" || log.error("the store could not write behind", { error }));
    const parts = new SharedParts();
    const onRefused = (reason: string): void => {
      for (const tell of tells) tell("DatastoreUnwritable", `The disk of the cluster's store (${path}) refuses what is written (${reason}): objects can be read, but not written or deleted until it takes it again`);
    };
    const disk = diskWatch({ path, clock, log, onRefused });
    const { store, mended, behind } = await openWithReserve({ path: given, log, open: () => openMended({
      path, snapshots, mends: settings.mendStore, clock, log, isVolatile,
      open: () => openStore({ path, wasUsed, clock, bytesMax: objectBytesMax(Math.min(totalmem(), memoryLimit())), share: (value) => parts.shareStored(value), volatile: isVolatile, urgent: isUrgent, refuseLarge, onRoom, onTrouble, onDisk: disk.onDisk }),
    }) });
    reserve();
    return { store, mended, behind, isShared: false, trouble: async () => disk.trouble(), onUnwritable: (tell) => void tells.push(tell) };
  }
  const endpoints = datastoreEndpoint.split(",").map((text) => text.trim()).filter((text) => text !== "");
  try {
    const store = await openEtcd({
      endpoints, tls, clock,
      onOpen: (facts) => log.info("etcd is reached", facts),
      onFailover: (facts) => log.warn("an etcd member does not answer, the next is asked", facts),
      onTrouble: (error) => log.warn("etcd does not do what it should", { error }),
    }, signal);
    return { store, mended: undefined, behind: undefined, isShared: true, trouble: () => troubleOf(store, clock), onUnwritable: () => undefined };
  } catch (error) {
    if (error instanceof TypeError) throw new ConfigError(`--datastore-endpoint: ${error.message}`, { cause: error });
    if (error instanceof StoreError && error.fields["final"]) throw new ConfigError(`--datastore-endpoint ${datastoreEndpoint}: ${String(error.fields["reason"])}`, { cause: error });
    throw error;
  }
}

/** What is shown to etcd, and whom it is believed to be signed by, as the files say when that is asked. Throws ConfigError where they cannot be used, now or then. */
export function checkedTls(settings: Options["settings"]): () => EtcdTls {
  if (settings.datastoreEndpoint === undefined)
    for (const flag of TLS_FLAGS)
      if (settings[flag] !== undefined) throw new ConfigError(`--${flag.replace(/[A-Z]/, (letter) => `-${letter.toLowerCase()}`)} is of no use without --datastore-endpoint`);
  if ((settings.datastoreCertfile === undefined) !== (settings.datastoreKeyfile === undefined)) throw new ConfigError("--datastore-certfile and --datastore-keyfile must be given together");
  const read = (): EtcdTls => ({ ca: pem("datastore-cafile", settings.datastoreCafile), cert: pem("datastore-certfile", settings.datastoreCertfile), key: pem("datastore-keyfile", settings.datastoreKeyfile) });
  read();
  return read;
}

async function troubleOf(store: Store, clock: Clock): Promise<string | undefined> {
  const late = new AbortController();
  const alarm = clock.after(HEALTH_MS, () => late.abort());
  try {
    return await Promise.race([store.newestRevision().then(() => undefined), aborted(late.signal).then(() => "no answer in time")]);
  } catch (error) {
    return (error as Error).message;
  } finally {
    alarm.cancel();
  }
}

function pem(flag: string, path: string | undefined): string | undefined {
  return path === undefined ? undefined : fromFile(flag, path, (text) => text);
}

/**
 * What must get through when the store's disk is nearly full: what a node says of it (DiskPressure, and the taint that follows), and what is on its way out, as whoever
 * wants room deletes first: the mark that an object is to go, a pod's last words, finalizers that are done.
 */
export function isUrgent(key: string, value: Value): boolean {
  return key.startsWith(NODES) || (plaintextOf(value)?.["metadata"] as { deletionTimestamp?: unknown } | undefined)?.deletionTimestamp !== undefined;
}

const NODES = "/registry/core/nodes/";

/** What is sealed here is larger in etcd, but not by what seals it. */
function refuseLarge(key: string, value: Value, expected: Revision): void {
  const known = plaintextOf(value);
  if (known) refuseLargeObject(key, known, expected);
}

/** Heartbeats and events may be lost by a crash; a lease that changes hands may not. */
function isVolatile(key: string, value: Value | undefined, previous: Value | undefined): boolean {
  if (key.startsWith("/registry/core/events/")) return true;
  if (!key.startsWith("/registry/coordination.k8s.io/leases/")) return false;
  const known = (lease: Value | undefined): Value | undefined => lease && plaintextOf(lease);
  const holder = (lease: Value): unknown => (lease["spec"] as { holderIdentity?: unknown } | undefined)?.holderIdentity;
  const [next, before] = [known(value), known(previous)];
  return next !== undefined && before !== undefined && holder(next) === holder(before);
}
