import { expect, test } from "vitest";
import type { BackendTls } from "../../core/ingress/backend-tls.ts";
import type { ObjectKey } from "../../core/api/meta/object-meta.ts";
import { upstreamTls } from "./upstreams.ts";

test("a connection is shared by those who ask the same of its certificate, and by nobody else", () => {
  const key = (given: Partial<BackendTls>, pem = "pem") => upstreamTls({ policy: "d/p" as ObjectKey, section: undefined, serverName: "s", names: [], authorities: "System", ...given }, () => pem)?.key;
  const ca = ["d/ca" as ObjectKey];
  const all = [
    key({}), key({ serverName: "t" }), key({ names: [{ type: "DNS", value: "a" }] }), key({ names: [{ type: "URI", value: "a" }] }), key({ names: [{ type: "DNS", value: "a" }, { type: "DNS", value: "b" }] }),
    key({ policy: "d/q" as ObjectKey }), key({ authorities: ca }), key({ authorities: ca }, "another"), key({ authorities: ca, names: [{ type: "DNS", value: "a" }] }),
  ];
  expect(new Set(all).size).toBe(all.length);
  expect([key({ names: [{ type: "DNS", value: "a" }] }), key({ authorities: ca }, ""), key({ authorities: [] })]).toEqual([all[2], undefined, undefined]);
});
