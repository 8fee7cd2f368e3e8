/**
 * Allocation where several servers give out addresses and ports of the same ranges.
 *
 *   allocate ─▶ claim what was taken ─▶ look again ─▶ the service is written ─▶ give the claims back
 *
 * Who has a claim and, after that, finds no service with the value, may write it: whoever had the claim before has given it back after writing, and
 * whoever comes later will see what was written.
 */
import type { Service } from "../../../../api/gen/core.v1.ts";
import { internalError } from "../../../../api/meta/status-error.ts";
import type { Allocation } from "../../../generic/resource.ts";
import type { ServiceAllocation, ServiceAllocator } from "./allocator.ts";

export interface Claims {
  /** Takes a name among all servers; undefined: another has it. Given back by calling what it returns, which never fails, or by itself when this process is gone. */
  claim(name: string): Promise<(() => Promise<void>) | undefined>;
  /** Resolves once what other servers have written is seen here. */
  fresh(): Promise<void>;
}

/** Two servers want the same value at once rarely, and then one of them finds another at its next try. Who names a value waits until it is decided. */
const TRIES_MAX = 50;

/** Mutates `next`. */
export async function allocateWithClaims(allocator: ServiceAllocator, next: Service, old: Readonly<Service> | undefined, { claim, fresh }: Claims): Promise<Allocation & Pick<ServiceAllocation, "addresses">> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const draft = structuredClone(next);
    const allocation = allocator.allocate(draft, old);
    const answers = await Promise.allSettled(allocation.names.map(claim));
    const releases = answers.flatMap((answer) => (answer.status === "fulfilled" && answer.value ? [answer.value] : []));
    const giveBack = (): void => {
      for (const release of releases) void release();
    };
    try {
      for (const answer of answers) if (answer.status === "rejected") throw answer.reason;
      if (answers.length > 0) await fresh();
    } catch (error) {
      allocation.rollback();
      giveBack();
      throw error;
    }
    if (releases.length === answers.length && allocation.isFree()) {
      next.spec = draft.spec;
      return {
        addresses: allocation.addresses,
        async commit() { await allocation.commit(); giveBack(); },
        async rollback() { await allocation.rollback(); giveBack(); },
      };
    }
    allocation.rollback();
    giveBack();
  }
  throw internalError(new Error("other servers are allocating the same addresses or ports: try again"));
}
