import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sendDatagram } from "./notify-socket.ts";

/** Perl is on every Debian; neither Bun nor Node hears datagrams of unix sockets. */
const LISTEN = String.raw`use Socket; $| = 1; socket(S, AF_UNIX, SOCK_DGRAM, 0) or die; my $name = $ARGV[0]; $name =~ s/^@/\0/;
  bind(S, $name =~ /^\0/ ? pack("S", AF_UNIX) . $name : pack_sockaddr_un($name)) or die $!; print "listens\n"; recv(S, my $text, 100, 0); print $text;`;

test.each(["path", "abstract"])("a datagram reaches a socket by its %s", async (kind) => {
  const directory = mkdtempSync(join(tmpdir(), "notify-"));
  const socket = kind === "path" ? join(directory, "socket") : `@coracle-test-${process.pid}`;
  const listener = spawn("perl", ["-e", LISTEN, socket], { stdio: ["ignore", "pipe", "inherit"] });
  let heard = "";
  listener.stdout.on("data", (bytes: Buffer) => { heard += bytes.toString(); });
  await expect.poll(() => heard).toBe("listens\n");
  sendDatagram(socket, "READY=1");
  await once(listener, "close");
  expect(heard).toBe("listens\nREADY=1");
  rmSync(directory, { recursive: true });
});

test("nobody there is an error that says so", () => {
  expect(() => sendDatagram("/run/no-such-socket", "READY=1")).toThrow("unix socket /run/no-such-socket: No such file or directory");
});
