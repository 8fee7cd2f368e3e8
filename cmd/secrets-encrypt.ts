/**
 * `coracle secrets-encrypt status|rotate-keys|prune|disable|enable`: the keys Secrets are encrypted with at rest. Run it on the server, whether or not it
 * is running: it changes <data-dir>/server/encryption.yaml, which a running server reads again within seconds.
 */
import { stringify } from "yaml";
import { parseYaml } from "../core/api/codec/yaml.ts";
import { fileText } from "../core/lifecycle/file-text.ts";
import { systemRandom } from "../core/lifecycle/random.ts";
import { writeDurably } from "../core/pki/durable-file.ts";
import { ConfigError } from "./config/config.ts";
import { type EncryptionState, fileHash, newKey, type OwnKey, ownConfiguration, stateFile } from "./encryption.ts";
import { paths } from "./paths.ts";
import { machineSettings, mustReach } from "./tools.ts";

const USAGE = `Usage: coracle secrets-encrypt status         which key is used, and whether all Secrets are under it
       coracle secrets-encrypt rotate-keys    makes a new key; the server encrypts all Secrets anew
       coracle secrets-encrypt prune          forgets keys no Secret is under; backups made before need them
       coracle secrets-encrypt disable        Secrets are decrypted, and no longer encrypted
       coracle secrets-encrypt enable         takes that back

  --data-dir       of which server; default: the one that is installed here

Encryption is turned on with coracle server --secrets-encryption.`;

type Command = "status" | "rotate-keys" | "prune" | "disable" | "enable";
const COMMANDS: readonly Command[] = ["status", "rotate-keys", "prune", "disable", "enable"];
function isCommand(word: string): word is Command { return COMMANDS.some((one) => one === word); }

interface Own { readonly keys: readonly OwnKey[]; readonly enabled: boolean }

export async function secretsEncrypt(argv: readonly string[]): Promise<number> {
  const [command, ...rest] = argv;
  if (command === undefined || command === "help" || argv.includes("--help") || argv.includes("-h")) {
    console.log(USAGE);
    return command === undefined ? 2 : 0;
  }
  if (!isCommand(command)) throw new ConfigError(`unknown command ${JSON.stringify(command)}\n\n${USAGE}`);
  const word = rest.find((one, i) => !one.startsWith("-") && !/^--[^=]+$/.test(rest[i - 1] ?? "")); // what follows a flag may be its value
  if (word !== undefined) throw new ConfigError(`"coracle secrets-encrypt ${command}" takes no names, and there is ${JSON.stringify(word)}`);
  const { dataDir } = machineSettings(rest);
  const file = paths(dataDir).encryption;
  mustReach(file);
  const text = await fileText(file);
  if (text === undefined) throw new ConfigError(`${file}: no such file: Secrets are not encrypted; start the server with --secrets-encryption`);
  const own = ownOf(text, file);
  const state = stateOf(await fileText(stateFile(file)), text);
  switch (command) {
    case "status": return status(own, state);
    case "rotate-keys": return await change({ keys: [newKey(nextName(own.keys), systemRandom), ...own.keys], enabled: own.enabled }, "a new key is in use: all Secrets are encrypted anew");
    case "enable": return await change({ ...own, enabled: true }, "all Secrets are encrypted");
    case "disable": return await change({ ...own, enabled: false }, "all Secrets are decrypted");
    case "prune": {
      if (!state) throw new ConfigError("not yet: the server has not encrypted everything as the file says; see coracle secrets-encrypt status");
      const kept = own.keys.filter(({ name }, i) => i === 0 || state.rows[prefixOf(name)] !== undefined);
      return await change({ ...own, keys: kept }, `${own.keys.length - kept.length} keys are forgotten (what was saved before may hold Secrets under them: take a snapshot, coracle snapshot save)`);
    }
  }

  async function change(next: Own, told: string): Promise<number> {
    await writeDurably(file, stringify(ownConfiguration(next.keys, next)));
    console.log(`${told}, within seconds if the server is running, else when it starts; see coracle secrets-encrypt status`);
    return 0;
  }
}

function status({ keys, enabled }: Own, state: EncryptionState | undefined): number {
  console.log(`Encryption: ${enabled ? "enabled" : "disabled"}`);
  console.log(`Everything as it should be: ${state ? `yes, since ${state.at}` : "not yet"}`);
  for (const [i, { name }] of keys.entries()) console.log(`${enabled && i === 0 ? "*" : " "} secretbox  ${name}${state ? `  ${state.rows[prefixOf(name)] ?? 0} Secrets` : ""}`);
  if (state?.rows[""]) console.log(`  not encrypted  ${state.rows[""]} Secrets`);
  return 0;
}

function prefixOf(name: string): string { return `k8s:enc:secretbox:v1:${name}:`; }

function nextName(keys: readonly OwnKey[]): string { return `key${Math.max(0, ...keys.map(({ name }) => Number(/^key(\d+)$/.exec(name)?.[1] ?? 0))) + 1}`; }

/** Throws ConfigError for a file that is not as we write it. */
function ownOf(text: string, file: string): Own {
  const { resources } = parseYaml(text) as { resources?: { providers?: { secretbox?: { keys: OwnKey[] }; identity?: object }[] }[] };
  const providers = resources?.length === 1 ? resources[0]?.providers ?? [] : [];
  const keys = providers.find(({ secretbox }) => secretbox)?.secretbox?.keys;
  if (!keys) throw new ConfigError(`${file} was changed by hand: change its keys by hand, too`);
  return { keys, enabled: providers[0]?.identity === undefined };
}

/** Undefined: what is there was done under another file. */
function stateOf(text: string | undefined, configuration: string): EncryptionState | undefined {
  const state = text === undefined ? undefined : (JSON.parse(text) as EncryptionState);
  return state?.file === fileHash(configuration) ? state : undefined;
}
