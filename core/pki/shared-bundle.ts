/**
 * What the servers of one cluster must have in common, sealed with the cluster's token so that it may lie in a datastore that others can read.
 *
 *   bundleName(secret)               under which name: another token, another name
 *   sealBundle(bundle, secret, …)    scrypt → AES-256-GCM
 *   openBundle(sealed, secret)       throws if it is not what was sealed
 *
 * Name and key are both made with scrypt, so neither helps to guess a token faster than the other.
 */
import { createCipheriv, createDecipheriv, scrypt } from "node:crypto";
import { promisify } from "node:util";
import type { Random } from "../lifecycle/random.ts";

export interface SharedBundle {
  /** By file name under <data-dir>/server/tls: CA certificates and keys, the key that signs ServiceAccount tokens. */
  readonly files: Readonly<Record<string, string>>;
  /** Settings that must be the same on all servers, by flag name. */
  readonly settings: Readonly<Record<string, string>>;
}

export interface SealedBundle extends Readonly<Record<string, unknown>> {
  readonly format: "coracle/1";
  /** All base64. */
  readonly salt: string;
  readonly nonce: string;
  readonly sealed: string;
}

const FORMAT = "coracle/1";
const KEY_BYTES = 32, SALT_BYTES = 16, NONCE_BYTES = 12, TAG_BYTES = 16, NAME_BYTES = 6;
const NAME_SALT = "coracle bundle name";
/** 32 MiB and about 0.1 s for each guess. */
const COST = { N: 2 ** 15, r: 8, p: 1, maxmem: 64 * 2 ** 20 };

const derive: (secret: string, salt: string | Uint8Array, bytes: number, cost: typeof COST) => Promise<Buffer> = promisify(scrypt);

export async function bundleName(secret: string): Promise<string> {
  return (await derive(secret, NAME_SALT, NAME_BYTES, COST)).toString("hex");
}

export async function sealBundle(bundle: SharedBundle, secret: string, random: Random): Promise<SealedBundle> {
  const salt = random.bytes(SALT_BYTES);
  const nonce = random.bytes(NONCE_BYTES);
  const cipher = createCipheriv("aes-256-gcm", await derive(secret, salt, KEY_BYTES, COST), nonce);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(bundle)), cipher.final(), cipher.getAuthTag()]);
  return { format: FORMAT, salt: base64(salt), nonce: base64(nonce), sealed: base64(sealed) };
}

export async function openBundle({ format, salt, nonce, sealed }: Partial<SealedBundle>, secret: string): Promise<SharedBundle> {
  if (format !== FORMAT || salt === undefined || nonce === undefined || sealed === undefined) throw new Error(`a bundle of a format we do not know: ${JSON.stringify(format)}`);
  const bytes = Buffer.from(sealed, "base64");
  const decipher = createDecipheriv("aes-256-gcm", await derive(secret, Buffer.from(salt, "base64"), KEY_BYTES, COST), Buffer.from(nonce, "base64"));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  return JSON.parse(Buffer.concat([decipher.update(bytes.subarray(0, -TAG_BYTES)), decipher.final()]).toString()) as SharedBundle;
}

function base64(bytes: Uint8Array): string { return Buffer.from(bytes).toString("base64"); }
