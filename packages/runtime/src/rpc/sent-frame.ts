import type { Msg } from "@nats-io/nats-core";
import type { ReplySink } from "../connect/inbox.ts";
import type { ProviderRoute } from "../connect/routes.ts";
import type { PendingCall } from "./pending-call.ts";

/** Who reads the answers to frames. */
export interface FrameReader {
  onReply(frame: SentFrame, message: Msg): void;
}

/** A frame that is out: where its answers come to, under which keys, and how many of its calls are still open. */
export class SentFrame implements ReplySink {
  readonly route: ProviderRoute;
  readonly calls: readonly PendingCall[];
  open: number;
  /** Set by the one who sends it. */
  reply = "";
  readonly #reader: FrameReader;

  constructor(reader: FrameReader, route: ProviderRoute, calls: readonly PendingCall[]) {
    this.#reader = reader;
    this.route = route;
    this.calls = calls;
    this.open = calls.length;
  }

  onReply(message: Msg): void {
    this.#reader.onReply(this, message);
  }
}
