import { transcript } from "../bytes/transcript.ts";
import type { MacKey, Port } from "../port/port.ts";
import { FEED_SESSION_LABEL, SESSION_ID_LENGTH } from "./feed-layout.ts";

/**
 * The key of one session's items: HMAC, by the reply key of caller and route, of the provider's connection, the
 * subject that the items go to and the session. A replayed open at another replica, or at the same one later, has
 * another connection or another session, and so another key.
 */
export function deriveFeedKey(
  port: Port,
  input: { replyKey: MacKey; connection: string; subject: string; session: Uint8Array },
): MacKey {
  const { replyKey, connection, subject, session } = input;
  if (session.length !== SESSION_ID_LENGTH) throw new RangeError("A session id is 16 bytes.");
  return port.macKey(port.mac(replyKey, transcript(FEED_SESSION_LABEL, connection, subject), session));
}
