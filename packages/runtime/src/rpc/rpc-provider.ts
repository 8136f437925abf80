import type { Msg } from "@nats-io/nats-core";
import {
  AuthError,
  type DecodedCall,
  decodeRequestFrame,
  encodeRefusal,
  type RefusalCode,
  type RequestFrame,
  TimeoutError,
  type TrellisError,
  verifyRequestFrame,
} from "@trellis/protocol";
import type { CallerEpoch, CallerSession } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";
import { Deadline } from "../lifecycle/deadline.ts";
import { inTurn, turnsIdle } from "../lifecycle/tick.ts";
import { within } from "../lifecycle/within.ts";
import { recordAdmissionRefusal, recordRunning, recordServed } from "../telemetry/rpc-metrics.ts";
import { Admission, type AdmissionLimits } from "./admission.ts";
import { findCaller, seesRevocations, senderOf, staleness } from "./authenticate-frame.ts";
import { type Callable, callSubject } from "./callable.ts";
import { ControlReceiver } from "./control-receiver.ts";
import { type EncodedAnswer, encodeFailure, encodeReturned, encodeThrown } from "./encode-answer.ts";
import { FrameAnswer } from "./frame-answer.ts";
import { OpenCall, type OpenCallOwner, stoppedUnder } from "./open-call.ts";
import { OpenCalls } from "./open-calls.ts";
import { readInput } from "./read-input.ts";
import { Receipts } from "./receipts.ts";
import { UnsentReplies } from "./unsent-replies.ts";

/** Runs the handler of an action; the layer above gives it the client and the user's middleware. */
export type Invoke = (call: OpenCall, input: unknown) => unknown;

interface Served {
  readonly action: Callable;
  readonly subject: string;
  readonly invoke: Invoke;
}

/** A frame whose sender is known. */
interface Received {
  readonly served: Served;
  readonly frame: RequestFrame;
  readonly reply: string;
  readonly session: CallerSession;
  readonly epoch: CallerEpoch;
}

/** What a deadline may be late by, against the sender's clock, before the work is not started. */
const clockLeewayMs = 2_000;
/** Largest number of unknown callers whose frames wait for a look-up. */
const maxWaiting = 1_000;
/** What unsubscribing before a planned reconnect may take, ms. */
const holdMs = 1_000;

/**
 * The providing side of RPC over one link.
 *
 * A frame passes: decode, byte bound, authenticate, authorise; then each of its calls on its own: count bound,
 * deadline, validate, handle, encode. What fails before authentication is answered by a bare refusal; what
 * fails after it by one typed error; neither reaches a handler.
 */
export class RpcProvider implements OpenCallOwner {
  readonly wheel: OpenCallOwner["wheel"];
  readonly admission: Admission;
  readonly #link: Link;
  readonly #served = new Map<string, Served>();
  readonly #calls = new OpenCalls();
  readonly #receipts: Receipts;
  readonly #control: ControlReceiver;
  /** Frames of callers that are being looked up; a stop waits for them. */
  readonly #lookUps = new Set<Promise<void>>();
  readonly #unsent = new UnsentReplies();
  #subscriptions: { drain(): Promise<void> }[] = [];
  #controls: { drain(): Promise<void> }[] = [];
  #held = false;
  #started = false;
  #refusing = false;
  #rejectedFrames = 0;

  constructor(link: Link, limits: AdmissionLimits | undefined) {
    this.#link = link;
    this.wheel = link.wheel;
    this.admission = new Admission(limits);
    this.#receipts = new Receipts(link.session.connection, () => link.clock.monotonic());
    this.#control = new ControlReceiver(link, this.#calls);
    link.listen({
      onUp: () => this.#unsent.send(link.broker),
      onHold: () => this.#hold(),
      onRelease: () => this.#release(),
      onConnectionEnd: (end) => this.#abortOf(end.connection, "caller_gone"),
      onRevocation: () => this.#abortRevoked(),
      onClosed: (reason) => this.#abortAll(reason),
    });
  }

  /** Frames that failed authentication or came twice. */
  get rejectedFrames(): number {
    return this.#rejectedFrames;
  }

  get openCalls(): number {
    return this.#calls.size;
  }

  /** Other surfaces take their control messages here. */
  get control(): ControlReceiver {
    return this.#control;
  }

  get started(): boolean {
    return this.#started;
  }

  /** True when a handler for the action was registered. */
  serves(action: Callable): boolean {
    return this.#served.has(keyOf(action));
  }

