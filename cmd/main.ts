/**
 * argv → a command. `coracle` under another name (kubectl, ctr, crictl: symbolic links) is that tool.
 *
 *   0  done        1  failed        2  asked for something that cannot be
 */
import { basename } from "node:path";
import { ConfigError } from "./config/config.ts";
import { setEngine } from "./engine-settings.ts";
import { explainError } from "./explain-error.ts";
import { endWithReader } from "./gone-reader.ts";
import { hideToken } from "./hidden-token.ts";
import { straightToThisMachine } from "./proxy-environment.ts";
import { terminalText } from "./terminal-text.ts";

type Command = (argv: readonly string[]) => Promise<number>;

const COMMANDS: Readonly<Record<string, { readonly help: string; readonly load: () => Promise<Command> }>> = {
  server: { help: "run the control plane, and a node unless --disable-agent", load: async () => (await import("./server.ts")).server },
  agent: { help: "join this machine to a server as a node", load: async () => (await import("./agent.ts")).agent },
  install: { help: "install this executable as a service: a server, or an agent of one", load: async () => (await import("./install.ts")).install },
  token: { help: "create, list, delete: tokens with which machines join", load: async () => (await import("./token.ts")).token },
  node: { help: "revoke, allow, list: nodes whose machines are not to come back", load: async () => (await import("./revoke-node.ts")).node },
  simulate: { help: "join nodes without machines, to see what a large cluster asks of a server", load: async () => (await import("./simulate.ts")).simulate },
  "explain-scheduling": { help: "why a pod is where it is, or where it cannot go", load: async () => (await import("./explain-scheduling.ts")).explainScheduling },
  kubectl: { help: "the bundled kubectl", load: async () => (await import("./tools.ts")).kubectl },
  ctr: { help: "the bundled containerd client", load: async () => (await import("./tools.ts")).ctr },
  crictl: { help: "pods, containers and images as this node's runtime sees them", load: async () => (await import("./crictl.ts")).crictl },
  images: { help: "import FILE… | list | remove NAME…: images of this node", load: async () => (await import("./images.ts")).images },
  "secrets-encrypt": { help: "status, rotate-keys …: keys Secrets are encrypted with at rest", load: async () => (await import("./secrets-encrypt.ts")).secretsEncrypt },
  snapshot: { help: "save, list, delete, restore: copies of all objects, taken while the server runs", load: async () => (await import("./snapshot.ts")).snapshot },
  check: { help: "look for damage in the data directory; --repair mends what can be", load: async () => (await import("./check.ts")).check },
  version: { help: "print the version", load: async () => (await import("./version.ts")).version },
};

/** Not for people: coracle and its installer start them themselves. */
const INTERNAL: typeof COMMANDS = {
  "check-settings": { help: "", load: async () => (await import("./check-settings.ts")).checkSettings },
  unpack: { help: "", load: async () => (await import("./unpack.ts")).unpack },
};

/** Those that go on for long. */
const LASTING = new Set(["server", "agent", "simulate"]);

const TOOLS = new Set(["kubectl", "ctr", "crictl"]);

async function main(argv: readonly string[], invokedAs: string): Promise<number> {
  const tool = TOOLS.has(invokedAs) ? invokedAs : undefined;
  const name = tool ?? argv[0];
  const rest = tool ? argv : argv.slice(1);
  if (name !== "install") Object.assign(process.env, straightToThisMachine(process.env)); // its script keeps for later what the environment says, and nothing that it does not say
  if (name === undefined || name === "help" || name === "--help" || name === "-h") {
    console.log(help());
    return name === undefined ? 2 : 0;
  }
  const word = name === "--version" || name === "-v" ? "version" : name;
  const command = [COMMANDS, INTERNAL].find((some) => Object.hasOwn(some, word))?.[word];
  if (!command) {
    console.error(`coracle: unknown command ${JSON.stringify(name)}\n\n${help()}`);
    return 2;
  }
  if (LASTING.has(name)) {
    setEngine({ env: process.env, argv0: process.argv0, argv });
    hideToken();
  } else endWithReader(process);
  return (await command.load())(rest);
}

function help(): string {
  const rows = Object.entries(COMMANDS).map(([name, { help: text }]) => `  coracle ${name}`.padEnd(30) + text);
  return ["Coracle: Kubernetes for the edge in one file", "", ...rows, "", "Each command explains itself with --help."].join("\n");
}

main(process.argv.slice(2), basename(process.argv0)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(`coracle: ${terminalText(explainError(error))}`);
    process.exit(error instanceof ConfigError ? 2 : 1);
  },
);
