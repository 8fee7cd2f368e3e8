/** Which function answers which verb of a stored resource. */
import type { ResourceHandler } from "../scope.ts";
import { deleteCollection, deleteObject } from "./delete.ts";
import { getObject } from "./get.ts";
import { listObjects } from "./list.ts";
import { watchObjects } from "./watch.ts";
import { createObject, patchObject, updateObject } from "./write.ts";

export const VERBS: Readonly<Record<string, ResourceHandler>> = {
  get: getObject,
  list: listObjects,
  watch: watchObjects,
  create: createObject,
  update: updateObject,
  patch: patchObject,
  delete: deleteObject,
  deletecollection: deleteCollection,
};
