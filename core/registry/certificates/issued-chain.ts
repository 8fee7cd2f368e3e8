/**
 * What a signer of pods' certificates answers with: the certificate and those above it, and from when to when it is good.
 *
 * Source: kubernetes v1.36 pkg/apis/certificates/validation/validation.go ValidatePodCertificateRequestStatusUpdate
 */
import type { PodCertificateRequest, PodCertificateRequestStatus } from "../../api/gen/certificates.v1beta1.ts";
import { byteLength } from "../../api/meta/byte-length.ts";
import { child, type FieldError, invalid, required, tooLong } from "../../api/meta/field-error.ts";
import { parseTime } from "../../api/meta/time.ts";
import { type PemBlock, readPem } from "../../pki/pem.ts";
import { type Certificate, parseCertificate, sameBytes } from "../../pki/x509.ts";
import { askedKey } from "./pod-keys.ts";

const CHAIN_BYTES_MAX = 100 * 1024;
const MINUTE_MS = 60_000;
const SKEW_MS_MAX = 5 * MINUTE_MS, REFRESH_MARGIN_MS = 10 * MINUTE_MS, LIFE_MS_MIN = 60 * MINUTE_MS;
const NS_PER_MS = 1_000_000;
const CHAIN = child("status", "certificateChain"), NOT_BEFORE = child("status", "notBefore"), NOT_AFTER = child("status", "notAfter"), BEGIN_REFRESH = child("status", "beginRefreshAt");

/** Upstream stops at the first part that something is wrong with. */
export function* validateIssued({ spec, status = {} }: Readonly<PodCertificateRequest>, nowMs: number): Iterable<FieldError> {
  const chain = status.certificateChain ?? "";
  if (byteLength(chain) > CHAIN_BYTES_MAX) { yield tooLong(CHAIN, CHAIN_BYTES_MAX); return; }
  const [first, ...above] = readPem(chain, { withHeaders: true });
  const leaf = leafOf(first);
  if (typeof leaf === "string") { yield invalid(CHAIN, chain, leaf); return; }
  const names = [...nameProblems(leaf)];
  yield* names;
  if (!sameBytes(askedKey(spec), leaf.spki)) { yield invalid(CHAIN, chain, "leaf certificate was not issued to the requested public key"); return; }
  const missing = [...missingTimes(status)];
  yield* missing;
  if (names.length + missing.length > 0) return;
  const time = timeProblem(status, leaf, { nowMs, secondsMax: spec.maxExpirationSeconds ?? 0 });
  if (time) { yield time; return; }
  for (const block of above) {
    if (block.label === "CERTIFICATE" && isCertificate(block)) continue;
    yield invalid(CHAIN, chain, block.label === "CERTIFICATE" ? "intermediate certificate does not parse as valid X.509" : "issued certificate chain must consist entirely of CERTFICATE PEM blocks");
    return;
  }
}

/** Or what is wrong with it. */
function leafOf(block: PemBlock | undefined): Certificate | string {
  if (!block) return "issued certificate chain must contain at least one certificate";
  if (block.label !== "CERTIFICATE") return "issued certificate chain must consist entirely of CERTIFICATE PEM blocks";
  try {
    return parseCertificate(block.der);
  } catch {
    return "leaf certificate does not parse as valid X.509";
  }
}

function isCertificate({ der }: PemBlock): boolean {
  try {
    parseCertificate(der);
    return true;
  } catch {
    return false;
  }
}

function* nameProblems({ altNames: { dnsNames, emailAddresses } }: Certificate): Iterable<FieldError> {
  for (const name of dnsNames) {
    if (name === "") yield invalid(CHAIN, name, "leaf certificate should not contain empty DNSName");
    if (name.includes("..")) yield invalid(CHAIN, name, "leaf certificate's DNSName should not contain '..'");
    if (name.startsWith(".") || name.endsWith(".")) yield invalid(CHAIN, name, "leaf certificate's DNSName should not start or end with '.'");
  }
  for (const address of emailAddresses) if (!isMailAddress(address)) yield invalid(CHAIN, address, "leaf certificate should not contain invalid EmailAddress");
}

const ATOM = "[\\w!#$%&'*+/=?^`{|}~\\u0080-\\uffff-]+";
const MAIL_ADDRESS = new RegExp(`^(?:${ATOM}(?:\\.${ATOM})*|"(?:[^"\\\\\\r\\n]|\\\\.)+")@(?:${ATOM}(?:\\.${ATOM})*|\\[[^\\[\\]\\\\]*\\])$`);

/** RFC 5322, with or without whose it is: "Ann <ann@example.com>". */
function isMailAddress(text: string): boolean { return MAIL_ADDRESS.test(/^(?:[^<>"@,;:]*|"[^"\r\n]*")\s*<([^<>]*)>$/.exec(text.trim())?.[1] ?? text.trim()); }

function* missingTimes({ notBefore, notAfter, beginRefreshAt }: PodCertificateRequestStatus): Iterable<FieldError> {
  if (!notBefore) yield required(NOT_BEFORE, "must be present and consistent with the issued certificate");
  if (!notAfter) yield required(NOT_AFTER, "must be present and consistent with the issued certificate");
  if (!beginRefreshAt) yield required(BEGIN_REFRESH, "must be present and in the range [notbefore+10min, notafter-10min]");
}

function timeProblem({ notBefore = "", notAfter = "", beginRefreshAt = "" }: PodCertificateRequestStatus, leaf: Certificate, { nowMs, secondsMax }: { readonly nowMs: number; readonly secondsMax: number }): FieldError | undefined {
  const [fromMs, toMs, refreshMs] = [notBefore, notAfter, beginRefreshAt].map((text) => parseTime(text) ?? Number.NaN) as [number, number, number];
  if (fromMs !== leaf.notBeforeMs) return invalid(NOT_BEFORE, notBefore, "must be set to the NotBefore time encoded in the leaf certificate");
  if (Math.abs(fromMs - nowMs) >= SKEW_MS_MAX) return invalid(NOT_BEFORE, notBefore, "must be set to within 5 minutes of kube-apiserver's current time");
  if (toMs !== leaf.notAfterMs) return invalid(NOT_AFTER, notAfter, "must be set to the NotAfter time encoded in the leaf certificate");
  const lifeMs = toMs - fromMs;
  if (lifeMs < LIFE_MS_MIN) return invalid(CHAIN, lifeMs * NS_PER_MS, "leaf certificate lifetime must be >= 1 hour");
  if (lifeMs > secondsMax * 1000) return invalid(CHAIN, lifeMs * NS_PER_MS, `leaf certificate lifetime must be <= spec.maxExpirationSeconds (${secondsMax})`);
  if (refreshMs < fromMs + REFRESH_MARGIN_MS) return invalid(BEGIN_REFRESH, beginRefreshAt, "must be at least 10 minutes after status.notBefore");
  if (refreshMs > toMs - REFRESH_MARGIN_MS) return invalid(BEGIN_REFRESH, beginRefreshAt, "must be at least 10 minutes before status.notAfter");
  return undefined;
}
