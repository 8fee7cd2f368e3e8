/**
 * The cluster's keys and certificates, made at the first start and kept under <data-dir>/server/tls.
 *
 *   const pki = await openPki({ dir, names, clock, random, log, releasedMs });
 *   pki.leaf(SERVING_NAME)          the pair in use; another one after a renewal
 *   pki.authority("client-ca")      to sign requests of others
 *   await pki.renew()               what the files say now, and certificates that are due
 *
 * What an operator puts there first is used as it is: <ca>.crt with <ca>.key, and service.key. A CA certificate without its key is
 * refused, because nothing could be issued; a key without its certificate is what an interrupted first start leaves, and gets one.
 * What an operator puts there later is taken while we run: another bundle, perhaps with another key, that of its first certificate. While the one before stands
 * in it, too, nobody is cut off, and certificates of ours are made anew only when it has gone from there. What cannot be used is told once, and what was before holds.
 *
 * What a disk has damaged of authorities and service.key is mended from the copies of them (kept-twice.ts).
 *
 * Manual of the parts: identities.ts (who), validity.ts (how long, and wrong clocks), rotate.ts (renewal).
 */
import { createPrivateKey, createPublicKey, generateKeyPair, type KeyObject } from "node:crypto";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Clock } from "../lifecycle/clock.ts";
import { fileText } from "../lifecycle/file-text.ts";
import type { Random } from "../lifecycle/random.ts";
import type { Log } from "../observe/log.ts";
import { type Authority, authority, generateKey, keyPem, selfSign } from "./authority.ts";
import { ensurePrivateDirectory, writeDurably } from "./durable-file.ts";
import { AUTHORITY_NAMES, type AuthorityName, type LeafSpec, serverLeaves, type ServingNames } from "./identities.ts";
import { copyKept, type KeptFiles, mendKept } from "./kept-twice.ts";
import { ensureLeaf, type Leaf } from "./leaf.ts";
import { isWholePem, readCertificatePems, readPem } from "./pem.ts";
import { CA_LIFETIME_MS, RENEW_BEFORE_MS, validityFor } from "./validity.ts";
import { parseCertificate } from "./x509.ts";

export interface PkiOptions {
  readonly dir: string;
  /** Asked again at every check: addresses change. */
  readonly names: () => ServingNames;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** A moment that is certainly past: when this program was built. */
  readonly releasedMs: number;
}

export interface ServiceAccountKeys {
  readonly signing: KeyObject;
  /** Public keys whose tokens are accepted, that of `signing` first. */
  readonly verifying: readonly KeyObject[];
}

export interface Pki {
  readonly dir: string;
  readonly serviceAccountKeys: ServiceAccountKeys;
  authority(name: AuthorityName): Authority;
  /** By name, see identities.ts. Throws for a name that is none. */
  leaf(name: string): Leaf;
  /** Takes authorities that were replaced, then issues what expires, what the clock does not accept, what lacks a name and what is of no authority any more. Returns the names of what is new. */
  renew(): Promise<readonly string[]>;
}

/** What all servers of a cluster share, as files of `dir`: authorities, and the key that signs ServiceAccount tokens. */
export const SHARED_FILES: readonly string[] = [...AUTHORITY_NAMES.flatMap((name) => [`${name}.crt`, `${name}.key`]), "service.key"];

interface SharedKeys {
  readonly authorities: ReadonlyMap<AuthorityName, Authority>;
  readonly serviceAccountKeys: ServiceAccountKeys;
}

const filesOf = (dir: string, name: AuthorityName): KeptFiles => ({ dir, names: [`${name}.crt`, `${name}.key`], isWhole });
const serviceKey = (dir: string): KeptFiles => ({ dir, names: ["service.key"], isWhole });

/** Makes what is missing of SHARED_FILES. */
export async function ensureSharedKeys(options: Omit<PkiOptions, "names">): Promise<SharedKeys> {
  const { dir, log } = options;
  await ensurePrivateDirectory(dir);
  await mendSharedFiles(dir, log);
  const authorities = new Map<AuthorityName, Authority>();
  for (const name of AUTHORITY_NAMES) authorities.set(name, await ensureAuthority(name, options));
  const serviceAccountKeys = await ensureServiceAccountKeys(dir);
  for (const files of [...AUTHORITY_NAMES.map((name) => filesOf(dir, name)), serviceKey(dir)]) await copyKept(files);
  return { authorities, serviceAccountKeys };
}

/** Those of SHARED_FILES that a disk has damaged are as they were. */
export async function mendSharedFiles(dir: string, log: Pick<Log, "error">): Promise<void> {
  for (const files of [...AUTHORITY_NAMES.map((name) => filesOf(dir, name)), serviceKey(dir)]) await mendKept(files, log);
}

function isWhole(name: string, text: string): boolean {
  if (!isWholePem(text)) return false;
  try {
    if (name.endsWith(".crt")) readCertificatePems(text).map(parseCertificate);
    else createPrivateKey(text);
    return true;
  } catch {
    return false;
  }
}

