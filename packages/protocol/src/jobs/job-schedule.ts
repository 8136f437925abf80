import { Cron } from "croner";
import type { Port } from "../port/port.ts";
import { derivedJobId } from "./job-key.ts";

/** A time table: five or six cron fields in an IANA time zone. */
export interface JobTimetable {
  readonly cron: string;
  readonly timeZone: string;
}

/** Why a time table cannot be kept; `undefined` when it can. */
export function timetableProblem(timetable: JobTimetable): string | undefined {
  try {
    // Asking for an instant is what makes it look at the time zone.
    return nextSlot(timetable, 0) === undefined ? "it never fires" : undefined;
  } catch (error) {
    return error instanceof Error ? error.message : "it cannot be read";
  }
}

/**
 * The first slot after an instant, both ms since the epoch; `undefined` when there is none. Where clocks are put
 * forward, a time that is skipped fires once, at the next instant that exists; where they are put back, a time that
 * comes twice fires once, the first time. What recurs every so many minutes just goes on.
 */
export function nextSlot(timetable: JobTimetable, after: number): number | undefined {
  return cronOf(timetable).nextRun(new Date(after))?.getTime();
}

/** The last slot at or before an instant. */
export function latestSlot(timetable: JobTimetable, now: number): number | undefined {
  const cron = cronOf(timetable);
  // Slots lie on whole seconds; the one of this very second counts.
  const before = Math.floor(now / 1_000) * 1_000;
  const candidate = cron.previousRuns(1, new Date(before + 1_000))[0]?.getTime();
  if (candidate === undefined) return undefined;
  // The way back does not know of times that were skipped: the way forward decides.
  const next = cron.nextRun(new Date(candidate))?.getTime();
  return next !== undefined && next <= now ? next : candidate <= now ? candidate : undefined;
}

function cronOf({ cron, timeZone }: JobTimetable): Cron {
  return new Cron(cron, { timezone: timeZone, paused: true });
}

/** The id of the job of one slot: whoever fires it, and however often, it is one job. */
export function slotJobId(port: Port, slot: { queue: string; schedule: string; at: number }): string {
  return derivedJobId(port, "schedule", [slot.queue, slot.schedule, String(slot.at)]);
}
