import { expect, test } from "vitest";
import type { ApiObject } from "../api/meta/object-meta.ts";
import { notFound, statusOf } from "../api/meta/status-error.ts";
import { staticInformer } from "../../test/static-informer.ts";
import type { ResourceClient } from "./client.ts";
import { lookup } from "./lookup.ts";

test("the server is asked for what the copy lacks, but not for a name that cannot stand in a path", async () => {
  const asked: string[] = [];
  const resource = { get: ({ metadata }: ApiObject) => { asked.push(metadata.name); return Promise.reject(notFound({ group: "", resource: "secrets" }, metadata.name)); } } as unknown as ResourceClient<ApiObject>;
  const { find } = lookup(staticInformer<ApiObject>(), resource);
  expect(await find("", "a", AbortSignal.timeout(60_000))).toBeUndefined();
  for (const [name, why] of [["a/b%", "[may not contain '/' may not contain '%']"], ["..", "[may not be '..']"]] as const)
    expect(statusOf(await find("", name, AbortSignal.timeout(60_000)).catch((error: unknown) => error))).toMatchObject({ code: 500, message: `invalid resource name "${name}": ${why}` });
  expect(asked).toEqual(["a"]);
});