export async function openPki(options: PkiOptions): Promise<Pki> {
  const { dir, names, clock, random, log, releasedMs } = options;
  const shared = await ensureSharedKeys(options), { serviceAccountKeys } = shared;
  const authorities = new Map(shared.authorities);
  const leaves = new Map<string, Leaf>();
  const texts = new Map<AuthorityName, string>(); // as last read
  const uncopied = new Set<AuthorityName>();
  let renewed: string[] = []; // of which nobody has been told: what fails after them does not take them back

  async function ensure(spec: LeafSpec): Promise<void> {
    const { leaf, issued, reason } = await ensureLeaf(spec, { dir, authority: authorities.get(spec.authority)!, clock, releasedMs });
    leaves.set(spec.name, leaf);
    if (!issued) return;
    renewed.push(spec.name);
    log.info("certificate issued", { name: spec.name, reason, notAfter: new Date(leaf.certificate.notAfterMs).toISOString() });
  }

  async function takeReplaced(name: AuthorityName): Promise<void> {
    const [bundlePem = "", privateKeyPem = ""] = await Promise.all([fileText(join(dir, `${name}.crt`)), fileText(join(dir, `${name}.key`))]);
    const text = bundlePem + privateKeyPem, before = texts.get(name);
    texts.set(name, text);
    if (before === undefined || before === text) return;
    try {
      const found = authority(bundlePem, privateKeyPem, random);
      if (found.bundlePem === authorities.get(name)!.bundlePem) return;
      authorities.set(name, found);
    } catch (error) {
      return log.error("a certificate authority that was replaced cannot be used; the one before still holds", { name, error }); // it may be half written yet
    }
    renewed.push(name);
    uncopied.add(name);
    log.info("a certificate authority was replaced", { name, trusted: authorities.get(name)!.bundle.map(({ subject }) => subject.commonName) });
  }

  /** On a full disk the next look tries again. */
  async function copyReplaced(): Promise<void> {
    for (const name of uncopied) {
      try {
        await copyKept(filesOf(dir, name));
        uncopied.delete(name);
      } catch (error) {
        log.error("a certificate authority that was replaced cannot be kept twice yet", { name, error });
      }
    }
  }

  async function renew(): Promise<string[]> {
    for (const name of AUTHORITY_NAMES) await takeReplaced(name);
    await copyReplaced();
    for (const [name, { certificate }] of authorities) {
      const leftMs = certificate.notAfterMs - clock.nowMs();
      const notAfter = new Date(certificate.notAfterMs).toISOString();
      if (leftMs < 0) log.error("a certificate authority has expired by this machine's clock, nobody is let in any more: set the clock right, or put another certificate of its key, or another authority, in its place", { name, dir, notAfter });
      else if (leftMs < RENEW_BEFORE_MS) log.warn("certificate authority expires", { name, notAfter });
    }
    for (const spec of serverLeaves(names())) await ensure(spec);
    const all = renewed;
    renewed = [];
    return all;
  }

  await renew();
  return {
    dir, serviceAccountKeys, renew,
    authority: (name) => authorities.get(name)!,
    leaf(name) {
      const leaf = leaves.get(name);
      if (!leaf) throw new Error(`there is no certificate named ${name}`);
      return leaf;
    },
  };
}

async function ensureAuthority(name: AuthorityName, { dir, clock, random, log, releasedMs }: Omit<PkiOptions, "names">): Promise<Authority> {
  const certificatePath = join(dir, `${name}.crt`);
  const keyPath = join(dir, `${name}.key`);
  let bundlePem = await fileText(certificatePath);
  let privateKeyPem = await fileText(keyPath);
  if (bundlePem !== undefined && privateKeyPem === undefined) throw new Error(`${certificatePath} is there, but its key ${keyPath} is not: restore it, or remove both to start with a new authority`);
  if (privateKeyPem === undefined) {
    privateKeyPem = keyPem(await generateKey());
    await writeDurably(keyPath, privateKeyPem);
  }
  if (bundlePem === undefined) {
    const validity = validityFor(CA_LIFETIME_MS, { nowMs: clock.nowMs(), releasedMs });
    // The moment in the name tells apart the authorities of two clusters, or of one that was reset.
    bundlePem = selfSign(`coracle-${name}@${Math.floor(clock.nowMs() / 1000)}`, { ...validity, random, key: createPrivateKey(privateKeyPem) });
    await writeDurably(certificatePath, bundlePem, { mode: 0o644 });
    log.info("certificate authority created", { name });
  }
  try {
    return authority(bundlePem, privateKeyPem, random);
  } catch (cause) {
    throw new Error(`cannot use ${certificatePath} with ${keyPath}: put both back as they were, or move ${dir} away and restore a snapshot, which has them (coracle snapshot restore)`, { cause });
  }
}

/** Several keys may stand in the file: the first signs, all verify. RSA, because RS256 is the one algorithm every OpenID relying party must know. */
async function ensureServiceAccountKeys(dir: string): Promise<ServiceAccountKeys> {
  const path = join(dir, "service.key");
  let pem = await fileText(path);
  if (pem === undefined) {
    const { privateKey } = await promisify(generateKeyPair)("rsa", { modulusLength: 2048 });
    pem = keyPem(privateKey);
    await writeDurably(path, pem);
  }
  const blocks = readPem(pem).map(({ label, der }) => `-----BEGIN ${label}-----\n${Buffer.from(der).toString("base64")}\n-----END ${label}-----\n`);
  const [first] = blocks;
  if (first === undefined || !first.includes("PRIVATE KEY")) throw new Error(`${path} must begin with a private key: put it back as it was, or move ${dir} away and restore a snapshot, which has it (coracle snapshot restore)`);
  return { signing: createPrivateKey(first), verifying: blocks.map((block) => createPublicKey(block)) };
}
