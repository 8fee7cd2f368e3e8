/**
 * Logging in to iSCSI targets and out again, by the host's iscsiadm. Whether there is a session, and what came of it, the kernel tells: iscsi-sessions.ts.
 *
 * Source: kubernetes v1.36 pkg/volume/iscsi/iscsi_util.go
 */
import { type Exec, ExecError } from "../../../os/exec.ts";
import type { IscsiDisk, IscsiTarget } from "./iscsi-disk.ts";

export interface Iscsiadm {
  /** Makes the disk's own record of an interface, if it has an initiator's name of its own. Throws an Error for the user. */
  prepare(disk: IscsiDisk, signal: AbortSignal): Promise<void>;
  /** Finds the target at the portal, and logs in. Throws an Error for the user. */
  logIn(disk: IscsiDisk, portal: string, signal: AbortSignal): Promise<void>;
  /** At all portals; the records go too. A session that is not there is fine. */
  logOut(target: IscsiTarget, signal: AbortSignal): Promise<void>;
  /** Takes away what `prepare` made. */
  discard(target: IscsiTarget, signal: AbortSignal): Promise<void>;
}

/** https://github.com/open-iscsi/open-iscsi/blob/master/include/iscsi_err.h */
const SESSION_NOT_FOUND = 2;
const SESSION_EXISTS = 15;
const NO_OBJECTS_FOUND = 21;
const GONE: ReadonlySet<number> = new Set([0, SESSION_NOT_FOUND, NO_OBJECTS_FOUND]);
/** As long as iscsiadm itself tries to log in (8 times 15 s), and some. */
const TIMEOUT_MS = 180_000;

const CHAP_KEYS = ["username", "password", "username_in", "password_in"];

class NoIscsiadm extends Error {}

interface Answer { readonly exitCode: number; readonly output: string }

