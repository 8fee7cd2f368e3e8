import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { registriesOf } from "./registries-file.ts";

test("texts are as they stand there, and null is nothing, as templates write it", () => {
  const directory = mkdtempSync(join(tmpdir(), "registries-"));
  const path = join(directory, "registries.yaml");
  writeFileSync(path, "mirrors: {docker.io: null, '*': ~}\nconfigs: {x: {auth: {username: 007, password: 'null', identity_token: null}, tls: null}}\n");
  expect(registriesOf(path)).toEqual({ mirrors: { "docker.io": { endpoint: [] }, "*": { endpoint: [] } }, configs: { x: { auth: { username: "007", password: "null" } } } });
  rmSync(directory, { recursive: true });
});
