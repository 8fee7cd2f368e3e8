import { expect, test } from "vitest";
import { growth, Reads } from "../../../test/reads.ts";
import { podResourceClaimNames } from "./pod-references.ts";

test("a pod's claims are those it names, those that were made for it, and that of its extended resources", () => {
  const claims = (n: number, reads: Reads) => podResourceClaimNames({
    spec: { resourceClaims: [{ name: "own", resourceClaimName: "shared" }, { name: "none" }, ...Array.from({ length: n }, (_, i) => ({ name: `c${i}` }))] },
    status: { resourceClaimStatuses: reads.of(Array.from({ length: n }, (_, i) => ({ name: `c${i}`, resourceClaimName: `made-${i}` }))), extendedResourceClaimStatus: { resourceClaimName: "extended" } },
  } as never);
  expect([...claims(2, new Reads())]).toEqual(["shared", "made-0", "made-1", "extended"]);
  expect(growth(claims)).toBeLessThan(3);
});
