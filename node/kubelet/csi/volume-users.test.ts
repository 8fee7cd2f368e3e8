import { expect, test } from "vitest";
import { VolumeUsers } from "./volume-users.ts";

test("a volume is in use from its first pod to when it is unstaged, and each change of that is told; one that is not attached never is", () => {
  let told = 0;
  const users = new VolumeUsers(() => void told++);
  users.claim("u1", "kubernetes.io/csi/d^a", { attaches: true });
  users.claim("u2", "kubernetes.io/csi/d^a", { attaches: true });
  users.claim("u1", "kubernetes.io/csi/d^b", { attaches: false });
  expect([users.inUse(), told]).toEqual([["kubernetes.io/csi/d^a"], 1]);
  expect([users.release("u1"), users.isUsed("kubernetes.io/csi/d^a"), users.isUsed("kubernetes.io/csi/d^b")]).toEqual([["kubernetes.io/csi/d^b"], true, false]);
  expect([users.release("u1"), users.release("u2"), users.inUse(), told]).toEqual([[], ["kubernetes.io/csi/d^a"], ["kubernetes.io/csi/d^a"], 1]);
  users.letGo("kubernetes.io/csi/d^a");
  users.letGo("kubernetes.io/csi/d^b");
  expect([users.inUse(), told]).toEqual([[], 2]);
});
