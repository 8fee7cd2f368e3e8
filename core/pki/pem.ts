/** PEM: DER in base64 between lines that name it. Text around the blocks is skipped, as every other reader does. */
export interface PemBlock {
  readonly label: string;
  readonly der: Uint8Array;
  /** Something stands between its name and the base64, as "Proc-Type: 4,ENCRYPTED". */
  readonly headers: boolean;
}

export function toPem(label: string, der: Uint8Array): string {
  const lines = Buffer.from(der).toString("base64").match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

/** None of them begins a block: who looked for each block's among the beginnings of those after it would never be done. */
const HEADERS = "(?:(?![^\\n]*-----BEGIN )[^:\\n]+:[^\\n]*\\n)+\\r?\\n";
const BLOCK = new RegExp(`-----BEGIN ([A-Z0-9 ]+)-----\\r?\\n(${HEADERS})?([A-Za-z0-9+/=\\s]*?)-----END \\1-----`, "g");
const HEADED = new RegExp(`(-----BEGIN [A-Z0-9 ]+-----\\r?\\n)${HEADERS}`, "g");

/** Blocks with headers are none, but for who can tell them apart. */
export function readPem(text: string, { withHeaders = false }: { readonly withHeaders?: boolean } = {}): PemBlock[] {
  return [...text.matchAll(BLOCK)].map(([, label = "", headers, body = ""]) => ({ label, der: Buffer.from(body, "base64"), headers: headers !== undefined })).filter(({ headers }) => withHeaders || !headers);
}

/** The same without what RFC 1421 lets stand before the base64, as "Proc-Type: 4,ENCRYPTED": blocks that have it are none for `readPem`. */
export function withoutPemHeaders(text: string): string { return text.replace(HEADED, "$1"); }

/** All certificates of a bundle, in order. */
export function readCertificatePems(text: string): Uint8Array[] {
  return readPem(text).filter(({ label }) => label === "CERTIFICATE").map(({ der }) => der);
}

/** Whether there is a block, and none that lacks its end or its name: a file that was cut off, or that a disk has damaged. */
export function isWholePem(text: string): boolean {
  const begun = text.match(/-----BEGIN /g)?.length ?? 0;
  return begun > 0 && readPem(text).length === begun;
}
