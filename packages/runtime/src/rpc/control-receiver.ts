import type { Msg } from "@nats-io/nats-core";
import {
  type AuthError,
  type ControlFrame,
  controlSubject,
  decodeControlFrame,
  encodeReceipt,
  encodeReplyFrame,
  RESULT_STATUS,
  verifyControlFrame,
} from "@trellis/protocol";
import type { CallerEpoch, CallerSession } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";
import { turnsIdle } from "../lifecycle/tick.ts";
import { findCaller, seesRevocations, senderOf, staleness } from "./authenticate-frame.ts";
import type { OpenCalls } from "./open-calls.ts";

/** A frame holds this many results at the most. */
const maxPongs = 64;

/** A surface with control messages of its own, on the same subjects. */
export interface ControlTaker {
  /** By the looks of it: nothing is authenticated yet. */
  claims(data: Uint8Array): boolean;
  take(message: Msg): void;
}

/**
 * Takes cancels and pings, on subjects of their own: they work while the provider is too busy for calls. A
 * control message reaches only the sender's own calls.
 */
export class ControlReceiver {
  readonly #link: Link;
  readonly #calls: OpenCalls;
  readonly #takers: ControlTaker[] = [];

  constructor(link: Link, calls: OpenCalls) {
    this.#link = link;
    this.#calls = calls;
  }

  /** Hands control messages of another kind to the surface that knows them. */
  add(taker: ControlTaker): void {
    this.#takers.push(taker);
  }

  start(onDenied: (error: AuthError) => void): { drain(): Promise<void> }[] {
    const { assignment, connection } = this.#link.session;
    return [connection, "all"].map((target) =>
      this.#link.broker.subscribe(controlSubject(assignment.deployment, target), {
        onMessage: (message) => void this.#onMessage(message),
        onDenied,
      }),
    );
  }

  async #onMessage(message: Msg): Promise<void> {
    const frame = decodeControlFrame(this.#link.platform.port, message.data);
    if (frame === undefined) return this.#takers.find((taker) => taker.claims(message.data))?.take(message);
    const { callers } = this.#link;
    let session = callers.get(frame.digestText);
    // Whoever has calls here is known; only after a refresh can the first message be a control message.
    if (session === undefined && seesRevocations(this.#link))
      session = await callers.load(frame.digestText, senderOf(message.reply ?? ""));
    const found = findCaller(this.#link, frame, session);
    if (found.kind !== "session") return;
    this.#receive(message, frame, found);
  }

  #receive(message: Msg, frame: ControlFrame, found: { session: CallerSession; epoch: CallerEpoch }): void {
    const { port } = this.#link.platform;
    const { subject, reply = "" } = message;
    if (!verifyControlFrame(port, { frame, subject, reply, key: found.epoch.keys.request })) return;
    if (staleness(this.#link, frame, found) !== undefined) return;
    const { connection, inbox } = found.session.authorization;
    if (frame.kind === "cancel") {
      // A cancel overtakes requests that wait for their turn: those it finds when they have had it.
      const early = this.#cancel(
        connection,
        frame.requestIds.map((id) => id.slice()),
      );
      if (early.length > 0) void turnsIdle().then(() => this.#cancel(connection, early));
      return;
    }
    if (!reply.startsWith(`${inbox}.r.`)) return;
    const held = frame.requestIds.filter((id) => this.#calls.find(connection, id) !== undefined);
    this.#pong({ held, reply, epoch: frame.epoch, keys: found.epoch });
  }

  /** Aborts the calls that are open; gives the ids of which none is known. */
  #cancel(connection: string, requestIds: readonly Uint8Array[]): readonly Uint8Array[] {
    return requestIds.filter((id) => {
      const call = this.#calls.find(connection, id);
      call?.abort("cancelled");
      return call === undefined;
    });
  }

  #pong(pong: { held: readonly Uint8Array[]; reply: string; epoch: number; keys: CallerEpoch }): void {
    const { platform, broker, session } = this.#link;
    for (let at = 0; at < pong.held.length; at += maxPongs) {
      const results = pong.held.slice(at, at + maxPongs).map((requestId) => ({
        requestId,
        status: RESULT_STATUS.receipt,
        payload: encodeReceipt(session),
      }));
      const { epoch, reply } = pong;
      broker.publish(
        reply,
        encodeReplyFrame(platform.port, { epoch, results, reply, key: pong.keys.keys.reply }),
      );
    }
  }
}
