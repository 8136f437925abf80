import type { Msg } from "@nats-io/nats-core";
import {
  AuthError,
  CancelledError,
  callLength,
  encodeJson,
  encodeRequestFrame,
  REQUEST_OVERHEAD,
  RESULT_STATUS,
  type TrellisError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import { connectionDown } from "../connect/inbox.ts";
import type { Link } from "../connect/link.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import { inTurn } from "../lifecycle/tick.ts";
import { activeTrace, type WireTrace } from "../telemetry/trace-context.ts";
import { CallLane, type LaneSender } from "./call-lane.ts";
import { CallLiveness } from "./call-liveness.ts";
import type { CallOrigin } from "./call-origin.ts";
import { CallRecovery, type NoResponderRetry } from "./call-recovery.ts";
import { type Callable, callSubject } from "./callable.ts";
import { type CallResult, PendingCall } from "./pending-call.ts";
import { PendingCalls } from "./pending-calls.ts";
import { openReply, readProvider, readResult } from "./read-reply.ts";
import { RequestIds, sequenceOf } from "./request-ids.ts";
import type { CallOptions } from "./rpc-caller.ts";
import { SentFrame } from "./sent-frame.ts";

export interface RpcClientOptions {
  /** Default time-out of a call, ms. */
  readonly timeoutMs: number;
  readonly noResponderRetry: NoResponderRetry | false;
}

export interface CallRequest {
  readonly action: Callable;
  readonly input: unknown;
  readonly options: CallOptions | undefined;
  /** The request that this call is made for, inside a handler. */
  readonly origin: CallOrigin | undefined;
  /** Trace to continue in place of the active or the inherited one. */
  readonly trace?: WireTrace | undefined;
  /** Hears under which route each frame of the call goes out: the last one is that of the answer. */
  readonly onRoute?: ((route: ProviderRoute) => void) | undefined;
}

/**
 * The calling side of RPC over one link: begins calls, sends frames, reads answers. `PendingCalls` holds what
 * is under way, `CallRecovery` sends again, `CallLiveness` notices who is gone.
 *
 * Invariants:
 * R1. Every call ends exactly once: by its result, its deadline, its signal, a lost provider, or the link's end.
 * R2. A call that a provider may have begun is sent again only if its action is idempotent, and then under the
 *     same request id. A call that provably never reached a handler is sent again whatever it is.
 * R3. What arrives without the provider's MAC changes nothing but: look up keys again and retry, once.
 */
export class RpcClient {
  readonly #link: Link;
  readonly #options: RpcClientOptions;
  readonly #pending: PendingCalls;
  readonly #liveness: CallLiveness;
  readonly #recovery: CallRecovery;
  readonly #lanes = new Map<Callable, CallLane>();
  readonly #sender: LaneSender = {
    send: (lane, calls) => this.#send(lane, calls),
    room: () => this.#link.broker.maxPayload - REQUEST_OVERHEAD,
  };
  readonly #ids: RequestIds;

  constructor(link: Link, options: RpcClientOptions) {
    this.#link = link;
    this.#options = options;
    this.#ids = new RequestIds(link.platform.port);
    this.#pending = new PendingCalls(link);
    this.#liveness = new CallLiveness(link, this.#pending);
    this.#recovery = new CallRecovery(link, this.#pending, options.noResponderRetry);
    link.listen({
      onUp: () => this.#flushAll(),
      onRelease: () => this.#flushAll(),
      onSession: () => this.#flushAll(),
      inFlight: () => this.#inFlight(),
    });
  }

  /** Calls that have begun and not ended. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  call(request: CallRequest): AsyncResult<unknown, TrellisError> {
    const { action, input } = request;
    const lane = this.#lanes.get(action) ?? this.#openLane(action);
    const refused = this.#refusal(lane, request);
    if (refused !== undefined) return AsyncResult.err(refused);
    const payload = encodeInput(action, input);
    if (payload.isErr()) return AsyncResult.err(payload.error);
    const { result, resolve } = AsyncResult.deferred<unknown, TrellisError>();
    const tooLarge = this.#begin(lane, request, { payload: payload.value, resolve });
    return tooLarge === undefined ? result : AsyncResult.err(tooLarge);
  }

  #openLane(action: Callable): CallLane {
    const lane = new CallLane(action, this.#sender);
    this.#lanes.set(action, lane);
    return lane;
  }

  /** Why a call cannot even begin. */
  #refusal(lane: CallLane, { options, origin }: CallRequest): TrellisError | undefined {
    const aborted = options?.signal?.aborted === true ? options.signal : origin?.abortedBy;
    if (aborted !== undefined) return new CancelledError({ reason: "aborted", cause: aborted.reason });
    const reason = this.#link.unavailableBecause;
    if (reason === "closed") return new UnavailableError({ reason: "closed" });
    if (reason !== undefined) {
      return new UnavailableError({ reason: "invalidated", message: `Calls are not possible: ${reason}` });
    }
    const { session, routes } = this.#link;
    if (!lane.grantedBy(session) && routes.binding(lane.action.api) !== undefined) return notGranted(lane);
    return this.#pending.full();
  }

  #begin(
    lane: CallLane,
    { options, origin, trace: given, onRoute }: CallRequest,
    rest: { payload: string; resolve: (result: CallResult) => void },
  ): ValidationError | undefined {
    const { sequence, requestId } = this.#ids.next();
    const trace = given ?? activeTrace() ?? inheritedTrace(origin);
    const timeoutMs = options?.timeout ?? this.#options.timeoutMs;
    const call = new PendingCall({
      owner: this.#pending,
      lane,
      sequence,
      requestId,
      payload: rest.payload,
      trace: trace?.trace,
      tracestate: trace?.tracestate,
      origin: origin?.originId,
      timeoutMs: origin === undefined ? timeoutMs : Math.min(timeoutMs, origin.deadline.remaining()),
      startedAt: this.#link.clock.monotonic(),
      resolve: rest.resolve,
      onRoute,
    });
    call.bytes = callLength(call, this.#link.platform.port.utf8.length(call.payload));
    if (call.bytes > this.#sender.room()) return tooLarge(call.bytes, this.#sender.room());
    if (options?.signal !== undefined || origin !== undefined) call.listenTo(options?.signal, origin?.signal);
    this.#pending.add(call);
    this.#liveness.watch();
    lane.submit(call);
    return undefined;
  }

  #send(lane: CallLane, calls: PendingCall[]): boolean {
    const { broker, routes, clock, replies, platform } = this.#link;
    if (!broker.up || this.#link.renewal.holding) return false;
    const route = routes.route(lane.action.api);
    if (route === undefined) {
      void this.#recovery.onUnbound(lane);
      return false;
    }
    // Granted since the socket was opened: it goes out with the next one, which is under way.
    if (this.#link.policyPending && !lane.grantedBy(this.#link.socketSession)) return false;
    const subject = callSubject(lane.action, route.deployment);
    this.#watchDenials(lane, subject);
    const frame = new SentFrame(this, route, calls);
    frame.reply = replies.open(frame, route.replyScope);
    const now = clock.monotonic();
    for (const call of calls) {
      call.remainingMs = Math.ceil(call.left(now));
      call.frame = frame;
      call.heard(now);
      call.attempts += 1;
      call.onRoute?.(route);
    }
    lane.inFlight += calls.length;
    const { epoch, digest, keys } = route;
    const header = { epoch, digest, counter: route.nextCounter(), issuedAt: clock.now() };
    const key = keys.request;
    const bytes = encodeRequestFrame(platform.port, { header, calls, subject, reply: frame.reply, key });
    if (!broker.publish(subject, bytes, frame.reply)) this.#onUnsent(calls);
    return true;
  }

  /** The limit shrank while the calls waited, or the socket went: either way nothing left this process. */
  #onUnsent(calls: readonly PendingCall[]): void {
    const room = this.#sender.room();
    for (const call of calls) call.fail(call.bytes > room ? tooLarge(call.bytes, room) : connectionDown());
  }

  #watchDenials(lane: CallLane, subject: string): void {
    if (lane.watched) return;
    lane.watched = true;
    this.#link.broker.onPublishDenied(subject, (error) => this.#recovery.onDenied(lane, error));
  }

  onReply(frame: SentFrame, message: Msg): void {
    inTurn(message.data.length, () => this.#read(frame, message));
  }

  #read(frame: SentFrame, message: Msg): void {
    const { port } = this.#link.platform;
    const opened = openReply(port, frame, message);
    switch (opened.kind) {
      case "ignored":
        return this.#link.log.debug({ reason: opened.reason }, "A reply was ignored");
      case "no-responders":
        return this.#recovery.onNoResponders(frame);
      case "refusal":
        return this.#recovery.onRefusal(frame, opened.code);
      case "results":
        for (const result of opened.results) {
          const call = this.#pending.get(sequenceOf(result.requestId));
          if (call === undefined || call.frame !== frame || !call.isFor(result.requestId)) continue;
          if (result.status === RESULT_STATUS.receipt)
            this.#onReceipt(call, readProvider(port, result.payload));
          else this.#recovery.onResult(call, readResult(port, call.action, result));
        }
    }
  }

  #onReceipt(call: PendingCall, provider: string | undefined): void {
    call.provider = provider;
    call.heard(this.#link.clock.monotonic());
  }

  #flushAll(): void {
    for (const lane of this.#lanes.values()) lane.flush();
  }

  #inFlight(): number {
    let out = 0;
    for (const lane of this.#lanes.values()) out += lane.inFlight;
    return out;
  }
}

function inheritedTrace(origin: CallOrigin | undefined): WireTrace | undefined {
  if (origin?.traceBytes === undefined) return undefined;
  const { traceBytes: trace, tracestate } = origin;
  return tracestate === undefined ? { trace } : { trace, tracestate };
}

function encodeInput(action: Callable, input: unknown): Result<string, ValidationError> {
  if (action.input === undefined) return ok("null");
  const issues = action.input.issues(input);
  if (issues !== undefined) return err(new ValidationError({ errors: issues }));
  const encoded = encodeJson(input);
  return encoded.ok ? ok(encoded.text) : err(new ValidationError({ errors: encoded.issues }));
}

function tooLarge(size: number, limit: number): ValidationError {
  const message = `The message is too large: ${size} bytes, the limit is ${limit}`;
  return new ValidationError({ errors: [{ path: "", message }], message });
}

function notGranted({ action }: CallLane): AuthError {
  return new AuthError({
    reason: "not_granted",
    message: `This participant may not call ${action.name} of ${action.api}`,
    hint: "Name the action in the participant's `uses` and install the new contract.",
  });
}
