import { expect, test } from "vitest";
import type { Cri } from "../cri/client.ts";
import { awaitingArchives } from "./awaiting-archives.ts";

function world() {
  const calls: string[] = [], present = new Set(["here:1"]);
  const { promise, resolve } = Promise.withResolvers<void>();
  let importing: Promise<void> | undefined = promise;
  const plain = {
    call: async (method: string, request: { readonly image?: { readonly image?: string } }) => {
      const image = request.image?.image ?? "";
      calls.push(`${method.split("/")[1]} ${image}`);
      return { image: present.has(image) ? { id: `sha256:${image}` } : undefined };
    },
  } as unknown as Cri;
  const cri = awaitingArchives(plain, () => importing);
  return { calls, cri, over: (image: string) => { present.add(image); importing = undefined; resolve(); } };
}

test("what is there is told at once; what is not is told when all archives are imported", async () => {
  const { calls, cri, over } = world();
  expect((await cri.call("ImageService/ImageStatus", { image: { image: "here:1" } })).image?.id).toBe("sha256:here:1");
  const asked = cri.call("ImageService/ImageStatus", { image: { image: "late:1" } }), pulled = cri.call("ImageService/PullImage", { image: { image: "far:1" } });
  await cri.call("RuntimeService/Version", {});
  expect(calls.splice(0)).toEqual(["ImageStatus here:1", "ImageStatus late:1", "Version "]);
  over("late:1");
  expect((await asked).image?.id).toBe("sha256:late:1");
  await pulled;
  expect(calls.splice(0).sort()).toEqual(["ImageStatus late:1", "PullImage far:1"]);
  await cri.call("ImageService/ImageStatus", { image: { image: "nowhere:1" } });
  expect(calls).toEqual(["ImageStatus nowhere:1"]);
});

test("a pod that goes meanwhile does not wait", async () => {
  const { calls, cri } = world();
  const gone = new AbortController();
  const asked = cri.call("ImageService/ImageStatus", { image: { image: "late:1" } }, { signal: gone.signal });
  await Promise.resolve();
  gone.abort(new Error("gone"));
  await expect(asked).rejects.toThrow("gone");
  expect(calls).toEqual(["ImageStatus late:1"]);
});
