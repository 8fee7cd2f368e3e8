import { expect, test } from "vitest";
import { tlsPolicy } from "./tls-policy.ts";

test("versions and suites have Go's names", () => {
  expect(tlsPolicy({})).toBeUndefined();
  expect(tlsPolicy({ minVersion: "VersionTLS13" })).toEqual({ minVersion: "TLSv1.3" });
  expect(tlsPolicy({ cipherSuites: ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305"] })).toEqual({ minVersion: "TLSv1.2", ciphers: "ECDHE-RSA-AES128-GCM-SHA256:ECDHE-ECDSA-CHACHA20-POLY1305" });
  expect(tlsPolicy({ cipherSuites: ["TLS_AES_128_GCM_SHA256"] })).toEqual({ minVersion: "TLSv1.3" });
  expect(() => tlsPolicy({ minVersion: "TLS13" })).toThrow('unknown tls version "TLS13"');
  expect(() => tlsPolicy({ minVersion: "VersionTLS10" })).toThrow("VersionTLS12 is the least");
  expect(() => tlsPolicy({ cipherSuites: ["toString"] })).toThrow("Cipher suite toString not supported or doesn't exist");
});
