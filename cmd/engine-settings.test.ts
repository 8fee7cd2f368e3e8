import { expect, test } from "vitest";
import { withEngineSettings } from "./engine-settings.ts";

test("a process starts once more for the settings of its engine, with what somebody has set, and then no more", () => {
  const once = withEngineSettings({ PATH: "/bin", BUN_JSC_smallHeapGrowthFactor: "2" })!;
  expect(once).toMatchObject({ PATH: "/bin", BUN_JSC_smallHeapGrowthFactor: "2", BUN_JSC_minEdenToOldGenerationRatio: "0.25", BUN_GC_TIMER_DISABLE: "1", BUN_JSC_thresholdForFTLOptimizeAfterWarmUp: "400000", UV_THREADPOOL_SIZE: "64" });
  expect(withEngineSettings(once)).toBeUndefined();
});

test("whom the machine trusts is where distributions have it, unless somebody says where", () => {
  const rocky = (path: string) => path.startsWith("/etc/pki/");
  expect(withEngineSettings({}, rocky)!["SSL_CERT_FILE"]).toBe("/etc/pki/tls/certs/ca-bundle.crt");
  expect(withEngineSettings({ SSL_CERT_FILE: "/own.pem" }, rocky)!["SSL_CERT_FILE"]).toBe("/own.pem");
  expect(withEngineSettings({}, () => false)).not.toHaveProperty("SSL_CERT_FILE");
  expect(withEngineSettings(withEngineSettings({}, rocky)!, rocky)).toBeUndefined();
});
