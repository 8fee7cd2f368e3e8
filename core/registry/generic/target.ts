/** What all writes of one resource go by. */
import type { GroupResource } from "../../api/meta/gvk.ts";
import type { Breathe } from "../../lifecycle/breather.ts";
import type { Random } from "../../lifecycle/random.ts";
import type { Commits } from "./commits.ts";
import type { Resource } from "./resource.ts";
import type { StoredResource } from "./stored-resource.ts";
import type { ResourceCache } from "./resource-cache.ts";

export interface Target {
  readonly resource: StoredResource;
  readonly definition: Resource;
  readonly groupResource: GroupResource;
  readonly cache: ResourceCache;
  readonly commits: Commits;
  readonly random: Random;
  /** Work that takes long lets others have their turns. */
  readonly breathers: () => Breathe;
  keyOf(namespace: string, name: string): string;
}
