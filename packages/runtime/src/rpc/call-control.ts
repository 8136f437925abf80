import type { Msg } from "@nats-io/nats-core";
import {
  type ControlKind,
  controlSubject,
  decodeReplyFrame,
  encodeControlFrame,
  MAX_CONTROL_IDS,
  RESULT_STATUS,
  verifyReplyFrame,
} from "@trellis/protocol";
import { isNoResponders } from "../connect/inbox.ts";
import type { Link } from "../connect/link.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import { afterTick } from "../lifecycle/tick.ts";
import type { PendingCall } from "./pending-call.ts";
import { sequenceOf } from "./request-ids.ts";

interface Batch {
  readonly kind: ControlKind;
  readonly route: ProviderRoute;
  readonly target: string;
  readonly requestIds: Uint8Array[];
}

export interface CallControlOptions {
  /** A provider said that it still has the call. */
  onAlive(sequence: number): void;
  /** Nobody listens there any more. */
  onGone(sequences: readonly number[]): void;
}

/** Control messages about calls that are with a provider: stop, and "do you still have it?". Batched by tick. */
export class CallControl {
  readonly #link: Link;
  readonly #options: CallControlOptions;
  readonly #batches = new Map<string, Batch>();
  readonly #open = new Set<string>();
  #scheduled = false;

  constructor(link: Link, options: CallControlOptions) {
    this.#link = link;
    this.#options = options;
  }

  cancel(call: PendingCall, provider: string | undefined): void {
    this.#add("cancel", call, provider);
  }

  ping(call: PendingCall): void {
    this.#add("ping", call, call.provider);
  }

  /** Lets go of the reply subjects of pings that are over. */
  forgetPings(): void {
    for (const reply of this.#open) this.#link.replies.release(reply);
    this.#open.clear();
  }

  #add(kind: ControlKind, call: PendingCall, provider: string | undefined): void {
    const route = call.frame?.route;
    if (route === undefined) return;
    const target = provider ?? "all";
    const key = `${kind} ${route.deployment} ${route.epoch} ${target}`;
    let batch = this.#batches.get(key);
    if (batch === undefined) {
      batch = { kind, route, target, requestIds: [] };
      this.#batches.set(key, batch);
    }
    batch.requestIds.push(call.requestId);
    if (this.#scheduled) return;
    this.#scheduled = true;
    afterTick(() => this.#flush());
  }

  #flush(): void {
    this.#scheduled = false;
    if (this.#link.isClosed) return this.#batches.clear();
    for (const batch of this.#batches.values()) {
      for (let at = 0; at < batch.requestIds.length; at += MAX_CONTROL_IDS) {
        this.#send(batch, batch.requestIds.slice(at, at + MAX_CONTROL_IDS));
      }
    }
    this.#batches.clear();
  }

  #send({ kind, route, target }: Batch, requestIds: readonly Uint8Array[]): void {
    const { broker, clock, platform } = this.#link;
    const subject = controlSubject(route.deployment, target);
    const reply = kind === "ping" ? this.#openPing(route, requestIds) : "";
    const frame = encodeControlFrame(platform.port, {
      kind,
      header: {
        epoch: route.epoch,
        digest: route.digest,
        counter: route.nextCounter(),
        issuedAt: clock.now(),
      },
      requestIds,
      subject,
      reply,
      key: route.keys.request,
    });
    broker.publish(subject, frame, reply === "" ? undefined : reply);
  }

  #openPing(route: ProviderRoute, requestIds: readonly Uint8Array[]): string {
    const onReply = (message: Msg): void => {
      if (isNoResponders(message)) this.#options.onGone(requestIds.map(sequenceOf));
      else this.#onPong(route, reply, message);
    };
    const reply = this.#link.replies.open({ onReply }, route.replyScope);
    this.#open.add(reply);
    return reply;
  }

  #onPong(route: ProviderRoute, reply: string, message: Msg): void {
    const { port } = this.#link.platform;
    const frame = decodeReplyFrame(port, message.data);
    if (frame?.kind !== "results" || !verifyReplyFrame(port, { frame, reply, key: route.keys.reply })) return;
    for (const { status, requestId } of frame.results) {
      if (status === RESULT_STATUS.receipt) this.#options.onAlive(sequenceOf(requestId));
    }
  }
}
