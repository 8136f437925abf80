import type { RpcAction } from "@trellis/contract";
import {
  AuthError,
  BusyError,
  CancelledError,
  type ConnectionEnd,
  callLength,
  encodeJson,
  encodeRequestFrame,
  noticeGetSubject,
  REQUEST_OVERHEAD,
  rpcSubject,
  TransportError,
  type TrellisError,
  UnavailableError,
  ValidationError,
} from "@trellis/protocol";
import { AsyncResult, err, ok, type Result } from "@trellis/result";
import type { Link } from "../connect/link.ts";
import { backoffDelay } from "../lifecycle/backoff.ts";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import { activeTrace, type WireTrace } from "../telemetry/trace-context.ts";
import { CallControl } from "./call-control.ts";
import { CallLane } from "./call-lane.ts";
import type { CallOrigin } from "./call-origin.ts";

import { type CallResult, PendingCall, type PendingCallOwner } from "./pending-call.ts";
import { readReply } from "./read-reply.ts";
import { RequestIds } from "./request-ids.ts";
import type { CallOptions } from "./rpc-caller.ts";
import { SentFrame } from "./sent-frame.ts";

export interface NoResponderRetry {
  /** Give up after this long, ms. */
  readonly maxElapsed: number;
  /** First pause, ms. */
  readonly initial: number;
  /** Longest pause, ms. */
  readonly max: number;
}

export interface RpcClientOptions {
  /** Default time-out of a call, ms. */
  readonly timeoutMs: number;
  readonly noResponderRetry: NoResponderRetry | false;
}

export interface CallRequest {
  readonly action: RpcAction;
  readonly input: unknown;
  readonly options: CallOptions | undefined;
  /** The request that this call is made for, inside a handler. */
  readonly origin: CallOrigin | undefined;
  /** Trace to continue in place of the active or the inherited one. */
  readonly trace?: WireTrace | undefined;
}

/** Calls that may wait or be out at once; more is a bug or an attack, and memory stays bounded. */
const maxPending = 100_000;
const sweepMs = 500;
/** After this long without a sign of life a provider is asked; after the second span it is given up. */
const silenceMs = 2_000;
const pingWaitMs = 1_500;

/**
 * The calling side of RPC over one link.
 *
 * Invariants:
 * R1. Every call ends exactly once: by its result, its deadline, its signal, a lost provider, or the link's end.
 * R2. A call that a provider may have begun is sent again only if its action is idempotent, and then under the
 *     same request id. A call that provably never reached a handler is sent again whatever it is.
 * R3. What arrives without the provider's MAC changes nothing but: look up keys again and retry, once.
 */
export class RpcClient implements PendingCallOwner {
  readonly #link: Link;
  readonly #options: RpcClientOptions;
  readonly #pending = new Map<number, PendingCall>();
  readonly #lanes = new Map<string, CallLane>();
  readonly #ids: RequestIds;
  readonly #control: CallControl;
  #sweeper: Timer | undefined;

