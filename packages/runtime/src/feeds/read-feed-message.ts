import type { Msg } from "@nats-io/nats-core";
import {
  decodeFeedChallenge,
  decodeFeedFrame,
  type FeedChallenge,
  type FeedFrame,
  type MacKey,
  type Port,
  verifyFeedChallenge,
  verifyFeedFrame,
} from "@trellis/protocol";
import { isNoResponders } from "../connect/inbox.ts";

/** What came on the subject of a session: authentic, or nothing that counts. */
export type FeedMessage =
  | FeedFrame
  | FeedChallenge
  /** The broker's word: nobody listens at the provider's connection. */
  | { readonly kind: "absent" }
  | { readonly kind: "ignored"; readonly reason: "malformed" | "forged" };

export interface FeedKeys {
  readonly subject: string;
  /** Of the session. */
  readonly key: MacKey;
  /** Reply keys of the routes under which the provider may speak of several sessions at once. */
  readonly replyKeys: readonly MacKey[];
}

/** Decodes and authenticates a message. */
export function readFeedMessage(
  port: Port,
  message: Msg,
  { subject, key, replyKeys }: FeedKeys,
): FeedMessage {
  if (isNoResponders(message)) return { kind: "absent" };
  const frame = decodeFeedFrame(port, message.data);
  if (frame !== undefined) return verifyFeedFrame(port, { frame, subject, key }) ? frame : forged;
  const challenge = decodeFeedChallenge(port, message.data);
  if (challenge === undefined) return { kind: "ignored", reason: "malformed" };
  const authentic = replyKeys.some((replyKey) =>
    verifyFeedChallenge(port, { frame: challenge, subject, key: replyKey }),
  );
  return authentic ? challenge : forged;
}

const forged = { kind: "ignored", reason: "forged" } as const;
