import { type Counter, metrics } from "@opentelemetry/api";

let served: Counter | undefined;
let refusals: Counter | undefined;

/** Counts a handled request; labels are the action's name and how it ended, never ids or subjects. */
export function recordServed(action: string, outcome: "ok" | "error"): void {
  served ??= metrics.getMeter("trellis").createCounter("trellis.rpc.server.requests", {
    description: "Requests handled, by action and outcome",
  });
  served.add(1, { action, outcome });
}

export function recordAdmissionRefusal(): void {
  refusals ??= metrics.getMeter("trellis").createCounter("trellis.rpc.admission.refusals", {
    description: "Requests turned away because the service was full",
  });
  refusals.add(1);
}