  constructor(link: Link, options: RpcClientOptions) {
    this.#link = link;
    this.#options = options;
    this.#ids = new RequestIds(link.platform.port);
    this.#control = new CallControl(link, {
      onAlive: (sequence) => this.#onAlive(sequence),
      onGone: (sequences) => this.#onGone(sequences),
    });
    link.listen({
      onDown: () => this.#onDown(),
      onUp: () => this.#flushAll(),
      onSession: () => this.#flushAll(),
      onConnectionEnd: (end) => this.#onConnectionEnd(end),
      onClosed: (reason) => this.#onClosed(reason),
      inFlight: () => this.#outNow(),
    });
  }

  /** Calls that have begun and not ended. */
  get pendingCount(): number {
    return this.#pending.size;
  }

  call(request: CallRequest): AsyncResult<unknown, TrellisError> {
    const refused = this.#refusal(request);
    if (refused !== undefined) return AsyncResult.err(refused);
    const payload = encodeInput(request.action, request.input);
    if (payload.isErr()) return AsyncResult.err(payload.error);
    const { result, resolve } = AsyncResult.deferred<unknown, TrellisError>();
    const tooLarge = this.#begin(request, payload.value, resolve);
    return tooLarge === undefined ? result : AsyncResult.err(tooLarge);
  }

  /** Why a call cannot even begin. */
  #refusal({ action: plan, options, origin }: CallRequest): TrellisError | undefined {
    if (options?.signal?.aborted)
      return new CancelledError({ reason: "aborted", cause: options.signal.reason });
    if (origin?.signal.aborted) return new CancelledError({ reason: "aborted", cause: origin.signal.reason });
    const reason = this.#link.unavailableBecause;
    if (reason === "closed") return new UnavailableError({ reason: "closed" });
    if (reason !== undefined)
      return new UnavailableError({ reason: "invalidated", message: `Calls are not possible: ${reason}.` });
    if (this.#pending.size >= maxPending) {
      return new BusyError({ retryAfterMs: 1_000, message: "Too many calls are pending in this process." });
    }
    const binding = this.#link.routes.binding(plan.api);
    const granted = this.#link.session.grants.calls.some(
      ({ api, rpc }) => api === plan.api && rpc.includes(plan.name),
    );
    if (binding !== undefined && !granted) return notGranted(plan);
    return undefined;
  }

  #begin(
    request: CallRequest,
    payload: string,
    resolve: (result: CallResult) => void,
  ): ValidationError | undefined {
    const { action: plan, options = {}, origin } = request;
    const { port } = this.#link.platform;
    const { sequence, requestId } = this.#ids.next();
    const trace = request.trace ?? activeTrace() ?? inheritedTrace(origin);
    const item = {
      requestId,
      payload,
      ...(origin === undefined ? {} : { origin: origin.originId }),
      ...(trace === undefined ? {} : trace),
    };
    const bytes = port.utf8.length(payload);
    const size = REQUEST_OVERHEAD + callLength({ ...item, remainingMs: 0 }, bytes);
    if (size > this.#link.broker.maxPayload) return tooLarge(size, this.#link.broker.maxPayload);
    const lane = this.#lane(plan);
    const timeoutMs = Math.min(
      options.timeout ?? this.#options.timeoutMs,
      origin?.deadline.remaining() ?? Number.POSITIVE_INFINITY,
    );
    const call = new PendingCall({
      owner: this,
      plan,
      lane,
      sequence,
      item,
      bytes,
      timeoutMs,
      startedAt: this.#link.clock.monotonic(),
      signals: [options.signal, origin?.signal].filter((signal) => signal !== undefined),
      resolve,
    });
    this.#pending.set(sequence, call);
    this.#link.wheel.schedule(call, timeoutMs);
    this.#sweepLater();
    lane.submit(call);
    return undefined;
  }

  #lane(plan: RpcAction): CallLane {
    const key = `${plan.api} ${plan.name}`;
    const known = this.#lanes.get(key);
    if (known !== undefined) return known;
    const { api, name, coalesce } = plan;
    const lane = new CallLane({ api, name, coalesce, send: (from, calls) => this.#send(from, calls) });
    this.#lanes.set(key, lane);
    return lane;
  }

  #send(lane: CallLane, calls: PendingCall[]): boolean {
    const { broker, routes, clock, replies, platform, refresher } = this.#link;
    if (!broker.up) return false;
    const route = routes.route(lane.api);
    if (route === undefined) {
      void refresher.now().then(() => this.#onStillUnbound(lane));
      return false;
    }
    const subject = rpcSubject({ api: lane.api, deployment: route.deployment, action: lane.name });
    if (lane.claimWatch()) broker.onPublishDenied(subject, (error) => this.#onDenied(lane, error));
    const frame = new SentFrame(this, route, calls);
    frame.reply = replies.open(frame);
    const now = clock.monotonic();
    const bytes = encodeRequestFrame(platform.port, {
      header: {
        epoch: route.epoch,
        digest: route.digest,
        counter: route.nextCounter(),
        issuedAt: clock.now(),
      },
      calls: calls.map((call) => ({ ...call.item, remainingMs: Math.ceil(call.remainingMs(now)) })),
      subject,
      reply: frame.reply,
      key: route.keys.request,
    });
    for (const call of calls) {
      call.frame = frame;
      call.provider = undefined;
      call.heardAt = now;
      call.pinged = false;
      call.attempts += 1;
    }
    lane.inFlight += calls.length;
    broker.publish(subject, bytes, frame.reply);
    return true;
  }

  // --- answers ---

  onReply(frame: SentFrame, message: Parameters<typeof readReply>[1]["message"]): void {
    const read = readReply(this.#link.platform.port, { frame, message });
    switch (read.kind) {
      case "ignored":
        return this.#link.log.debug({ reason: read.reason }, "A reply was ignored");
      case "no-responders":
        return this.#onNoResponders(frame);
      case "refusal":
        return this.#onRefusal(frame, read.code);
      case "results":
        for (const { sequence, requestId, result, provider } of read.results) {
          const call = this.#pending.get(sequence);
          if (call === undefined || call.frame !== frame || !call.isFor(requestId)) continue;
          if (result === undefined) this.#onReceipt(call, provider);
          else this.#onResult(call, result(call.plan));
        }
    }
  }

  #onReceipt(call: PendingCall, provider: string): void {
    call.provider = provider;
    call.heardAt = this.#link.clock.monotonic();
  }

  #onResult(call: PendingCall, result: CallResult): void {
    const busy = result.isErr() && result.error instanceof BusyError ? result.error : undefined;
    if (busy === undefined || call.plan.idempotent === false) return call.settle(result);
    const pause = busy.retryAfterMs * (0.5 + Math.random());
    if (pause >= call.remainingMs(this.#link.clock.monotonic())) return call.settle(result);
    this.#resubmitAfter(call, pause);
  }

  /** Nobody serves the action: it was not begun, so any call may go again (R2). */
  #onNoResponders(frame: SentFrame): void {
    const { noResponderRetry } = this.#options;
    const now = this.#link.clock.monotonic();
    for (const call of this.#openCalls(frame)) {
      const elapsed = now - call.startedAt;
      if (noResponderRetry === false || elapsed >= noResponderRetry.maxElapsed) {
        call.fail(
          new UnavailableError({
            reason: "no_responders",
            message: `No instance serves ${call.plan.name} at the moment.`,
          }),
        );
        continue;
      }
      const delay = Math.min(
        backoffDelay(call.attempts, noResponderRetry),
        noResponderRetry.maxElapsed - elapsed,
      );
      this.#resubmitAfter(call, delay);
    }
  }

  #onRefusal(frame: SentFrame, code: "unknown-authorization" | "stale-epoch" | "malformed"): void {
    const again: PendingCall[] = [];
    for (const call of this.#openCalls(frame)) {
      if (call.provider !== undefined) continue; // it was accepted: this refusal is not about it
      if (call.refused) {
        call.fail(
          new AuthError({ reason: code, message: `The provider turned ${call.plan.name} away: ${code}.` }),
        );
        continue;
      }
      call.refused = true;
      this.#takeBack(call);
      again.push(call);
    }
    if (again.length === 0) return;
    void this.#renewKeys(code, frame.route.deployment).then(() => {
      for (const call of again) if (!call.settled) call.lane.submit(call);
    });
  }

  async #renewKeys(code: string, deployment: string): Promise<void> {
    const { directGet, notices, refresher } = this.#link;
    try {
      if (code === "stale-epoch") {
        const stored = await directGet.last(noticeGetSubject("route", deployment));
        if (stored !== undefined && notices.takeStored(stored)) return;
      }
      if (code !== "malformed") await refresher.now();
    } catch (error) {
      this.#link.log.debug({ err: error }, "Could not renew the keys of a route");
    }
  }

  #onDenied(lane: CallLane, error: AuthError): void {
    for (const call of [...this.#pending.values()]) {
      if (call.lane === lane && call.frame !== undefined && call.provider === undefined) call.fail(error);
    }
  }

  #onStillUnbound(lane: CallLane): void {
    if (this.#link.routes.route(lane.api) !== undefined) return lane.flush();
    const reason = this.#link.session.unbound.get(lane.api);
    for (const call of [...this.#pending.values()]) {
      if (call.lane !== lane || call.frame !== undefined) continue;
      const elapsed = this.#link.clock.monotonic() - call.startedAt;
      const { noResponderRetry } = this.#options;
      if (noResponderRetry !== false && elapsed < noResponderRetry.maxElapsed) continue;
      call.fail(notBound(lane, reason));
    }
    if (lane.waiting > 0) systemTimers.set(() => lane.flush(), 300, { background: true });
  }

  // --- the life of the connection ---

  #onDown(): void {
    for (const call of [...this.#pending.values()]) {
      if (call.frame === undefined) continue;
      if (call.plan.idempotent !== false) this.#resubmit(call);
      else call.fail(connectionLost(call));
    }
  }

  #flushAll(): void {
    for (const lane of this.#lanes.values()) lane.flush();
  }

  #onConnectionEnd(end: ConnectionEnd): void {
    for (const call of [...this.#pending.values()]) {
      if (call.frame?.route.deployment !== end.deployment) continue;
      if (call.provider === end.connection) this.#onLost(call);
      // Nobody has told yet who has it: ask all of them.
      else if (call.provider === undefined) this.#ping(call);
    }
  }

  #onClosed(reason: string): void {
    this.#sweeper?.clear();
    this.#control.forgetPings();
    for (const call of [...this.#pending.values()]) call.fail(new CancelledError({ reason }));
  }

  // --- signs of life ---

  #onAlive(sequence: number): void {
    const call = this.#pending.get(sequence);
    if (call === undefined) return;
    call.heardAt = this.#link.clock.monotonic();
    call.pinged = false;
  }

  #onGone(sequences: readonly number[]): void {
    for (const sequence of sequences) {
      const call = this.#pending.get(sequence);
      if (call?.frame !== undefined && call.pinged) this.#onLost(call);
    }
  }

  #onLost(call: PendingCall): void {
    if (call.plan.idempotent !== false) return this.#resubmit(call);
    call.fail(
      new UnavailableError({
        reason: "provider_lost",
        message: `The instance that was handling ${call.plan.name} is gone; whether it finished is not known.`,
      }),
    );
  }

  #ping(call: PendingCall): void {
    call.pinged = true;
    this.#control.ping(call);
  }

  #sweepLater(): void {
    this.#sweeper ??= systemTimers.set(() => this.#sweep(), sweepMs, { background: true });
  }

  #sweep(): void {
    this.#sweeper = undefined;
    const now = this.#link.clock.monotonic();
    let pinging = false;
    for (const call of [...this.#pending.values()]) {
      if (call.frame === undefined) continue;
      const silent = now - call.heardAt;
      if (call.pinged && silent > silenceMs + pingWaitMs) this.#onLost(call);
      else if (!call.pinged && silent > silenceMs) this.#ping(call);
      pinging ||= call.pinged;
    }
    if (!pinging) this.#control.forgetPings();
    if (this.#pending.size > 0) this.#sweepLater();
  }

  // --- moving calls between lane and frame ---

  onSettled(call: PendingCall): void {
    this.#pending.delete(call.sequence);
    this.#link.wheel.cancel(call);
    this.#takeBack(call);
  }

  onAbandoned(call: PendingCall, provider: string | undefined): void {
    this.#control.cancel(call, provider);
  }

  #takeBack(call: PendingCall): void {
    const { frame } = call;
    if (frame === undefined) return;
    call.frame = undefined;
    call.provider = undefined;
    call.lane.inFlight -= 1;
    frame.open -= 1;
    if (frame.open === 0) this.#link.replies.release(frame.reply);
  }

  #resubmit(call: PendingCall): void {
    this.#takeBack(call);
    call.lane.submit(call);
  }

  #resubmitAfter(call: PendingCall, delayMs: number): void {
    this.#takeBack(call);
    systemTimers.set(() => {
      if (!call.settled) call.lane.submit(call);
    }, delayMs);
  }

  #openCalls(frame: SentFrame): PendingCall[] {
    return frame.calls.filter((call) => !call.settled && call.frame === frame);
  }

  #outNow(): number {
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

