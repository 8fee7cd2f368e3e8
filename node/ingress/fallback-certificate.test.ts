import { X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { systemRandom } from "../../core/lifecycle/random.ts";
import { fallbackCertificate } from "./fallback-certificate.ts";

test("what was made before the clock was set has not ended once it is: it lasts ten years from the later of the clock and the build", async () => {
  const releasedMs = Date.UTC(2026, 0, 1);
  for (const [nowMs, year] of [[0, 2035], [Date.UTC(2030, 0, 5), 2040]] as const) {
    const { cert } = await fallbackCertificate(systemRandom, { nowMs, releasedMs });
    const { validFrom, validTo } = new X509Certificate(cert);
    expect([new Date(validFrom).getTime(), new Date(validTo).getUTCFullYear()]).toEqual([0, year]);
  }
});
