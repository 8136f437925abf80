import { CancelledError, type ConnectionEnd, TransportError, UnavailableError } from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import { CallControl } from "./call-control.ts";
import type { PendingCall } from "./pending-call.ts";
import type { PendingCalls } from "./pending-calls.ts";

const sweepMs = 500;
/** After so long without a sign of life a provider is asked, and asked again. */
const silenceMs = 2_000;
/**
 * After so long it is given up, although the broker still has it: a process that works through a blocked event
 * loop for some seconds is not lost. (One that is gone is reported by the broker at once.)
 */
const lostMs = 8_000;
/** How long an instance may take to claim a call of which it is not known who has it. */
const claimMs = 1_500;

/**
 * Sees to it that no call waits for somebody who is gone: the platform tells of ended connections, and a
 * provider that has been silent for a while is asked.
 */
export class CallLiveness {
  readonly #link: Link;
  readonly #pending: PendingCalls;
  readonly #control: CallControl;
  #sweeper: Timer | undefined;
  #sweepDue = 0;

  constructor(link: Link, pending: PendingCalls) {
    this.#link = link;
    this.#pending = pending;
    this.#control = new CallControl(link, {
      onAlive: (sequence) => this.#onAlive(sequence),
      onGone: (sequences) => this.#onGone(sequences),
    });
    pending.onAbandoned = (call) => this.#control.cancel(call, call.provider);
    link.listen({
      onDown: () => this.#onDown(),
      onConnectionEnd: (end) => this.#onConnectionEnd(end),
      onClosed: (reason) => this.#onClosed(reason),
    });
  }

  /** Looks after a call that begins. */
  watch(): void {
    if (this.#sweeper !== undefined) return;
    this.#sweepDue = this.#link.clock.monotonic() + sweepMs;
    this.#sweeper = systemTimers.set(() => this.#sweep(), sweepMs, { background: true });
  }

  #onDown(): void {
    for (const call of this.#pending.all()) {
      if (call.frame === undefined) continue;
      if (call.action.idempotent !== false) this.#pending.resubmit(call);
      else call.fail(connectionLost(call));
    }
  }

  #onConnectionEnd(end: ConnectionEnd): void {
    for (const call of this.#pending.all()) {
      if (call.frame?.route.deployment !== end.deployment) continue;
      if (call.provider === end.connection) this.#onLost(call);
      // Nobody has told yet who has it: ask all of them.
      else if (call.provider === undefined) this.#ping(call, this.#link.clock.monotonic() + claimMs);
    }
  }

  #onClosed(reason: string): void {
    this.#sweeper?.clear();
    this.#control.forgetPings();
    this.#pending.failAll(() => new CancelledError({ reason }));
  }

  #onAlive(sequence: number): void {
    const call = this.#pending.get(sequence);
    if (call === undefined) return;
    call.heard(this.#link.clock.monotonic());
  }

  #onGone(sequences: readonly number[]): void {
    for (const sequence of sequences) {
      const call = this.#pending.get(sequence);
      if (call?.frame !== undefined && call.asked) this.#onLost(call);
    }
  }

  #onLost(call: PendingCall): void {
    if (call.action.idempotent !== false) return this.#pending.resubmit(call);
    call.fail(
      new UnavailableError({
        reason: "provider_lost",
        message: `The instance that was handling ${call.action.name} is gone; whether it finished is not known`,
      }),
    );
  }

  #ping(call: PendingCall, giveUpAt: number): void {
    call.askedAt = this.#link.clock.monotonic();
    call.giveUpAt = Math.min(call.giveUpAt, giveUpAt);
    this.#control.ping(call);
  }

  #sweep(): void {
    this.#sweeper = undefined;
    const now = this.#link.clock.monotonic();
    // Signs of life that came while this process stood still are read after this: they are waited for.
    const stalled = Math.max(0, now - this.#sweepDue);
    let asking = false;
    for (const call of this.#pending.all()) {
      if (call.frame === undefined) continue;
      if (stalled > sweepMs) call.excuse(stalled);
      if (now >= call.giveUpAt) this.#onLost(call);
      else if (now - Math.max(call.heardAt, call.askedAt) > silenceMs)
        this.#ping(call, call.heardAt + lostMs);
      asking ||= call.asked;
    }
    if (!asking) this.#control.forgetPings();
    if (this.#pending.size > 0) this.watch();
  }
}

function connectionLost(call: PendingCall): TransportError {
  return new TransportError({
    code: "trellis.connection.lost",
    message: `The connection was lost while ${call.action.name} was under way; whether it was carried out is not known`,
    hint: "Declare the action `idempotent: true` if it may run twice: then it is retried by itself.",
  });
}