function encodeInput(plan: RpcAction, input: unknown): Result<string, ValidationError> {
  const issues = plan.input?.issues(input);
  if (issues !== undefined) return err(new ValidationError({ errors: issues }));
  const encoded = encodeJson(plan.input === undefined ? null : input);
  return encoded.ok ? ok(encoded.text) : err(new ValidationError({ errors: encoded.issues }));
}

function tooLarge(size: number, limit: number): ValidationError {
  return new ValidationError({
    errors: [{ path: "", message: `The message is too large: ${size} bytes, the limit is ${limit}.` }],
  });
}

function notGranted(plan: RpcAction): AuthError {
  return new AuthError({
    reason: "not_granted",
    message: `This participant may not call ${plan.name} of ${plan.api}.`,
    hint: "Name the action in the participant's `uses` and install the new contract.",
  });
}

function notBound(lane: CallLane, reason: string | undefined): UnavailableError {
  return new UnavailableError({
    reason: "not_bound",
    message: `No deployment provides ${lane.api}${reason === undefined ? "" : `: ${reason}`}.`,
    hint: "Install and start a service that implements it; `trellis services` lists what runs.",
  });
}

function connectionLost(call: PendingCall): TransportError {
  return new TransportError({
    code: "trellis.connection.lost",
    message: `The connection was lost while ${call.plan.name} was under way; whether it was carried out is not known.`,
    hint: "Declare the action `idempotent: true` if it may run twice: then it is retried by itself.",
  });
}
