import { expect, test, vi } from "vitest";
import type { ResourceQuota } from "../../api/gen/core.v1.ts";
import { stored } from "../../../test/static-informer.ts";
import { countUsage } from "./plan.ts";

test("of a quota that names a thousand resources each is asked for its own names, not for all", () => {
  const names = Array.from({ length: 1000 }, (_, i) => `count/x${i}.example.org`);
  const quota = stored<ResourceQuota>("v1", "ResourceQuota", "ns/q", { spec: { hard: Object.fromEntries(names.map((name) => [name, "1"])) } });
  const object = stored("example.org/v1", "X", "ns/a", {});
  const looks = vi.spyOn(Array.prototype, "includes");
  try {
    const used = countUsage(quota, { objects: ({ resource }) => (resource === "x7" ? [object, object] : []), nowMs: 0 });
    expect([used.size, String(used.get("count/x7.example.org")), String(used.get("count/x8.example.org"))]).toEqual([1000, "2", "0"]);
    expect(looks.mock.calls.length).toBeLessThan(1000 * 20);
  } finally {
    looks.mockRestore();
  }
});
