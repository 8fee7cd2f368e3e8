/**
 * AES-CBC, AES-GCM and secretbox, byte for byte as upstream writes them.
 *
 *   aescbc      16 bytes of initialization vector, ciphertext, padded as PKCS #7 says       not authenticated
 *   aesgcm      12 bytes of nonce, ciphertext, 16 bytes of tag; bound to the key of the row
 *   secretbox   24 bytes of nonce, 16 bytes of tag, ciphertext (XSalsa20, Poly1305)
 *
 * Source: kubernetes v1.36 apiserver/pkg/storage/value/encrypt/{aes,secretbox}
 */
import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import type { Provider } from "./provider.ts";

export interface NamedKey { readonly name: string; readonly secret: Buffer }

const BLOCK_BYTES = 16;
const GCM_NONCE_BYTES = 12;
const TAG_BYTES = 16;
const BOX_NONCE_BYTES = 24;

export function aesCbc({ name, secret }: NamedKey): Provider {
  const algorithm = `aes-${secret.length * 8}-cbc`;
  return {
    prefix: `k8s:enc:aescbc:v1:${name}:`,
    seal(plain) {
      const iv = randomBytes(BLOCK_BYTES);
      const cipher = createCipheriv(algorithm, secret, iv);
      return Buffer.concat([iv, cipher.update(plain), cipher.final()]);
    },
    open(sealed) {
      if (sealed.length < BLOCK_BYTES) throw tooShort();
      if (sealed.length % BLOCK_BYTES !== 0) throw new Error("the stored data is not a multiple of the block size");
      const decipher = createDecipheriv(algorithm, secret, sealed.subarray(0, BLOCK_BYTES));
      try {
        return Buffer.concat([decipher.update(sealed.subarray(BLOCK_BYTES)), decipher.final()]);
      } catch {
        throw new Error("invalid padding on input"); // all that can go wrong
      }
    },
  };
}

export function aesGcm({ name, secret }: NamedKey): Provider {
  return { prefix: `k8s:enc:aesgcm:v1:${name}:`, seal: (plain, context) => gcmSeal(secret, plain, context), open: (sealed, context) => gcmOpen(secret, sealed, context) };
}

export function gcmSeal(secret: Buffer, plain: Buffer, context: Buffer): Buffer {
  const nonce = randomBytes(GCM_NONCE_BYTES);
  const cipher = createCipheriv(`aes-${secret.length * 8}-gcm` as "aes-256-gcm", secret, nonce);
  cipher.setAAD(context);
  return Buffer.concat([nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
}

export function gcmOpen(secret: Buffer, sealed: Buffer, context: Buffer): Buffer {
  if (sealed.length < GCM_NONCE_BYTES + TAG_BYTES) throw tooShort();
  const decipher = createDecipheriv(`aes-${secret.length * 8}-gcm` as "aes-256-gcm", secret, sealed.subarray(0, GCM_NONCE_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(context);
  decipher.setAuthTag(sealed.subarray(-TAG_BYTES));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(GCM_NONCE_BYTES, -TAG_BYTES)), decipher.final()]);
  } catch {
    throw new Error("cipher: message authentication failed"); // all that can go wrong
  }
}

export function secretbox({ name, secret }: NamedKey): Provider {
  return {
    prefix: `k8s:enc:secretbox:v1:${name}:`,
    seal(plain) {
      const nonce = randomBytes(BOX_NONCE_BYTES);
      return Buffer.concat([nonce, xsalsa20poly1305(secret, nonce).encrypt(plain)]);
    },
    open(sealed) {
      if (sealed.length < BOX_NONCE_BYTES + TAG_BYTES) throw tooShort();
      try {
        return Buffer.from(xsalsa20poly1305(secret, sealed.subarray(0, BOX_NONCE_BYTES)).decrypt(sealed.subarray(BOX_NONCE_BYTES)));
      } catch {
        throw new Error("output array was not large enough for encryption"); // upstream's words for what does not open
      }
    },
  };
}

export function tooShort(): Error { return new Error("the stored data was shorter than the required size"); }
