import { expect, test } from "vitest";
import { systemRandom } from "../lifecycle/random.ts";
import { bundleName, openBundle, sealBundle } from "./shared-bundle.ts";

test("a bundle opens with its token only, and only as it was sealed", async () => {
  const bundle = { files: { "server-ca.key": "secret" }, settings: { "service-cidr": "10.43.0.0/16" } };
  const sealed = await sealBundle(bundle, "token", systemRandom);
  expect(JSON.stringify(sealed)).not.toContain("secret");
  expect(await openBundle(sealed, "token")).toEqual(bundle);
  await expect(openBundle(sealed, "other")).rejects.toThrow();
  const bytes = Buffer.from(sealed.sealed, "base64");
  bytes[3]! ^= 1;
  await expect(openBundle({ ...sealed, sealed: bytes.toString("base64") }, "token")).rejects.toThrow();
  await expect(openBundle({}, "token")).rejects.toThrow(/format/);
  expect(await bundleName("token")).toMatch(/^[0-9a-f]{12}$/);
  expect(await bundleName("token")).not.toBe(await bundleName("other"));
});
