import { type Counter, metrics } from "@opentelemetry/api";

let handled: Counter | undefined;

/** How a delivery of an event ended. */
export type EventOutcome = "ok" | "retry" | "dead";

/** Counts a handled event; labels are the event's name and how it ended, never ids or subjects. */
export function recordEvent(event: string, outcome: EventOutcome): void {
  handled ??= metrics.getMeter("trellis").createCounter("trellis.event.handled", {
    description: "Deliveries of events, by event and outcome",
  });
  handled.add(1, { event, outcome });
}
