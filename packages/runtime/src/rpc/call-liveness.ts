import { CancelledError, type ConnectionEnd, TransportError, UnavailableError } from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import { systemTimers, type Timer } from "../lifecycle/timers.ts";
import { CallControl } from "./call-control.ts";
import type { PendingCall } from "./pending-call.ts";
import type { PendingCalls } from "./pending-calls.ts";

const sweepMs = 500;
/** After this long without a sign of life a provider is asked; after the second span it is given up. */
const silenceMs = 2_000;
const pingWaitMs = 1_500;

/**
 * Sees to it that no call waits for somebody who is gone: the platform tells of ended connections, and a
 * provider that has been silent for a while is asked.
 */
export class CallLiveness {
  readonly #link: Link;
  readonly #pending: PendingCalls;
  readonly #control: CallControl;
  #sweeper: Timer | undefined;

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
    this.#sweeper ??= systemTimers.set(() => this.#sweep(), sweepMs, { background: true });
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
      else if (call.provider === undefined) this.#ping(call);
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
    if (call.action.idempotent !== false) return this.#pending.resubmit(call);
    call.fail(
      new UnavailableError({
        reason: "provider_lost",
        message: `The instance that was handling ${call.action.name} is gone; whether it finished is not known`,
      }),
    );
  }

  #ping(call: PendingCall): void {
    call.pinged = true;
    this.#control.ping(call);
  }

  #sweep(): void {
    this.#sweeper = undefined;
    const now = this.#link.clock.monotonic();
    let pinging = false;
    for (const call of this.#pending.all()) {
      if (call.frame === undefined) continue;
      const silent = now - call.heardAt;
      if (call.pinged && silent > silenceMs + pingWaitMs) this.#onLost(call);
      else if (!call.pinged && silent > silenceMs) this.#ping(call);
      pinging ||= call.pinged;
    }
    if (!pinging) this.#control.forgetPings();
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
