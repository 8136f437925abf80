import type { AnyParticipant, EventAction } from "@trellis/contract";
import {
  AuthError,
  BusyError,
  CancelledError,
  isPreparedEvent,
  NotFoundError,
  type PreparedEvent,
  TransportError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import { AsyncResult, err, ok, type Result, UnexpectedError } from "@trellis/result";
import type { BrokerRequests } from "../jetstream/broker-requests.ts";
import type { CallOrigin } from "../rpc/call-origin.ts";
import { withPublishSpan } from "../telemetry/event-spans.ts";
import type { WireTrace } from "../telemetry/trace-context.ts";
import { eventFacade } from "./event-facade.ts";
import { EventPublisher, type PublishedEvent, type PublishLink } from "./event-publisher.ts";
import type { EventPublishing, PublishErrors, PublishPrepared } from "./event-publishers.ts";
import { type PrepareOptions, prepareEvent } from "./prepare-event.ts";

export interface PublishingSurfaceOptions {
  readonly participant: AnyParticipant;
  readonly link: PublishLink;
  readonly requests: BrokerRequests;
  /** Default time-out of a publish, ms. */
  readonly timeoutMs: number;
  readonly traced: boolean;
}

/** The events that a participant publishes: shared by its outer client and the clients of handlers. */
export class PublishingSurface {
  readonly #options: PublishingSurfaceOptions;
  readonly #publisher: EventPublisher;
  readonly #byName: Readonly<Record<string, EventAction>>;
  readonly #owned: ReadonlyMap<string, EventAction>;
  readonly #facade: (origin: CallOrigin | undefined) => object;

  constructor(options: PublishingSurfaceOptions) {
    this.#options = options;
    this.#publisher = new EventPublisher(options.link, options.requests, options.timeoutMs);
    const owned = ownedEvents(options.participant);
    this.#byName = owned;
    this.#owned = new Map(Object.values(owned).map((action) => [`${action.api} ${action.name}`, action]));
    this.#facade = eventFacade(owned, (action, origin: CallOrigin | undefined) => this.#leaf(action, origin));
  }

  /** The facade of one origin: `client.event`. */
  facade(origin: CallOrigin | undefined): object {
    return this.#facade(origin);
  }

  /** The event of a dotted name, as its publishers see it; an error that names those there are. */
  named(name: string, origin: CallOrigin | undefined): Result<EventPublishing<unknown>, NotFoundError> {
    const action = Object.hasOwn(this.#byName, name) ? this.#byName[name] : undefined;
    if (action !== undefined) return ok(this.#leaf(action, origin));
    const known = Object.keys(this.#byName).join(", ") || "none";
    const message = `This participant publishes no event "${name}". It publishes: ${known}.`;
    return err(new NotFoundError({ message }));
  }

  publishPrepared(origin: CallOrigin | undefined): PublishPrepared {
    return (event, options = {}) => {
      const action = isPreparedEvent(event) ? this.#owned.get(`${event.api} ${event.name}`) : undefined;
      if (action === undefined || !fits(event, action)) {
        return AsyncResult.err(new ValidationError({ errors: [{ path: "", message: notOurs }] }));
      }
      return this.#traced(action, origin, () => this.#publisher.publish(event, options));
    };
  }

  #leaf(action: EventAction, origin: CallOrigin | undefined): EventPublishing<unknown> {
    return {
      prepare: (payload, options) => this.#prepare({ action, payload, options, origin }),
      publish: (payload, options = {}) =>
        this.#traced(action, origin, async (trace) => {
          const prepared = this.#prepare({ action, payload, options, origin, trace });
          if (prepared.isErr()) throw prepared.error;
          return this.#publisher.publish(prepared.value, options);
        }),
    };
  }

  #prepare(input: {
    action: EventAction;
    payload: unknown;
    options: PrepareOptions | undefined;
    origin: CallOrigin | undefined;
    trace?: WireTrace | undefined;
  }): Result<PreparedEvent, ValidationError> {
    const { clock, platform, broker } = this.#options.link;
    return prepareEvent({ port: platform.port, now: clock.now(), maxPayload: broker.maxPayload }, input);
  }

  #traced(
    action: EventAction,
    origin: CallOrigin | undefined,
    publish: (trace: WireTrace | undefined) => Promise<PublishedEvent>,
  ): AsyncResult<PublishedEvent, PublishErrors> {
    return AsyncResult.try(
      () => (this.#options.traced ? withPublishSpan(action, origin, publish) : publish(undefined)),
      typed,
    );
  }
}

const notOurs = "is not a prepared event of an API that this participant implements";

function fits({ subject }: PreparedEvent, { params }: EventAction): boolean {
  return subject.split(".").length === 4 + params.length;
}

function typed(thrown: unknown): PublishErrors {
  const known =
    thrown instanceof ValidationError ||
    thrown instanceof AuthError ||
    thrown instanceof TransportError ||
    thrown instanceof CancelledError ||
    thrown instanceof UnavailableError ||
    thrown instanceof BusyError;
  return known ? thrown : UnexpectedError.from(thrown);
}

function ownedEvents(participant: AnyParticipant): Readonly<Record<string, EventAction>> {
  return Object.assign({}, ...participant.implements.map((api) => api.events)) as Record<string, EventAction>;
}