  register(action: Callable, invoke: Invoke): void {
    if (this.#started) throw new TypeError(`The handler of ${action.name} was registered after start().`);
    if (this.serves(action)) throw new TypeError(`${action.name} has a handler already.`);
    const { deployment } = this.#link.session.assignment;
    const subject = callSubject(action, deployment);
    this.#served.set(keyOf(action), { action, subject, invoke });
  }

  /** Subscribes every registered action; rejects when the broker refuses one, and then serves none. */
  async start(): Promise<void> {
    this.#started = true;
    const denied: TrellisError[] = [];
    this.#controls = this.#control.start((error) => void denied.push(error));
    this.#subscribe((action) => void denied.push(notProvided(action)));
    await this.#link.broker.flush();
    const [first] = denied;
    if (first === undefined) return;
    await Promise.allSettled([...this.#controls, ...this.#subscriptions].map((it) => it.drain()));
    throw first;
  }

  #subscribe(onDenied: (action: Callable) => void): void {
    this.#subscriptions = [...this.#served.values()].map((served) => {
      const { subject, action } = served;
      const onMessage = (message: Msg) => inTurn(message.data.length, () => this.#onMessage(served, message));
      const denied = () => onDenied(action);
      return this.#link.broker.subscribe(subject, { queue: subject, onMessage, onDenied: denied });
    });
  }

  /** Before a planned reconnect: other replicas take the calls, or callers try again in a moment. */
  async #hold(): Promise<void> {
    if (!this.#started || this.#refusing) return;
    this.#held = true;
    await this.#unsubscribe(Deadline.after(2 * holdMs));
    await within(turnsIdle(), holdMs);
  }

  #release(): void {
    if (!this.#held || this.#refusing) return;
    this.#held = false;
    this.#subscribe((action) =>
      this.#link.log.error(
        { action: action.name },
        "The broker no longer lets this service provide an action",
      ),
    );
  }

  /**
   * Ends the service of new calls at once and lets the running ones end within `graceMs`; then aborts those
   * that are left. Resolves with the number that was abandoned.
   */
  async stop(graceMs: number): Promise<number> {
    const grace = Deadline.after(graceMs);
    const unsubscribed = this.#unsubscribe(grace);
    this.#held = false;
    await unsubscribed;
    await within(turnsIdle(), grace.remaining());
    this.#refusing = true;
    await within(Promise.all(this.#lookUps), grace.remaining());
    await within(this.#calls.drained(), grace.remaining());
    for (const call of this.#calls.all()) call.stop();
    await within(this.#calls.drained(), Math.min(250, graceMs));
    const left = this.#calls.all();
    for (const call of left) call.leave();
    this.#receipts.stop();
    return left.length;
  }

  /** Until the broker has confirmed, calls still arrive and are served; while it is down, none can. */
  async #unsubscribe(grace: Deadline): Promise<void> {
    if (!this.#link.broker.up) return;
    const drains = Promise.allSettled(this.#subscriptions.map((subscription) => subscription.drain()));
    await within(Promise.race([drains, this.#link.closed]), grace.remaining() / 2);
  }

  // --- frames ---

  #onMessage(served: Served, message: Msg): void {
    const { platform, callers } = this.#link;
    const { reply, subject, data } = message;
    if (reply === undefined || reply === "" || subject !== served.subject || this.#refusing) return;
    const frame = decodeRequestFrame(platform.port, data);
    if (frame === undefined) return this.#refuse(reply, "malformed");
    const found = findCaller(this.#link, frame, callers.get(frame.digestText));
    if (found.kind === "session") {
      return this.#receive({ served, frame, reply, session: found.session, epoch: found.epoch });
    }
    if (found.kind === "refused") return this.#refuse(reply, found.code);
    const lookUp = this.#lookUp(served, data.slice(), reply).finally(() => this.#lookUps.delete(lookUp));
    this.#lookUps.add(lookUp);
  }

  async #lookUp(served: Served, data: Uint8Array, reply: string): Promise<void> {
    const frame = decodeRequestFrame(this.#link.platform.port, data);
    if (frame === undefined || this.#lookUps.size > maxWaiting || !seesRevocations(this.#link)) {
      return this.#refuse(reply, "unknown-authorization");
    }
    const session = await this.#link.callers.load(frame.digestText, senderOf(reply));
    const found = findCaller(this.#link, frame, session);
    if (found.kind === "session") {
      return this.#receive({ served, frame, reply, session: found.session, epoch: found.epoch });
    }
    this.#refuse(reply, found.kind === "refused" ? found.code : "unknown-authorization");
  }

  #receive(received: Received): void {
    const { served, frame, reply, session, epoch } = received;
    const { port } = this.#link.platform;
    if (!verifyRequestFrame(port, { frame, subject: served.subject, reply, key: epoch.keys.request })) {
      return this.#refuse(reply, "malformed");
    }
    // An answer goes nowhere but to the caller's own inbox, whatever reply subject the message came with.
    if (!reply.startsWith(`${session.authorization.inbox}.r.`)) return this.#reject("foreign reply subject");
    const stale = staleness(this.#link, frame, received);
    if (stale === "replayed") return this.#reject(stale);
    if (stale === "outdated") return void this.#onOutdated(reply);
    const answer = new FrameAnswer({
      port,
      broker: this.#link.broker,
      reply,
      epoch: frame.epoch,
      key: epoch.keys.reply,
      calls: frame.calls.length,
      unsent: (to, bytes) => this.#unsent.keep(to, bytes),
    });
    const denied = stale === undefined ? this.#authorise(received) : new AuthError({ reason: stale });
    for (const call of frame.calls) {
      if (denied === undefined) this.#begin(received, call, answer);
      else answer.add({ requestId: call.requestId, ...encodeFailure(denied) });
    }
  }

  /** One of the two clocks is wrong, as after a sleep: ours is asked about first, then the caller sees to his. */
  async #onOutdated(reply: string): Promise<void> {
    if (this.#link.clock.doubtful) await this.#link.refresher.now();
    this.#refuse(reply, "unknown-authorization");
  }

  #authorise({ served, session }: Received): AuthError | undefined {
    if (session.allows(served.subject)) return undefined;
    return new AuthError({
      reason: "not_granted",
      message: `The caller's grants do not include ${served.action.name}.`,
    });
  }

  #refuse(reply: string, code: RefusalCode): void {
    this.#rejectedFrames += 1;
    if (senderOf(reply) !== "") this.#link.broker.publish(reply, encodeRefusal(code));
  }

  #reject(reason: string): void {
    this.#rejectedFrames += 1;
    this.#link.log.debug({ reason }, "A request frame was dropped");
  }

  // --- calls ---

  #begin({ served, frame, session, epoch }: Received, call: DecodedCall, answer: FrameAnswer): void {
    const { requestId } = call;
    const bytes = call.payload.length;
    const fail = (error: TrellisError) => answer.add({ requestId, ...encodeFailure(error) });
    const busy = this.admission.enter(bytes);
    if (busy !== undefined) {
      recordAdmissionRefusal();
      return fail(busy);
    }
    const late = this.#link.clock.now() - frame.issuedAt;
    const remaining = Math.min(call.remainingMs, call.remainingMs - late + clockLeewayMs);
    const input =
      remaining > 0 ? readInput(this.#link.platform.port, served.action, call.payload) : undefined;
    if (input === undefined || input.isErr()) {
      this.admission.leave(bytes);
      return fail(input === undefined ? new TimeoutError() : input.error);
    }
    const deadline = Deadline.after(remaining);
    const open = new OpenCall({
      owner: this,
      action: served.action,
      session,
      epoch,
      answer,
      call,
      bytes,
      deadline,
      now: this.#link.clock.monotonic(),
    });
    this.#calls.add(open);
    recordRunning(1);
    this.wheel.schedule(open, remaining);
    this.#receipts.watch(open);
    this.#run(served, open, input.value);
  }

  /** Runs the handler. Whatever it does, one answer goes out, and nothing is thrown or rejected here. */
  #run({ action, invoke }: Served, call: OpenCall, input: unknown): void {
    const failed = (thrown: unknown) => this.#finish(call, encodeThrown(action, thrown));
    let returned: unknown;
    let later: boolean;
    try {
      returned = invoke(call, input);
      later = isThenable(returned);
    } catch (thrown) {
      return failed(thrown);
    }
    if (!later) return this.#finish(call, encodeReturned(action, returned));
    // Through a promise of ours: a foreign thenable may throw, or settle more than once.
    Promise.resolve(returned).then((value) => this.#finish(call, encodeReturned(action, value)), failed);
  }

  #finish(call: OpenCall, { answer, bug }: EncodedAnswer): void {
    if (bug !== undefined && !call.aborted) {
      this.#link.log.error({ errorId: bug.id, action: call.action.name, err: bug }, "A handler failed");
    }
    call.reply(bug !== undefined && call.stopped ? encodeFailure(stoppedUnder(call)) : answer);
    this.onReturned(call);
    const outcome = answer.status === 0 ? "ok" : "error";
    recordServed(call.action.name, outcome, this.#link.clock.monotonic() - call.startedAt);
    recordRunning(-1);
  }

  onReturned(call: OpenCall): void {
    this.wheel.cancel(call);
    this.#calls.delete(call);
    if (call.zombie) this.admission.zombies -= 1;
    else this.admission.leave(call.bytes);
  }

  onZombie(call: OpenCall): void {
    this.admission.zombies += 1;
    this.admission.leave(call.bytes);
    this.#link.log.warn(
      { action: call.action.name, zombies: this.admission.zombies },
      "A handler goes on although its deadline has passed: it ignores context.signal",
    );
  }

  #abortOf(connection: string, reason: string): void {
    for (const call of this.#calls.ofConnection(connection)) call.abort(reason);
  }

  #abortRevoked(): void {
    for (const call of this.#calls.all()) if (call.session.revoked) call.abort("revoked");
  }

  #abortAll(reason: string): void {
    for (const call of this.#calls.all()) call.abort(reason);
  }
}

function notProvided({ name, api }: Callable): AuthError {
  return new AuthError({
    reason: "denied_by_broker",
    message: `The broker does not let this service provide ${name} of ${api}`,
    hint: "The contract that is installed does not have it: install the one that this process was built with.",
  });
}

function keyOf(action: Callable): string {
  return `${action.kind} ${action.api} ${action.name}`;
}

/** Answers before authentication go to inboxes only: never to a subject that means something. */
function isThenable(value: unknown): boolean {
  return typeof value === "object" && value !== null && "then" in value && typeof value.then === "function";
}
