/** Schedules against the plain reading of their fields, minute by minute. */
import { expect, test } from "vitest";
import { seededRandom, type SeededRandom } from "../../../test/simulator/seeded.ts";
import type { CronJob } from "../../api/gen/batch.v1.ts";
import { dueTime } from "./plan.ts";
import { parseSchedule } from "./schedule.ts";
import { UTC } from "./zone.ts";

/** A field as text, and what it means. */
function field(random: SeededRandom, min: number, max: number): { readonly text: string; readonly holds: (value: number) => boolean; readonly any: boolean } {
  const low = random.integer(min, max), high = random.integer(low, max), step = random.integer(2, 9);
  switch (random.integer(0, 4)) {
    case 0: return { text: String(low), holds: (value) => value === low, any: false };
    case 1: return { text: `${low}-${high}`, holds: (value) => value >= low && value <= high, any: false };
    case 2: return { text: `${low}-${high}/${step}`, holds: (value) => value >= low && value <= high && (value - low) % step === 0, any: false };
    case 3: return { text: `${low},${high}`, holds: (value) => value === low || value === high, any: false };
    default: return { text: "*", holds: () => true, any: true };
  }
}

test("the next time is the first minute whose fields all hold; with both days given either will do", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = seededRandom(seed);
    const [minute, hour, day, month, weekday] = [field(random, 0, 59), field(random, 0, 23), field(random, 1, 28), field(random, 1, 12), field(random, 0, 6)];
    const text = [minute, hour, day, month, weekday].map((one) => one.text).join(" ");
    const fromMs = Date.UTC(2026, random.integer(0, 11), random.integer(1, 28), random.integer(0, 23), random.integer(0, 59), random.integer(0, 59));
    const isDay = (date: Date): boolean => (day.any || weekday.any ? day.holds(date.getUTCDate()) && weekday.holds(date.getUTCDay()) : day.holds(date.getUTCDate()) || weekday.holds(date.getUTCDay()));
    let expected: number | undefined;
    for (let ms = Math.floor(fromMs / 60_000) * 60_000 + 60_000; ms < fromMs + 6 * 366 * 86_400_000 && expected === undefined; ) {
      const date = new Date(ms);
      if (!month.holds(date.getUTCMonth() + 1) || !isDay(date)) ms = Date.UTC(date.getUTCFullYear(), date.getUTCMonth(), date.getUTCDate() + 1);
      else if (hour.holds(date.getUTCHours()) && minute.holds(date.getUTCMinutes())) expected = ms;
      else ms += 60_000;
    }
    const found = parseSchedule(text, UTC).next(fromMs);
    expect(found === undefined ? undefined : new Date(found).toISOString(), `${text} after ${new Date(fromMs).toISOString()}`).toBe(expected === undefined ? undefined : new Date(expected).toISOString());
  }
});

test("whatever the distances between its times, the latest that was missed is due", () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = seededRandom(seed);
    const text = [field(random, 0, 59), field(random, 0, 23), field(random, 1, 28)].map((one) => one.text).join(" ") + " * *";
    const schedule = parseSchedule(text, UTC), fromMs = Date.UTC(2026, 0, 1), nowMs = fromMs + random.integer(1, 60 * 86_400) * 1000;
    let expected: number | undefined;
    for (let ms = schedule.next(fromMs); ms !== undefined && ms <= nowMs; ms = schedule.next(ms)) expected = ms;
    const cronJob = { metadata: { creationTimestamp: new Date(fromMs).toISOString().replace(".000", "") }, spec: {} } as CronJob;
    expect(dueTime(cronJob, schedule, nowMs).atMs, `${text} until ${new Date(nowMs).toISOString()}`).toBe(expected);
  }
});
