// Frames of feeds. All integers are big-endian.
//
// A feed is opened by a call (a request frame on `feed.v1...`), whose answer names the provider's connection and the
// session. From then on the provider sends to the reply subject that the caller named when it opened, and the caller
// sends control frames to the provider's connection.
//
//   items      version u8 | kind u8 = 16 | session 16 | sequence u64 | JSON array of items                | mac 32
//   end        version u8 | kind u8 = 17 | session 16 | sequence u64 | reason u8 | JSON error envelope    | mac 32
//   challenge  version u8 | kind u8 = 18 | epoch u32 | nonce u64 | sessions 16 each                       | mac 32
//   gone       version u8 | kind u8 = 19 | epoch u32 | nonce u64 = 0 | sessions 16 each                   | mac 32
//   control    version u8 | kind u8 = 3  | epoch u32 | digest 32 | counter u64 | issued at u64 | notes    | mac 32
//
//   note       session 16 | kind u8 | nonce u64 | received u64 | consumed u64
//
// Items and ends are authenticated by a key of their session alone; challenges by the reply key of caller and route,
// control frames by its request key. Every kind and direction has a domain label of its own.
//
// Invariants are those of RPC frames: decoding is total and copies nothing, one frame has one spelling, the MAC
// covers every byte before it and the subject.

/** Which frame of a feed; apart from the flags of RPC frames, so that neither can be taken for the other. */
export const FEED_FRAME = { items: 16, end: 17, challenge: 18, gone: 19 } as const;

export const FEED_ITEMS_LABEL = "trellis.feed.items.v1";
export const FEED_END_LABEL = "trellis.feed.end.v1";
export const FEED_CHALLENGE_LABEL = "trellis.feed.challenge.v1";
export const FEED_GONE_LABEL = "trellis.feed.gone.v1";
export const FEED_CONTROL_LABEL = "trellis.feed.control.v1";
export const FEED_SESSION_LABEL = "trellis.feed.session.v1";

export const SESSION_ID_LENGTH = 16;
/** version, kind, session, sequence */
export const SESSION_FRAME_HEADER = 26;
/** How many sessions one challenge may name, and one control frame. */
export const MAX_FRAME_SESSIONS = 1024;
/** How many items one frame may hold: what a consumer keeps is bounded whatever its provider sends. */
export const MAX_FEED_ITEMS = 256;
