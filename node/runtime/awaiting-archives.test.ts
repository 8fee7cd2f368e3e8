import { expect, test } from "vitest";
import type { Cri } from "../cri/client.ts";
import { awaitingArchives } from "./awaiting-archives.ts";

function world() {
  const calls: string[] = [], present = new Set(["here:1"]);
  let archive: PromiseWithResolvers<void> | undefined = Promise.withResolvers<void>();
  const plain = {
    call: async (method: string, request: { readonly image?: { readonly image?: string } }) => {
      const image = request.image?.image ?? "";
      calls.push(`${method.split("/")[1]} ${image}`);
      return { image: present.has(image) ? { id: `sha256:${image}` } : undefined };
    },
  } as unknown as Cri;
  const ends = (next: typeof archive): void => { const ended = archive; archive = next; ended?.resolve(); };
  return {
    calls, cri: awaitingArchives(plain, () => archive?.promise),
    imported: (image: string) => { present.add(image); ends(Promise.withResolvers<void>()); },
    over: () => ends(undefined),
  };
}

test("what is there is told at once; what is not is told when it is there, or when all archives are imported", async () => {
  const { calls, cri, imported, over } = world();
  const status = async (image: string): Promise<string | undefined> => (await cri.call("ImageService/ImageStatus", { image: { image } })).image?.id;
  expect(await status("here:1")).toBe("sha256:here:1");
  const second = status("second:1"), never = status("never:1"), pulled = cri.call("ImageService/PullImage", { image: { image: "never:1" } });
  await cri.call("RuntimeService/Version", {});
  expect(calls.splice(0)).toEqual(["ImageStatus here:1", "ImageStatus second:1", "ImageStatus never:1", "Version "]);
  imported("first:1");
  await expect.poll(() => calls.splice(0)).toEqual(["ImageStatus second:1", "ImageStatus never:1"]);
  imported("second:1");
  expect(await second).toBe("sha256:second:1");
  await expect.poll(() => calls.splice(0)).toEqual(["ImageStatus second:1", "ImageStatus never:1"]);
  over();
  expect(await never).toBe(undefined);
  await pulled;
  expect(calls.splice(0).sort()).toEqual(["ImageStatus never:1", "PullImage never:1"]);
  await status("nowhere:1");
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
