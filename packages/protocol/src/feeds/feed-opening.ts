import { Type } from "typebox";

/** The longest reply subject that a provider takes. */
const MAX_SUBJECT = 512;

/** What opens a feed: the payload of the request frame is the JSON of this. */
export interface FeedOpening {
  /** In the input form of the feed's schema; `null` where it has none. */
  readonly input: unknown;
  /** The caller's reply subject that frames are to go to, under its own inbox. */
  readonly frames: string;
}

/** The opening of a parsed payload; `undefined` when it is none. The input is not looked at. */
export function readFeedOpening(payload: unknown): FeedOpening | undefined {
  if (typeof payload !== "object" || payload === null) return undefined;
  if (!("input" in payload) || !("frames" in payload)) return undefined;
  const { input, frames } = payload;
  if (typeof frames !== "string" || frames.length > MAX_SUBJECT) return undefined;
  return Object.keys(payload).length === 2 ? { input, frames } : undefined;
}

/**
 * The provider's answer to an open: who has the session, and the first challenge. The producer starts once it is
 * answered: then, and only then, it is known that what it makes can arrive.
 */
export const FeedOpenedSchema = Type.Object({
  /** The provider's connection. */
  connection: Type.String({ pattern: "^[A-Za-z0-9_-]{1,256}$" }),
  /** 32 hexadecimal digits. */
  session: Type.String({ pattern: "^[0-9a-f]{32}$" }),
  challenge: Type.Integer({ minimum: 1, maximum: 281_474_976_710_655 }),
});

export interface FeedOpened {
  readonly connection: string;
  readonly session: string;
  readonly challenge: number;
}
