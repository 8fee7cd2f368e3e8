/**
 * What the node itself may pull with, for all pods: a docker configuration where the kubelet's, and docker's, is looked for. The first file that can be read as one counts, alone.
 *
 * Source: kubernetes v1.36 pkg/credentialprovider/config.go (ReadDockerConfigFile)
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Log } from "../../../core/observe/log.ts";
import { type Entry, parseDockerConfig } from "./keyring.ts";

interface Places {
  /** The kubelet's directory. */
  readonly dataDir: string;
  /** What this process was started in; "": that is not looked into. */
  readonly workingDir: string;
  /** Of the user that this process runs as; "": it has none. */
  readonly home: string;
}

interface DockerConfigFile { readonly path: string; /** In the older form, without "auths". */ readonly legacy: boolean }

/** In the order in which they are looked for. */
export function dockerConfigFiles({ dataDir, workingDir, home }: Places): DockerConfigFile[] {
  const own = [dataDir, workingDir].filter((directory) => directory !== "");
  const docker = [home, "/"].filter((directory) => directory !== "");
  return [
    ...[...own, ...docker.map((directory) => join(directory, ".docker"))].map((directory) => ({ path: join(directory, "config.json"), legacy: false })),
    ...[...own, ...docker].map((directory) => ({ path: join(directory, ".dockercfg"), legacy: true })),
  ];
}

export function nodeCredentials(files: readonly DockerConfigFile[], log: Log): Entry[] {
  for (const { path, legacy } of files) {
    try {
      return parseDockerConfig(readFileSync(path, "utf8"), { legacy });
    } catch (error) {
      if (!["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) log.error("a file of the node's credentials for registries cannot be read, images are pulled without it", { path, error });
    }
  }
  return [];
}
