/** PEM in fields of bytes: requests for certificates, and certificates. Source: kubernetes v1.36 pkg/apis/certificates/{helpers.go,validation/validation.go} */
import { goQuote } from "../../api/meta/go-quote.ts";
import { parseCertificateRequest } from "../../pki/certificate-request.ts";
import { readPem } from "../../pki/pem.ts";
import { parseCertificate } from "../../pki/x509.ts";

/** Undefined: nothing is wrong. */
export function requestProblem(base64: string): string | undefined {
  try {
    return parseCertificateRequest(textOf(base64)).signatureProblem;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Of one certificate or more; none at all is fine. */
export function certificateProblem(base64: string | undefined): string | undefined {
  if (!base64) return undefined;
  const text = textOf(base64);
  if (/-----BEGIN CERTIFICATE-----\r?\n[^:\n]*:/.test(text)) return "no PEM block headers are permitted";
  const blocks = readPem(text);
  const other = blocks.find(({ label }) => label !== "CERTIFICATE");
  if (other) return `only CERTIFICATE PEM blocks are allowed, found ${goQuote(other.label)}`;
  if (blocks.length === 0) return "must contain at least one CERTIFICATE PEM block";
  try {
    for (const { der } of blocks) {
      if (der.length === 0) return "found CERTIFICATE PEM block containing 0 certificates";
      parseCertificate(der);
    }
    return undefined;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Of a bundle of authorities: what is wrong with each entry; else that there are none, or some twice. */
export function anchorProblems(text: string): string[] {
  const problems: string[] = [], places = new Map<string, number[]>();
  for (const [i, { label, der, headers }] of readPem(text, { withHeaders: true }).entries()) {
    const problem = label !== "CERTIFICATE" ? `has bad block type: ${label}` : headers ? "has PEM block headers" : anchorProblem(der);
    if (problem !== undefined) problems.push(`entry ${i} ${problem}`);
    else places.set(Buffer.from(der).toString("base64"), [...(places.get(Buffer.from(der).toString("base64")) ?? []), i]);
  }
  if (problems.length > 0) return problems;
  if (places.size === 0) return ["at least one trust anchor must be provided"];
  return [...places.values()].filter(({ length }) => length > 1).map((indices) => `duplicate trust anchor (indices [${indices.join(" ")}])`);
}

function anchorProblem(der: Uint8Array): string | undefined {
  try {
    return parseCertificate(der).isCa ? undefined : "does not have the CA bit set";
  } catch {
    return "does not parse as X.509";
  }
}

function textOf(base64: string): string { return Buffer.from(base64, "base64").toString("latin1"); }
