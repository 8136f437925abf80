import { type Attributes, type Counter, type Histogram, metrics } from "@opentelemetry/api";

// Instruments are made at first use, so that a meter provider that the application registers late is found.
let connectDuration: Histogram | undefined;
let refreshes: Counter | undefined;

export interface ConnectRecord {
  readonly phase: "bootstrap" | "nats_connect" | "total";
  readonly kind: "service" | "client";
  readonly outcome: "ok" | "error";
  readonly ms: number;
}

/** Records one phase of a connect as `trellis.connect.duration`, seconds. */
export function recordConnect(record: ConnectRecord): void {
  connectDuration ??= metrics
    .getMeter("trellis")
    .createHistogram("trellis.connect.duration", { unit: "s", description: "Time to connect, by phase" });
  const attributes: Attributes = {
    phase: record.phase,
    "participant.kind": record.kind,
    outcome: record.outcome,
  };
  connectDuration.record(record.ms / 1_000, attributes);
}

export function recordRefresh(outcome: "ok" | "error"): void {
  refreshes ??= metrics
    .getMeter("trellis")
    .createCounter("trellis.refresh.outcomes", { description: "Authorization refreshes, by outcome" });
  refreshes.add(1, { outcome });
}
