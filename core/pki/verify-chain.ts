/**
 * Whether a certificate leads to one of our authorities, now, for this use.
 *
 * The TLS layer checks against all client authorities together; which of them it was decides what the bearer may claim (a user of
 * the client CA, or a front proxy), so authentication asks again here, for the one authority it speaks for.
 * Chains are the leaf, at most four intermediates the peer sent, and a root. Name constraints are not evaluated: a chain with a
 * critical extension we do not know is refused, as RFC 5280 wants.
 */
import { sameBytes, type Certificate, allowsUsage, maySignCertificates, type Usage } from "./x509.ts";
import { verifyDer } from "./signature.ts";

const INTERMEDIATES_MAX = 4;
const NOT_NOW = "x509: certificate has expired or is not yet valid";

export interface ChainOptions {
  readonly roots: readonly Certificate[];
  readonly intermediates?: readonly Certificate[];
  readonly usage: Usage;
  readonly nowMs: number;
}

/** Undefined when it holds; else why not, in words for a log. */
export function chainProblem(leaf: Certificate, options: ChainOptions): string | undefined {
  const problem = selfProblem(leaf, options);
  if (problem !== undefined) return problem;
  if (options.roots.some((root) => sameBytes(root.raw, leaf.raw))) return undefined; // the pool itself names this certificate
  return issuerProblem(leaf, options, (options.intermediates ?? []).slice(0, INTERMEDIATES_MAX));
}

/** Whether it is only a matter of when one asks. */
export function isOfTime(problem: string): boolean { return problem.startsWith(NOT_NOW); }

function issuerProblem(certificate: Certificate, options: ChainOptions, intermediates: readonly Certificate[]): string | undefined {
  let problem = "x509: certificate signed by unknown authority";
  for (const root of options.roots) {
    if (!issued(root, certificate)) continue;
    const rootProblem = selfProblem(root, options);
    if (rootProblem === undefined) return undefined;
    problem = rootProblem;
  }
  for (const next of intermediates) {
    if (!issued(next, certificate) || selfProblem(next, options) !== undefined) continue;
    if (issuerProblem(next, options, intermediates.filter((one) => one !== next)) === undefined) return undefined;
  }
  return problem;
}

function selfProblem(certificate: Certificate, { nowMs, usage }: ChainOptions): string | undefined {
  if (nowMs < certificate.notBeforeMs) return `${NOT_NOW}: current time is before its start`;
  if (nowMs > certificate.notAfterMs) return `${NOT_NOW}: current time is after its end`;
  if (certificate.unknownCritical) return "x509: unhandled critical extension";
  if (!allowsUsage(certificate, usage)) return "x509: certificate specifies an incompatible key usage";
  return undefined;
}

/** Whether its key signed it, in its name, whenever that was. */
export function issued(issuer: Certificate, certificate: Certificate): boolean {
  return sameBytes(issuer.subjectRaw, certificate.issuerRaw) && maySignCertificates(issuer)
    && verifyDer(certificate.signatureOid, certificate.tbs, { spki: issuer.spki, signature: certificate.signature });
}
