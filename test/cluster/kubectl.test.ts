/**
 * kubectl in several versions says the same things as on any Kubernetes: scenarios of commands (kubectl/*.txt; kubectl/scenario.ts says how to read them).
 * Versions: the one in the binary, those that $KUBECTLS names (separated by colons), and those the Google Cloud CLI's package brings, where it is installed.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, test } from "vitest";
import { Host, switchDown } from "./host.ts";
import { differs, scenario } from "./kubectl/scenario.ts";

const CLOUD = "/usr/lib/google-cloud-sdk/bin/kubectl.1.";
const others = process.env["KUBECTLS"]?.split(":").filter((path) => path !== "") ?? [27, 30, 32, 33].map((minor) => `${CLOUD}${minor}`).filter((path) => existsSync(path));
/** kubectl before 1.34 reads before it has made its streams: it then says so of the empty message by which a server shows that the way is open. */
const TOO_EARLY = /^E\d{4} .*\] Unknown stream id 1, discarding message\n/gm;
/** Hundreds of commands, on a machine that may be busy with others. */
const LONG_MS = 900_000;
/** Of the server's, where something differs: it may be told there why. */
const WARNINGS_SHOWN = 20;
let host: Host;

beforeAll(async () => {
  host = await Host.withBusybox("kubectl", "172.30.0.12");
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

/** One kubectl and the directory in which it keeps to itself. */
interface Player {
  readonly kubectl: string;
  readonly player: number;
}
const players: readonly Player[] = ["coracle kubectl", ...others].map((kubectl, player) => ({ kubectl, player }));

/** How what it says differs from what it should say, step by step. */
async function play(name: string, { kubectl, player }: Player): Promise<string> {
  const program = kubectl === "coracle kubectl" ? `${host.binary} kubectl` : kubectl;
  const { clientVersion } = JSON.parse(await host.sh(`${program} version --client -o json`));
  const version = [Number(clientVersion.major), parseInt(clientVersion.minor)] as const;
  const directory = `${host.directory}/player-${player}`, home = `${directory}/${name}`;
  await host.sh(`mkdir -p ${home} && printf '#!/bin/sh\\nexec ${program} "$@"\\n' > ${directory}/kubectl && chmod +x ${directory}/kubectl && cp ${host.kubeconfig} ${home}/config`);
  const differences: string[] = [];
  for (const step of scenario(readFileSync(join(import.meta.dirname, `kubectl/${name}.txt`), "utf8"), { version, player })) {
    const { code, stdout } = await host.run(["env", `HOME=${home}`, `KUBECONFIG=${home}/config`, `PATH=${directory}:/usr/sbin:/usr/bin:/sbin:/bin`, "sh", "-c", `exec 2>&1; ${step.command}`], step.input === undefined ? {} : { input: step.input });
    const difference = differs(step, { text: stdout.replace(TOO_EARLY, ""), code });
    if (difference) differences.push(`${name} ${difference}`);
  }
  if (differences.length > 0) differences.push(`the server's warnings:\n${host.log().split("\n").filter((line) => /"level":"(warn|error|fatal)"/.test(line)).slice(-WARNINGS_SHOWN).join("\n")}`);
  return differences.join("\n\n");
}

// In namespaces of their own, all at once.
test.concurrent.for(players)("$kubectl says what it should of objects and of workloads", { timeout: LONG_MS }, async (player, { expect }) => {
  expect(await play("objects", player)).toBe("");
  expect(await play("workloads", player)).toBe("");
});

// The node is one for all: it is tainted, cordoned and drained.
test.for(players)("$kubectl says what it should of nodes", { timeout: LONG_MS }, async (player, { expect }) => {
  expect(await play("nodes", player)).toBe("");
});
