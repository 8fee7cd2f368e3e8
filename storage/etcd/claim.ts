/**
 * Names that one process at a time may hold: rows under a lease of etcd, which go with whoever made them.
 */
import { randomInt } from "node:crypto";
import type { StoreError } from "../store.ts";
import type { Members } from "./members.ts";
import { EQUAL, LEASE_GRANT, LEASE_REVOKE, TARGET_VERSION, TXN } from "./messages.ts";

/** Leases are numbered by whoever makes them, or by etcd with numbers of 63 bits, which a JavaScript number cannot hold. */
const LEASE_ID_MAX = 2 ** 47;

/** Gives it back. Never fails: else it goes when its time is over. */
export type Release = () => Promise<void>;

export async function claimIn(members: Members, name: string, { ttlSeconds }: { readonly ttlSeconds: number }): Promise<Release | undefined> {
  const key = Buffer.from(name);
  const ID = randomInt(1, LEASE_ID_MAX);
  await members.call(LEASE_GRANT, { TTL: ttlSeconds, ID });
  const release = async (): Promise<void> => {
    await members.call(LEASE_REVOKE, { ID }).catch((_: StoreError) => undefined); // it ends by itself
  };
  const { succeeded } = await members.call(TXN, {
    compare: [{ result: EQUAL, target: TARGET_VERSION, key, version: 0 }],
    success: [{ request_put: { key, value: Buffer.from("{}"), lease: ID } }],
    failure: [],
  });
  if (succeeded) return release;
  await release();
  return undefined;
}
