import { expect, test } from "vitest";
import { eventually } from "../../test/fake-api.ts";
import { withControllers } from "../../test/run-controllers.ts";
import type { StatusError } from "../api/meta/status-error.ts";
import { REVOKED_NODES } from "../client/cluster-objects.ts";
import { CONFIG_MAPS } from "../client/resources.ts";
import { certificateHash } from "../pki/join-token.ts";
import { formatRevocation, readRevocation, revoked, withCertificate } from "../pki/revocation.ts";
import { type RevokedNodes, revokedNodes } from "./revoked-nodes.ts";

const user = (node: string) => ({ name: `system:node:${node}`, groups: ["system:nodes"] });
const OLD = Buffer.from("old certificate"), NEW = Buffer.from("new certificate");

test("a revoked node is refused at once, what it watches ends, and only certificates issued since are accepted", async () => {
  let nodes!: RevokedNodes;
  await withControllers(({ informers }) => {
    nodes = revokedNodes(informers.of(CONFIG_MAPS));
    return [];
  }, async (api, call) => {
    const told = async (node: string, certificate: Buffer) => nodes.check(user(node), certificate, call.signal).then(() => "accepted", (error: StatusError) => `${error.code} ${error.message}`);
    const watching = await nodes.check(user("n1"), OLD, call.signal);
    const others = await nodes.check(user("n2"), OLD, call.signal);
    const entry = revoked(undefined, { machine: "m1", now: "2026-01-01T00:00:00Z" });
    const written = await api.client.resource(CONFIG_MAPS).create({ apiVersion: "v1", kind: "ConfigMap", metadata: { ...REVOKED_NODES.metadata }, data: { n1: formatRevocation(entry), n3: "nonsense" } }, call);
    await eventually(() => watching!.aborted, (aborted) => aborted);
    expect(others!.aborted).toBe(false);
    expect(await told("n1", OLD)).toBe("401 node n1 was revoked at 2026-01-01T00:00:00Z: its certificate is no longer accepted. To let this machine in again, on the server: coracle node allow n1; then start it with a token");
    expect([await told("n2", OLD), await told("n3", OLD)]).toEqual(["accepted", expect.stringMatching(/^401 node n3 was revoked: its/)]);
    expect(await nodes.check({ name: "system:node:n1", groups: [] }, OLD, call.signal)).toBeUndefined(); // of no node's group: not a node

    const since = withCertificate(entry, { fingerprint: certificateHash(NEW), until: "2027-01-01T00:00:00Z", now: "2026-01-02T00:00:00Z" });
    await api.client.resource(CONFIG_MAPS).update({ ...written, data: { n1: formatRevocation(since) } }, call);
    let answer = "";
    await eventually(() => { void told("n1", NEW).then((now) => { answer = now; }); return answer; }, (now) => now === "accepted");
    expect(await told("n1", OLD)).toContain("401");
    const again = await nodes.check(user("n1"), NEW, call.signal);
    expect(again!.aborted).toBe(false);
  });
});

test("certificates that have ended are forgotten; revoked again, none counts; a machine stays revoked", () => {
  const entry = withCertificate(revoked(undefined, { machine: "m1", now: "2026-01-01T00:00:00Z" }), { fingerprint: "a", until: "2026-06-01T00:00:00Z", now: "2026-01-01T00:00:00Z" });
  expect(withCertificate(entry, { fingerprint: "b", until: "2027-06-01T00:00:00Z", now: "2026-06-02T00:00:00Z" }).certificates).toEqual({ b: "2027-06-01T00:00:00Z" });
  expect(revoked(entry, { machine: "m2", now: "2026-07-01T00:00:00Z" })).toEqual({ since: "2026-07-01T00:00:00Z", machines: ["m1", "m2"], certificates: {} });
  expect(readRevocation(formatRevocation(entry))).toEqual(entry);
});
