import { type Counter, metrics } from "@opentelemetry/api";

let opened: Counter | undefined;
let refused: Counter | undefined;

/** Counts an opened session; the label is the feed's name. */
export function recordFeedOpened(action: string): void {
  opened ??= metrics.getMeter("trellis").createCounter("trellis.feed.sessions.opened", {
    description: "Feed sessions opened, by feed",
  });
  opened.add(1, { action });
}

export function recordFeedRefused(): void {
  refused ??= metrics.getMeter("trellis").createCounter("trellis.feed.sessions.refused", {
    description: "Feed sessions turned away because the service was full or stopping",
  });
  refused.add(1);
}
