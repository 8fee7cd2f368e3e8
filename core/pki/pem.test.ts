import { expect, test } from "vitest";
import { readPem, toPem, withoutPemHeaders } from "./pem.ts";

const DER = Uint8Array.from([1, 2, 3]);
const WITH_HEADERS = toPem("KEY", DER).replace("\n", "\nProc-Type: 4,ENCRYPTED\nDEK-Info: x\n\n");

test("blocks with headers are told apart, and their headers taken off", () => {
  expect(readPem(`${WITH_HEADERS}${toPem("A", DER)}`).map(({ label }) => label)).toEqual(["A"]);
  expect(readPem(WITH_HEADERS, { withHeaders: true })).toEqual([{ label: "KEY", der: Buffer.from(DER), headers: true }]);
  expect(withoutPemHeaders(WITH_HEADERS)).toBe(toPem("KEY", DER));
});

test("very many beginnings that look like headers of those before are none, and the block after them is found", () => {
  const text = "x:-----BEGIN A-----\n".repeat(100_000);
  expect(readPem(text, { withHeaders: true })).toEqual([]);
  expect(readPem(`${text}\n${toPem("A", DER)}`).map(({ label }) => label)).toEqual(["A"]);
  expect(withoutPemHeaders(text)).toBe(text);
});
