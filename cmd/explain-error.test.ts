import { expect, test } from "vitest";
import { explain } from "../storage/disk.ts";
import { StoreError } from "../storage/store.ts";
import { explainError } from "./explain-error.ts";

test("an error tells what was done and why it failed, each once", async () => {
  const cause = new Error("EACCES: permission denied, mkdir '/x'");
  expect(explainError(new Error("the data directory cannot be used", { cause }))).toBe("the data directory cannot be used\n  because: EACCES: permission denied, mkdir '/x'");
  expect(explainError(new Error("/etc/coracle/config.yaml: no end at line 2:\n\nfoo: [\n", { cause: new Error("no end at line 2:\n\nfoo: [\n") }))).toBe("/etc/coracle/config.yaml: no end at line 2:\n\nfoo: [");
  expect(explainError(new AggregateError([cause, new Error("another")], "part failed"))).toBe("part failed\n  because: EACCES: permission denied, mkdir '/x'");
  expect(explainError(new StoreError("locked", { path: "/db", reason: "another process has the store open", remedy: "stop that first" }))).toBe("/db: another process has the store open; stop that first");
  expect(explainError(explain(Object.assign(new Error("ENOENT: no such file or directory, open '/usb/a.partial'"), { code: "ENOENT" }), "/usb/a"))).toMatch(/^\/usb\/a: no such file or directory; .*\n  because: ENOENT: no such file or directory, open '\/usb\/a.partial'$/);
  const ofSystem = (code: string): Error => new Error("container-runtime failed", { cause: Object.assign(new Error(`${code}: rm '/x'`), { code }) });
  expect(explainError(ofSystem("EROFS"))).toBe("container-runtime failed\n  because: EROFS: rm '/x'\n  what to do: the disk may be failing: the system's log tells (dmesg); check it and mount it again, or use another one");
  expect(explainError(ofSystem("ENOSPC"))).toContain("\n  what to do: free some space");
  expect(explainError(explain(Object.assign(new Error("ENOSPC: no space left on device, write"), { code: "ENOSPC" }), "/db"))).not.toContain("what to do"); // it has been said
  const late = await new Promise((resolve) => { const signal = AbortSignal.timeout(1); signal.onabort = () => resolve(signal.reason); });
  expect(explainError(late)).toMatch(/^there was no answer in time\n  what to do: try again; .*disk does not answer/);
  expect(explainError("SIGTERM")).toBe("SIGTERM");
});