export function iscsiadm(exec: Exec): Iscsiadm {
  async function run(args: readonly string[], signal: AbortSignal): Promise<Answer> {
    try {
      const { exitCode, stdout, stderr } = await exec("iscsiadm", args, { timeoutMs: TIMEOUT_MS, signal });
      return { exitCode, output: `${stdout}${stderr}`.trim() };
    } catch (cause) {
      if (!(cause instanceof ExecError)) throw cause;
      if (cause.code === "not-found") throw new NoIscsiadm('exec: "iscsiadm": executable file not found in $PATH: volumes of iSCSI need open-iscsi on this node', { cause });
      throw new Error(`iscsiadm ${args.slice(0, 2).join(" ")}: ${cause.code}`, { cause: cause.cause }); // what it was told may be a password
    }
  }

  /** Throws what `problem` makes of another end than a good one. */
  async function must(args: readonly string[], signal: AbortSignal, problem: (answer: Answer) => string): Promise<Answer> {
    const answer = await run(args, signal);
    if (answer.exitCode !== 0) throw new Error(problem(answer));
    return answer;
  }

  async function chap(record: readonly string[], prefix: string, secret: IscsiDisk["chap"]["secret"], { what, key: keyName }: { readonly what: string; readonly key: string }, signal: AbortSignal): Promise<void> {
    await must([...record, "-o", "update", "-n", `${prefix}.authmethod`, "-v", "CHAP"], signal, ({ output }) => `iscsi: failed to update ${what} with CHAP, output: ${output}`);
    for (const name of CHAP_KEYS) {
      const key = `${prefix}.${name}`;
      if (secret[key]) await must([...record, "-o", "update", "-n", key, "-v", secret[key]], signal, ({ output }) => `iscsi: failed to update ${keyName} ${JSON.stringify(key)} error: ${output}`);
    }
  }

  async function discover({ iface, chap: { discovery, secret } }: IscsiDisk, portal: string, signal: AbortSignal): Promise<void> {
    const record = ["-m", "discoverydb", "-t", "sendtargets", "-p", portal, "-I", iface];
    await run([...record, "-o", "new"], signal); // there may be one
    if (discovery) {
      await chap(record, "discovery.sendtargets.auth", secret, { what: "discoverydb", key: "discoverydb key" }, signal).catch((cause: Error) => {
        throw new Error(`iscsi: failed to update discoverydb to portal ${portal} error: ${cause.message}`, { cause });
      });
    }
    const { exitCode, output } = await run([...record, "--discover"], signal);
    if (exitCode === 0) return;
    await run([...record, "-o", "delete"], signal);
    throw new Error(`iscsi: failed to sendtargets to portal ${portal} output: ${output}, err exit status ${exitCode}`);
  }

  const interfaceRecord = (name: string): string[] => ["-m", "iface", "-I", name];
  const discard = async (target: IscsiTarget, signal: AbortSignal): Promise<void> => {
    if (!target.hasOwnIface) return;
    const { exitCode, output } = await run([...interfaceRecord(target.iface), "-o", "delete"], signal);
    if (!GONE.has(exitCode)) throw new Error(`iscsi: failed to delete iface Error: ${output}`);
  };

  async function logOut(target: IscsiTarget, signal: AbortSignal): Promise<void> {
    for (const portal of target.portals) {
      const node = ["-m", "node", "-p", portal, "-T", target.iqn, "-I", target.iface];
      const out = await run([...node, "--logout"], signal);
      if (!GONE.has(out.exitCode)) throw new Error(`iscsi: failed to detach disk Error: ${out.output}`);
      const deleted = await run([...node, "-o", "delete"], signal);
      if (!GONE.has(deleted.exitCode)) throw new Error(`iscsi: failed to delete node record Error: ${deleted.output}`);
    }
    await discard(target, signal);
  }

  return {
    async prepare(disk, signal) {
      const { output: shown } = await must([...interfaceRecord(disk.hostIface), "-o", "show"], signal, ({ output }) => `iscsi: could not read iface ${disk.hostIface} error: ${output}`);
      if (!disk.hasOwnIface) return;
      const made = await run([...interfaceRecord(disk.iface), "-o", "new"], signal);
      if (made.exitCode === SESSION_EXISTS) return; // as we made it, and in use
      if (made.exitCode !== 0) throw new Error(`iscsi: failed to create new iface: ${made.output} (exit status ${made.exitCode})`);
      for (const [key, value] of [...interfaceSettings(shown).set("iface.initiatorname", disk.initiatorName)].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
        const { exitCode, output } = await run([...interfaceRecord(disk.iface), "-o", "update", "-n", key, "-v", value], signal);
        if (exitCode === 0) continue;
        await discard(disk, signal);
        throw new Error(`iscsi: failed to update iface records: ${output} (exit status ${exitCode}). iface(${disk.hostIface}) will be used`);
      }
    },

    async logIn(disk, portal, signal) {
      const { iqn, iface, chap: { session, secret } } = disk;
      await discover(disk, portal, signal);
      const node = ["-m", "node", "-p", portal, "-T", iqn, "-I", iface];
      await run([...node, "-o", "update", "-n", "node.session.scan", "-v", "manual"], signal); // an older iscsiadm does not know it
      if (session) {
        await chap(node, "node.session.auth", secret, { what: "node", key: "node session key" }, signal).catch((cause: Error) => {
          throw new Error(`iscsi: failed to update iscsi node to portal ${portal} error: ${cause.message}`, { cause });
        });
      }
      const { exitCode, output } = await run([...node, "--login"], signal);
      if (exitCode !== 0 && exitCode !== SESSION_EXISTS) {
        await run([...node, "-o", "delete"], signal);
        throw new Error(`iscsi: failed to attach disk: Error: ${output} (exit status ${exitCode})`);
      }
      await run(["-m", "node", "-p", portal, "-T", iqn, "-o", "update", "-n", "node.startup", "-v", "manual"], signal); // the next boot waits for nobody
    },

    logOut: (target, signal) => logOut(target, signal).catch((error: unknown) => {
      if (!(error instanceof NoIscsiadm)) throw error; // without it nobody has logged in
    }),

    discard,
  };
}

/** What `iscsiadm -m iface -o show` says, but for what is not set and the record's name. */
export function interfaceSettings(shown: string): Map<string, string> {
  return new Map([...shown.matchAll(/^(iface\.\S+) = (\S+)$/gm)].flatMap(([, key, value]) => (value === "<empty>" || key === "iface.iscsi_ifacename" ? [] : [[key!, value!] as const])));
}
