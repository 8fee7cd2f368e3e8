/**
 * `coracle node revoke|allow|list`: a machine that is stolen, lost or sold is not to be a node any more, though it still has a certificate. Run it on the
 * server, or with a kubeconfig of an administrator. What is written, and who reads it: core/pki/revocation.ts.
 */
import type { ConfigMap } from "../core/api/gen/core.v1.ts";
import { ifFound } from "../core/api/meta/if-found.ts";
import type { NewObject } from "../core/api/meta/object-meta.ts";
import { isConflict } from "../core/api/meta/status-error.ts";
import type { Client } from "../core/client/client.ts";
import { REVOKED_NODES } from "../core/client/cluster-objects.ts";
import { CONFIG_MAPS, LEASES, NODES } from "../core/client/resources.ts";
import { systemClock, timestamp } from "../core/lifecycle/clock.ts";
import { MACHINE_ANNOTATION } from "../core/pki/machine-key.ts";
import { allowed, formatRevocation, readRevocation, type Revocation, revoked } from "../core/pki/revocation.ts";
import { connect } from "./admin-client.ts";
import { ConfigError } from "./config/config.ts";

const USAGE = `Usage: coracle node revoke NAME…   no certificate of the node is accepted any more, its machine cannot join again, and its Node is deleted
       coracle node allow NAME…    a machine may join under this name again, with a token; old certificates stay refused
       coracle node list           what is revoked

  --force          revoke NAME although there is no Node of this name: it was deleted, or has not joined yet
  --kubeconfig     default: $KUBECONFIG, else the one the server wrote

Whoever has the machine has what was on it: the token it joined with (see coracle token list; the one in <data-dir>/server/token is good for ever), and
copies of the Secrets its pods used.`;

const TRIES_MAX = 5;

export async function node(argv: readonly string[]): Promise<number> {
  const words = argv.filter((word, at) => !word.startsWith("-") && argv[at - 1] !== "--kubeconfig");
  const [command, ...names] = words;
  if (command === undefined || command === "help" || argv.includes("--help") || argv.includes("-h")) {
    console.log(USAGE);
    return argv.length === 0 ? 2 : 0;
  }
  const act = new Map(Object.entries({ revoke, allow, list })).get(command);
  const unknown = argv.find((word) => word.startsWith("-") && !/^--kubeconfig(=|$)/.test(word) && !(word === "--force" && command === "revoke"));
  if (!act || unknown !== undefined) throw new ConfigError(`unknown ${unknown === undefined ? `command ${JSON.stringify(command)}` : `flag ${unknown}`}\n\n${USAGE}`);
  if (act === list && names.length > 0) throw new ConfigError(`"coracle node list" takes no names, and there is ${JSON.stringify(names[0])}`);
  if (act !== list && names.length === 0) throw new ConfigError("which node? see: coracle kubectl get nodes");
  const kubeconfig = argv.find((word) => word.startsWith("--kubeconfig="))?.slice("--kubeconfig=".length) ?? argv[argv.indexOf("--kubeconfig") + 1 || argv.length];
  return await act(connect(kubeconfig, "coracle-node").client, names, { signal: AbortSignal.timeout(30_000), force: argv.includes("--force") });
}

interface Call { readonly signal: AbortSignal; readonly force: boolean }

/** As kubectl deletes: what is not there is told, and the others are dealt with all the same. */
async function revoke(client: Client, names: readonly string[], { signal, force }: Call): Promise<number> {
  let missing = 0;
  for (const name of names) {
    const servers = await client.resource(LEASES).list({ namespace: "kube-system", labelSelector: `apiserver.kubernetes.io/identity=kube-apiserver,kubernetes.io/hostname=${name}` }, { signal });
    if (servers.items.length > 0) throw new ConfigError(`node ${name} is a server: it has the keys certificates are signed with, and cannot be revoked`);
    const found = await ifFound(client.resource(NODES).get({ metadata: { name } }, { signal }));
    if (!found && !force) {
      console.error(`Error from server (NotFound): nodes ${JSON.stringify(name)} not found: nothing is revoked; if its Node was deleted before, say --force`);
      missing++;
      continue;
    }
    const machine = found?.metadata.annotations?.[MACHINE_ANNOTATION];
    await change(client, name, (before) => revoked(before, { machine, now: timestamp(systemClock.nowMs()) }), signal);
    if (found) await ifFound(client.resource(NODES).delete(found, {}, { signal }));
    console.log(`node ${name} revoked: its certificates are refused from now on${found ? ", and its Node is deleted" : "; there is no Node of this name"}`);
    if (found && machine === undefined) console.error(`node ${name} did not say which machine it is: whoever has a token may join under this name again`);
  }
  return missing === 0 ? 0 : 1;
}

async function allow(client: Client, names: readonly string[], { signal }: Call): Promise<number> {
  let missing = 0;
  for (const name of names) {
    const known = await change(client, name, (before) => before && allowed(before), signal);
    if (known) console.log(`node ${name}: a machine may join under this name again, with a token`);
    else console.error(`node ${name} is not revoked`);
    if (!known) missing++;
  }
  return missing === 0 ? 0 : 1;
}

async function list(client: Client, _names: readonly string[], { signal }: Call): Promise<number> {
  const found = await ifFound(client.resource(CONFIG_MAPS).get(REVOKED_NODES, { signal }));
  const rows = Object.entries(found?.data ?? {}).map(([name, text]) => {
    const { since, machines, certificates } = readRevocation(text)!;
    return [name, since || "-", machines.length === 0 ? "any machine may join" : `${machines.length} machine${machines.length === 1 ? "" : "s"} may not join`, String(Object.keys(certificates).length)];
  });
  const table = [["NODE", "REVOKED", "JOINING", "CERTIFICATES SINCE"], ...rows];
  const widths = table[0]!.map((_, column) => Math.max(...table.map((row) => row[column]!.length)));
  for (const row of table) console.log(row.map((cell, column) => cell.padEnd(widths[column]!)).join("   ").trimEnd());
  return 0;
}

/** False: `next` had nothing to say. */
async function change(client: Client, name: string, next: (before: Revocation | undefined) => Revocation | undefined, signal: AbortSignal): Promise<boolean> {
  const configMaps = client.resource(CONFIG_MAPS);
  for (let tries = 1; ; tries++) {
    const current = await ifFound(configMaps.get(REVOKED_NODES, { signal }));
    const entry = next(readRevocation(current?.data?.[name]));
    if (!entry) return false;
    const data = { ...current?.data, [name]: formatRevocation(entry) };
    try {
      if (current) await configMaps.update({ ...current, data }, { signal });
      else await configMaps.create({ apiVersion: "v1", kind: "ConfigMap", metadata: { ...REVOKED_NODES.metadata }, data } satisfies NewObject<ConfigMap>, { signal });
      return true;
    } catch (error) {
      if (!isConflict(error) || tries === TRIES_MAX) throw error; // a certificate was just issued
    }
  }
}
