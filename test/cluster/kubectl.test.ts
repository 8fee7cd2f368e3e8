/**
 * kubectl in several versions says the same things as on any Kubernetes: scenarios of commands (kubectl/*.txt; kubectl/scenario.ts says how to read them).
 * Versions: the one in the binary, those that $KUBECTLS names (separated by colons), and those the Google Cloud CLI's package brings, where it is installed.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Host, switchDown } from "./host.ts";
import { differs, scenario } from "./kubectl/scenario.ts";

const CLOUD = "/usr/lib/google-cloud-sdk/bin/kubectl.1.";
const others = process.env["KUBECTLS"]?.split(":").filter((path) => path !== "") ?? [27, 30, 32, 33].map((minor) => `${CLOUD}${minor}`).filter((path) => existsSync(path));
/** kubectl before 1.34 reads before it has made its streams: it then says so of the empty message by which a server shows that the way is open. */
const TOO_EARLY = /^E\d{4} .*\] Unknown stream id 1, discarding message\n/gm;
let host: Host;

beforeAll(async () => {
  host = await Host.withBusybox("kubectl", "172.30.0.12");
});
afterAll(async () => {
  await host?.[Symbol.asyncDispose]();
  await switchDown();
});

describe.each(["coracle kubectl", ...others])("%s", (kubectl) => {
  test("says what it should", async () => {
    const program = kubectl === "coracle kubectl" ? `${host.binary} kubectl` : kubectl;
    const { clientVersion } = JSON.parse(await host.sh(`${program} version --client -o json`));
    const directory = `${host.directory}/${kubectl.split("/").at(-1)!.replace(" ", "-")}`;
    await host.sh(`mkdir -p ${directory} && printf '#!/bin/sh\\nexec ${program} "$@"\\n' > ${directory}/kubectl && chmod +x ${directory}/kubectl`);
    const play = async (name: string) => {
      const home = `${directory}/${name}`;
      await host.sh(`mkdir -p ${home} && cp ${host.kubeconfig} ${home}/config`);
      const differences: string[] = [];
      for (const step of scenario(readFileSync(join(import.meta.dirname, `kubectl/${name}.txt`), "utf8"), [Number(clientVersion.major), parseInt(clientVersion.minor)])) {
        const { code, stdout } = await host.run(["env", `HOME=${home}`, `KUBECONFIG=${home}/config`, `PATH=${directory}:/usr/sbin:/usr/bin:/sbin:/bin`, "sh", "-c", `exec 2>&1; ${step.command}`], step.input === undefined ? {} : { input: step.input });
        const difference = differs(step, { text: stdout.replace(TOO_EARLY, ""), code });
        if (difference) differences.push(`${name} ${difference}`);
      }
      return differences;
    };
    const apart = await Promise.all([play("objects"), play("workloads")]);
    expect([...apart.flat(), ...await play("nodes")].join("\n\n")).toBe("");
  });
});
