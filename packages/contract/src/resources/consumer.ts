import type { EventAction } from "../actions/event.ts";
import { DefinitionError } from "../errors/definition-error.ts";
import { type Duration, parseDuration, requireCount } from "../units.ts";
import { type RetryDefinition, type RetryPolicy, retryPolicy } from "./retry.ts";

/** Where a new consumer begins: with what comes now, with everything kept, or at an instant (RFC 3339). */
export type Replay = "new" | "all" | { readonly since: string };

/** Definition of a durable consumer of events, shared by all replicas of a service. */
export interface ConsumerDefinition<E extends EventAction> {
  readonly title?: string;
  /** Events of used or own APIs: `billing.events["Invoice.Paid"]`. */
  readonly events: readonly E[];
  /** Handlers that run at a time, per replica. Default 1. */
  readonly concurrency?: number;
  readonly replay?: Replay;
  readonly retry?: RetryDefinition;
  /** `"per-key"`: events with equal params go one after another. Default `"none"`. */
  readonly ordering?: "none" | "per-key";
  /** How long the broker waits for a sign of life. Default 30 s. */
  readonly ackWait?: Duration;
  /** The participant also runs where the consumer is not bound. */
  readonly optional?: boolean;
}

/** A durable consumer of a participant. `E`: union of its events. */
export interface ConsumerResource<E extends EventAction = EventAction> {
  readonly kind: "consumer";
  readonly title: string | undefined;
  readonly events: readonly E[];
  readonly concurrency: number;
  readonly replay: Replay;
  readonly retry: RetryPolicy;
  readonly ordering: "none" | "per-key";
  readonly ackWaitMs: number;
  readonly optional: boolean;
}

const INSTANT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/;

/** Defines a durable consumer of events. */
export function consumer<E extends EventAction>(definition: ConsumerDefinition<E>): ConsumerResource<E> {
  const { events, replay = "new", ordering = "none" } = definition;
  if (events.length === 0) {
    throw new DefinitionError({ place: "consumer events", problem: "a consumer needs at least one event" });
  }
  for (const { name, api } of events) {
    if (name !== "" && api !== "") continue;
    throw new DefinitionError({
      place: "consumer events",
      problem: "an event does not belong to an API yet",
      hint: 'Take it from one: billing.events["Invoice.Paid"]',
    });
  }
  if (typeof replay === "object" && !INSTANT.test(replay.since)) {
    throw new DefinitionError({
      place: "consumer replay",
      problem: `${JSON.stringify(replay.since)} is not an instant`,
      hint: "Write it like 2026-01-31T08:00:00Z",
    });
  }
  return {
    kind: "consumer",
    title: definition.title,
    events,
    concurrency: requireCount(definition.concurrency ?? 1, "consumer concurrency"),
    replay,
    retry: retryPolicy(definition.retry, "consumer retry"),
    ordering,
    ackWaitMs: parseDuration(definition.ackWait ?? "30s", "consumer ackWait"),
    optional: definition.optional ?? false,
  };
}
