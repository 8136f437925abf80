import { encodeFeedChallenge, MAX_FRAME_SESSIONS } from "@trellis/protocol";
import type { CallerEpoch } from "../connect/caller-session.ts";
import type { Link } from "../connect/link.ts";
import { afterTick } from "../lifecycle/tick.ts";
import type { ProducerSession } from "./producer-session.ts";

/** Asks consumers for a sign of life: one challenge for all sessions of a caller that are due in one turn. */
export class Challenges {
  readonly #link: Link;
  readonly #due = new Set<ProducerSession>();

  constructor(link: Link) {
    this.#link = link;
  }

  /** Asks about the session at the end of this turn. */
  ask(session: ProducerSession): void {
    // The first challenge went with the answer to the open.
    if (session.sender.phase === "proving") return;
    if (this.#due.size === 0) afterTick(() => this.#send());
    this.#due.add(session);
  }

  /** 48 random bits, not 0. */
  nonce(): number {
    const bytes = this.#link.platform.port.random(6);
    return bytes.reduce((sum, byte) => sum * 256 + byte, 0) || 1;
  }

  #send(): void {
    const byCaller = new Map<CallerEpoch, ProducerSession[]>();
    for (const session of this.#due) {
      const group = byCaller.get(session.epoch);
      if (group === undefined) byCaller.set(session.epoch, [session]);
      else group.push(session);
    }
    this.#due.clear();
    for (const [epoch, group] of byCaller) {
      for (let at = 0; at < group.length; at += MAX_FRAME_SESSIONS) {
        this.#challenge(epoch, group.slice(at, at + MAX_FRAME_SESSIONS));
      }
    }
  }

  #challenge(epoch: CallerEpoch, sessions: readonly ProducerSession[]): void {
    const { platform, broker, clock } = this.#link;
    // By way of any of them: a subject that is just being given up would lose the same challenge again and again.
    const subject = sessions[Math.floor(Math.random() * sessions.length)]?.subject;
    if (subject === undefined) return;
    const nonce = this.nonce();
    const now = clock.monotonic();
    for (const { sender } of sessions) sender.asked(nonce, now);
    const frame = encodeFeedChallenge(platform.port, {
      kind: "challenge",
      epoch: epoch.number,
      nonce,
      sessions: sessions.map(({ id }) => id),
      subject,
      key: epoch.keys.reply,
    });
    broker.publish(subject, frame);
  }
}
