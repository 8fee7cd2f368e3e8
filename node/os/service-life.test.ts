/** The Windows service, as far as it can be tried here: its C between pretended calls of Windows, and what is made of what it notes. */
import { cc } from "bun:ffi";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { systemClock as clock } from "../../core/lifecycle/clock.ts";
import { silentLog as log } from "../../core/observe/log.ts";
import source from "./service.c.txt" with { type: "text" };
import { type Asked, serviceLife } from "./service-life.ts";

/** Calls what a service manager calls, and keeps what it is told. */
const PRETENDED = `
static void (*kept_main)(u32, unsigned short **); static u32 (*kept_handler)(u32, u32, void *, void *); static u32 told[3];
static int fake_dispatch(const entry_t *table) { kept_main = table[0].main; return 1; }
static handle fake_register(const unsigned short *of, u32 (*handler)(u32, u32, void *, void *), void *context) { kept_handler = handler; return (handle)1; }
static int fake_set(handle of, status_t *now) { told[0] = now->state; told[1] = now->accepted; told[2] = now->check_point; return 1; }
static handle fake_thread(void *a, unsigned long long b, u32 (*work)(void *), void *c, u32 d, u32 *e) { work(0); return (handle)1; }
static u32 fake_error(void) { return 0; }
static void fake_sleep(u32 ms) { ended = 1; }
int try_start(void) { int started = service_start(fake_dispatch, fake_register, fake_set, fake_thread, fake_error, fake_sleep, (const unsigned short *)"c\\0\\0\\0"); kept_main(0, 0); return started; }
u32 try_control(u32 control) { return kept_handler(control, 0, 0, 0); }
u32 try_told(u32 which) { return told[which]; }
`;

test("the manager is told that the service runs and hears of shutdowns in time; what it asks is noted; while the service ends it says so", () => {
  const directory = mkdtempSync(join(tmpdir(), "service-"));
  writeFileSync(join(directory, "service.c"), source + PRETENDED);
  const none = { args: [], returns: "u32" } as const, one = { args: ["u32"], returns: "u32" } as const;
  const { symbols: c } = cc({ source: join(directory, "service.c"), symbols: { try_start: { args: [], returns: "int" }, try_control: one, try_told: one, service_running: none, service_stop_asked: none, service_shutdown_asked: none, service_still_ending: { args: [], returns: "void" } } });
  rmSync(directory, { recursive: true });
  const told = (): number[] => [0, 1, 2].map((which) => c.try_told(which));
  expect([c.try_start(), c.service_running(), told()]).toEqual([1, 1, [4, 1 | 4 | 256, 0]]); // running; stop, shutdown, preshutdown
  expect([c.try_control(4), c.try_control(99)]).toEqual([0, 120]);
  expect([c.service_stop_asked(), c.service_shutdown_asked()]).toEqual([0, 0]);
  expect([c.try_control(15), c.service_stop_asked(), c.service_shutdown_asked(), told()]).toEqual([0, 0, 1, [3, 0, 1]]);
  c.service_still_ending();
  expect(told()).toEqual([3, 0, 2]); // a step further: it is not dead
  expect([c.try_control(1), c.service_stop_asked()]).toEqual([0, 1]);
});

function manager() {
  const seen = { asked: undefined as Asked, waitMs: 0, steps: 0, refuses: false };
  const life = serviceLife({ asked: () => seen.asked, waitFor(ms) { if (seen.refuses) throw new Error("no"); seen.waitMs = ms; }, stillEnding: () => void seen.steps++ }, { clock: { after: (ms, work) => clock.after(ms / 50, work) }, log });
  return { seen, ...life };
}

test("a machine that shuts down waits until who listens is done, and then the service ends; one that is told to stop ends at once", async () => {
  const { seen, signal, notices } = manager();
  const { promise: podsEnded, resolve: endPods } = Promise.withResolvers<void>();
  const heard: boolean[] = [];
  const quit = new AbortController();
  const listening = notices.run((down) => { heard.push(down); return podsEnded; }, 30_000, quit.signal);
  expect(seen.waitMs).toBe(40_000);
  seen.asked = "shutdown";
  await expect.poll(() => seen.steps).toBeGreaterThan(2);
  expect([heard, signal.aborted]).toEqual([[true], false]);
  endPods();
  await expect.poll(() => signal.aborted).toBe(true);
  quit.abort();
  await listening;

  const stopped = manager();
  stopped.seen.refuses = true;
  void stopped.notices.run(() => new Promise(() => undefined), 30_000, new AbortController().signal); // goes on all the same
  stopped.seen.asked = "stop";
  await expect.poll(() => stopped.signal.aborted).toBe(true);
});

test("where pods are not waited for, nobody listens, and a shutdown ends the service at once", async () => {
  const { seen, signal } = manager();
  seen.asked = "shutdown";
  await expect.poll(() => signal.aborted).toBe(true);
});
