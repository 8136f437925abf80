import { type Counter, type Histogram, metrics, type UpDownCounter } from "@opentelemetry/api";

let duration: Histogram | undefined;
let running: UpDownCounter | undefined;
let refusals: Counter | undefined;

/**
 * Records a handled request as `trellis.rpc.server.duration`, seconds from its admission to the return of its handler;
 * labels are the action's name and how it ended, never ids or subjects.
 */
export function recordServed(action: string, outcome: "ok" | "error", ms: number): void {
  duration ??= metrics.getMeter("trellis").createHistogram("trellis.rpc.server.duration", {
    unit: "s",
    description: "Time that handlers take, by action and outcome",
  });
  duration.record(ms / 1_000, { action, outcome });
}

/** Counts requests whose handlers run, as `trellis.rpc.server.running`. */
export function recordRunning(change: 1 | -1): void {
  running ??= metrics.getMeter("trellis").createUpDownCounter("trellis.rpc.server.running", {
    description: "Requests whose handlers run",
  });
  running.add(change);
}

export function recordAdmissionRefusal(): void {
  refusals ??= metrics.getMeter("trellis").createCounter("trellis.rpc.admission.refusals", {
    description: "Requests turned away because the service was full",
  });
  refusals.add(1);
}
