/** A machine of a test's (test/cluster/host.ts) as an installed one is: what ends is started again. */
import { readFileSync } from "node:fs";
import { eventually, type Host } from "../cluster/host.ts";
import { mountDisk } from "./machine.ts";

/** A machine whose Coracle is started again when it ends, as systemd and OpenRC do. */
export class Machine {
  readonly host: Host;
  readonly #command: string;
  flags: readonly string[];
  /** Undefined: the machine's own. */
  nodeName: string | undefined;

  constructor(host: Host, command: "server" | "agent", flags: readonly string[]) {
    this.host = host;
    this.#command = command;
    this.flags = flags;
    this.nodeName = host.name;
  }

  async start(): Promise<void> {
    const { directory, binary } = this.host;
    const name = this.nodeName === undefined ? [] : ["--node-name", this.nodeName];
    const loop = `echo $$ > ${directory}/supervisor.pid; while :; do "$@" >>${directory}/coracle.log 2>&1 & echo $! > ${directory}/coracle.pid; wait $!; sleep 1; done`;
    await this.host.ok(["sh", "-c", `setsid sh -c '${loop}' sh "$@" </dev/null >/dev/null 2>&1 &`, "sh", binary, this.#command, "--kubelet-arg", "eviction-hard=memory.available<100Mi", ...name, ...this.flags]);
  }

  async stop(signal: "TERM" | "KILL" = "KILL"): Promise<void> {
    await this.host.sh(`kill -9 $(cat ${this.host.directory}/supervisor.pid)`);
    await this.host.kill(signal);
  }

  /** The plug is pulled, with time to write everything; nothing of ours runs afterwards. */
  async reboot(address = this.host.address): Promise<void> {
    await this.host.reboot(address);
    await mountDisk(this.host);
  }

  /** What it has logged since the mark, as lines. */
  said(since = 0): string[] {
    return readFileSync(`${this.host.directory}/coracle.log`, "utf8").slice(since).split("\n").filter(Boolean);
  }

  mark(): number {
    return readFileSync(`${this.host.directory}/coracle.log`, "utf8").length;
  }

  /** Waits until it has logged that. */
  async says(what: RegExp, since = 0): Promise<string> {
    return await eventually(`${this.host.name} says ${what}`, async () => this.said(since).findLast((line) => what.test(line)), 120_000);
  }
}
