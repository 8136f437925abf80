import type { FeedAction } from "@trellis/contract";
import {
  encodeError,
  encodeJson,
  FEED_ITEMS_OVERHEAD,
  TransportError,
  type TrellisError,
  UnexpectedError,
} from "@trellis/protocol";
import { err, ok, type Result } from "@trellis/result";
import type { Link } from "../connect/link.ts";

/** JSON text of an item, and its length in bytes. */
export interface EncodedItem {
  readonly text: string;
  readonly bytes: number;
}

/** The two brackets of a list of one. */
const brackets = 2;

/** Validates and writes one item. What does not fit is the producer's mistake, but for its size. */
export function encodeItem(
  link: Link,
  feed: FeedAction,
  item: unknown,
): Result<EncodedItem, UnexpectedError | TransportError> {
  const issues = feed.event.issues(item);
  if (issues !== undefined) return unfit(`An item of ${feed.name} does not fit its contract`, issues);
  const encoded = encodeJson(item);
  if (!encoded.ok) return unfit(`An item of ${feed.name} holds what JSON cannot carry`, encoded.issues);
  const { text } = encoded;
  const bytes = link.platform.port.utf8.length(text);
  const room = link.broker.maxPayload - FEED_ITEMS_OVERHEAD - brackets;
  if (bytes <= room) return ok({ text, bytes });
  const message = `An item is too large: ${bytes} bytes, the limit is ${room}.`;
  return err(new TransportError({ code: "trellis.feed.item_too_large", message }));
}

function unfit(message: string, issues: unknown): Result<never, UnexpectedError> {
  return err(new UnexpectedError({ message, cause: { issues } }));
}

/** What the consumer is told of an item that could not be sent. */
export function itemFailure(error: TrellisError): string {
  const envelope = encodeError(error);
  // The text of a transport error stays at home; this one holds nothing but two sizes.
  const { message } = error.type === "TransportError" ? error : envelope;
  return JSON.stringify({ ...envelope, message });
}
