import {
  AuthError,
  BusyError,
  noticeGetSubject,
  type RefusalCode,
  type TrellisError,
  UnavailableError,
} from "@trellis/protocol";
import type { Link } from "../connect/link.ts";
import { backoffDelay } from "../lifecycle/backoff.ts";
import { systemTimers } from "../lifecycle/timers.ts";
import type { CallLane } from "./call-lane.ts";
import type { CallResult, PendingCall } from "./pending-call.ts";
import type { PendingCalls } from "./pending-calls.ts";
import type { SentFrame } from "./sent-frame.ts";

export interface NoResponderRetry {
  /** Give up after this long, ms. */
  readonly maxElapsed: number;
  /** First pause, ms. */
  readonly initial: number;
  /** Longest pause, ms. */
  readonly max: number;
}

/** How often a call for an API that nobody provides asks the control plane again, ms. */
const unboundRetryMs = 300;

/**
 * What happens to calls that came to nothing for a reason that may pass: they go again within their
 * deadline, as far as that is safe.
 */
export class CallRecovery {
  readonly #link: Link;
  readonly #pending: PendingCalls;
  readonly #retry: NoResponderRetry | false;
  /** Lanes for which the control plane is being asked, or will be in a moment. */
  readonly #asking = new Set<CallLane>();

  constructor(link: Link, pending: PendingCalls, retry: NoResponderRetry | false) {
    this.#link = link;
    this.#pending = pending;
    this.#retry = retry;
  }

  /** Ends a call with its result, unless the provider was busy or stopping and the call may simply go again. */
  onResult(call: PendingCall, result: CallResult): void {
    if (result.isOk() || call.action.idempotent === false) return call.settle(result);
    const pause = pauseBefore(result.error);
    if (pause === undefined || pause >= call.left(this.#link.clock.monotonic())) return call.settle(result);
    this.#pending.resubmitAfter(call, pause);
  }

  /** Nobody serves the action: it was not begun, so any call may go again. */
  onNoResponders(frame: SentFrame): void {
    const now = this.#link.clock.monotonic();
    for (const call of this.#pending.openOf(frame)) {
      if (call.provider !== undefined) continue; // a provider has it, and told so: this was not the broker
      const elapsed = now - call.startedAt;
      if (this.#retry === false || elapsed >= this.#retry.maxElapsed) call.fail(noResponders(call));
      else {
        const delay = Math.min(backoffDelay(call.attempts, this.#retry), this.#retry.maxElapsed - elapsed);
        this.#pending.resubmitAfter(call, delay);
      }
    }
  }

  /** A provider turned a frame away without knowing us. Anybody may say so: it is a hint to retry, once. */
  onRefusal(frame: SentFrame, code: RefusalCode): void {
    const again: PendingCall[] = [];
    for (const call of this.#pending.openOf(frame)) {
      if (call.provider !== undefined) continue; // it was accepted: this refusal is not about it
      if (call.refused) {
        call.fail(refused(call, code));
        continue;
      }
      call.refused = true;
      this.#pending.takeBack(call);
      again.push(call);
    }
    if (again.length === 0) return;
    void this.#renewKeys(code, frame.route.deployment).then(() => {
      for (const call of again) if (!call.settled) call.lane.submit(call);
    });
  }

  /** The broker refused to carry frames of this lane; calls that a provider has are not concerned. */
  onDenied(lane: CallLane, error: AuthError): void {
    for (const call of this.#pending.all()) {
      if (call.lane === lane && call.frame !== undefined && call.provider === undefined) call.fail(error);
    }
  }

  /** No deployment provides the API: ask the control plane, and again, for as long as a call waits. */
  async onUnbound(lane: CallLane): Promise<void> {
    if (this.#asking.has(lane)) return;
    this.#asking.add(lane);
    await this.#link.refresher.now();
    this.#asking.delete(lane);
    const { api } = lane.action;
    if (this.#link.routes.route(api) !== undefined) return lane.flush();
    const now = this.#link.clock.monotonic();
    for (const call of this.#pending.all()) {
      if (call.lane !== lane || call.frame !== undefined) continue;
      const patience = this.#retry === false ? 0 : this.#retry.maxElapsed;
      if (now - call.startedAt >= patience) call.fail(notBound(api, this.#link.session.unbound.get(api)));
    }
    if (lane.waiting === 0) return;
    this.#asking.add(lane);
    const again = () => {
      this.#asking.delete(lane);
      lane.flush();
    };
    systemTimers.set(again, unboundRetryMs, { background: true });
  }

  async #renewKeys(code: RefusalCode, deployment: string): Promise<void> {
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
}

/** How long to wait before the call goes again, ms; `undefined` for an error that is the answer. */
function pauseBefore(error: TrellisError): number | undefined {
  if (error instanceof BusyError) return error.retryAfterMs * (0.5 + Math.random());
  return error instanceof UnavailableError && error.reason === "provider_lost" ? 0 : undefined;
}

function noResponders(call: PendingCall): UnavailableError {
  const message = `No instance serves ${call.action.name} at the moment`;
  return new UnavailableError({ reason: "no_responders", message });
}

function refused(call: PendingCall, code: RefusalCode): AuthError {
  const reason = code === "malformed" ? "mac_invalid" : code.replace("-", "_");
  return new AuthError({ reason, message: `The provider turned ${call.action.name} away: ${code}` });
}

function notBound(api: string, reason: string | undefined): UnavailableError {
  return new UnavailableError({
    reason: "not_bound",
    message: `No deployment provides ${api}${reason === undefined ? "" : `: ${reason}`}`,
    hint: "Install and start a service that implements it; `trellis services` lists what runs.",
  });
}
